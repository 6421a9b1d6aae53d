//! The conversation with a server that does a command: what is read goes there, what is printed comes back, and at last the exit code.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::ToSocketAddrs as _;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::Input;
use crate::error::{CliError, Code};
use crate::limits::{REMOTE_PIECE_BYTES, REMOTE_WAIT};
use crate::serve::call::unknown;

/// A command that is to be done elsewhere.
pub(super) struct Errand<'a> {
    pub(super) server: &'a str,
    pub(super) token: &'a str,
    pub(super) args: Vec<String>,
    pub(super) is_terminal: bool,
    /// Whether it changes nothing, so that it may just as well be given again.
    pub(super) only_looks: bool,
    pub(super) input: Option<Input>,
    /// Where what it prints goes, if not to standard output.
    pub(super) to: Option<File>,
}

/// The server's address, taken apart.
struct Url {
    is_tls: bool,
    host: String,
    port: u16,
}

impl Url {
    fn parse(text: &str) -> Result<Url, CliError> {
        let expected = || {
            let what = format!("--server: expected http://HOST:PORT or https://HOST:PORT, got {text:?}");
            CliError::new(Code::Value, what).hint("baton serve")
        };
        let (is_tls, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(expected()),
        };
        let rest = rest.trim_end_matches('/');
        let (host, port) = match rest.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
            Some((host, port)) => (host, port.parse().map_err(|_| expected())?),
            None => (rest, if is_tls { 443 } else { 7433 }),
        };
        if host.is_empty() || host.contains(['/', '?', '@']) {
            return Err(expected());
        }
        Ok(Url { is_tls, host: host.to_owned(), port })
    }
}

impl Errand<'_> {
    /// Runs it to its end, and gives the exit code.
    pub(super) fn run(self) -> Result<u8, CliError> {
        let url = Url::parse(self.server)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| unreachable(self.server, &error.to_string()))?;
        runtime.block_on(async {
            let late = |_| unreachable(self.server, &format!("no answer within {} s", REMOTE_WAIT.as_secs()));
            let stream = tokio::time::timeout(REMOTE_WAIT, connect(&url)).await.map_err(late)?;
            let stream = stream.map_err(|error| unreachable(self.server, &error.to_string()))?;
            match url.is_tls {
                false => self.talk(stream, &url).await,
                true => {
                    let secured =
                        tokio::time::timeout(REMOTE_WAIT, secure(stream, &url)).await.map_err(late)?;
                    let secured = secured.map_err(|error| unreachable(self.server, &error.to_string()))?;
                    self.talk(secured, &url).await
                }
            }
        })
    }

    async fn talk<S: AsyncRead + AsyncWrite + Unpin>(self, stream: S, url: &Url) -> Result<u8, CliError> {
        let scheme = if url.is_tls { "wss" } else { "ws" };
        let address = format!("{scheme}://{}:{}/v1/commands", url.host, url.port);
        let request = address.into_client_request();
        let mut request = request.map_err(|error| unreachable(self.server, &error.to_string()))?;
        let bearer = format!("Bearer {}", self.token).parse();
        let bearer =
            bearer.map_err(|_| CliError::new(Code::Token, "--token: expected printable characters"))?;
        request.headers_mut().insert("authorization", bearer);
        let config = WebSocketConfig::default()
            .max_message_size(Some(REMOTE_PIECE_BYTES))
            .max_frame_size(Some(REMOTE_PIECE_BYTES));
        let opening = tokio_tungstenite::client_async_with_config(request, stream, Some(config));
        let late = |_| unreachable(self.server, &format!("no answer within {} s", REMOTE_WAIT.as_secs()));
        let opened = tokio::time::timeout(REMOTE_WAIT, opening).await.map_err(late)?;
        let (socket, _) = opened.map_err(|error| refused(self.server, error))?;
        let (mut sink, mut source) = socket.split();
        let first = json!({"v": 1, "args": self.args, "isTerminal": self.is_terminal}).to_string();
        sink.send(Message::text(first))
            .await
            .map_err(|error| unreachable(self.server, &error.to_string()))?;
        let (mut to, mut has_begun) = (self.to, false);
        let mut pieces = self.input.map(read_along);
        loop {
            let message = tokio::select! {
                message = source.next() => message,
                piece = next(&mut pieces), if has_begun && pieces.is_some() => {
                    // Nothing is its end.
                    let is_end = piece.is_none();
                    if sink.send(Message::binary(piece.unwrap_or_default())).await.is_err() || is_end {
                        pieces = None;
                    }
                    continue;
                }
            };
            let Some(Ok(message)) = message else {
                return Err(match has_begun {
                    true if self.only_looks => ended(self.server),
                    true => unknown(),
                    false => unreachable(self.server, "it ended the conversation before it began"),
                });
            };
            match message {
                Message::Binary(bytes) => print(&bytes, &mut to)?,
                Message::Text(text) => match said(text.as_str()) {
                    Said::Begun => {
                        has_begun = true;
                        // Nothing is sent along, which is said too: nobody waits for it.
                        if pieces.is_none() && sink.send(Message::binary(Vec::new())).await.is_err() {
                            return Err(unknown());
                        }
                    }
                    Said::Exit(code) => return Ok(code),
                    Said::Refused(error) => return Err(error),
                    Said::Other => {}
                },
                _ => {}
            }
        }
    }
}

/// What the server says of a command.
enum Said {
    Begun,
    Exit(u8),
    Refused(CliError),
    Other,
}

fn said(text: &str) -> Said {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Said::Other };
    if let Some(code) = value.get("exit").and_then(Value::as_u64) {
        return Said::Exit(u8::try_from(code).unwrap_or(1));
    }
    match value.get("refused") {
        Some(problem) => Said::Refused(of_problem(problem)),
        None if value.get("begun").is_some() => Said::Begun,
        None => Said::Other,
    }
}

/// A problem document as an error of our own.
fn of_problem(problem: &Value) -> CliError {
    let text = |name: &str| problem.get(name).and_then(Value::as_str).unwrap_or_default();
    let code = Code::of(text("code")).unwrap_or(Code::ServerFailed);
    let error = text("detail").lines().fold(CliError::new(code, text("title")), CliError::cause);
    match text("hint") {
        "" => error,
        hint => error.hint(hint),
    }
}

fn refused(server: &str, error: Error) -> CliError {
    match error {
        Error::Http(response) => {
            let body = response.body().as_deref().unwrap_or_default();
            match serde_json::from_slice::<Value>(body) {
                Ok(problem) if problem.get("code").is_some() => of_problem(&problem),
                _ => unreachable(server, &format!("it answers with {}", response.status())),
            }
        }
        error => unreachable(server, &error.to_string()),
    }
}

fn unreachable(server: &str, why: &str) -> CliError {
    let error =
        CliError::new(Code::Unreachable, format!("the server at {server} cannot be reached")).cause(why);
    match server.strip_prefix("https://") {
        // What answers there is no TLS.
        Some(rest) if why.contains("InvalidContentType") => {
            error.cause("what answers there does not encrypt").hint(format!("--server http://{rest}"))
        }
        _ => error.hint("baton explain S004"),
    }
}

/// A command that only looked was cut off: nothing is half done.
fn ended(server: &str) -> CliError {
    CliError::new(Code::ServerEnds, format!("the server at {server} ended in the middle of this"))
        .cause("nothing was changed; the same command may be given again when it is back")
        .hint("baton explain W016")
}

/// Shows a piece of what a command prints: its first byte says where.
fn print(bytes: &[u8], to: &mut Option<File>) -> Result<(), CliError> {
    let failed = |error: io::Error| CliError::new(Code::Output, format!("cannot write: {error}"));
    match bytes.split_first() {
        Some((1, piece)) => match to {
            Some(file) => file.write_all(piece).map_err(failed),
            None => {
                let mut out = io::stdout().lock();
                out.write_all(piece).and_then(|()| out.flush()).map_err(failed)
            }
        },
        Some((2, piece)) => {
            // There is nowhere left to say that standard error is gone.
            let _ = io::stderr().write_all(piece);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The next piece of what is sent along; nothing at its end.
async fn next(pieces: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match pieces {
        Some(pieces) => pieces.recv().await,
        None => std::future::pending().await,
    }
}

/// Reads on a thread of its own, a piece at a time, and no faster than it is sent. It ends with the process.
fn read_along(input: Input) -> mpsc::Receiver<Vec<u8>> {
    let (sender, pieces) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut source: Box<dyn io::Read> = match input {
            Input::Stdin => Box::new(io::stdin()),
            Input::File(file) => Box::new(file),
        };
        let mut buffer = vec![0; REMOTE_PIECE_BYTES / 2];
        while let Ok(count) = source.read(&mut buffer) {
            if count == 0 || sender.blocking_send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    pieces
}

async fn connect(url: &Url) -> io::Result<TcpStream> {
    let host = url.host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = url.port;
    let addresses = tokio::task::spawn_blocking(move || (host.as_str(), port).to_socket_addrs()).await;
    let addresses = addresses.map_err(io::Error::other)??;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name leads nowhere");
    for address in addresses {
        match tokio::time::timeout(Duration::from_secs(5), TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

async fn secure(stream: TcpStream, url: &Url) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let host = url.host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_or_refused() {
        let parse = |text: &str| Url::parse(text).ok().map(|url| (url.is_tls, url.host, url.port));
        assert_eq!(parse("http://127.0.0.1:7433"), Some((false, "127.0.0.1".into(), 7433)));
        assert_eq!(parse("https://baton.example.org/"), Some((true, "baton.example.org".into(), 443)));
        assert_eq!(parse("http://[::1]:80"), Some((false, "[::1]".into(), 80)));
        assert_eq!(parse("http://[::1]"), Some((false, "[::1]".into(), 7433)));
        for bad in ["", "localhost:7433", "ftp://x", "http://", "http://x:y", "http://a/b", "http://u@h"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
