//! What was said in a session, on the disk: one line of JSON for each piece. Baton's own record: what an agent replays of it is never added.
//!
//! A long message, or one that takes its time, is several pieces of one kind, one after the other: what is said is not only in memory for long.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use baton_core::json::Sorted;
use baton_core::{Digest, Timestamp};
use baton_ledger::hash::Hasher;
use serde_json::{Map, Value, json};

use crate::limits::{PIECE_BYTES_MAX, PIECE_WAIT, TRANSCRIPT_BYTES_MAX};

/// The transcript of one session, being written.
#[derive(Debug)]
pub struct Transcript {
    file: File,
    hasher: Hasher,
    bytes: u64,
    /// The message that the agent is in the middle of.
    open: Option<Open>,
    is_full: bool,
}

/// A piece that is not written yet.
#[derive(Debug)]
struct Open {
    kind: &'static str,
    text: String,
    since: Instant,
}

/// Where the transcript of a session is.
pub fn path_in(dir: &Path) -> PathBuf {
    dir.join("transcript.jsonl")
}

impl Transcript {
    /// Makes one, or goes on with the one that is there.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
        let path = path_in(dir);
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
        let (mut hasher, mut bytes, mut buffer) = (Hasher::default(), 0, vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                count => {
                    hasher.update(&buffer[..count]);
                    bytes += count as u64;
                }
            }
        }
        Ok(Transcript { file, hasher, bytes, open: None, is_full: bytes >= TRANSCRIPT_BYTES_MAX })
    }

    /// Adds a part of what the agent says; parts of one kind become one piece.
    pub fn say(&mut self, at: Timestamp, kind: &'static str, text: &str) -> io::Result<()> {
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            self.close(at)?;
        }
        let empty = || Open { kind, text: String::new(), since: Instant::now() };
        let open = self.open.get_or_insert_with(empty);
        open.text.push_str(text);
        if open.text.len() >= PIECE_BYTES_MAX { self.close(at) } else { Ok(()) }
    }

    /// When what is open should be written, where something is.
    pub fn due(&self) -> Option<Instant> {
        self.open.as_ref().map(|open| open.since + PIECE_WAIT)
    }

    /// Writes what has been open for long enough.
    pub fn write_due(&mut self, at: Timestamp) -> io::Result<()> {
        if self.due().is_some_and(|due| due <= Instant::now()) { self.close(at) } else { Ok(()) }
    }

    /// Adds a piece of its own.
    pub fn put(&mut self, at: Timestamp, kind: &str, fields: Map<String, Value>) -> io::Result<()> {
        self.close(at)?;
        self.write(at, kind, fields)
    }

    /// Ends what is open, and gives what the whole amounts to.
    pub fn seal(&mut self, at: Timestamp) -> io::Result<(Digest, u64)> {
        self.close(at)?;
        Ok((self.hasher.clone().finish(), self.bytes))
    }

    fn close(&mut self, at: Timestamp) -> io::Result<()> {
        match self.open.take() {
            Some(Open { kind, text, .. }) => {
                let fields = Map::from_iter([("text".to_owned(), text.into())]);
                self.write(at, kind, fields)
            }
            None => Ok(()),
        }
    }

    fn write(&mut self, at: Timestamp, kind: &str, fields: Map<String, Value>) -> io::Result<()> {
        if self.is_full {
            return Ok(());
        }
        let mut line = json!({"at": at.to_string(), "kind": kind});
        if let Some(object) = line.as_object_mut() {
            object.extend(fields);
        }
        let mut line = format!("{}\n", Sorted(&line));
        if self.bytes + line.len() as u64 > TRANSCRIPT_BYTES_MAX {
            self.is_full = true;
            line = format!("{}\n", json!({"at": at.to_string(), "kind": "full"}));
        }
        self.file.write_all(line.as_bytes())?;
        self.hasher.update(line.as_bytes());
        self.bytes += line.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Timestamp {
        Timestamp::nearest(1_770_000_000_000)
    }

    #[test]
    fn parts_become_pieces_and_the_hash_is_that_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut transcript = Transcript::open(dir.path()).unwrap();
        for (kind, text) in [("text", "hel"), ("text", "lo"), ("thought", "hm"), ("text", "!")] {
            transcript.say(at(), kind, text).unwrap();
        }
        transcript.put(at(), "tool", Map::from_iter([("name".to_owned(), "grep".into())])).unwrap();
        let (digest, bytes) = transcript.seal(at()).unwrap();
        let text = std::fs::read_to_string(path_in(dir.path())).unwrap();
        let pieces: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let shown: Vec<(&str, &str)> =
            pieces.iter().map(|p| (p["kind"].as_str().unwrap(), p["text"].as_str().unwrap_or(""))).collect();
        assert_eq!(shown, [("text", "hello"), ("thought", "hm"), ("text", "!"), ("tool", "")]);
        assert_eq!((digest, bytes), (baton_ledger::hash::sha256(text.as_bytes()), text.len() as u64));
        // Another life goes on with it.
        let mut again = Transcript::open(dir.path()).unwrap();
        assert_eq!(again.seal(at()).unwrap(), (digest, bytes));
    }

    #[test]
    fn what_is_said_is_not_only_in_memory_for_long() {
        let dir = tempfile::tempdir().unwrap();
        let mut transcript = Transcript::open(dir.path()).unwrap();
        let written = || std::fs::read_to_string(path_in(dir.path())).unwrap();
        let long = "x".repeat(PIECE_BYTES_MAX);
        transcript.say(at(), "text", &long).unwrap();
        assert!(written().contains(&long));
        assert_eq!(transcript.due(), None);
        transcript.say(at(), "text", "and").unwrap();
        assert!(transcript.due().unwrap() > Instant::now());
        transcript.write_due(at()).unwrap();
        assert!(!written().contains("and"), "more of it may come");
        transcript.open.as_mut().unwrap().since -= PIECE_WAIT;
        transcript.write_due(at()).unwrap();
        assert!(written().contains("and"));
    }
}
