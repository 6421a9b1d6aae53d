//! What a program sees of the file system: a mount namespace of its own, in which Baton's places are covered, terminals are its own, and everything that it
//! may not write is read-only.
//!
//! Landlock, which the rest is up to, has nothing to say about modes, owners and times of files, nor about which terminal is whose.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};
use rustix::thread::UnshareFlags;

use super::wall::opened_as_named;

/// Where terminals are.
pub(super) const TERMINALS: &str = "/dev/pts";

/// What there is besides the covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Terminals {
    /// None but those that it makes itself.
    Own,
    /// Those of everybody.
    Shared,
}

/// Gives this process, and what it starts, a view of its own: an empty directory over each that is `hidden`, and nothing but `written` to be written.
///
/// An error means that something may not be hidden. The rest is as much as can be had.
pub(super) fn arrange(written: &[PathBuf], hidden: &[PathBuf]) -> io::Result<Terminals> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let here = std::env::current_dir();
    if unshare(UnshareFlags::NEWNS).is_err() {
        // Without privileges: first a namespace in which this user has them, as itself.
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("{user} {user} 1", user = user.as_raw()))?;
        std::fs::write("/proc/self/gid_map", format!("{group} {group} 1", group = group.as_raw()))?;
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let apart = set_apart(written);
    let covered = hidden.iter().try_for_each(|path| cover(path));
    let terminals = if own_terminals().is_ok() { Terminals::Own } else { Terminals::Shared };
    if let Ok(apart) = apart {
        // Without the list everything stays as it was.
        let _ = hold_the_rest(&apart);
    }
    // What lies over this directory since then is not seen from within it.
    if let Ok(here) = here {
        let _ = std::env::set_current_dir(here);
    }
    covered.map(|()| terminals)
}

/// Makes each of these a mount of its own, the outer ones first. Gives those that are there.
fn set_apart(written: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut written: Vec<&PathBuf> = written.iter().collect();
    written.sort();
    written.dedup();
    let mut apart = Vec::new();
    for path in written {
        let Some(opened) = opened_as_named(path) else { continue };
        let itself = format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd());
        mount_bind_recursive(itself.as_str(), itself.as_str())?;
        apart.push(path.clone());
    }
    Ok(apart)
}

/// Puts an empty directory over this.
fn cover(path: &Path) -> io::Result<()> {
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    seen(path, || mount("none", path, "tmpfs", flags, Some(c"size=4k,mode=0555")))
}

/// Terminals of its own, none of which is there yet. `/dev/ptmx` makes them in what lies beside it.
fn own_terminals() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=0600";
    seen(Path::new(TERMINALS), || mount("devpts", TERMINALS, "devpts", flags, Some(options)))
}

/// Mounts something, and believes it only once it is seen.
fn seen(path: &Path, mount: impl FnOnce() -> rustix::io::Result<()>) -> io::Result<()> {
    let before = std::fs::metadata(path)?;
    mount()?;
    let after = std::fs::metadata(path)?;
    match (before.dev(), before.ino()) == (after.dev(), after.ino()) {
        true => Err(io::ErrorKind::Other.into()),
        false => Ok(()),
    }
}

/// Makes everything read-only that is not below one of these, nor a terminal.
fn hold_the_rest(written: &[PathBuf]) -> io::Result<()> {
    for (path, flags) in mounts(&std::fs::read("/proc/self/mountinfo")?) {
        let is_left = written.iter().any(|written| path.starts_with(written)) || path == Path::new(TERMINALS);
        if !is_left && !flags.contains(MountFlags::RDONLY) {
            // What another mount lies over has no name any more, and nobody reaches it.
            let _ = mount_remount(path.as_path(), flags | MountFlags::RDONLY | MountFlags::BIND, c"");
        }
    }
    Ok(())
}

/// What is mounted where and how. The flags are needed in full: whoever leaves one out asks for it to be taken back, which is refused.
fn mounts(list: &[u8]) -> Vec<(PathBuf, MountFlags)> {
    let mut found = Vec::new();
    for line in list.split(|byte| *byte == b'\n') {
        let mut words = line.split(|byte| *byte == b' ').skip(4);
        let (Some(path), Some(options)) = (words.next(), words.next()) else { continue };
        let kind = words.skip_while(|word| *word != b"-").nth(1);
        // To name one that mounts by itself would have it do so.
        if kind == Some(b"autofs") {
            continue;
        }
        let mut flags = MountFlags::empty();
        for option in options.split(|byte| *byte == b',') {
            // Times of access stay as they are where nothing is said about them.
            flags |= match option {
                b"ro" => MountFlags::RDONLY,
                b"nosuid" => MountFlags::NOSUID,
                b"nodev" => MountFlags::NODEV,
                b"noexec" => MountFlags::NOEXEC,
                b"nosymfollow" => MountFlags::NOSYMFOLLOW,
                _ => MountFlags::empty(),
            };
        }
        found.push((unescaped(path), flags));
    }
    found
}

/// A path as the kernel lists it: white space and backslashes are there as `\` and three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let [first, after @ ..] = rest {
        let number = after.get(..3).filter(|_| *first == b'\\');
        let number = number.and_then(|digits| std::str::from_utf8(digits).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[expect(
    deprecated,
    reason = "what makes it unsafe is a table of descriptors of one's own, which is not asked for"
)]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_mounts_is_read_with_what_each_may_not_do() {
        let list = b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
            30 25 0:27 / /a\\040b\\134 ro,nosuid,nodev,noexec,noatime shared:3 master:1 - tmpfs tmpfs rw\n\
            31 25 0:28 / /auto rw,relatime - autofs systemd-1 rw\n\
            torn";
        let most = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let expected = [("/", MountFlags::empty()), ("/a b\\", most)];
        assert_eq!(mounts(list), expected.map(|(path, flags)| (PathBuf::from(path), flags)));
    }
}
