#!/usr/bin/env python3
"""The second verifier of the Baton ledger, written from docs/protocol/ledger.md and docs/reference/guarded.md, and from nothing else.

    verify.py PATH [--checkpoint FILE] [--trust FILE]   a data directory, a bundle or one segment
    verify.py --proof FILE [--trust FILE]               a proof of one event, or of consistency
    verify.py --batch                                   one JSON request per line of standard input

It prints one JSON object and ends with 0 (pass, pass-with-warnings), 7 (fail) or 8 (unknown). It stops at the first failure.
Section numbers are those of the page. It needs Python 3.9 and the package "cryptography".
"""
import argparse, base64, datetime, decimal, functools, hashlib, itertools, json, re, sys  # noqa: E401
from pathlib import Path
from types import SimpleNamespace

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from verify_guarded import Fault, Guard, require

MAX_LINE, MAX_DEPTH, MAX_ARTIFACTS, MAX_SEEN, MAX_INTEGER = 1_048_576, 64, 256, 4096, 2**53 - 1
MAX_NOTE, MAX_NOTE_SIGNATURES, CHUNK, MAX_NODES, MAX_PROOF = 16_384, 16, 524_288, 64, MAX_LINE + 65_536
WARNINGS = {"TORN_TAIL": "the journal ends inside a line or a batch", "NO_CHECKPOINT": "a cut-off tail cannot be excluded",
            "KEY_UNPINNED": "the ledger's key is known only from the input", "ARTIFACT_UNCHECKED": "artifacts are not at hand",
            "FINALIZATION_INCOMPLETE": "a guarded run has no end", "CLAIM_DISPUTED": "a challenge is not answered",
            "OVERRIDE_RECORDED": "a person let something through"}


def well_formed(condition, detail): require(condition, "SCHEMA_INVALID", detail)
def key_fits(condition, detail): require(condition, "KEY_UNKNOWN", detail)
def agree(condition, detail): require(condition, "CHECKPOINT_MISMATCH", detail)
def sha256(*parts): return hashlib.sha256(b"".join(parts)).digest()
def size_and_hash(data): return len(data), sha256(data).hex()
def key_id(public): return "key_ed25519_" + sha256(public).hex()[:16]


def from_base64(encoded, length=None):
    """The bytes, or None unless the text is exactly what the encoder would print (padding, unused bits zero)."""
    try:
        raw = base64.b64decode(encoded, validate=True)
    except ValueError:
        return None
    return raw if base64.b64encode(raw).decode() == encoded and length in (None, len(raw)) else None


# ---- Canonical JSON (§2) ----

def depths(line):
    """The depth after each bracket outside of strings, found without recursion, so that no input exhausts the stack."""
    brackets = re.findall(rb"[\[\]{}]", re.sub(rb'(?s)"(?:[^"\\]+|\\.)*"?', b"", line))
    return list(itertools.accumulate(1 if bracket in b"[{" else -1 for bracket in brackets))


def es_number(value):
    """A double as ECMAScript prints it. Python's repr has the same digits, but uses an exponent already below 0.0001."""
    if value.is_integer() and abs(value) < 1e21:
        raise ValueError("a number that prints without point and exponent, but is not written so or out of range")
    if 1e-6 <= abs(value) < 1e-4:
        return format(decimal.Decimal(repr(value)), "f")
    return repr(value).replace("e-0", "e-")


def jcs(value):
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return b"{%s}" % b",".join(jcs(name) + b":" + jcs(value[name]) for name in names)
    if isinstance(value, list):
        return b"[%s]" % b",".join(map(jcs, value))
    if type(value) is int and abs(value) > MAX_INTEGER:
        raise ValueError("an integer out of range")
    return (es_number(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)).encode("utf-8")


def parse_canonical(line):
    """What the line means, if printing that gives the same line; where a member name occurs twice, for one, it does not."""
    well_formed(len(line) <= MAX_LINE and max(depths(line), default=0) <= MAX_DEPTH, "the line is too long or nested too deep")
    try:
        value = json.loads(line.decode("utf-8"))
        canonical = isinstance(value, dict) and jcs(value) == line
    except ValueError as error:
        raise Fault("SCHEMA_INVALID", "not canonical JSON: %s" % error)
    well_formed(canonical, "not one canonical JSON object")
    return value


# ---- Keys and signatures (§4) ----

FIELD_PRIME, GROUP_ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
CURVE_D = -121665 * pow(121666, -1, FIELD_PRIME)
SMALL_ORDER_Y = [int.from_bytes(bytes.fromhex(encoding), "little") for encoding in (
    "00" * 32, "01" + "00" * 31, "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "ec" + "ff" * 30 + "7f", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")]


@functools.lru_cache(maxsize=65536)
def is_strict_point(encoding):
    """Whether the bytes encode, canonically, a point of the curve that is not of small order."""
    y = int.from_bytes(encoding, "little") & (2**255 - 1)
    if y >= FIELD_PRIME or y in SMALL_ORDER_Y:
        return False
    # The curve is y² - x² = 1 + d·x²·y², hence x² = (y² - 1) / (d·y² + 1). There is such an x where the quotient has a
    # square root, and by Euler's criterion the product has one just when the quotient has. (x = 0 is of small order.)
    return pow((y * y - 1) * (CURVE_D * y * y + 1), (FIELD_PRIME - 1) // 2, FIELD_PRIME) == 1


@functools.lru_cache(maxsize=65536)
def signature_checks(public, message, signature):
    """OpenSSL uses the cofactorless equation but takes weak and non-canonical points, so those are refused first."""
    points_fit = is_strict_point(public) and is_strict_point(signature[:32])
    if not points_fit or len(signature) != 64 or int.from_bytes(signature[32:], "little") >= GROUP_ORDER:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def public_bytes(value):
    """The 32 bytes of a public key in text, or None where it is not one that strict verification takes."""
    public = from_base64(value[8:], 32) if isinstance(value, str) and value.startswith("ed25519:") else None
    return public if public and is_strict_point(public) else None


# ---- The form of a record (§3, §4): each function is, or makes, a test of one value ----

def matching(pattern): return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None
def integer(low, high=MAX_INTEGER): return lambda value: type(value) is int and low <= value <= high
def text(low=0, high=MAX_LINE): return lambda value: isinstance(value, str) and low <= len(value) <= high
def base64_of(length): return lambda value: isinstance(value, str) and from_base64(value, length) is not None
def array(fits, low=0, high=MAX_LINE): return lambda v: isinstance(v, list) and low <= len(v) <= high and all(map(fits, v))
def is_batch(value): return array(integer(1), 2, 2)(value) and value[0] <= value[1] and 2 <= value[1] < 2**32
def is_bool(value): return isinstance(value, bool)
def is_public(value): return public_bytes(value) is not None
def is_decimal(value): return matching("0|[1-9][0-9]{0,15}")(value) and int(value) <= MAX_INTEGER


def members(required, optional={}, others_allowed=False):
    tests = {**required, **optional}
    return lambda value: (isinstance(value, dict) and all(name in value for name in required)
                          and all(tests[name](value[name]) if name in tests else others_allowed for name in value))


def is_time(value):
    form = isinstance(value, str) and re.fullmatch(r"(?a)(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.\d{3}Z", value)
    try:
        # The calendar repeats every 400 years, and Python's has no year 0.
        return bool(form and datetime.datetime(2000 + int(form[1]) % 400, *map(int, form.groups()[1:])))
    except ValueError:
        return False


UUID7 = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
TRACE_ID = "(?:ledger|trc_%s)" % UUID7
is_trace, is_hex, is_key_id = matching(TRACE_ID), matching("[0-9a-f]{64}"), matching("key_ed25519_[0-9a-f]{16}")
is_name, is_origin = matching("[a-z0-9][a-z0-9._-]{0,63}"), matching("(?!.*/trace/)[a-z0-9][a-z0-9._/-]{0,127}")
is_token, is_role = matching("[A-Za-z0-9._-]{1,128}"), matching("planner|executor|critic|auditor|operator|system")
is_artifact = members({"bytes": integer(0), "media_type": text(1, 127), "name": text(1, 255), "sha256": is_hex})
is_record = members({
    "actor": members({"agent": is_name, "role": is_role}, {"key": is_key_id}), "artifacts": array(is_artifact, 0, MAX_ARTIFACTS),
    "at": is_time, "hash": is_hex, "id": matching("evt_" + UUID7), "payload": members({}, others_allowed=True),
    "pos": integer(1), "prev": is_hex, "seq": integer(1), "trace": is_trace, "type": matching("[A-Za-z][A-Za-z0-9_.]{0,63}"),
    "v": integer(1, 1)}, {
    "batch": is_batch, "commit": integer(1), "fence": integer(1), "run": is_token, "session": is_token, "task": is_token,
    "seen": members({"hash": is_hex, "seq": integer(1)}),
    "sig": members({"alg": matching("ed25519"), "key": is_key_id, "value": base64_of(64)})})
BINDING = {"key": is_key_id, "public": is_public, "agent": is_name, "roles": array(is_role, 1)}
KEY_PAYLOADS = {kind: members(tests, others_allowed=True) for kind, tests in {
    "ledger.created": {"origin": is_origin, "key": is_key_id, "public": is_public, "durability": text()},
    "key_bound": BINDING, "key_rotated": {**BINDING, "by": is_key_id},
    "key_revoked": {"key": is_key_id, "reason": text()}}.items()}
MUST_SIGN = """proposal_created proposal_reviewed tool_intent_signed tool_intent_reviewed claim_issued claim_challenged
    final_statement_signed verification_run_completed override_recorded trace_aborted AgentSessionCompleted key_bound
    key_rotated key_revoked ledger.created ledger.recovered task.approved task.rejected ci.reported""".split()
ROLE_OF_TYPE = {kind: role for role, kinds in {
    "planner": "proposal_created", "critic": "proposal_reviewed tool_intent_reviewed claim_challenged",
    "auditor": "verification_run_started verification_run_completed", "operator": "trace_aborted override_recorded",
    "executor": "tool_intent_signed tool_execution_started tool_execution_completed tool_execution_failed artifact_recorded "
                "claim_issued final_statement_signed",
    "system": "session_initialized key_bound key_rotated key_revoked ledger.created ledger.recovered trace.opened trace.closed",
}.items() for kind in kinds.split()}


def parse_record(line):
    """Check 1 of §10, without what concerns a bundle."""
    record = parse_canonical(line)
    require(not integer(2)(record.get("v")), None, "the record is of a newer format version")
    well_formed(is_record(record), "the record has not the members it should")
    well_formed(record.get("commit", 0) < record["pos"], "commit is not before pos")
    well_formed(record["actor"].get("key") == record.get("sig", {}).get("key"), "sig and actor.key differ")
    return record


def body_digest(record):
    apart = ("batch", "commit", "hash", "pos", "prev", "seq", "sig")
    return sha256(jcs({name: value for name, value in record.items() if name not in apart}))


def check_hash(record):
    link = {name: record.get(name) for name in ("batch", "commit", "prev", "seq", "sig")}
    link["bd"] = body_digest(record).hex()
    require(sha256(b"baton/link/v1\n", jcs(link)).hex() == record["hash"], "HASH_MISMATCH", "hash is not what the members give")


def check_event_signature(record, public):
    message, value = b"baton/event/v1\n" + body_digest(record), from_base64(record["sig"]["value"])
    require(signature_checks(public, message, value), "SIG_INVALID", "the signature does not check")


# ---- The tree (§6): proofs are read from their end, and an empty node stands for one that lacks ----

def node(left, right): return sha256(b"\x01", left, right)
def leaf_of(record): return sha256(b"\x00", bytes.fromhex(record["hash"]))
def split_point(size): return 1 << (size - 1).bit_length() - 1


def parse_nodes(encoded):
    nodes = [from_base64(item, 32) for item in encoded]
    well_formed(None not in nodes and len(nodes) <= MAX_NODES, "a node of the proof is malformed, or there are too many")
    return nodes


def root_by_inclusion(leaf, index, size, nodes):
    if size == 1:
        return leaf
    left, sibling = split_point(size), next(nodes, b"")
    if index < left:
        return node(root_by_inclusion(leaf, index, left, nodes), sibling)
    return node(sibling, root_by_inclusion(leaf, index - left, size - left, nodes))


def check_inclusion(record, path, size, root):
    index, nodes = record["pos"] - 1, reversed(path)
    agree(index < size and root_by_inclusion(leaf_of(record), index, size, nodes) == root and not list(nodes),
          "the proof does not lead to the checkpoint's root")


def roots_by_consistency(old_root, old_size, new_size, nodes):
    """The old and the new root that the proof leads to; the old root is known only where the old tree is a whole subtree."""
    if old_size == new_size:
        return (next(nodes, b"") if old_root is None else old_root,) * 2
    left, sibling = split_point(new_size), next(nodes, b"")
    if old_size <= left:
        old, new = roots_by_consistency(old_root, old_size, left, nodes)
        return old, node(new, sibling)
    old, new = roots_by_consistency(None, old_size - left, new_size - left, nodes)
    return node(sibling, old), node(sibling, new)


# ---- Signed notes (§7) ----

def open_note(raw, origin, public):
    """A checkpoint as (None, size, root) or a trace head as (trace id, seq, hash), once form, origin and signature are good."""
    lines = raw.decode("utf-8", "replace").split("\n")
    is_text = "\n".join(lines).encode() == raw and not re.search(rb"[\x00-\x09\x0b-\x1f]", raw)
    agree(is_text and len(raw) <= MAX_NOTE, "the note is too long, not UTF-8 or has control characters")
    agree(6 <= len(lines) <= 5 + MAX_NOTE_SIGNATURES and lines[3] == lines[-1] == "", "the note has not the lines it should")
    about, digest = re.fullmatch(re.escape(origin) + "(?:/trace/(%s))?" % TRACE_ID, lines[0]), from_base64(lines[2], 32)
    agree(about, "the note is of another origin")
    agree(is_decimal(lines[1]) and digest and not (about[1] and lines[1] == "0"), "the note's text is malformed")
    forms = [re.fullmatch("\u2014 ([^ +]+) ([^ ]+)", line) for line in lines[4:-1]]
    signatures = [(form[1], from_base64(form[2]) or b"") for form in forms if form]
    agree(all(forms) and all(len(value) >= 5 for _, value in signatures), "the note has a malformed signature line")
    signed, own = "\n".join(lines[:3] + [""]).encode(), (origin, sha256(origin.encode(), b"\n\x01", public)[:4])
    checks = [signature_checks(public, signed, value[4:]) for name, value in signatures if (name, value[:4]) == own]
    agree(checks and all(checks), "the ledger's key has not signed the note, or its signature does not check")
    return about[1], int(lines[1]), digest


# ---- The checks of one line (§10) ----

def is_creation(record):
    """Whether this is ledger.created in the one place where it may be."""
    return record["type"] == "ledger.created" and record["trace"] == "ledger" and record["seq"] == record["pos"] == 1


class Ledger:
    """What the lines so far have established. A bundle names origin and key beforehand; in a journal the first line does."""

    def __init__(self, stored, origin=None, public=None):
        # `stored` tells size and hash of what is filed under a hash, or None; it is itself None where no bytes are at hand.
        self.stored, self.origin, self.public = stored, origin, public
        self.traces, self.ids, self.cited_sizes, self.leaves, self.subtrees = {}, set(), {}, [], {}

    def accept(self, record):
        """Makes the checks from `seq` on, on a record whose form, hash and place among the lines are good, and takes it in."""
        trace = self.traces.setdefault(record["trace"], SimpleNamespace(hashes=[], keys={}, closed=False, guard=Guard()))
        require(record["seq"] == len(trace.hashes) + 1, "SEQUENCE_GAP", "seq does not count on")
        require(record["id"] not in self.ids, "SEQUENCE_GAP", "the id occurs twice")
        self.check_chain(record, trace)
        # Without the ledger's key, which only its creation tells, checks 5 to 9 cannot be made.
        require(self.public or is_creation(record), "ORDER_VIOLATION", "the first record is not ledger.created")
        require("sig" in record or record["type"] not in MUST_SIGN, "SIG_MISSING", "this type must be signed")
        if record["type"] in KEY_PAYLOADS and (record["type"] != "ledger.created" or is_creation(record)):
            self.apply_key_event(record["type"], record["payload"], record["sig"]["key"], trace.keys)
        self.check_actor(record, trace.keys)
        self.check_order(record, trace.closed)
        trace.guard.check(record)
        self.check_artifacts(record)
        trace.hashes.append(record["hash"])
        trace.closed = record["type"] == "trace.closed"
        self.ids.add(record["id"])
        self.leaves.append(leaf_of(record))

    def check_chain(self, record, trace):
        hashes, seen = trace.hashes, record.get("seen")
        require(record["prev"] == (hashes[-1] if hashes else "0" * 64), "CHAIN_BREAK", "prev is not the hash before")
        if seen and not trace.closed:
            in_reach = seen["seq"] < record["seq"] <= seen["seq"] + MAX_SEEN
            require(in_reach and hashes[seen["seq"] - 1] == seen["hash"], "CHAIN_BREAK", "seen does not name an earlier event")

    def apply_key_event(self, kind, payload, signed_by, keys):
        """Check 6 of a key event. It may take effect at once: its own signer, the ledger's key, is not affected."""
        key_fits(KEY_PAYLOADS[kind](payload), "the payload of the key event is malformed")
        public, new = public_bytes(payload.get("public")), payload["by" if kind == "key_rotated" else "key"]
        if kind == "ledger.created":
            if self.public is None:
                self.origin, self.public = payload["origin"], public
            key_fits((self.origin, self.public) == (payload["origin"], public), "ledger.created names another origin or key")
        key_fits(signed_by == key_id(self.public), "a key event is not signed by the ledger's key")
        key_fits(kind == "key_revoked" or new == key_id(public), "the key id is not that of the public key")
        if kind in ("key_rotated", "key_revoked"):
            old = keys.get(payload["key"])
            key_fits(old and old.valid, "the key is not bound and valid here")
            old.valid = False
        if kind in ("key_rotated", "key_bound"):
            key_fits(new not in keys and new != key_id(self.public), "the trace knows the key already")
            keys[new] = SimpleNamespace(public=public, agent=payload["agent"], roles=payload["roles"], valid=True)

    def check_actor(self, record, keys):
        """Checks 6 to 9."""
        kind, role, roles = record["type"], record["actor"]["role"], None
        if "sig" in record:
            ledger_key = SimpleNamespace(public=self.public, agent="baton", roles=["system"], valid=True)
            signer = {**keys, key_id(self.public): ledger_key}.get(record["sig"]["key"])
            key_fits(signer and signer.agent == record["actor"]["agent"], "the key is not bound to this agent here")
            require(signer.valid, "KEY_REVOKED", "the key was rotated away or revoked before")
            check_event_signature(record, signer.public)
            roles = signer.roles
        require(role == ROLE_OF_TYPE.get(kind, role), "ROLE_VIOLATION", "the role may not make this type")
        require(roles is None or role in roles, "ROLE_VIOLATION", "the role is not one of the key's")

    def check_order(self, record, closed):
        kind, in_ledger = record["type"], record["trace"] == "ledger"
        require(not closed and not (in_ledger and kind == "trace.closed"), "ORDER_VIOLATION", "the trace is closed, or never is")
        if kind == "ledger.created" or in_ledger and record["seq"] == 1:
            require(is_creation(record), "ORDER_VIOLATION", "ledger.created is not what the ledger starts with")

    def check_artifacts(self, record):
        cited = [(artifact["bytes"], artifact["sha256"]) for artifact in record["artifacts"]]
        for size, name in cited:
            self.cited_sizes.setdefault(name, size)
        if self.stored is not None:
            found = [self.stored(name) for _, name in cited]
            require(None not in found, "ARTIFACT_MISSING", "a cited artifact is absent")
            require(found == cited, "ARTIFACT_HASH_MISMATCH", "a cited artifact's bytes or size differ")

    def root(self, size, start=0):
        """The root over some leaves; subtrees are remembered, so that many checkpoints cost little more than one."""
        if size < 2:
            return self.leaves[start] if size else sha256()
        if (start, size) not in self.subtrees:
            left = split_point(size)
            self.subtrees[start, size] = node(self.root(left, start), self.root(size - left, start + left))
        return self.subtrees[start, size]

    def check_note(self, raw, file_name=None):
        """Compares a checkpoint or trace head with the lines; says which trace it is of, and whether it covers the end."""
        trace_id, number, digest = open_note(raw, self.origin, self.public)
        own_name = "%020d" % number if trace_id is None else "%s-%020d" % (trace_id, number)
        agree(file_name in (None, own_name), "the file's name is not what the note in it says")
        hashes = self.traces[trace_id].hashes if trace_id in self.traces else []
        end = len(self.leaves if trace_id is None else hashes)
        require(number <= end, "TAIL_CUT", "the note names events that are not there")
        found = self.root(number) if trace_id is None else bytes.fromhex(hashes[number - 1])
        agree(found == digest, "the note has another root or hash")
        return trace_id, number == end


# ---- The report (§10) ----

NO_END = "the run has no end"


def verify(check, *inputs):
    """Runs one of the checks below, which raises its first failure or returns the ledger's key, and words the answer."""
    # `covered` says whether a note that the reader gave covers the end, and is None where one was expected but not given.
    report = SimpleNamespace(trust=None, covered=False, warnings=[], line=None, pos=None, events=0, head=None)
    failed, code = True, None
    try:
        public = check(report, *inputs)
        require(report.trust is None or public in report.trust, "KEY_UNKNOWN", "the ledger's key is not a trusted one")
        failed = False
    except Fault as fault:
        code, detail = fault.args
    except OSError as error:
        detail = str(error)
    findings = [{"code": code, "line": report.line, "pos": report.pos, "detail": detail}] if failed else []
    if code or not failed:
        report.warnings += ["NO_CHECKPOINT"] * (report.covered is None) + ["KEY_UNPINNED"] * (report.trust is None)
    findings += [{"code": warning, "line": None, "pos": None, "detail": WARNINGS[warning]} for warning in report.warnings]
    verdict = "fail" if code else "unknown" if failed else "pass-with-warnings" if report.warnings else "pass"
    # Nothing is altered of what was cut off, nor of a run that has not ended.
    lacks_end = failed and (code == "TAIL_CUT" or (code, detail) == ("FINALIZATION_INCOMPLETE", NO_END))
    integrity = "intact" if lacks_end or not failed else "broken" if code else "unknown"
    completeness = ("incomplete" if lacks_end or "TORN_TAIL" in report.warnings else "unknown" if failed
                    else "complete" if report.covered and report.trust else "self-consistent")
    return {"verdict": verdict, "integrity": integrity, "completeness": completeness, "events": report.events,
            "head": report.head, "findings": findings}


def count_event(report, record):
    report.line, report.pos, report.events, report.head = None, None, report.events + 1, record["hash"]


# ---- The journal (§1) ----

def split_segment(data, is_last):
    """The lines of a segment, and whether its tail is torn. An empty line, which never parses, stands for a line without end."""
    if not is_last:
        *lines, unterminated = data.split(b"\n")
        return lines + [b""] if unterminated else lines, False
    body, _, torn = data.rpartition(b"\n")
    lines = body.rstrip(b"\n")
    before, _, last = lines.rpartition(b"\n")
    if len(lines) < len(body) and last.startswith(b"{") and len(last) <= MAX_LINE and 0 not in depths(last):
        # A writer was killed here: the beginning of a line stands in front of the pre-fill.
        lines, torn = before.rstrip(b"\n"), last
    return lines.split(b"\n") if lines else [], bool(torn)


def check_place(record, before, number, segment_name):
    """What check 3 demands of `pos`, `batch` and `commit`; the segment's name is given for its first line."""
    require(record["pos"] == number and segment_name in (None, number), "SEQUENCE_GAP", "pos or the segment's name does not fit")
    before = before or {"pos": 0}
    index, count = before.get("batch", [1, 1])
    same_write = record.get("commit") == before.get("commit", before["pos"])
    require("commit" not in record or same_write, "SEQUENCE_GAP", "commit is not that of the line before")
    if index < count:
        require(same_write and record.get("batch") == [index + 1, count], "SEQUENCE_GAP", "a batch is not continued")
    else:
        require(record.get("batch", [1, 1])[0] == 1, "SEQUENCE_GAP", "a batch does not start with its first event")


def check_journal(report, segments, stored, kept, given):
    """Segments are (first pos by name or None, reader) and kept checkpoints (file name, reader), in order."""
    ledger, record, torn = Ledger(stored), None, False
    for which, (first, read) in enumerate(segments, 1):
        lines, torn = split_segment(read(), which == len(segments))
        if not lines and not torn and len(segments) > 1:
            lines = [b""]  # The place where its first line would be must not parse.
        for offset, line in enumerate(lines):
            report.line = report.pos = report.events + 1
            before, record = record, parse_record(line)
            check_hash(record)
            check_place(record, before, report.line, None if offset else first)
            ledger.accept(record)
            count_event(report, record)
    require(record, None, "no events")
    index, count = record.get("batch", [1, 1])
    if torn or index < count:
        report.warnings.append("TORN_TAIL")
    report.warnings += ["FINALIZATION_INCOMPLETE"] * any(trace.guard.is_open() for trace in ledger.traces.values())
    report.warnings += sorted(set().union(*(trace.guard.warnings for trace in ledger.traces.values())))
    if stored is None and ledger.cited_sizes:
        report.warnings.append("ARTIFACT_UNCHECKED")
    for name, read in kept:
        ledger.check_note(read(), name)
    report.covered = None if given is None else ledger.check_note(given) == (None, True)
    return ledger.public


# ---- The bundle (§9): lines are read in their order, and an empty one, which never parses, stands for one that lacks ----

is_header = members({"bundle": integer(1, 1), "events": integer(1), "inline": is_bool, "origin": is_origin, "public": is_public,
                     "size": integer(0), "trace": is_trace})
is_proof = members({"hashes": array(text()), "index": integer(0)})


def unwrap(line, name, fits):
    wrapped = parse_canonical(line)
    well_formed(members({name: fits})(wrapped), "not a well-formed line of " + name)
    return wrapped[name]


def check_artifact_lines(lines, name, size):
    """The chunks of one artifact. What stands around their data is known beforehand, to the byte."""
    chunks, content = max(1, -(-size // CHUNK)), hashlib.sha256()
    for number in range(1, chunks + 1):
        line, after = next(lines, b""), b'","sha256":"%s"}}' % name.encode()
        before = b'{"artifact":{"bytes":%d,"chunk":%d,"chunks":%d,"data":"' % (size, number, chunks)
        encoded = line[len(before):-len(after)]
        data = from_base64(encoded.decode("latin-1"), min(CHUNK, size - (number - 1) * CHUNK))
        well_formed(line == before + encoded + after and data is not None, "not the expected chunk of an artifact")
        content.update(data)
    require(content.hexdigest() == name, "ARTIFACT_HASH_MISMATCH", "the data of an artifact have another hash")


def check_head_and_proof(lines, ledger, header, last):
    """Head, checkpoint and proof must meet in the last event; returns the root they agree on."""
    head = open_note(unwrap(next(lines, b""), "head", text()).encode(), ledger.origin, ledger.public)
    agree(head == (header["trace"], last["seq"], bytes.fromhex(last["hash"])), "the head note does not name the last event")
    of_trace, size, root = open_note(unwrap(next(lines, b""), "checkpoint", text()).encode(), ledger.origin, ledger.public)
    agree(of_trace is None and size == header["size"], "the checkpoint is not the one that the header names")
    proof = unwrap(next(lines, b""), "proof", is_proof)
    path = parse_nodes(proof["hashes"])
    agree(proof["index"] == last["pos"] - 1, "the proof is of another event")
    check_inclusion(last, path, size, root)
    return root


def given_covers_bundle(ledger, header, root, given):
    """A tree does not show which event of a trace is the last, so only a head of this trace can cover the end."""
    trace_id, number, digest = open_note(given, ledger.origin, ledger.public)
    agree(trace_id in (None, header["trace"]), "the given head is of another trace")
    agree(trace_id or number != header["size"] or digest == root, "the given checkpoint has another root")
    return trace_id is not None and ledger.check_note(given) == (trace_id, True)


def expected_report(records, artifacts):
    last, positions = records[-1], sha256(*[b"%d\n" % record["pos"] for record in records])
    return jcs({"report": {"artifacts": artifacts, "closed": last["type"] == "trace.closed", "events": len(records),
                           "head": last["hash"], "positions": positions.hex(), "trace": last["trace"],
                           "signed": sum("sig" in record for record in records)}})


def check_bundle(report, data, given):
    require(data, None, "no events")
    *lines, unterminated = data.split(b"\n")
    lines, records = iter(lines), []
    header = parse_canonical(next(lines, b""))
    well_formed(is_header(header), "the bundle's first line is malformed")
    # Until an artifact's lines come, its first citation says what it is; another one may not contradict.
    ledger = Ledger(lambda name: (ledger.cited_sizes[name], name), header["origin"], public_bytes(header["public"]))
    while len(records) < header["events"]:
        line, report.line = next(lines, b""), len(records) + 1
        well_formed(line.startswith(b'{"event":') and line.endswith(b"}"), "not an event line")
        record = parse_record(line[9:-1])
        well_formed(record["trace"] == header["trace"], "an event of another trace")
        report.pos = record["pos"]
        check_hash(record)
        require(not records or records[-1]["pos"] < record["pos"], "SEQUENCE_GAP", "pos does not ascend")
        ledger.accept(record)
        records.append(record)
        count_event(report, record)
    if header["inline"]:
        for name, size in sorted(ledger.cited_sizes.items()):
            check_artifact_lines(lines, name, size)
    elif ledger.cited_sizes:
        report.warnings.append("ARTIFACT_UNCHECKED")
    guard = ledger.traces[header["trace"]].guard
    require(not guard.is_open() or guard.policy["profile"] != "strict", "FINALIZATION_INCOMPLETE", NO_END)
    report.warnings += ["FINALIZATION_INCOMPLETE"] * guard.is_open() + sorted(guard.warnings)
    root = check_head_and_proof(lines, ledger, header, records[-1])
    stated, further = next(lines, b""), list(lines) or unterminated
    well_formed(parse_canonical(stated) and stated.startswith(b'{"report":{') and not further, "the end is malformed")
    report.covered = None if given is None else given_covers_bundle(ledger, header, root, given)
    expected = expected_report(records, len(ledger.cited_sizes))
    require(stated == expected, "REPORT_MISMATCH", "the bundle's report is not what its events give")
    return ledger.public


# ---- Proofs (§8) ----

def check_event_proof(report, origin, public, lines, notes):
    well_formed(len(lines) >= 2 and lines[1].startswith("index ") and is_decimal(lines[1][6:]), "no index")
    index, path, record = int(lines[1][6:]), parse_nodes(lines[2:]), parse_record(lines[0].encode())
    check_hash(record)
    count_event(report, record)
    require(record["pos"] == index + 1, "SEQUENCE_GAP", "pos is not index + 1")
    if record["actor"].get("key") == key_id(public):
        check_event_signature(record, public)
    of_trace, size, root = open_note(notes, origin, public)
    agree(of_trace is None, "a trace head is no checkpoint")
    check_inclusion(record, path, size, root)
    return {size: root}


def check_consistency_proof(report, origin, public, lines, notes):
    nodes = reversed(parse_nodes(lines))
    # Each checkpoint has one empty line, so the second one here stands between the two.
    *older, newer = notes.split(b"\n\n", 2)
    old_trace, old_size, old_root = open_note(b"\n\n".join(older) + b"\n", origin, public)
    new_trace, new_size, new_root = open_note(newer, origin, public)
    agree(old_trace is new_trace is None and 0 < old_size <= new_size, "these are not an older and a newer checkpoint")
    roots = roots_by_consistency(old_root, old_size, new_size, nodes)
    agree(roots == (old_root, new_root) and not list(nodes), "the trees are not consistent")
    report.events = new_size
    return {old_size: old_root, new_size: new_root}


def check_proof(report, data, given):
    well_formed(len(data) <= MAX_PROOF, "the proof is too long")
    head, empty_line, notes = data.partition(b"\n\n")
    try:
        kind, origin, public, *lines = head.decode("utf-8").split("\n")
    except ValueError:
        raise Fault("SCHEMA_INVALID", "the proof is too short or not UTF-8")
    check = {"baton/proof/v1": check_event_proof, "baton/consistency/v1": check_consistency_proof}.get(kind)
    well_formed(check and is_origin(origin) and is_public(public) and empty_line, "the proof's head is malformed")
    proved = check(report, origin, public_bytes(public), lines, notes)
    if given is not None:
        of_trace, size, root = open_note(given, origin, public_bytes(public))
        agree(of_trace is None and proved.get(size, root) == root, "the given note is a trace head, or has another root")
        report.covered = True if size in proved else None
    return public_bytes(public)


# ---- Where the bytes come from ----

def readers(directory, pattern):
    """The names in a directory that have a form, in order, each with a function that reads the file."""
    found = [(path.name, path.read_bytes) for path in sorted(directory.glob("*")) if re.fullmatch(pattern, path.name)]
    return [(name, read) for name, read in found if int(re.search(r"([0-9]{20})(\.jsonl)?$", name)[1]) <= MAX_INTEGER]


@functools.lru_cache(maxsize=None)
def stored_artifact(directory, name):
    try:
        return size_and_hash((directory / name[:2] / name).read_bytes())
    except OSError:
        return None


def check_files(report, options):
    """What the command line names, read here so that a file that cannot be read is an answer and not a crash."""
    if options.trust:
        report.trust = set(map(public_bytes, re.sub("#.*", "", options.trust.read_text("utf-8", "replace")).split()))
    given = options.checkpoint.read_bytes() if options.checkpoint else None
    if options.proof:
        return check_proof(report, options.proof.read_bytes(), given)
    path = options.path
    if path.is_dir():
        segments = [(int(name[:20]), read) for name, read in readers(path / "events", r"[0-9]{20}\.jsonl")]
        kept = readers(path / "checkpoints", "[0-9]{20}") + readers(path / "checkpoints" / "traces", TRACE_ID + "-[0-9]{20}")
        return check_journal(report, segments, functools.partial(stored_artifact, path / "artifacts" / "sha256"), kept, given)
    data, name = path.read_bytes(), re.fullmatch(r"([0-9]{20})\.jsonl", path.name)
    if data.startswith(b'{"bundle":'):
        return check_bundle(report, data, given)
    return check_journal(report, [(int(name[1]) if name else None, lambda: data)], None, [], given)


def answer_request(request):
    """Batch mode: bytes in the request instead of files, and only the first failure in the answer."""
    data, given, artifacts = base64.b64decode(request["data"]), request.get("checkpoint"), request.get("artifacts")
    given = None if given is None else given.encode("utf-8", "surrogatepass")
    stored = {name: size_and_hash(base64.b64decode(content)) for name, content in (artifacts or {}).items()}
    answer = verify(*{
        "journal": (check_journal, [(1, lambda: data)], None if artifacts is None else stored.get, [], given),
        "bundle": (check_bundle, data, given), "proof": (check_proof, data, given)}[request["kind"]])
    first = answer["findings"][0] if answer["verdict"] == "fail" else {"code": None, "line": None}
    return {"code": first["code"], "line": first["line"], **{name: answer[name] for name in ("verdict", "integrity", "completeness")}}


def main():
    parser = argparse.ArgumentParser(description="Verify a Baton ledger, bundle or proof.")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("path", nargs="?", type=Path, help="data directory, bundle or segment")
    source.add_argument("--proof", type=Path, help="proof of one event, or of consistency")
    source.add_argument("--batch", action="store_true", help="answer requests from standard input")
    parser.add_argument("--checkpoint", type=Path, help="checkpoint or trace head that was kept elsewhere")
    parser.add_argument("--trust", type=Path, help="file of trusted ledger keys, one per line")
    options = parser.parse_args()
    if options.batch:
        for line in sys.stdin.buffer:
            print(json.dumps(answer_request(json.loads(line))), flush=True)
        return 0
    answer = verify(check_files, options)
    print(json.dumps(answer))
    return {"fail": 7, "unknown": 8}.get(answer["verdict"], 0)


if __name__ == "__main__":
    sys.exit(main())
