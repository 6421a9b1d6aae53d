//! Where an owner listens: a socket in the user's runtime directory, else in the state directory, named by a hash of the data directory.
//!
//! Both directories are looked in, so that a caller without the one variable still finds its way; who answers is asked of the kernel.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_ledger::hash::sha256;
use baton_store::Layout;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use crate::context::Context;
use crate::error::CliError;
use crate::limits::{CONNECT_MS_MAX, SOCKET_PATH_BYTES_MAX};

/// The name of the socket of a data directory.
fn name(layout: &Layout) -> io::Result<String> {
    let root = fs::canonicalize(layout.root())?;
    let hash = sha256(root.as_os_str().as_bytes()).to_string();
    Ok(format!("baton-{}.sock", hash.get(..16).unwrap_or(&hash)))
}

/// A connection to the owner of a data directory, if there is one that takes commands, and it is the same user.
pub(crate) fn connect(ctx: &Context, layout: &Layout) -> Option<UnixStream> {
    let name = name(layout).ok()?;
    let dirs = [ctx.runtime_dir(), ctx.state_dir().ok()];
    let stream = dirs.into_iter().flatten().find_map(|dir| at(&dir, &name, reach).ok())?;
    is_ours(&stream).then_some(stream)
}

/// Connects, but waits only so long for an owner whose queue is full.
fn reach(path: &Path) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(Duration::from_millis(CONNECT_MS_MAX)))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Whether the other end belongs to the same user.
pub(crate) fn is_ours(stream: &UnixStream) -> bool {
    socket_peercred(stream).is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

/// Does something with a path that the system may find too long: then it is reached through its directory.
fn at<T>(dir: &Path, name: &str, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = dir.join(name);
    if path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
        return act(&path);
    }
    let dir = File::open(dir)?;
    act(&PathBuf::from(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd())))
}

/// Whether a directory is the user's own, and nobody else can put anything there.
fn is_private(dir: &Path) -> bool {
    fs::metadata(dir).is_ok_and(|found| {
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0
    })
}

/// A socket that takes commands as long as this value lives.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) listener: UnixListener,
    pub(crate) path: PathBuf,
    /// What leads to it from the other directory.
    link: Option<PathBuf>,
}

impl Listening {
    /// Listens for the owner of a data directory, which is who may call this: what another owner left there is removed.
    pub(crate) fn start(ctx: &Context, layout: &Layout) -> Result<Listening, CliError> {
        let name = name(layout).map_err(|error| CliError::io("find", layout.root(), &error))?;
        let state_dir = ctx.state_dir()?;
        let runtime_dir = ctx.runtime_dir().filter(|dir| is_private(dir));
        if runtime_dir.is_none() && !is_private(&state_dir) {
            let error = io::Error::new(io::ErrorKind::PermissionDenied, "others may write there");
            let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(&state_dir);
            if !is_private(&state_dir) {
                return Err(CliError::io("listen in", &state_dir, &error).hint("baton doctor --fix"));
            }
        }
        let dir = runtime_dir.as_ref().unwrap_or(&state_dir);
        let path = dir.join(&name);
        let fail = |error: io::Error| CliError::io("listen at", &path, &error);
        remove(&path).map_err(fail)?;
        let listener = at(dir, &name, |path| {
            let listener = UnixListener::bind(path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
            Ok(listener)
        });
        let listener = listener.map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let link = (*dir != state_dir).then(|| state_dir.join(&name));
        if let Some(link) = &link {
            // Callers that know the runtime directory do without it.
            let _ = remove(link).and_then(|()| std::os::unix::fs::symlink(&path, link));
        }
        Ok(Listening { listener, path, link })
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Whoever finds it afterwards finds nobody there, and the next owner removes it.
        let _ = remove(&self.path);
        self.link.iter().for_each(|link| drop(remove(link)));
    }
}
