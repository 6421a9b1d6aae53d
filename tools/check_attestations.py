#!/usr/bin/env python3
"""Checks the attestations of a guarded run, as `baton trace export --format in-toto` writes them, with libraries that know nothing of Baton.

    check_attestations.py FILE PUBLIC [--agent PUBLIC]...

PUBLIC is the ledger's public key (`ed25519:` and base64). Signatures of envelopes are checked by securesystemslib, the form of statements by
in-toto-attestation; what Baton adds, by the second verifier: the record in the predicate has the hash that it says, and, for agents whose key is
given, the signature that it says. It prints the number of attestations and ends with 0, or prints what is wrong with which line and ends with 7.
"""
import argparse
import json
import sys

from google.protobuf import json_format
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

import verify as second

PAYLOAD_TYPE = "application/vnd.in-toto+json"
PREDICATES = {"claim_issued": "urn:baton:claim:v1", "final_statement_signed": "urn:baton:final-statement:v1"}


class Wrong(Exception):
    """What does not check, in words."""


def expect(condition, what):
    if not condition:
        raise Wrong(what)


def opened(line, ledger_key):
    """The payload of an envelope, once its signature is good."""
    value = json.loads(line)
    expect(second.jcs(value) == line, "the envelope is not canonical JSON")
    envelope = Envelope.from_dict(value)
    envelope.verify([ledger_key], 1)
    expect(envelope.payload_type == PAYLOAD_TYPE, "the payload is of another type")
    return envelope.payload


def evidence_of(record, claims):
    """The hashes that a claim or a final statement is about, in order, each once."""
    payload = record["payload"]
    if record["type"] == "claim_issued":
        claims[payload["claim_id"]] = found = payload.get("evidence", [])
    else:
        found = [digest for claim in payload["claim_ids"] for digest in claims.get(claim, [])]
    return list(dict.fromkeys(found))


def check_statement(payload, claims, agents):
    statement = Statement.copy_from_pb(json_format.Parse(payload, StatementMessage()))
    statement.validate()
    value = json.loads(payload)
    expect(second.jcs(value) == payload, "the statement is not canonical JSON")
    predicate = value["predicate"]
    expect(second.is_origin(predicate["origin"]), "the origin is malformed")
    record = second.parse_record(second.jcs(predicate["record"]))
    second.check_hash(record)
    key = record.get("sig", {}).get("key")
    if key in agents:
        second.check_event_signature(record, agents[key])
    expect(value["predicateType"] == PREDICATES.get(record["type"]), "the predicate is of another type than the record")
    names = [subject["name"] for subject in value["subject"]]
    expect(len(set(names)) == len(names), "a name stands for two subjects")
    expected = [{"sha256": digest} for digest in evidence_of(record, claims)] or [{"batonRecord": record["hash"]}]
    expect([subject["digest"] for subject in value["subject"]] == expected, "the subjects are not the evidence")
    return record["trace"], record["seq"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("public")
    parser.add_argument("--agent", action="append", default=[])
    options = parser.parse_args()
    public = second.public_bytes(options.public)
    ledger_key = SSlibKey(second.key_id(public), "ed25519", "ed25519", {"public": public.hex()})
    agents = {second.key_id(key): key for key in map(second.public_bytes, options.agent)}
    claims, places = {}, []
    with open(options.file, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                places.append(check_statement(opened(line.rstrip(b"\n"), ledger_key), claims, agents))
                expect(places == sorted(set(places)) and len({trace for trace, _ in places}) == 1, "it is out of order")
            except (Wrong, ValueError, KeyError, VerificationError, json_format.ParseError, second.Fault) as error:
                print("line %d: %s: %s" % (number, type(error).__name__, error))
                return 7
    print(len(places))
    return 0 if places else 7


if __name__ == "__main__":
    sys.exit(main())
