//! The wall around a program: what it may read, write and run, by the kernel's Landlock; and places that are Baton's own, out of its sight.
//!
//! Landlock only ever allows, and what it allows for a directory holds for everything below. The data directory usually lies in the workspace, so it is
//! covered first: in a mount namespace of the program's own, an empty directory lies over it. Where such a namespace is not to be had, everything in the
//! workspace but that directory is allowed one by one, and nothing new can be made beside them.
//!
//! Both are done by a process to itself before it becomes the program ([`enter`], then exec), so it needs neither privileges nor unsafe code.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, Scope,
};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use serde_json::{Value, json};

use super::mounts::{self, Terminals};
use crate::process::Command;

/// What tells Baton's binary to put up a wall and become a program: the word, the wall, the program, its arguments.
pub const WALL_WORD: &str = "@wall";

/// Before the name of a variable that is for the program alone. Whoever stands between Baton and the wall gets it too, and by this name it means nothing there:
/// neither to the loader of programs nor to Baton.
const CARRIED: &str = "BATON_INSIDE_";

/// The newest form of Landlock that this knows; an older kernel keeps to what it has.
const NEWEST: ABI = ABI::V9;

/// What is the system's and may be read and run.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/proc",
    "/run/systemd/resolve",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
];

/// What belongs to nobody and may be written. A person's terminal is not among it: it has what they type, and obeys what is written to it.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What makes terminals, and those that it made: where they are the program's own.
const TERMINALS: &[&str] = &["/dev/ptmx", mounts::TERMINALS];

/// What stands around programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Walled {
    /// Landlock, in this version at least.
    Landlock(u32),
    /// Nothing, and why.
    None(String),
}

impl std::fmt::Display for Walled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Walled::Landlock(abi) => write!(f, "Landlock, version {abi}"),
            Walled::None(why) => write!(f, "none: {why}"),
        }
    }
}

/// What a program may do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wall {
    /// Directories to work in, by their real names.
    pub write: Vec<PathBuf>,
    /// What may be read and run besides the system's own, likewise.
    pub read: Vec<PathBuf>,
    /// What is never seen, wherever it lies.
    pub own: Vec<PathBuf>,
}

impl Wall {
    /// As one argument of a command line. A path that is no text is there byte by byte: what were left out would not be protected.
    pub fn to_text(&self) -> String {
        let of = |path: &PathBuf| match path.to_str() {
            Some(text) => Value::from(text),
            None => Value::from(path.as_os_str().as_bytes()),
        };
        let list = |paths: &[PathBuf]| -> Vec<Value> { paths.iter().map(of).collect() };
        json!({"write": list(&self.write), "read": list(&self.read), "own": list(&self.own)}).to_string()
    }

    /// Reads what [`Wall::to_text`] wrote.
    pub fn from_text(text: &str) -> Option<Wall> {
        let value: Value = serde_json::from_str(text).ok()?;
        let byte = |byte: &Value| u8::try_from(byte.as_u64()?).ok();
        let of = |path: &Value| match path {
            Value::String(text) => Some(PathBuf::from(text)),
            Value::Array(bytes) => {
                let bytes = bytes.iter().map(byte).collect::<Option<Vec<u8>>>()?;
                Some(PathBuf::from(OsString::from_vec(bytes)))
            }
            _ => None,
        };
        let list =
            |name: &str| -> Option<Vec<PathBuf>> { value.get(name)?.as_array()?.iter().map(of).collect() };
        Some(Wall { write: list("write")?, read: list("read")?, own: list("own")? })
    }

    /// Puts it around a command: Baton's own program stands between, puts it up, and ends the command should this process be killed.
    pub(crate) fn around(&self, myself: &Path, command: &mut Command) {
        let mut words = vec![myself.display().to_string(), WALL_WORD.to_owned(), self.to_text()];
        words.append(&mut command.words);
        command.words = words;
        command.warden = Some(myself.to_owned());
    }
}

/// What it takes to put up a wall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walling {
    /// Baton's own program.
    pub myself: PathBuf,
    /// What nobody behind it ever sees.
    pub own: Vec<PathBuf>,
}

/// The name under which a variable goes to the program behind the wall, and to nobody before.
pub(crate) fn carried(name: &str) -> String {
    format!("{CARRIED}{name}")
}

/// The name that the program knows a variable by, where it is one that was [`carried`].
pub fn uncarried(name: &OsStr) -> Option<&OsStr> {
    name.as_bytes().strip_prefix(CARRIED.as_bytes()).filter(|name| !name.is_empty()).map(OsStr::from_bytes)
}

/// What this kernel has to offer.
pub fn wall_report() -> Walled {
    let offers = |abi: ABI| {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        ruleset.handle_access(AccessFs::from_all(abi)).is_ok_and(|ruleset| match abi >= ABI::V6 {
            true => ruleset.scope(Scope::from_all(abi)).is_ok_and(|ruleset| ruleset.create().is_ok()),
            false => ruleset.create().is_ok(),
        })
    };
    // Those that bring something for files, or for signals.
    let known = [(ABI::V6, 6), (ABI::V5, 5), (ABI::V3, 3), (ABI::V2, 2), (ABI::V1, 1)];
    match known.into_iter().find(|(abi, _)| offers(*abi)) {
        Some((_, number)) => Walled::Landlock(number),
        None => Walled::None("this kernel has no Landlock, or it is not switched on".to_owned()),
    }
}

/// Shuts this process in, and everything that it will start. There is no way back.
///
/// Where the kernel has no Landlock the process goes on without it: that is for `doctor` and the session to tell. An error means that a wall could not
/// be put up though it should, and then nothing may be run.
pub fn enter(wall: &Wall) -> Result<(), String> {
    let mut own = Vec::new();
    for path in &wall.own {
        match path.canonicalize() {
            Ok(path) => own.push(path),
            // What is not there needs no cover.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{}: {error}", path.display())),
        }
    }
    // Also what lies elsewhere: Landlock says nothing about sockets, and where there is nothing there is none.
    let arranged = mounts::arrange(&wall.write, &own);
    give_up_privileges();
    let left: &[PathBuf] = if arranged.is_ok() { &[] } else { &own };
    let all = AccessFs::from_all(NEWEST);
    // Devices are nobody's to make.
    let work = all & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let look = AccessFs::from_read(NEWEST);
    let build = || {
        let mut rules = Ruleset::default().handle_access(all)?.scope(Scope::from_all(NEWEST))?.create()?;
        let named =
            wall.write.iter().map(|path| (path, work)).chain(wall.read.iter().map(|path| (path, look)));
        for (path, rights) in named {
            for (path, rights) in without(path, rights, left) {
                rules = allow(rules, opened_as_named(&path), rights)?;
            }
        }
        for path in SYSTEM.iter().map(Path::new) {
            for (path, rights) in without(path, look, left) {
                rules = allow(rules, PathFd::new(path).ok(), rights)?;
            }
        }
        let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::Truncate;
        // Their names may be read, no more.
        rules = allow(rules, PathFd::new("/dev").ok(), AccessFs::ReadDir.into())?;
        let terminals = if matches!(arranged, Ok(Terminals::Own)) { TERMINALS } else { &[] };
        for path in DEVICES.iter().chain(terminals) {
            rules = allow(rules, PathFd::new(path).ok(), device)?;
        }
        rules.restrict_self()
    };
    build().map(drop).map_err(|error: landlock::RulesetError| error.to_string())
}

/// One more thing that is allowed. What is not there needs no rule.
fn allow(
    rules: landlock::RulesetCreated,
    opened: Option<PathFd>,
    rights: BitFlags<AccessFs>,
) -> Result<landlock::RulesetCreated, landlock::RulesetError> {
    let Some(opened) = opened else { return Ok(rules) };
    let is_dir = rustix::fs::fstat(&opened)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir());
    let rights = if is_dir { rights } else { rights & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(opened, rights))
}

/// Opens what has exactly this name. A link that somebody put on the way meanwhile would have the wall stand around something else.
pub(super) fn opened_as_named(path: &Path) -> Option<PathFd> {
    let opened = PathFd::new(path).ok()?;
    let name = std::fs::read_link(format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd())).ok()?;
    (name == path).then_some(opened)
}

/// Rights for a directory but not for what is `own` below it: for the others in it one by one, and of itself only the names.
fn without(path: &Path, rights: BitFlags<AccessFs>, own: &[PathBuf]) -> Vec<(PathBuf, BitFlags<AccessFs>)> {
    if own.iter().any(|own| path.starts_with(own)) {
        return Vec::new();
    }
    if !own.iter().any(|own| own.starts_with(path)) {
        return vec![(path.to_owned(), rights)];
    }
    let mut found = vec![(path.to_owned(), AccessFs::ReadDir.into())];
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        // A rule for a link would be one for what it leads to.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            found.extend(without(&entry.path(), rights, own));
        }
    }
    found
}

/// What root keeps for the program: what it does with its own files. The rest would lead around the wall, such as reading other processes' memory.
fn give_up_privileges() {
    let kept = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        | CapabilitySet::SETUID
        | CapabilitySet::SETGID
        | CapabilitySet::KILL
        | CapabilitySet::NET_BIND_SERVICE;
    for capability in (CapabilitySet::all() & !kept).iter() {
        // Whoever may not give one up has none.
        let _ = remove_capability_from_bounding_set(capability);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_survives_a_command_line() {
        let wall =
            Wall { write: vec!["/a b".into()], read: vec!["/c\"d".into(), "/e".into()], own: Vec::new() };
        assert_eq!(Wall::from_text(&wall.to_text()), Some(wall));
        assert_eq!(Wall::from_text("{}"), None);
    }

    #[test]
    fn a_path_that_is_no_text_is_kept_to_the_byte() {
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let own = vec![path(b"/data/\xff\xfe"), path(b"/plain")];
        let wall = Wall { write: vec![path(b"/w\x80")], read: vec![path(b"/r\xc3")], own };
        assert_eq!(Wall::from_text(&wall.to_text()), Some(wall));
        assert_eq!(Wall::from_text(r#"{"write": [[256]], "read": [], "own": []}"#), None);
    }

    #[test]
    fn only_what_was_carried_is_taken_off_again() {
        assert_eq!(uncarried(OsStr::new(&carried("LD_PRELOAD"))), Some(OsStr::new("LD_PRELOAD")));
        for name in ["LD_PRELOAD", "BATON_SESSION_ID", CARRIED] {
            assert_eq!(uncarried(OsStr::new(name)), None, "{name}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_opens_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("there")).unwrap();
        std::os::unix::fs::symlink("/", root.join("link")).unwrap();
        assert!(opened_as_named(&root.join("there")).is_some());
        assert!(opened_as_named(&root.join("link")).is_none());
        assert!(opened_as_named(&root.join("link/etc")).is_none());
    }

    #[test]
    fn what_is_baton_s_is_left_out_and_the_rest_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in ["a/.baton", "a/b", "c"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("/", root.join("link")).unwrap();
        let own = [root.join("a/.baton")];
        let mut found: Vec<(PathBuf, bool)> = without(root, AccessFs::from_all(NEWEST), &own)
            .into_iter()
            .map(|(path, rights)| {
                (path.strip_prefix(root).unwrap().to_owned(), rights.contains(AccessFs::WriteFile))
            })
            .collect();
        found.sort();
        let expected = [("", false), ("a", false), ("a/b", true), ("c", true)];
        assert_eq!(found, expected.map(|(path, can_write)| (PathBuf::from(path), can_write)));
    }
}
