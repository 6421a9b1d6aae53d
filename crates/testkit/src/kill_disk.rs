//! The real disk, but the process is killed at a chosen operation: before it, in the middle of it, or right after.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_store::disk::{Disk, DiskFile, Mode, RealDisk};

/// The operation at which the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    BeforeSync,
    AfterSync,
    /// Half of a write is done.
    MidWrite,
    /// A new segment is durable but has no name yet.
    BeforeRename,
    /// It has its name, and the directory is not synced.
    AfterRename,
}

impl Moment {
    pub const ALL: [Moment; 5] =
        [Moment::BeforeSync, Moment::AfterSync, Moment::MidWrite, Moment::BeforeRename, Moment::AfterRename];

    pub fn as_str(self) -> &'static str {
        match self {
            Moment::BeforeSync => "before-sync",
            Moment::AfterSync => "after-sync",
            Moment::MidWrite => "mid-write",
            Moment::BeforeRename => "before-rename",
            Moment::AfterRename => "after-rename",
        }
    }

    pub fn parse(text: &str) -> Option<Moment> {
        Moment::ALL.into_iter().find(|moment| moment.as_str() == text)
    }
}

/// Dies when the count of operations of its kind runs out.
#[derive(Debug, Clone)]
pub struct KillDisk {
    moment: Moment,
    left: Arc<AtomicU64>,
}

impl KillDisk {
    pub fn new(moment: Moment, after: u64) -> Self {
        KillDisk { moment, left: Arc::new(AtomicU64::new(after)) }
    }

    /// Whether this is the operation.
    fn is_now(&self, moment: Moment) -> bool {
        moment == self.moment
            && self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1)).is_err()
    }

    fn die_if(&self, moment: Moment) {
        if self.is_now(moment) {
            die();
        }
    }
}

/// Ends this process as `kill -9` does.
fn die() -> ! {
    let me = rustix::process::getpid();
    let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
    std::process::abort()
}

#[derive(Debug)]
struct KillFile {
    disk: KillDisk,
    file: Arc<dyn DiskFile>,
}

impl Disk for KillDisk {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(KillFile { disk: self.clone(), file: RealDisk.open(path, mode)? }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        RealDisk.create_dir_all(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.die_if(Moment::BeforeRename);
        RealDisk.rename(from, to)?;
        self.die_if(Moment::AfterRename);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.sync_dir(dir)
    }
}

impl DiskFile for KillFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if self.disk.is_now(Moment::MidWrite) {
            let _ = self.file.write_at(&bytes[..bytes.len() / 2], offset);
            die();
        }
        self.file.write_at(bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.die_if(Moment::BeforeSync);
        self.file.sync()?;
        self.disk.die_if(Moment::AfterSync);
        Ok(())
    }
}
