//! What a caller sends: one length, one JSON object, three descriptors. What the owner answers: that it begins, then the exit code; or why not.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde_json::{Map, Value, json};

use crate::error::{CliError, Code};
use crate::limits::CALL_BYTES_MAX;

/// The form of what is sent. Callers and owners of other forms refuse each other.
const FORM: u64 = 1;

/// The version of this program; both sides must be of the same, since the command runs in the other one.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The owner has taken the command: from here on it may have happened.
pub(crate) const BEGUN: u8 = b'+';
/// The owner does not take it; an error follows.
pub(crate) const REFUSED: u8 = b'-';

/// A command as its caller gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) argv: Vec<OsString>,
    pub(crate) here: PathBuf,
    pub(crate) env: BTreeMap<OsString, OsString>,
    /// Whether standard input is what the command reads, whatever file it names.
    pub(crate) is_fed: bool,
    /// Whether standard input is a terminal, also where it comes through a pipe.
    pub(crate) is_terminal: bool,
}

impl Request {
    fn to_json(&self) -> Value {
        let env: Vec<Value> = self.env.iter().map(|(name, value)| json!([text(name), text(value)])).collect();
        json!({
            "v": FORM,
            "version": VERSION,
            "argv": self.argv.iter().map(|word| text(word)).collect::<Vec<_>>(),
            "cwd": text(self.here.as_os_str()),
            "env": env,
            "fed": self.is_fed,
            "terminal": self.is_terminal,
        })
    }

    fn of_json(mut value: Value) -> Result<Request, CliError> {
        let (form, version) = (value["v"].as_u64(), value["version"].as_str().unwrap_or("unknown"));
        if form != Some(FORM) || version != VERSION {
            return Err(other_version(version));
        }
        let object = value.as_object_mut().map(std::mem::take).unwrap_or_default();
        read(&object).ok_or_else(|| bad("a member is missing or not what it should be"))
    }
}

fn read(object: &Map<String, Value>) -> Option<Request> {
    let argv = object.get("argv")?.as_array()?.iter().map(os_string).collect::<Option<_>>()?;
    let pair = |pair: &Value| match pair.as_array()?.as_slice() {
        [name, value] => Some((os_string(name)?, os_string(value)?)),
        _ => None,
    };
    let here = PathBuf::from(os_string(object.get("cwd")?)?);
    Some(Request {
        argv,
        here: here.is_absolute().then_some(here)?,
        env: object.get("env")?.as_array()?.iter().map(pair).collect::<Option<_>>()?,
        is_fed: object.get("fed")?.as_bool()?,
        is_terminal: object.get("terminal")?.as_bool()?,
    })
}

/// Words of the system are mostly text; what is not goes as its bytes.
fn text(word: &OsStr) -> Value {
    match word.to_str() {
        Some(text) => text.into(),
        None => word.as_bytes().to_vec().into(),
    }
}

fn os_string(value: &Value) -> Option<OsString> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Array(bytes) => {
            let bytes: Option<Vec<u8>> = bytes.iter().map(|b| u8::try_from(b.as_u64()?).ok()).collect();
            bytes.map(OsString::from_vec)
        }
        _ => None,
    }
}

fn bad(why: &str) -> CliError {
    CliError::new(Code::NotServed, "what came over the socket is no command").cause(why)
}

fn other_version(theirs: &str) -> CliError {
    let what = format!("the process that owns the data directory is baton {VERSION}, this is baton {theirs}");
    CliError::new(Code::OtherVersion, what)
        .cause(format!("it is process {}; restart it with the version that you use", std::process::id()))
        .hint(format!("kill {}", std::process::id()))
}

/// Sends a command with its standard streams.
pub(crate) fn send(stream: &UnixStream, request: &Request, fds: [BorrowedFd<'_>; 3]) -> Result<(), CliError> {
    let body = request.to_json().to_string();
    if body.len() > CALL_BYTES_MAX {
        let what = "the command is too long to be handed to the process that owns the data directory";
        return Err(CliError::new(Code::NotServed, what)
            .cause(format!("with its environment it has {} bytes, at most {CALL_BYTES_MAX}", body.len())));
    }
    let frame = [&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes()[..], body.as_bytes()].concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let sent = sendmsg(stream, &[IoSlice::new(&frame)], &mut control, SendFlags::NOSIGNAL);
    // What is not whole is not taken; an owner that ends meanwhile shows when its answer is read.
    let is_whole = sent.is_ok_and(|count| (&*stream).write_all(&frame[count..]).is_ok());
    if !is_whole {
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }
    Ok(())
}

/// Descriptors that fit beside a frame; one more than there may be shows that there are too many.
const FDS_MAX: usize = 4;

/// Receives a command with its standard streams.
pub(crate) fn receive(stream: &UnixStream) -> Result<(Request, [OwnedFd; 3]), CliError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut head = [0; 4];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(stream, &mut [IoSliceMut::new(&mut head)], &mut control, flags);
    let received = received.map_err(|error| bad(&io::Error::from(error).to_string()))?;
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            fds.extend(more);
        }
    }
    let cut = |error: io::Error| bad(&format!("it ends too early: {error}"));
    (&*stream).read_exact(&mut head[received.bytes..]).map_err(cut)?;
    let length = u32::from_be_bytes(head) as usize;
    if length > CALL_BYTES_MAX {
        return Err(bad(&format!("it has {length} bytes, at most {CALL_BYTES_MAX}")));
    }
    let mut body = vec![0; length];
    (&*stream).read_exact(&mut body).map_err(cut)?;
    let value: Value = serde_json::from_slice(&body).map_err(|error| bad(&error.to_string()))?;
    let request = Request::of_json(value)?;
    let is_whole = !received.flags.contains(ReturnFlags::CTRUNC);
    match <[OwnedFd; 3]>::try_from(fds) {
        Ok(fds) if is_whole => Ok((request, fds)),
        _ => Err(bad("expected three descriptors: standard input, output and error")),
    }
}

/// Tells the caller why its command is not taken.
pub(crate) fn refuse(mut stream: &UnixStream, error: &CliError) {
    let body = json!({
        "code": error.code.as_str(), "message": error.what, "causes": error.causes, "hint": error.hint,
    });
    let body = body.to_string();
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    // A caller that has gone need not know.
    let _ = stream.write_all(&[&[REFUSED], &length[..], body.as_bytes()].concat());
}

/// Reads why a command was not taken.
pub(crate) fn read_refusal(mut stream: &UnixStream) -> io::Result<CliError> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut body = vec![0; (u32::from_be_bytes(length) as usize).min(CALL_BYTES_MAX)];
    stream.read_exact(&mut body)?;
    let value: Value = serde_json::from_slice(&body)?;
    let code = value["code"].as_str().and_then(Code::of).unwrap_or(Code::NotServed);
    let mut error = CliError::new(code, value["message"].as_str().unwrap_or("the owner refused the command"));
    let causes = value["causes"].as_array().into_iter().flatten();
    error.causes = causes.filter_map(|cause| cause.as_str().map(str::to_owned)).collect();
    error.hint = value["hint"].as_str().map(str::to_owned);
    Ok(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    fn request() -> Request {
        Request {
            argv: vec!["baton".into(), OsString::from_vec(vec![b'x', 0xff])],
            here: "/somewhere".into(),
            env: BTreeMap::from([("NO_COLOR".into(), "1".into())]),
            is_fed: false,
            is_terminal: true,
        }
    }

    #[test]
    fn what_is_sent_is_received_with_its_descriptors() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (one, mut other) = UnixStream::pair().unwrap();
        send(&ours, &request(), [one.as_fd(), one.as_fd(), one.as_fd()]).unwrap();
        let (received, [fd, ..]) = receive(&theirs).unwrap();
        assert_eq!(received, request());
        UnixStream::from(fd).write_all(b"x").unwrap();
        let mut byte = [0];
        other.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"x");
    }

    #[test]
    fn what_is_no_command_is_refused_and_names_why() {
        let check = |bytes: &[u8], code: Code, names: &str| {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            ours.write_all(bytes).unwrap();
            drop(ours);
            let error = receive(&theirs).unwrap_err();
            assert_eq!(error.code, code, "{error:?}");
            let text = format!("{} {}", error.what, error.causes.join(" "));
            assert!(text.contains(names), "expected {names:?}: {text}");
        };
        let framed =
            |body: &str| [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], body.as_bytes()].concat();
        check(b"", Code::NotServed, "ends too early");
        check(&u32::MAX.to_be_bytes(), Code::NotServed, "bytes, at most");
        check(&[0, 0, 0, 9, b'x'], Code::NotServed, "ends too early");
        check(&framed("hello"), Code::NotServed, "expected");
        check(&framed("[]"), Code::OtherVersion, "baton unknown");
        check(&framed(r#"{"v":1,"version":"0.0.7"}"#), Code::OtherVersion, "baton 0.0.7");
        check(&framed(&format!(r#"{{"v":1,"version":"{VERSION}"}}"#)), Code::NotServed, "a member");
        check(&framed(&request().to_json().to_string()), Code::NotServed, "three descriptors");
        let mut relative = request();
        relative.here = "here".into();
        check(&framed(&relative.to_json().to_string()), Code::NotServed, "a member");
    }
}
