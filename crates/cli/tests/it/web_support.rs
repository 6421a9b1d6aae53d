//! A running server and a client that says exactly what it is told to, byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::serve::Serving;
use crate::support::Home;

/// A server over HTTP.
pub(crate) struct Web {
    pub(crate) serving: Serving,
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
    pub(crate) token: String,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// No answer takes longer.
const DEADLINE: Duration = Duration::from_secs(60);

impl Web {
    pub(crate) fn start(home: &Home) -> Web {
        Web::start_with(home, &["--no-dispatch"])
    }

    pub(crate) fn start_with(home: &Home, more: &[&str]) -> Web {
        let (serving, said) = Serving::start_saying(home, &[&["--listen", "127.0.0.1:0"], more].concat());
        let url = said["url"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().to_owned();
        Web { serving, address, token: admin(home) }
    }

    /// A request with the administrator's token.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        self.ask_as(&self.token, method, path, body, &[])
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, Some(body))
    }

    /// Makes a task that is ready, and gives its id.
    pub(crate) fn task(&self, title: &str) -> String {
        let made = self.post("/v1/tasks", &json!({"title": title, "status": "ready"})).expect(201);
        made["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn ask_as(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
        more: &[(&str, &str)],
    ) -> Answer {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![("Host", self.address.as_str())];
        if !token.is_empty() {
            headers.push(("Authorization", &bearer));
        }
        let body = body.map(Value::to_string);
        if body.is_some() {
            headers.push(("Content-Type", "application/json"));
        }
        headers.extend(more);
        self.say(method, path, &headers, body.as_deref().unwrap_or_default().as_bytes())
    }

    /// A request of exactly these headers, and what makes one connection enough.
    pub(crate) fn say(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        try_say(&self.address, method, path, headers, body).unwrap()
    }

    /// What a browser gets that has no token.
    pub(crate) fn browse(&self, path: &str, more: &[(&str, &str)]) -> Answer {
        self.ask_as("", "GET", path, None, more)
    }

    /// The cookie that a link with this token makes, as a browser sends it.
    pub(crate) fn cookie(&self, token: &str) -> String {
        let entered = self.browse(&format!("/?token={token}"), &[]);
        let cookie = entered.header("set-cookie").unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Opens a stream of events.
    pub(crate) fn events(&self, path: &str, after: Option<u64>) -> Events {
        let mut stream = connect(&self.address);
        let after = after.map(|after| format!("Last-Event-ID: {after}\r\n")).unwrap_or_default();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n{after}\r\n",
            self.address, self.token
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader).unwrap();
        assert_eq!(status, 200, "{headers:?}");
        Events { reader: BufReader::new(Chunks { reader, left: 0 }) }
    }
}

/// The administrator's own token.
pub(crate) fn admin(home: &Home) -> String {
    let dir = std::fs::read_dir(home.state()).unwrap().map(|entry| entry.unwrap().path());
    let file = dir.map(|dir| dir.join("admin.token")).find(|file| file.exists()).unwrap();
    std::fs::read_to_string(file).unwrap()
}

pub(crate) fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// The same, where the server may go away meanwhile.
pub(crate) fn try_say(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes())?;
    // An answer may come before all of it was read.
    let _ = stream.write_all(body);
    read_answer(&mut BufReader::new(stream))
}

pub(crate) fn read_answer(reader: &mut BufReader<TcpStream>) -> std::io::Result<Answer> {
    let (status, headers) = read_head(reader)?;
    let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let mut body = Vec::new();
    if is_chunked {
        let mut stream = reader.get_ref().try_clone()?;
        let rest = reader.buffer().to_vec();
        let mut all = BufReader::new(std::io::Cursor::new(rest).chain(&mut stream));
        loop {
            let mut size = String::new();
            all.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim(), 16).map_err(std::io::Error::other)?;
            let mut chunk = vec![0; size + 2];
            all.read_exact(&mut chunk)?;
            if size == 0 {
                break;
            }
            body.extend_from_slice(&chunk[..size]);
        }
    } else {
        let length = headers.iter().find(|(name, _)| name == "content-length");
        match length.and_then(|(_, value)| value.parse().ok()) {
            Some(length) => {
                body = vec![0; length];
                reader.read_exact(&mut body)?;
            }
            None => drop(reader.read_to_end(&mut body)?),
        }
    }
    Ok(Answer { status, headers, body })
}

fn read_head(reader: &mut impl BufRead) -> std::io::Result<(u16, Vec<(String, String)>)> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other(format!("no status: {line:?}")))?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { return Ok((status, headers)) };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// Asserts the status, and gives the object.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// Asserts a problem of this status and code.
    #[track_caller]
    pub(crate) fn refuses(&self, status: u16, code: &str) {
        let problem = self.expect(status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert_eq!((problem["status"].as_u64(), problem["code"].as_str()), (Some(status.into()), Some(code)));
        assert_eq!(problem["type"], format!("urn:baton:error:{code}"));
    }
}

/// A body that comes in chunks.
struct Chunks {
    reader: BufReader<TcpStream>,
    left: usize,
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.left == 0 {
            let mut line = String::new();
            if self.reader.read_line(&mut line)? == 0 {
                return Ok(0);
            }
            match line.trim() {
                "" => {}
                "0" => return Ok(0),
                size => self.left = usize::from_str_radix(size, 16).map_err(std::io::Error::other)?,
            }
        }
        let most = buffer.len().min(self.left);
        let count = self.reader.read(&mut buffer[..most])?;
        self.left -= count;
        Ok(count)
    }
}

/// A stream of events that is read.
pub(crate) struct Events {
    reader: BufReader<Chunks>,
}

/// One of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<u64>,
    pub(crate) data: Value,
}

impl Iterator for Events {
    type Item = Event;

    /// The next event; comments are passed over.
    fn next(&mut self) -> Option<Event> {
        let mut event = Event::default();
        let mut has_data = false;
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(':').map(|(name, value)| (name, value.trim_start())) {
                Some(("event", name)) => event.name = name.to_owned(),
                Some(("id", id)) => event.id = id.parse().ok(),
                Some(("data", data)) => {
                    event.data = serde_json::from_str(data).unwrap();
                    has_data = true;
                }
                Some(_) => {}
                None if has_data => return Some(event),
                None => {}
            }
        }
    }
}
