//! The shapes of answers, as JSON Schema. More may stand beside what is named here; what is named does not change.

use serde_json::{Map, Value, json};

/// A shape by its name in the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape(pub &'static str);

/// Declares shapes: name, schema.
macro_rules! shapes {
    ($($name:ident = $schema:tt;)*) => {
        impl Shape {
            $(
                #[expect(non_upper_case_globals, reason = "they are called as in the description")]
                pub const $name: Shape = Shape(stringify!($name));
            )*
        }

        /// Every shape with its schema.
        pub fn shapes() -> Map<String, Value> {
            let mut map = Map::new();
            $(map.insert(stringify!($name).to_owned(), json!($schema));)*
            map
        }
    };
}

shapes! {
    Problem = {
        "type": "object",
        "description": "What went wrong (RFC 9457). `baton explain CODE` has a page about it.",
        "properties": {
            "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
            "code": {"type": "string"}, "detail": {"type": "string"}, "hint": {"type": "string"},
        },
        "required": ["type", "title", "status", "code"],
    };
    Health = {
        "type": "object",
        "properties": {
            "status": {"type": "string", "const": "ok"},
            "scope": {"type": "string", "description": "What the token of the request opens, where it has one."},
        },
        "required": ["status"],
    };
    Task = {
        "type": "object",
        "description": "A task: the keys of its file, and its body.",
        "properties": {
            "id": {"type": "string"}, "title": {"type": "string"}, "status": {"$ref": "#/components/schemas/Status"},
            "phase": {"type": "string"}, "priority": {"type": "string"}, "routing": {"type": "object"},
            "dependsOn": {"type": "array", "items": {"type": "string"}}, "parentId": {"type": "string"},
            "lease": {"$ref": "#/components/schemas/Lease"}, "metadata": {"type": "object"},
            "rev": {"type": "integer"}, "body": {"type": "string"}, "createdAt": {"type": "string"},
            "updatedAt": {"type": "string"}, "traceId": {"type": "string"}, "attempts": {"type": "integer"},
            "card": {"$ref": "#/components/schemas/Card"},
        },
        "required": ["id", "title", "status", "phase", "priority", "rev"],
    };
    Card = {
        "type": "object",
        "description": "What is shown of a task at a glance, beside the keys of its file; what there is not is absent.",
        "properties": {
            "session": {"type": "string", "description": "The session that works on it."},
            "heartbeatBy": {"type": "string", "description": "When whoever holds it is taken for dead unless it beats again."},
            "leaseTtlMs": {"type": "integer"}, "beatTtlMs": {"type": "integer"},
            "run": {
                "type": "object",
                "description": "The last attempt.",
                "properties": {
                    "id": {"type": "string"}, "agent": {"type": "string"}, "startedAt": {"type": "string"},
                    "endedAt": {"type": "string"}, "failed": {"type": "boolean"}, "reason": {"type": "string"},
                },
                "required": ["id", "agent", "startedAt"],
            },
            "tests": {
                "type": "object",
                "description": "Of the last completion report.",
                "properties": {"total": {"type": "integer"}, "passed": {"type": "integer"}, "failed": {"type": "integer"}},
                "required": ["total", "passed", "failed"],
            },
            "verified": {
                "type": "object",
                "description": "What the last guarded run came to.",
                "properties": {"trace": {"type": "string"}, "state": {"type": "string"}, "verdict": {"type": "string"}},
                "required": ["trace", "state"],
            },
            "guard": {"type": "string", "description": "The trace of the guarded run that is open."},
            "asks": {"type": "string", "description": "The proposal, intent or claim of that run that waits for a person's review."},
        },
    };
    Status = {
        "type": "string",
        "enum": ["backlog", "ready", "in-progress", "blocked", "review", "done", "cancelled", "deadletter"],
    };
    Lease = {
        "type": "object",
        "properties": {
            "agent": {"type": "string"}, "acquiredAt": {"type": "string"}, "expiresAt": {"type": "string"},
            "renewCount": {"type": "integer"}, "fence": {"type": "integer"},
        },
        "required": ["agent", "expiresAt", "fence"],
    };
    Tasks = {
        "type": "object",
        "properties": {
            "tasks": {"type": "array", "items": {"$ref": "#/components/schemas/Task"}},
            "next": {"type": "string", "description": "Where the next page begins; absent on the last one."},
        },
        "required": ["tasks"],
    };
    Allowed = {
        "type": "object",
        "properties": {
            "allowed": {"type": "boolean"},
            "why": {"type": "string", "description": "Why not, in the words that it would be refused with."},
            "code": {"type": "string"},
        },
        "required": ["allowed"],
    };
    TaskActions = {
        "type": "object",
        "properties": {
            "taskId": {"type": "string"}, "rev": {"type": "integer"},
            "moves": {
                "type": "array",
                "description": "One for every status but the present one.",
                "items": {
                    "type": "object",
                    "properties": {
                        "to": {"$ref": "#/components/schemas/Status"}, "allowed": {"type": "boolean"},
                        "why": {"type": "string"}, "code": {"type": "string"},
                    },
                    "required": ["to", "allowed"],
                },
            },
            "approve": {"$ref": "#/components/schemas/Allowed"}, "reject": {"$ref": "#/components/schemas/Allowed"},
            "retry": {"$ref": "#/components/schemas/Allowed"},
        },
        "required": ["taskId", "rev", "moves", "approve", "reject", "retry"],
    };
    TaskChanges = {
        "type": "object",
        "properties": {
            "taskId": {"type": "string"},
            "where": {"type": "string", "enum": ["worktree", "workspace", "none"]},
            "path": {"type": "string"}, "branch": {"type": "string"},
            "base": {"type": "string", "description": "The commit that it is compared with."},
            "note": {"type": "string", "description": "Why there is nothing to show, or what is shown instead."},
            "files": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"}, "oldPath": {"type": "string"},
                        "status": {"type": "string", "enum": ["added", "modified", "deleted", "renamed", "untracked"]},
                        "added": {"type": "integer"}, "removed": {"type": "integer"},
                        "patch": {"type": "string", "description": "A unified diff; absent where there is nothing to show line by line."},
                        "isBinary": {"type": "boolean"},
                        "isTruncated": {"type": "boolean", "description": "Whether the patch is not whole, or left out for want of room."},
                    },
                    "required": ["path", "status", "added", "removed", "isBinary", "isTruncated"],
                },
            },
            "isTruncated": {"type": "boolean", "description": "Whether there is more than this."},
        },
        "required": ["taskId", "where", "files", "isTruncated"],
    };
    TaskFiles = {
        "type": "object",
        "properties": {
            "taskId": {"type": "string"},
            "files": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "description": "Relative to the data directory."},
                        "bytes": {"type": "integer"}, "text": {"type": "string", "description": "Absent where it is no UTF-8."},
                        "isTruncated": {"type": "boolean"},
                    },
                    "required": ["name", "bytes", "isTruncated"],
                },
            },
            "isTruncated": {"type": "boolean", "description": "Whether there is more than this."},
        },
        "required": ["taskId", "files"],
    };
    Claimed = {
        "type": "object",
        "properties": {
            "taskId": {"type": "string"}, "agent": {"type": "string"}, "fence": {"type": "integer"},
            "expiresAt": {"type": "string"}, "heartbeatBy": {"type": "string"}, "runId": {"type": "string"},
        },
        "required": ["taskId", "agent", "fence", "expiresAt", "runId"],
    };
    Beaten = {
        "type": "object",
        "properties": {"taskId": {"type": "string"}, "expiresAt": {"type": "string"}},
        "required": ["taskId", "expiresAt"],
    };
    Message = {
        "type": "object",
        "description": "A message of AOF/1; what it must be is in docs/protocol/messages.md.",
    };
    Sent = {
        "type": "object",
        "properties": {
            "accepted": {"type": "boolean"}, "reason": {"type": "string"}, "detail": {},
            "events": {"type": "array", "items": {"type": "string"}}, "position": {"type": "integer"},
        },
        "required": ["accepted", "events", "position"],
    };
    Submitted = {
        "type": "object",
        "properties": {
            "accepted": {"type": "boolean"}, "error": {"type": "string"}, "phase": {"type": "string"},
            "next_phase": {"type": "string"}, "warnings": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["accepted"],
    };
    TerminationInfo = {
        "type": "object",
        "description": "How a session ended, and why.",
        "properties": {
            "reason": {"type": "string"}, "terminated_by": {"type": "string"}, "message": {"type": "string"},
            "exit_code": {"type": "integer"},
            "stderr": {"type": "object", "description": "Absent in lists."}, "signal": {"type": "object"},
            "cause": {"type": "string"}, "resets_at": {"type": "string"}, "last_tool": {"type": "string"},
            "duration_ms": {"type": "integer"}, "max_rss_bytes": {"type": "integer"}, "cpu_ms": {"type": "integer"},
        },
        "required": ["reason"],
    };
    Session = {
        "type": "object",
        "properties": {
            "id": {"type": "string"}, "agent": {"type": "string"}, "harness": {"type": "string"},
            "state": {"type": "string"}, "taskId": {"type": "string"}, "lastError": {"type": "object"},
            "pendingPermissions": {"type": "array"}, "toolRuns": {"type": "array"}, "hookRuns": {"type": "array"},
            "terminationInfo": {"$ref": "#/components/schemas/TerminationInfo"},
        },
        "required": ["id", "agent", "harness", "state"],
    };
    SessionState = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "state": {"type": "string"}},
        "required": ["id"],
    };
    Transcript = {
        "type": "object",
        "properties": {
            "sessionId": {"type": "string"},
            "lines": {
                "type": "array",
                "description": "What was said and what happened, in order: `at`, `kind`, and what belongs to that.",
                "items": {"type": "object"},
            },
            "isTruncated": {"type": "boolean", "description": "Whether the beginning is left out."},
        },
        "required": ["sessionId", "lines", "isTruncated"],
    };
    Sessions = {
        "type": "object",
        "properties": {
            "sessions": {"type": "array", "items": {"$ref": "#/components/schemas/Session"}},
            "next": {"type": "string", "description": "Where the next page begins; absent on the last one."},
        },
        "required": ["sessions"],
    };
    Record = {
        "type": "object",
        "description": "An event as it is stored; docs/protocol/ledger.md describes it.",
        "properties": {
            "v": {"type": "integer"}, "id": {"type": "string"}, "pos": {"type": "integer"}, "seq": {"type": "integer"},
            "type": {"type": "string"}, "at": {"type": "string"}, "trace": {"type": "string"},
            "actor": {"type": "object"}, "task": {"type": "string"}, "payload": {"type": "object"},
        },
        "required": ["id", "pos", "seq", "type"],
    };
    Traces = {
        "type": "object",
        "properties": {
            "traces": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "trace": {"type": "string"}, "events": {"type": "integer"}, "head": {"type": "string"},
                        "closed": {"type": "boolean"},
                    },
                    "required": ["trace", "events", "head", "closed"],
                },
            },
            "damage": {
                "type": "object",
                "description": "Where the ledger does not read any more: what comes after is not listed.",
                "properties": {"pos": {"type": "integer"}, "why": {"type": "string"}},
                "required": ["pos", "why"],
            },
        },
        "required": ["traces"],
    };
    TraceOpened = {"type": "object", "properties": {"trace": {"type": "string"}}, "required": ["trace"]};
    Trace = {
        "type": "object",
        "properties": {
            "trace": {"type": "string"}, "closed": {"type": "boolean"}, "size": {"type": "integer"},
            "events": {"type": "array", "items": {"$ref": "#/components/schemas/Record"}},
            "next": {"type": "integer", "description": "`from` of the next page; absent on the last one."},
        },
        "required": ["trace", "closed", "size", "events"],
    };
    Runs = {
        "type": "object",
        "properties": {"taskId": {"type": "string"}, "runs": {"type": "array", "items": {"type": "object"}}},
        "required": ["taskId", "runs"],
    };
    Offered = {
        "description": "One event, or an array of them: {type, payload, artifacts?, seen?}.",
        "type": ["object", "array"],
    };
    Appended = {
        "type": "object",
        "properties": {"trace": {"type": "string"}, "events": {"type": "array", "items": {"type": "object"}}},
        "required": ["trace", "events"],
    };
    Report = {
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": ["pass", "pass-with-warnings", "fail", "unknown"]},
            "subject": {"type": "object"}, "checks": {"type": "array"}, "findings": {"type": "array"},
        },
        "required": ["verdict", "checks", "findings"],
    };
    ServerStatus = {
        "type": "object",
        "properties": {
            "version": {"type": "string"}, "startedAt": {"type": "string"}, "now": {"type": "string"},
            "origin": {"type": "string"},
            "agents": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"}, "harness": {"type": "string"}, "command": {"type": "string"},
                        "installed": {"type": "boolean"},
                        "program": {
                            "type": "string",
                            "description": "What it said that it is when it last began, with its version; of a model, its name. Absent until it has begun once, and where it says nothing.",
                        },
                        "detail": {"type": "string", "description": "Why it cannot be begun, as far as can be seen."},
                        "sessions": {"type": "integer"}, "maxSessions": {"type": "integer"},
                        "lastStartAt": {"type": "string", "description": "When a session of it was last begun, or it last took a task."},
                        "failures": {
                            "type": "integer",
                            "description": "Its sessions that ended with an error, and its attempts at tasks that failed although their sessions did not, or that had none; of all events in `counted`.",
                        },
                        "lastFailureAt": {"type": "string"},
                    },
                    "required": ["name", "harness", "installed", "sessions"],
                },
            },
            "scheduler": {
                "type": "object",
                "properties": {
                    "isDispatching": {"type": "boolean"}, "pollMs": {"type": "integer"}, "lastAt": {"type": "string"},
                    "running": {"type": "integer"}, "maxConcurrent": {"type": "integer"}, "ready": {"type": "integer"},
                    "oldestReadyAt": {"type": "string"},
                    "leases": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "taskId": {"type": "string"}, "agent": {"type": "string"}, "expiresAt": {"type": "string"},
                                "heartbeatBy": {"type": "string"},
                            },
                            "required": ["taskId", "agent", "expiresAt"],
                        },
                    },
                },
                "required": ["isDispatching", "pollMs", "running", "maxConcurrent", "ready", "leases"],
            },
            "store": {
                "type": "object",
                "properties": {
                    "kind": {"type": "string", "enum": ["embedded"]}, "bytes": {"type": "integer"},
                    "freeBytes": {"type": "integer"},
                    "journal": {
                        "type": "object",
                        "description": "What is behind the events that were answered for: those that a power cut could take, which are none where `durability` is `commit`, and those that no signed checkpoint covers yet.",
                        "properties": {
                            "durability": {"type": "string", "enum": ["commit", "interval", "none"]},
                            "unsynced": {"type": "integer"}, "unsigned": {"type": "integer"},
                        },
                        "required": ["durability", "unsynced", "unsigned"],
                    },
                    "projection": {
                        "type": "object",
                        "description": "What is behind the ledger: events that the board had not taken in when this was asked for, tasks whose files are to be written, since when the first of them waits, and those of them that could not be written.",
                        "properties": {
                            "events": {"type": "integer"}, "tasks": {"type": "integer"}, "failed": {"type": "integer"},
                            "waitingMs": {"type": "integer"},
                        },
                        "required": ["events", "tasks", "failed", "waitingMs"],
                    },
                },
                "required": ["kind", "projection"],
            },
            "ledger": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"}, "root": {"type": "string"}, "head": {"type": "string"},
                    "key": {"type": "string"},
                    "unread": {"type": "string", "description": "Why it does not read, where it does not."},
                    "lastVerified": {
                        "type": "object",
                        "description": "What the verifier said last, since the server began.",
                        "properties": {"at": {"type": "string"}, "verdict": {"type": "string"}, "events": {"type": "integer"}},
                        "required": ["at", "verdict", "events"],
                    },
                },
                "required": ["size"],
            },
            "counted": {
                "type": "object",
                "description": "How many of the ledger's events what is said of agents and of refused messages is made of. A server that has just begun reads for half a second in each request until it has all of them.",
                "properties": {"to": {"type": "integer"}, "of": {"type": "integer"}},
                "required": ["to", "of"],
            },
            "refused": {
                "type": "array",
                "description": "Messages of AOF/1 that were refused and recorded, by reason.",
                "items": {
                    "type": "object",
                    "properties": {"reason": {"type": "string"}, "count": {"type": "integer"}},
                    "required": ["reason", "count"],
                },
            },
            "checks": {
                "type": "array",
                "description": "As `baton doctor --json` has them.",
                "items": {
                    "type": "object",
                    "properties": {
                        "check": {"type": "string"}, "status": {"type": "string", "enum": ["ok", "warn", "fail"]},
                        "detail": {"type": "string"}, "fix": {"type": "string"}, "see": {"type": "string"},
                        "advice": {"type": "string"}, "code": {"type": "string"},
                    },
                    "required": ["check", "status", "detail"],
                },
            },
        },
        "required": ["version", "startedAt", "now", "origin", "agents", "scheduler", "store", "ledger", "refused", "counted", "checks"],
    };
    Proof = {"type": "object", "properties": {"proof": {}}, "required": ["proof"]};
    Checkpoint = {
        "type": "object",
        "properties": {"checkpoint": {"type": "string"}, "size": {"type": "integer"}, "root": {"type": "string"}},
        "required": ["checkpoint", "size", "root"],
    };
    Artifact = {
        "type": "object",
        "properties": {"sha256": {"type": "string"}, "bytes": {"type": "integer"}},
        "required": ["sha256", "bytes"],
    };
    Agents = {
        "type": "object",
        "properties": {
            "agents": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"}, "name": {"type": "string"}, "harness": {"type": "string"},
                        "installed": {"type": "boolean"}, "sessions": {"type": "integer"},
                    },
                    "required": ["id", "name", "harness"],
                },
            },
        },
        "required": ["agents"],
    };
    RpcMessage = {
        "type": "object",
        "description": "One message of JSON-RPC 2.0; docs/protocol/acp-http.md describes them.",
        "properties": {
            "jsonrpc": {"type": "string", "const": "2.0"}, "id": {"type": ["string", "number", "null"]},
            "method": {"type": "string"}, "params": {}, "result": {}, "error": {"type": "object"},
        },
    };
    AcpServers = {
        "type": "object",
        "properties": {
            "servers": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "serverId": {"type": "string"}, "agent": {"type": "string"}, "createdAtMs": {"type": "integer"},
                        "sessionId": {"type": "string", "description": "What Baton calls the life of its process."},
                    },
                    "required": ["serverId", "agent", "createdAtMs", "sessionId"],
                },
            },
        },
        "required": ["servers"],
    };
    Nodes = {
        "type": "object",
        "properties": {
            "nodes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string", "description": "Which start of which machine it is."}, "pid": {"type": "integer"},
                        "version": {"type": "string"}, "sessions": {"type": "integer"},
                    },
                    "required": ["id", "pid", "version", "sessions"],
                },
            },
        },
        "required": ["nodes"],
    };
    JsonRpc = {"type": "object", "description": "A message of JSON-RPC 2.0."};
    Document = {"type": "object", "description": "The description of this interface (OpenAPI 3.1)."};
}
