//! Where things lie in a data directory.

use std::path::{Path, PathBuf};

use baton_core::limits::INTEGER_MAX;

/// The paths of one data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Layout { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn config(&self) -> PathBuf {
        self.root.join("baton.toml")
    }

    /// What runs after tools.
    pub fn hooks(&self) -> PathBuf {
        self.root.join("hooks.json")
    }

    pub fn events(&self) -> PathBuf {
        self.root.join("events")
    }

    pub fn segment(&self, first_pos: u64) -> PathBuf {
        self.events().join(segment_name(first_pos))
    }

    /// A segment that is being made; it gets its name once its first events are durable. `unique` keeps it apart from what a crash left behind.
    pub fn new_segment(&self, first_pos: u64, unique: &str) -> PathBuf {
        self.events().join(format!("{}.{unique}.new", segment_name(first_pos)))
    }

    pub fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    pub fn trace_heads(&self) -> PathBuf {
        self.checkpoints().join("traces")
    }

    pub fn quarantine(&self) -> PathBuf {
        self.root.join("quarantine")
    }

    pub fn index(&self) -> PathBuf {
        self.root.join("index")
    }

    pub fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts").join("sha256")
    }

    pub fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }

    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Every directory that `init` makes.
    pub fn dirs(&self) -> [PathBuf; 6] {
        [self.events(), self.trace_heads(), self.quarantine(), self.index(), self.artifacts(), self.keys()]
    }
}

fn segment_name(first_pos: u64) -> String {
    format!("{first_pos:020}.jsonl")
}

/// The position in a segment's name, where the name is one of a segment.
pub fn parse_segment_name(name: &str) -> Option<u64> {
    position(name.strip_suffix(".jsonl")?)
}

/// A position or size as it stands in names: twenty digits, and no more than a position can be.
pub fn position(digits: &str) -> Option<u64> {
    let is_form = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
    is_form.then(|| digits.parse().ok()).flatten().filter(|position| *position <= INTEGER_MAX.unsigned_abs())
}
