//! Tokens: kept as digests in one file of the owner's alone, outside the workspace; compared in constant time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_core::ids::{AgentName, TaskId};
use baton_core::{Digest, Timestamp};
use baton_ledger::hash::sha256;
use baton_store::clock;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use super::{Scope, Who, cookie};
use crate::house::Bound;

/// One token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// Its name, by which it is listed and revoked.
    pub name: String,
    sha256: Digest,
    scope: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl Entry {
    pub fn scope(&self) -> Option<Scope> {
        Scope::parse(&self.scope)
    }

    /// Whoever has it, unless its time is over.
    fn into_who(self) -> Option<Who> {
        if self.expires_at.is_some_and(|at| at <= clock::now()) {
            return None;
        }
        let scope = self.scope()?;
        let bound = match (scope, self.agent) {
            (Scope::Agent, Some(agent)) => Some(Bound { agent, session: None, task: self.task, fence: None }),
            (Scope::Agent, None) => return None,
            _ => None,
        };
        Some(Who { scope, token: self.name, bound })
    }
}

/// What a new token is to be.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub name: String,
    pub scope: Scope,
    pub agent: Option<AgentName>,
    pub task: Option<TaskId>,
    pub expires_at: Option<Timestamp>,
}

/// Why tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path} can be read by others (mode {mode:o}); tokens must be their owner's alone")]
    Exposed { path: PathBuf, mode: u32 },
    #[error("{path} does not read as tokens: {why}")]
    Form { path: PathBuf, why: String },
    #[error("there is a token {0} already")]
    Exists(String),
    #[error("there is no token {0}")]
    Unknown(String),
    #[error("there are {0} tokens already, and more are not kept")]
    TooMany(usize),
    #[error("cannot use {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// The tokens of one data directory.
#[derive(Debug)]
pub struct Tokens {
    dir: PathBuf,
    /// What was read last, and what the file was then.
    read: Mutex<(Stamp, Vec<Entry>)>,
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Stamp(u64, u64, i64, i64);

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    v: u32,
    tokens: Vec<Entry>,
}

const FILE: &str = "tokens.json";
/// Held by whoever changes them.
const LOCK_FILE: &str = "tokens.lock";
/// The administrator's own token as text, for the link that `serve` prints.
const OWN_FILE: &str = "admin.token";
const OWN_NAME: &str = "admin";
const PREFIX: &str = "baton_";
const FILE_BYTES_MAX: u64 = 1 << 20;
const TOKENS_MAX: usize = 1000;
/// Longer than any token: whoever sends more has none.
const TOKEN_BYTES_MAX: usize = 256;

impl Tokens {
    /// Those in a directory of secrets.
    pub fn new(dir: &Path) -> Self {
        Tokens { dir: dir.to_owned(), read: Mutex::default() }
    }

    /// The administrator's own token; made where there is none yet, or where it is not known any more.
    pub fn own(&self) -> Result<String, Error> {
        let _turn = self.turn()?;
        let path = self.dir.join(OWN_FILE);
        match read_private(&path) {
            Ok(Some(text)) if self.find(text.trim())?.is_some() => return Ok(text.trim().to_owned()),
            Ok(_) => {}
            Err(error) => return Err(error),
        }
        let tokens: Vec<Entry> = self.all()?.into_iter().filter(|entry| entry.name != OWN_NAME).collect();
        let new = NewToken {
            name: OWN_NAME.to_owned(),
            scope: Scope::Admin,
            agent: None,
            task: None,
            expires_at: None,
        };
        let (text, entry) = make(new);
        // The text first: a token that is known and that nobody has is of no use.
        write_private(&path, text.as_bytes())?;
        self.save(tokens.into_iter().chain([entry]).collect())?;
        Ok(text)
    }

    /// Makes a token. Its text is given once and kept nowhere.
    pub fn add(&self, new: NewToken) -> Result<String, Error> {
        let _turn = self.turn()?;
        let mut tokens = self.all()?;
        if tokens.iter().any(|entry| entry.name == new.name) {
            return Err(Error::Exists(new.name));
        }
        if tokens.len() >= TOKENS_MAX {
            return Err(Error::TooMany(tokens.len()));
        }
        let (text, entry) = make(new);
        tokens.push(entry);
        self.save(tokens)?;
        Ok(text)
    }

    /// Takes a token back.
    pub fn revoke(&self, name: &str) -> Result<(), Error> {
        let _turn = self.turn()?;
        let mut tokens = self.all()?;
        let before = tokens.len();
        tokens.retain(|entry| entry.name != name);
        match tokens.len() == before {
            true => Err(Error::Unknown(name.to_owned())),
            false => self.save(tokens),
        }
    }

    /// Waits until nobody else changes them, in this process or another: whoever writes them has read them before.
    fn turn(&self) -> Result<File, Error> {
        let path = self.dir.join(LOCK_FILE);
        let mut options = File::options();
        let opened = options.create(true).truncate(false).write(true).mode(0o600).open(&path);
        let locked = opened.and_then(|file| file.lock().map(|()| file));
        locked.map_err(|source| Error::Io { path, source })
    }

    /// All of them, as they are now, whoever changed them.
    pub fn all(&self) -> Result<Vec<Entry>, Error> {
        self.look(<[Entry]>::to_vec)
    }

    fn look<T>(&self, look: impl FnOnce(&[Entry]) -> T) -> Result<T, Error> {
        let path = self.dir.join(FILE);
        let stamp = fs::metadata(&path).map(|found| Stamp::of(&found)).unwrap_or_default();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.0 != stamp || stamp == Stamp::default() {
            let tokens = match read_private(&path)? {
                None => Vec::new(),
                Some(text) => {
                    let kept: Kept = serde_json::from_str(&text)
                        .map_err(|error| Error::Form { path: path.clone(), why: error.to_string() })?;
                    kept.tokens
                }
            };
            *read = (stamp, tokens);
        }
        Ok(look(&read.1))
    }

    /// Whose token this is. `None`: nobody's, or one whose time is over.
    pub fn find(&self, text: &str) -> Result<Option<Who>, Error> {
        if text.len() > TOKEN_BYTES_MAX {
            return Ok(None);
        }
        let digest = sha256(text.as_bytes());
        Ok(self.find_entry(|entry| entry.sha256.0.ct_eq(&digest.0).into())?.and_then(Entry::into_who))
    }

    /// What a browser keeps in the cookie of this name instead of a token.
    pub fn key_of(&self, text: &str, cookie: &str) -> Result<Option<String>, Error> {
        Ok(self.find(text)?.map(|_| cookie::key(&sha256(text.as_bytes()), cookie)))
    }

    /// Whose key this is, in the cookie of this name: what it opens and how long is what its token opens, and how long.
    pub fn find_key(&self, key: &str, cookie: &str) -> Result<Option<Who>, Error> {
        let is_its =
            |entry: &Entry| cookie::key(&entry.sha256, cookie).as_bytes().ct_eq(key.as_bytes()).into();
        Ok(self.find_entry(is_its)?.and_then(Entry::into_who))
    }

    /// All are compared, whichever it is: how long that takes says nothing.
    fn find_entry(&self, is_it: impl Fn(&Entry) -> bool) -> Result<Option<Entry>, Error> {
        self.look(|tokens| {
            tokens.iter().fold(None, |found, entry| if is_it(entry) { Some(entry.clone()) } else { found })
        })
    }

    fn save(&self, tokens: Vec<Entry>) -> Result<(), Error> {
        let path = self.dir.join(FILE);
        let text = serde_json::to_string_pretty(&Kept { v: 1, tokens })
            .map_err(|error| Error::Form { path: path.clone(), why: error.to_string() })?;
        write_private(&path, text.as_bytes())
    }
}

impl Stamp {
    fn of(found: &fs::Metadata) -> Stamp {
        Stamp(found.ino(), found.len(), found.mtime(), found.mtime_nsec())
    }
}

fn make(new: NewToken) -> (String, Entry) {
    let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(clock::new_seed().as_slice()));
    let entry = Entry {
        name: new.name,
        sha256: sha256(text.as_bytes()),
        scope: new.scope.as_str().to_owned(),
        agent: new.agent,
        task: new.task,
        created_at: clock::now(),
        expires_at: new.expires_at,
    };
    (text, entry)
}

fn read_private(path: &Path) -> Result<Option<String>, Error> {
    let fail = |source| Error::Io { path: path.to_owned(), source };
    let file = match baton_store::disk::open_regular(OpenOptions::new().read(true), path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let mode = file.metadata().map_err(fail)?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(Error::Exposed { path: path.to_owned(), mode });
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(fail)?;
    Ok(Some(text))
}

/// Whole or not at all, and nobody else's from the first byte on.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let fail = |source| Error::Io { path: path.to_owned(), source };
    let new = path.with_extension("new");
    let _ = fs::remove_file(&new);
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(fail)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn tokens() -> (tempfile::TempDir, Tokens) {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(dir.path());
        (dir, tokens)
    }

    fn new(name: &str, scope: Scope) -> NewToken {
        NewToken { name: name.into(), scope, agent: None, task: None, expires_at: None }
    }

    #[test]
    fn tokens_that_are_made_and_revoked_at_once_are_all_made_and_revoked() {
        let (dir, tokens) = tokens();
        let named =
            |name: String| NewToken { name, scope: Scope::Viewer, agent: None, task: None, expires_at: None };
        for n in 0..8 {
            tokens.add(named(format!("old-{n}"))).unwrap();
        }
        std::thread::scope(|scope| {
            for n in 0..8 {
                // As other processes would, each reads and writes by itself.
                let own = Tokens::new(dir.path());
                scope.spawn(move || {
                    own.revoke(&format!("old-{n}")).unwrap();
                    own.add(named(format!("new-{n}"))).unwrap();
                });
            }
        });
        let mut names: Vec<String> = tokens.all().unwrap().into_iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        assert_eq!(names, (0..8).map(|n| format!("new-{n}")).collect::<Vec<_>>());
    }

    #[test]
    fn the_administrators_token_stays_and_is_nobody_elses_to_read() {
        let (dir, tokens) = tokens();
        let own = tokens.own().unwrap();
        assert_eq!(Tokens::new(dir.path()).own().unwrap(), own, "also after a restart");
        assert_eq!(tokens.find(&own).unwrap().unwrap().scope, Scope::Admin);
        for file in [FILE, OWN_FILE] {
            let mode = fs::metadata(dir.path().join(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
        let kept = fs::read_to_string(dir.path().join(FILE)).unwrap();
        assert!(!kept.contains(&own), "only its digest is kept");
        fs::set_permissions(dir.path().join(FILE), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Tokens::new(dir.path()).find(&own), Err(Error::Exposed { .. })));
    }

    #[test]
    fn a_token_opens_what_it_is_for_until_it_is_over_or_taken_back() {
        let (dir, tokens) = tokens();
        let viewer = tokens.add(new("v", Scope::Viewer)).unwrap();
        assert_eq!(tokens.find(&viewer).unwrap().unwrap().scope, Scope::Viewer);
        assert!(matches!(tokens.add(new("v", Scope::Viewer)), Err(Error::Exists(_))));
        let over = NewToken { expires_at: Some(clock::now()), ..new("o", Scope::Admin) };
        let over = tokens.add(over).unwrap();
        assert_eq!(tokens.find(&over).unwrap(), None);
        // Somebody else, with the same file.
        Tokens::new(dir.path()).revoke("v").unwrap();
        assert_eq!(tokens.find(&viewer).unwrap(), None);
        assert!(matches!(tokens.revoke("v"), Err(Error::Unknown(_))));
        for wrong in ["", "baton_", &viewer[..10], &"x".repeat(1 << 20)] {
            assert_eq!(tokens.find(wrong).unwrap(), None);
        }
        let nobodys = tokens.add(new("a", Scope::Agent)).unwrap();
        assert_eq!(tokens.find(&nobodys).unwrap(), None, "an agent's token is some agent's");
    }

    #[test]
    fn the_key_of_a_browser_opens_what_its_token_does_and_is_no_token() {
        let (dir, tokens) = tokens();
        let viewer = tokens.add(new("v", Scope::Viewer)).unwrap();
        let key = tokens.key_of(&viewer, "baton_1").unwrap().unwrap();
        assert!(!key.contains(&viewer) && !viewer.contains(&key));
        assert_eq!(tokens.find(&key).unwrap(), None, "it is no token");
        assert_eq!(tokens.find_key(&viewer, "baton_1").unwrap(), None, "and the token no key");
        assert_eq!(tokens.find_key(&key, "baton_2").unwrap(), None, "nor is it another server's");
        assert_eq!(tokens.key_of("baton_wrong", "baton_1").unwrap(), None);
        for wrong in ["", &key[1..]] {
            assert_eq!(tokens.find_key(wrong, "baton_1").unwrap(), None);
        }
        let again = Tokens::new(dir.path());
        assert_eq!(again.find_key(&key, "baton_1").unwrap().unwrap().scope, Scope::Viewer, "after a restart");
        again.revoke("v").unwrap();
        assert_eq!(tokens.find_key(&key, "baton_1").unwrap(), None, "it ends with its token");
        let own = tokens.own().unwrap();
        let over = NewToken { expires_at: Some(clock::now()), ..new("o", Scope::Admin) };
        let over = tokens.add(over).unwrap();
        assert_eq!(tokens.key_of(&over, "baton_1").unwrap(), None);
        let over = cookie::key(&sha256(over.as_bytes()), "baton_1");
        assert_eq!(tokens.find_key(&over, "baton_1").unwrap(), None, "and with its time");
        let own = tokens.key_of(&own, "baton_1").unwrap().unwrap();
        assert_eq!(tokens.find_key(&own, "baton_1").unwrap().unwrap().scope, Scope::Admin);
    }
}
