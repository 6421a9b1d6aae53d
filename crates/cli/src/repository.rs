//! Whether git can make worktrees at a place: what agents with `workspace = "worktree"` need.

use std::path::Path;
use std::time::Duration;

use baton_runtime::process::{Command, Ended};

/// How long git may take to say so.
const GIT_WAIT: Duration = Duration::from_secs(10);

/// Why no worktree can be made of a directory; `None` where one can.
pub(crate) fn no_worktrees_in(dir: &Path) -> Option<String> {
    let words = ["git", "rev-parse", "--verify", "--quiet", "HEAD"].map(str::to_owned);
    let ran = match Command::new(words.to_vec(), dir, GIT_WAIT).run(None, &mut || false) {
        Ok(ran) => ran,
        Err(error) => return Some(format!("git does not start: {error}")),
    };
    match ran.ended {
        Ended::Exit(0) => None,
        // Quiet is what it says of a repository without a commit.
        Ended::Exit(1) => Some(format!("{} has no commit yet", dir.display())),
        _ => Some(format!("{} is not in a git repository", dir.display())),
    }
}
