#!/usr/bin/env python3
"""The second verifier of the Baton ledger, written from docs/protocol/ledger.md and from nothing else.

    verify.py PATH [--checkpoint FILE] [--trust FILE]   a data directory, a bundle or one segment
    verify.py --proof FILE [--trust FILE]               a proof of one event, or of consistency
    verify.py --batch                                   one JSON request per line of standard input

It prints one JSON object and ends with 0 (pass, pass-with-warnings), 7 (fail) or 8 (unknown). It stops at the first failure.
Section numbers are those of the page. It needs Python 3.9 and the package "cryptography".
"""
import argparse, base64, datetime, functools, hashlib, itertools, json, math, os, re, sys  # noqa: E401
from types import SimpleNamespace

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MAX_LINE, MAX_DEPTH, MAX_ARTIFACTS, MAX_SEEN, MAX_INTEGER = 1_048_576, 64, 256, 4096, 2**53 - 1
MAX_NOTE, MAX_NOTE_SIGNATURES, CHUNK = 16_384, 16, 524_288
WARNINGS = ("TORN_TAIL", "NO_CHECKPOINT", "KEY_UNPINNED", "ARTIFACT_UNCHECKED")


class Fault(Exception):
    """A check that failed: the code of the finding, and a few words for people."""

    def __init__(self, code, detail):
        super().__init__(detail)
        self.code = code


class Unjudged(Exception):
    """The input cannot be judged: it holds no events, or is of a newer format version."""


def require(condition, code, detail):
    if not condition:
        raise Fault(code, detail)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def from_base64(text, length=None):
    """The bytes, or None unless the text is exactly what the encoder would print (padding, unused bits zero)."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return raw if base64.b64encode(raw).decode() == text and length in (None, len(raw)) else None


# ---- Canonical JSON (§2) ----

def nesting(text):
    """The deepest nesting of brackets outside strings, found without recursion, so that no input exhausts the stack."""
    depth = deepest = 0
    for bracket in re.findall(rb"[\[\]{}]", re.sub(rb'(?s)"(?:[^"\\]+|\\.)*"?', b"", text)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def strict_integer(token):
    if len(token) > 17 or abs(int(token)) > MAX_INTEGER:
        raise ValueError("integer out of range")
    return int(token)


def strict_object(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a member name occurs twice")
    return dict(pairs)


def es_number(value):
    """A double as ECMAScript prints it; Python's repr already finds the shortest digits that read back."""
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(exponent or 0)
    digits = digits.rstrip("0") or "0"
    sign, count = "-" if value < 0 else "", len(digits)
    if value == 0 or count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    return "%s%s%se%+d" % (sign, digits[0], "." + digits[1:] if count > 1 else "", point - 1)


def print_jcs(value):
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(print_jcs(name) + ":" + print_jcs(value[name]) for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(print_jcs, value)) + "]"
    return es_number(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def jcs(value):
    return print_jcs(value).encode("utf-8")


def parse_canonical(line):
    require(len(line) <= MAX_LINE and nesting(line) <= MAX_DEPTH, "SCHEMA_INVALID", "the line is too long or nested too deep")
    try:
        # NaN and the infinities, which Python's parser takes, do not get past the printer.
        value = json.loads(line.decode("utf-8"), parse_int=strict_integer, object_pairs_hook=strict_object)
        canonical = jcs(value) == line
    except ValueError as error:
        raise Fault("SCHEMA_INVALID", "not canonical JSON: %s" % error)
    require(canonical and isinstance(value, dict), "SCHEMA_INVALID", "not one canonical JSON object")
    return value


# ---- The form of a record (§3, §4): each function makes or is a test of one value ----

def matching(pattern):
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def integer(low, high=MAX_INTEGER):
    return lambda value: type(value) is int and low <= value <= high


def text(low=0, high=MAX_LINE):
    return lambda value: isinstance(value, str) and low <= len(value) <= high


def array(item_fits, low=0, high=MAX_LINE):
    return lambda value: isinstance(value, list) and low <= len(value) <= high and all(map(item_fits, value))


def members(required, optional={}, others_allowed=False):
    tests = {**required, **optional}
    return lambda value: (isinstance(value, dict) and all(name in value for name in required)
                          and all(tests[name](value[name]) if name in tests else others_allowed for name in value))


def is_bool(value):
    return isinstance(value, bool)


def is_time(value):
    if not matching(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")(value) or not value.isascii():
        return False
    year, *rest = [int(digits) for digits in re.findall(r"\d+", value)[:6]]
    try:
        # The calendar repeats every 400 years, and Python's has no year 0.
        return bool(datetime.datetime(2000 + year % 400, *rest))
    except ValueError:
        return False


def is_batch(value):
    return array(integer(1), 2, 2)(value) and value[0] <= value[1] >= 2


def is_signature(value):
    return isinstance(value, str) and from_base64(value, 64) is not None


def public_bytes(value):
    return from_base64(value[8:], 32) if isinstance(value, str) and value.startswith("ed25519:") else None


def is_public(value):
    return public_bytes(value) is not None


def key_id(public):
    return "key_ed25519_" + sha256(public).hex()[:16]


UUID7 = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
TRACE_ID = "(?:ledger|trc_%s)" % UUID7
is_trace, is_hex, is_key_id = matching(TRACE_ID), matching("[0-9a-f]{64}"), matching("key_ed25519_[0-9a-f]{16}")
is_name, is_origin = matching("[a-z0-9][a-z0-9._-]{0,63}"), matching("[a-z0-9][a-z0-9._/-]{0,127}")
is_token, is_decimal = matching("[A-Za-z0-9._-]{1,128}"), matching("0|[1-9][0-9]{0,19}")
is_role = matching("planner|executor|critic|auditor|operator|system")
is_artifact = members({"bytes": integer(0), "media_type": text(1, 127), "name": text(1, 255), "sha256": is_hex})
is_record = members({
    "actor": members({"agent": is_name, "role": is_role}, {"key": is_key_id}), "artifacts": array(is_artifact, 0, MAX_ARTIFACTS),
    "at": is_time, "hash": is_hex, "id": matching("evt_" + UUID7), "payload": members({}, others_allowed=True),
    "pos": integer(1), "prev": is_hex, "seq": integer(1), "trace": is_trace, "type": matching("[A-Za-z][A-Za-z0-9_.]{0,63}"),
    "v": integer(1, 1)}, {
    "batch": is_batch, "commit": integer(1), "fence": integer(1), "run": is_token, "session": is_token, "task": is_token,
    "seen": members({"hash": is_hex, "seq": integer(1)}),
    "sig": members({"alg": matching("ed25519"), "key": is_key_id, "value": is_signature})})
BINDING = {"key": is_key_id, "public": is_public, "agent": is_name}
KEY_PAYLOADS = {kind: members(tests, others_allowed=True) for kind, tests in {
    "ledger.created": {"origin": is_origin, "key": is_key_id, "public": is_public, "durability": text()},
    "key_bound": {**BINDING, "roles": array(is_role, 1)},
    "key_rotated": {**BINDING, "roles": array(is_role), "by": is_key_id},
    "key_revoked": {"key": is_key_id, "reason": text()}}.items()}
MUST_SIGN = """proposal_created proposal_reviewed tool_intent_signed tool_intent_reviewed claim_issued claim_challenged
    final_statement_signed verification_run_completed override_recorded trace_aborted AgentSessionCompleted key_bound
    key_rotated key_revoked ledger.created ledger.recovered task.approved task.rejected ci.reported""".split()
ROLE_OF_TYPE = {kind: role for role, kinds in {
    "planner": "proposal_created",
    "executor": """tool_intent_signed tool_execution_started tool_execution_completed tool_execution_failed
        artifact_recorded claim_issued final_statement_signed""",
    "critic": "proposal_reviewed tool_intent_reviewed claim_challenged",
    "auditor": "verification_run_started verification_run_completed",
    "operator": "trace_aborted override_recorded",
    "system": """session_initialized key_bound key_rotated key_revoked ledger.created ledger.recovered
        trace.opened trace.closed"""}.items() for kind in kinds.split()}


def parse_record(line):
    """Check 1 of §10, without what concerns a bundle."""
    record = parse_canonical(line)
    if integer(2)(record.get("v")):
        raise Unjudged("format version %d" % record["v"])
    require(is_record(record), "SCHEMA_INVALID", "the record is malformed")
    require(record.get("commit", 0) < record["pos"], "SCHEMA_INVALID", "commit is not before pos")
    require(record["actor"].get("key") == record.get("sig", {}).get("key"), "SCHEMA_INVALID", "sig and actor.key differ")
    return record


def body_digest(record):
    apart = ("batch", "commit", "hash", "pos", "prev", "seq", "sig")
    return sha256(jcs({name: value for name, value in record.items() if name not in apart}))


def check_hash(record):
    link = {name: record.get(name) for name in ("batch", "commit", "prev", "seq", "sig")}
    link["bd"] = body_digest(record).hex()
    require(sha256(b"baton/link/v1\n", jcs(link)).hex() == record["hash"], "HASH_MISMATCH", "hash is not what the members give")


# ---- Signatures (§4) ----

GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493
SMALL_ORDER_Y = [int.from_bytes(bytes.fromhex(encoding), "little") for encoding in (
    "00" * 32, "01" + "00" * 31, "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "ec" + "ff" * 30 + "7f", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")]


def is_strict_point(encoding):
    y = int.from_bytes(encoding, "little") & (2**255 - 1)
    return y < 2**255 - 19 and y not in SMALL_ORDER_Y


@functools.lru_cache(maxsize=65536)
def signature_checks(public, message, signature):
    """OpenSSL uses the cofactorless equation but takes weak and non-canonical points, so those are refused first."""
    if len(signature) != 64 or not (is_strict_point(public) and is_strict_point(signature[:32])):
        return False
    if int.from_bytes(signature[32:], "little") >= GROUP_ORDER:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def check_event_signature(record, public):
    message, value = b"baton/event/v1\n" + body_digest(record), from_base64(record["sig"]["value"])
    require(signature_checks(public, message, value), "SIG_INVALID", "the signature does not check")


# ---- The tree (§6) ----

def node(left, right):
    return sha256(b"\x01", left, right)


def leaf_of(record):
    return sha256(b"\x00", bytes.fromhex(record["hash"]))


def split_point(size):
    return 1 << (size - 1).bit_length() - 1


def root_by_inclusion(leaf, index, size, path):
    """The root that an audit path leads to, or None where its length does not fit."""
    if not path or size < 2:
        return leaf if not path and size == 1 else None
    left, sibling = split_point(size), path[-1]
    if index < left:
        inner = root_by_inclusion(leaf, index, left, path[:-1])
        return inner and node(inner, sibling)
    inner = root_by_inclusion(leaf, index - left, size - left, path[:-1])
    return inner and node(sibling, inner)


def roots_by_consistency(old_root, old_size, new_size, path, whole=True):
    """The old and the new root that a consistency proof leads to; takes the nodes it needs off the path's end."""
    if old_size == new_size:
        return (old_root if whole else path.pop(),) * 2
    left, sibling = split_point(new_size), path.pop()
    if old_size <= left:
        old, new = roots_by_consistency(old_root, old_size, left, path, whole)
        return old, node(new, sibling)
    old, new = roots_by_consistency(old_root, old_size - left, new_size - left, path, False)
    return node(sibling, old), node(sibling, new)


# ---- Signed notes (§7) ----

def agree(condition, detail):
    require(condition, "CHECKPOINT_MISMATCH", detail)


def open_note(raw, origin, public):
    """The note's first line, its number and its 32 bytes, once form and signature are found good."""
    try:
        lines = raw.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise Fault("CHECKPOINT_MISMATCH", "the note is not UTF-8")
    agree(len(raw) <= MAX_NOTE and not re.search(rb"[\x00-\x09\x0b-\x1f]", raw), "the note is too long or has control characters")
    agree(6 <= len(lines) <= 5 + MAX_NOTE_SIGNATURES and lines[3] == lines[-1] == "", "the note has not the lines it should")
    name, number, digest, signed, found = lines[0], lines[1], from_base64(lines[2], 32), "\n".join(lines[:3]) + "\n", False
    agree(name and is_decimal(number) and digest, "the note's text is malformed")
    for line in lines[4:-1]:
        form = re.fullmatch("\u2014 ([^\\s+]+) (\\S+)", line)
        value = from_base64(form[2]) if form else None
        agree(value and len(value) > 4, "the note has a malformed signature line")
        if form[1] == origin and value[:4] == sha256(origin.encode(), b"\n\x01", public)[:4]:
            agree(signature_checks(public, signed.encode(), value[4:]), "the note's signature does not check")
            found = True
    agree(found, "the note is not signed by the ledger's key")
    return name, int(number), digest


# ---- The checks of one line (§10) ----

def bind(public, agent, roles):
    return SimpleNamespace(public=public, agent=agent, roles=roles, valid=True)


class Ledger:
    """What the lines so far have established. A bundle names origin and key beforehand; in a journal the first line does."""

    def __init__(self, artifacts, origin=None, public=None):
        self.artifacts, self.origin, self.public = artifacts, origin, public
        self.traces, self.ids, self.cited, self.leaves, self.subtrees = {}, set(), set(), [], {}
        self.events, self.signed, self.last = 0, 0, None

    def accept(self, record, check_place):
        """Runs checks 2 to 12 on a well-formed record and takes it in."""
        trace = self.traces.setdefault(record["trace"], SimpleNamespace(hashes=[], keys={}, closed=False))
        check_hash(record)
        check_place(record, self.last)
        require(record["seq"] == len(trace.hashes) + 1, "SEQUENCE_GAP", "seq does not count on")
        require(record["id"] not in self.ids, "SEQUENCE_GAP", "the id occurs twice")
        self.check_chain(record, trace)
        require("sig" in record or record["type"] not in MUST_SIGN, "SIG_MISSING", "this type must be signed")
        signer = self.check_signer(record, trace)
        role = record["actor"]["role"]
        require(role == ROLE_OF_TYPE.get(record["type"], role), "ROLE_VIOLATION", "the role may not make this type")
        require(signer is None or role in signer.roles, "ROLE_VIOLATION", "the role is not one of the key's")
        self.check_order(record, trace)
        self.check_artifacts(record)
        self.take(record, trace)

    def check_chain(self, record, trace):
        seen, expected = record.get("seen"), trace.hashes[-1] if trace.hashes else "0" * 64
        require(record["prev"] == expected, "CHAIN_BREAK", "prev is not the hash before")
        if seen:
            require(seen["seq"] < record["seq"] <= seen["seq"] + MAX_SEEN and trace.hashes[seen["seq"] - 1] == seen["hash"],
                    "CHAIN_BREAK", "seen does not name an earlier event within reach")

    def check_signer(self, record, trace):
        """Checks 6 to 8. While the ledger's key is unknown only ledger.created can be judged, and check 10 meets the rest."""
        if self.public is None and record["type"] != "ledger.created":
            return None
        if record["type"] in KEY_PAYLOADS:
            self.check_key_event(record["type"], record["payload"], record["sig"]["key"], trace)
        if "sig" not in record:
            return None
        ledger_signs = record["sig"]["key"] == key_id(self.public)
        signer = bind(self.public, "baton", ["system"]) if ledger_signs else trace.keys.get(record["sig"]["key"])
        require(signer and signer.agent == record["actor"]["agent"], "KEY_UNKNOWN", "the key is not bound to this agent here")
        require(signer.valid, "KEY_REVOKED", "the key was rotated away or revoked before")
        check_event_signature(record, signer.public)
        return signer

    def check_key_event(self, kind, payload, signed_by, trace):
        def fit(condition, detail):
            require(condition, "KEY_UNKNOWN", detail)
        fit(KEY_PAYLOADS[kind](payload), "the payload of the key event is malformed")
        if kind == "ledger.created":
            named = payload["origin"], public_bytes(payload["public"])
            if self.public is None:
                self.origin, self.public = named
            fit(named == (self.origin, self.public), "ledger.created names another origin or key")
        fit(signed_by == key_id(self.public), "a key event is not signed by the ledger's key")
        new = payload["by" if kind == "key_rotated" else "key"]
        fit(kind == "key_revoked" or new == key_id(public_bytes(payload["public"])), "the key id is not that of the public key")
        if kind in ("key_bound", "key_rotated"):
            fit(new not in trace.keys and new != key_id(self.public), "the trace knows the key already")
        if kind in ("key_rotated", "key_revoked"):
            fit(payload["key"] in trace.keys and trace.keys[payload["key"]].valid, "the key is not bound and valid here")

    def check_order(self, record, trace):
        starts_ledger = record["trace"] == "ledger" and not trace.hashes
        require(not trace.closed, "ORDER_VIOLATION", "the trace is closed")
        require(record["type"] != "trace.closed" or record["trace"] != "ledger", "ORDER_VIOLATION", "the trace ledger stays open")
        if record["type"] == "ledger.created":
            require(starts_ledger and record["pos"] == 1, "ORDER_VIOLATION", "ledger.created is not at the start")
        else:
            require(self.public and not starts_ledger, "ORDER_VIOLATION", "the first record is not ledger.created")

    def check_artifacts(self, record):
        if self.artifacts is not None:
            found = [self.artifacts(cited["sha256"]) for cited in record["artifacts"]]
            require(None not in found, "ARTIFACT_MISSING", "a cited artifact is absent")
            require(found == [(cited["bytes"], cited["sha256"]) for cited in record["artifacts"]], "ARTIFACT_HASH_MISMATCH",
                    "a cited artifact's bytes or size differ")

    def take(self, record, trace):
        kind, payload = record["type"], record["payload"]
        if kind in ("key_rotated", "key_revoked"):
            trace.keys[payload["key"]].valid = False
        if kind in ("key_bound", "key_rotated"):
            new = payload["by" if kind == "key_rotated" else "key"]
            trace.keys[new] = bind(public_bytes(payload["public"]), payload["agent"], payload["roles"])
        trace.hashes.append(record["hash"])
        trace.closed = kind == "trace.closed"
        self.ids.add(record["id"])
        self.cited.update(cited["sha256"] for cited in record["artifacts"])
        self.leaves.append(leaf_of(record))
        self.events, self.signed, self.last = self.events + 1, self.signed + ("sig" in record), record

    def root(self, size, start=0):
        """The root over some leaves; subtrees are remembered, so that many checkpoints cost little more than one."""
        if size < 2:
            return self.leaves[start] if size else sha256()
        if (start, size) not in self.subtrees:
            left = split_point(size)
            self.subtrees[start, size] = node(self.root(left, start), self.root(size - left, start + left))
        return self.subtrees[start, size]

    def check_note(self, raw, file_name=None):
        """Checks a checkpoint or a trace head against the journal, and says whether it covers the journal's end."""
        name, number, digest = open_note(raw, self.origin, self.public)
        if name != self.origin:
            return self.check_trace_head(name, number, digest, file_name)
        agree(file_name in (None, "%020d" % number), "the file's name is not the checkpoint's size")
        require(number <= self.events, "TAIL_CUT", "the checkpoint is of a longer journal")
        agree(self.root(number) == digest, "the checkpoint has another root")
        return number == self.events

    def check_trace_head(self, name, number, digest, file_name=None):
        origin, _, trace_id = name.rpartition("/trace/")
        agree(origin == self.origin and is_trace(trace_id), "the note is of another origin")
        agree(file_name in (None, "%s-%020d" % (trace_id, number)), "the file's name is not the head's trace and seq")
        hashes = self.traces[trace_id].hashes if trace_id in self.traces else []
        require(number <= len(hashes), "TAIL_CUT", "the trace head names an event that is not there")
        agree(number > 0 and hashes[number - 1] == digest.hex(), "the trace head has another hash")
        return False


# ---- The report (§10) ----

class Report:
    """Where a check leaves what it learns; it ends by raising its first failure or by returning the ledger's key."""

    def __init__(self):
        self.trust, self.findings, self.line, self.pos, self.lines_done = None, [], None, None, False
        self.events, self.head, self.covered = 0, None, False

    def add(self, code, detail):
        self.findings.append({"code": code, "line": self.line, "pos": self.pos, "detail": detail})

    def leave_lines(self):
        self.line, self.pos, self.lines_done = None, None, True


def verify(check, *inputs):
    """Runs one of the checks below and words the answer."""
    report, failure, unjudged = Report(), None, False
    try:
        public = check(report, *inputs)
        require(report.trust is None or public in report.trust, "KEY_UNKNOWN", "the ledger's key is not a trusted one")
    except Fault as fault:
        failure = fault.code
        report.add(failure, str(fault))
        report.findings.insert(0, report.findings.pop())
    except (Unjudged, OSError) as reason:
        unjudged = True
        report.add(None, str(reason))
    report.line = report.pos = None
    if report.trust is None and not unjudged:
        report.add("KEY_UNPINNED", "the ledger's key is known only from the input")
    if failure == "TAIL_CUT" or "TORN_TAIL" in [finding["code"] for finding in report.findings]:
        completeness = "incomplete"
    elif report.covered and report.trust and not failure:
        completeness = "complete"
    else:
        completeness = "self-consistent" if report.lines_done else "unknown"
    verdict = "unknown" if unjudged else "fail" if failure else "pass-with-warnings" if report.findings else "pass"
    integrity = "unknown" if unjudged else "intact" if failure in (None, "TAIL_CUT") else "broken"
    return {"verdict": verdict, "integrity": integrity, "completeness": completeness, "events": report.events,
            "head": report.head, "findings": report.findings}


# ---- The journal (§1) ----

def split_segment(data, is_last):
    """The lines of a segment, and whether its tail is torn. None stands for a line that lacks its end but must have one."""
    *lines, rest = data.split(b"\n")
    while is_last and lines and not lines[-1]:
        lines.pop()
    return (lines, bool(rest)) if is_last else (lines + [None] if rest else lines, False)


def effective_commit(record):
    return record.get("commit", record["pos"])


def check_place_in_journal(number, segment_name, record, before):
    require(record["pos"] == number, "SEQUENCE_GAP", "pos does not count on")
    require(segment_name in (None, number), "SEQUENCE_GAP", "the segment's name is not its first pos")
    index, count = before.get("batch", [1, 1]) if before else [1, 1]
    same_write = before is not None and effective_commit(record) == effective_commit(before)
    if index < count:
        require(same_write and record.get("batch") == [index + 1, count], "SEQUENCE_GAP", "a batch is not continued")
    else:
        require(record.get("batch", [1, 1])[0] == 1, "SEQUENCE_GAP", "a batch does not start with its first event")
    require("commit" not in record or same_write, "SEQUENCE_GAP", "commit is not that of the line before")


def check_journal(report, segments, artifacts, kept, given):
    """Segments are (first pos by name or None, reader) and kept checkpoints (file name, reader), in order."""
    ledger, torn = Ledger(artifacts), False
    for which, (first, read) in enumerate(segments, 1):
        lines, torn = split_segment(read(), which == len(segments))
        if not lines and len(segments) > 1:
            # A crash can leave a last segment that was made ready but not written to.
            report.line = report.pos = ledger.events + 1
            require(which == len(segments) and first == report.line, "SEQUENCE_GAP", "a segment without lines")
        for offset, line in enumerate(lines):
            report.line = report.pos = ledger.events + 1
            require(line is not None, "SCHEMA_INVALID", "the line has no end")
            check_place = functools.partial(check_place_in_journal, report.line, None if offset else first)
            ledger.accept(parse_record(line), check_place)
            report.events, report.head = ledger.events, ledger.last["hash"]
    if not ledger.events:
        raise Unjudged("no events")
    report.leave_lines()
    index, count = ledger.last.get("batch", [1, 1])
    if torn or index < count:
        report.add("TORN_TAIL", "the last line has no end" if torn else "the journal ends inside a batch")
    if artifacts is None and ledger.cited:
        report.add("ARTIFACT_UNCHECKED", "the artifacts are not at hand")
    if given is None:
        report.add("NO_CHECKPOINT", "a cut-off tail cannot be excluded")
    else:
        report.covered = ledger.check_note(given)
    for name, read in kept:
        ledger.check_note(read(), name)
    return ledger.public


# ---- The bundle (§9) ----

is_header = members({"bundle": integer(1, 1), "events": integer(1), "inline": is_bool, "origin": is_origin, "public": is_public,
                     "size": integer(1), "trace": is_trace})
is_chunk = members({"bytes": integer(0), "chunk": integer(1), "chunks": integer(1), "data": text(), "sha256": is_hex})
ENDING = {"head": text(), "checkpoint": text(), "proof": members({"hashes": array(text()), "index": integer(0)}),
          "report": members({"artifacts": integer(0), "closed": is_bool, "events": integer(0), "head": text(),
                             "signed": integer(0), "trace": text()})}


def unwrap_event(line, trace):
    require(line.startswith(b'{"event":') and line.endswith(b"}"), "SCHEMA_INVALID", "not an event line")
    record = parse_record(line[9:-1])
    require(record["trace"] == trace, "SCHEMA_INVALID", "an event of another trace")
    return record


def check_place_in_bundle(record, before):
    require(before is None or before["pos"] < record["pos"], "SEQUENCE_GAP", "pos does not ascend")


def unwrap(line, name, fits):
    wrapped = parse_canonical(line)
    require(members({name: fits})(wrapped), "SCHEMA_INVALID", "not a well-formed line of " + name)
    return wrapped[name]


def parse_chunks(lines):
    """Size and true hash of each artifact, by the hash that it is filed under."""
    found, parts = {}, [unwrap(line, "artifact", is_chunk) for line in lines]
    for name, group in itertools.groupby(parts, key=lambda part: part["sha256"]):
        group = list(group)
        pieces = [from_base64(part["data"]) for part in group]
        require(None not in pieces and name > max(found, default=""), "SCHEMA_INVALID", "artifacts not base64 or out of order")
        content = b"".join(pieces)
        starts = range(0, len(content) or 1, CHUNK)
        expected = [{"bytes": len(content), "chunk": number, "chunks": len(starts), "sha256": name,
                     "data": base64.b64encode(content[start:start + CHUNK]).decode()} for number, start in enumerate(starts, 1)]
        require(group == expected, "SCHEMA_INVALID", "the chunks are not those of %d bytes" % len(content))
        found[name] = len(content), sha256(content).hex()
    return found


def parse_after_events(lines, inline):
    """The artifacts, then head, checkpoint, proof and report by name."""
    require(len(lines) == 4 or len(lines) > 4 and inline, "SCHEMA_INVALID", "the bundle has not the lines it should")
    return parse_chunks(lines[:-4]), {name: unwrap(line, name, ENDING[name]) for name, line in zip(ENDING, lines[-4:])}


def check_bundle_notes(ledger, header, ending):
    """Head, checkpoint and proof must meet in the last event; returns the root they agree on."""
    last, origin = ledger.last, header["origin"]
    head = origin + "/trace/" + header["trace"], last["seq"], bytes.fromhex(last["hash"])
    agree(open_note(ending["head"].encode(), origin, ledger.public) == head, "the head note does not name the last event")
    name, size, root = open_note(ending["checkpoint"].encode(), origin, ledger.public)
    agree(name == origin and size == header["size"], "the checkpoint is not the one the header names")
    index, path = ending["proof"]["index"], [from_base64(hash_, 32) for hash_ in ending["proof"]["hashes"]]
    agree(None not in path and index == last["pos"] - 1 < size, "the proof is malformed or of another event")
    agree(root_by_inclusion(leaf_of(last), index, size, path) == root, "the proof does not lead to the checkpoint's root")
    return root


def given_covers_bundle(ledger, header, root, given):
    """A tree does not show which event of a trace is the last, so only a head of this trace can cover the end."""
    name, number, digest = open_note(given, ledger.origin, ledger.public)
    if name == ledger.origin + "/trace/" + header["trace"]:
        ledger.check_trace_head(name, number, digest)
        return number == ledger.events
    agree(name == ledger.origin or name.startswith(ledger.origin + "/trace/"), "the given note is of another origin")
    agree((name, number) != (ledger.origin, header["size"]) or digest == root, "the given checkpoint has another root")
    return False


def check_bundle(report, data, given):
    *lines, unterminated = data.split(b"\n")
    header = parse_canonical(lines[0] if lines else data)
    require(is_header(header), "SCHEMA_INVALID", "the bundle's first line is malformed")
    event_lines, later_lines = lines[1:header["events"] + 1], lines[header["events"] + 1:]
    artifacts, ending, fault = {}, None, None
    try:
        all_there = not unterminated and all(line.startswith(b'{"event":') for line in event_lines)
        require(all_there and later_lines, "SCHEMA_INVALID", "the bundle has not the lines it should")
        artifacts, ending = parse_after_events(later_lines, header["inline"])
    except Fault as later:
        # The events stand before what is wrong here and are judged before it, though without their artifacts.
        fault = later
    ledger = Ledger(artifacts.get if header["inline"] and ending else None, header["origin"], public_bytes(header["public"]))
    for number, line in enumerate(event_lines, 1):
        report.line, report.pos = number, None
        record = unwrap_event(line, header["trace"])
        report.pos = record["pos"]
        ledger.accept(record, check_place_in_bundle)
        report.events, report.head = ledger.events, ledger.last["hash"]
    report.line = report.pos = None
    if fault:
        raise fault
    require(ledger.cited.issuperset(artifacts), "SCHEMA_INVALID", "an artifact that no event cites")
    report.leave_lines()
    root = check_bundle_notes(ledger, header, ending)
    if given is None:
        report.add("NO_CHECKPOINT", "a cut-off tail cannot be excluded")
    else:
        report.covered = given_covers_bundle(ledger, header, root, given)
    counted = {"artifacts": len(ledger.cited), "closed": ledger.last["type"] == "trace.closed", "events": ledger.events,
               "head": ledger.last["hash"], "signed": ledger.signed, "trace": header["trace"]}
    require(ending["report"] == counted, "REPORT_MISMATCH", "the bundle's report is not what its events give")
    if not header["inline"]:
        report.add("ARTIFACT_UNCHECKED", "the artifacts are not in the bundle")
    return ledger.public


# ---- Proofs (§8) ----

def check_event_proof(report, origin, public, lines, notes):
    require(len(lines) >= 2 and lines[1].startswith("index ") and is_decimal(lines[1][6:]), "SCHEMA_INVALID", "no index")
    index, path = int(lines[1][6:]), [from_base64(line, 32) for line in lines[2:]]
    require(None not in path, "SCHEMA_INVALID", "a node of the proof is malformed")
    record = parse_record(lines[0].encode())
    check_hash(record)
    report.events, report.head = 1, record["hash"]
    require(record["pos"] == index + 1, "SEQUENCE_GAP", "pos is not index + 1")
    if record["actor"].get("key") == key_id(public):
        check_event_signature(record, public)
    name, size, root = open_note(notes, origin, public)
    agree(name == origin and index < size, "the checkpoint is of another origin or does not reach the event")
    agree(root_by_inclusion(leaf_of(record), index, size, path) == root, "the proof does not lead to the checkpoint's root")


def check_consistency_proof(report, origin, public, lines, notes):
    path, parts = [from_base64(line, 32) for line in lines], notes.split(b"\n\n", 2)
    require(None not in path and len(parts) == 3, "SCHEMA_INVALID", "a node is malformed, or there are not two checkpoints")
    older_name, older_size, older_root = open_note(parts[0] + b"\n\n" + parts[1] + b"\n", origin, public)
    newer_name, newer_size, newer_root = open_note(parts[2], origin, public)
    agree(older_name == newer_name == origin, "a checkpoint is of another origin")
    agree(0 < older_size <= newer_size, "the first checkpoint is not the older")
    report.events = newer_size
    try:
        roots = roots_by_consistency(older_root, older_size, newer_size, path)
    except IndexError:
        raise Fault("CHECKPOINT_MISMATCH", "the proof is too short")
    agree(not path and roots == (older_root, newer_root), "the trees are not consistent")


def check_proof(report, data):
    head, _, notes = data.partition(b"\n\n")
    try:
        kind, origin, public, *lines = head.decode("utf-8").split("\n")
    except ValueError:
        raise Fault("SCHEMA_INVALID", "the proof is too short or not UTF-8")
    check = {"baton/proof/v1": check_event_proof, "baton/consistency/v1": check_consistency_proof}.get(kind)
    require(check and is_origin(origin) and is_public(public), "SCHEMA_INVALID", "the head of the proof is malformed")
    check(report, origin, public_bytes(public), lines, notes)
    report.leave_lines()
    return public_bytes(public)


# ---- Where the bytes come from ----

def read_file(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def readers(directory, pattern):
    """The names in a directory that have a form, in order, each with a function that reads the file."""
    names = os.listdir(directory) if os.path.isdir(directory) else []
    return [(name, functools.partial(read_file, directory, name)) for name in sorted(names) if re.fullmatch(pattern, name)]


@functools.lru_cache(maxsize=None)
def stored_artifact(directory, name):
    try:
        data = read_file(directory, name[:2], name)
    except OSError:
        return None
    return len(data), sha256(data).hex()


def check_path(report, path, given):
    under = functools.partial(os.path.join, path)
    if os.path.isdir(path):
        segments = [(int(name[:20]), read) for name, read in readers(under("events"), r"[0-9]{20}\.jsonl")]
        kept = readers(under("checkpoints"), "[0-9]{20}") + readers(under("checkpoints", "traces"), TRACE_ID + "-[0-9]{20}")
        artifacts = functools.partial(stored_artifact, under("artifacts", "sha256"))
        return check_journal(report, segments, artifacts, kept, given)
    data, name = read_file(path), re.fullmatch(r"([0-9]{20})\.jsonl", os.path.basename(path))
    if data.startswith(b'{"bundle":'):
        return check_bundle(report, data, given)
    return check_journal(report, [(int(name[1]) if name else None, lambda: data)], None, [], given)


def read_trust(path):
    lines = [line.split() for line in read_file(path).decode("utf-8", "replace").splitlines() if not line.startswith("#")]
    keys = {public_bytes(words[0]) for words in lines if words}
    if None in keys:
        raise Unjudged("the trust file has a line that is not a key")
    return keys


def answer_request(request):
    """Batch mode: bytes in the request instead of files, and only the first failure in the answer."""
    data, given, stored = base64.b64decode(request["data"]), request.get("checkpoint"), request.get("artifacts")
    given = given if given is None else given.encode("utf-8", "surrogatepass")
    if request["kind"] == "proof":
        answer = verify(check_proof, data)
    elif request["kind"] == "bundle":
        answer = verify(check_bundle, data, given)
    else:
        contents = {name: base64.b64decode(content) for name, content in (stored or {}).items()}
        artifacts = {name: (len(content), sha256(content).hex()) for name, content in contents.items()}.get
        answer = verify(check_journal, [(1, lambda: data)], None if stored is None else artifacts, [], given)
    failures = [finding for finding in answer["findings"] if finding["code"] and finding["code"] not in WARNINGS]
    first = failures[0] if failures else {"code": None, "line": None}
    return {"verdict": answer["verdict"], "code": first["code"], "line": first["line"]}


def check_files(report, options):
    """The files that the command line names, read here so that one that cannot be read is an answer and not a crash."""
    report.trust = read_trust(options.trust) if options.trust else None
    given = read_file(options.checkpoint) if options.checkpoint else None
    return check_proof(report, read_file(options.proof)) if options.proof else check_path(report, options.path, given)


def main():
    parser = argparse.ArgumentParser(description="Verify a Baton ledger, bundle or proof.")
    parser.add_argument("path", nargs="?", help="data directory, bundle or segment")
    parser.add_argument("--proof", help="proof of one event, or of consistency")
    parser.add_argument("--checkpoint", help="checkpoint or trace head that was kept elsewhere")
    parser.add_argument("--trust", help="file of trusted ledger keys, one per line")
    parser.add_argument("--batch", action="store_true", help="answer requests from standard input")
    options = parser.parse_args()
    if options.batch:
        for line in sys.stdin.buffer:
            print(json.dumps(answer_request(json.loads(line))), flush=True)
        return 0
    if (options.path is None) == (options.proof is None):
        parser.error("give either PATH or --proof")
    answer = verify(check_files, options)
    print(json.dumps(answer))
    return {"fail": 7, "unknown": 8}.get(answer["verdict"], 0)


if __name__ == "__main__":
    sys.exit(main())
