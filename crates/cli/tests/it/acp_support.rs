//! A client of the Agent Client Protocol over HTTP, and one over a WebSocket, that say exactly what they are told to.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::web_support::{Answer, Event, Events, Web, connect, try_say};

/// One client of one agent.
pub(crate) struct Acp<'a> {
    pub(crate) web: &'a Web,
    pub(crate) path: String,
}

impl<'a> Acp<'a> {
    /// A client that knows a name, and has said nothing yet.
    pub(crate) fn named(web: &'a Web, server: &str) -> Acp<'a> {
        Acp { web, path: format!("/v1/acp/{server}") }
    }

    /// Shakes hands with an agent, and gives what it calls a first session.
    pub(crate) fn open(web: &'a Web, server: &str, agent: &str) -> (Acp<'a>, String) {
        let acp = Acp::named(web, server);
        let params = json!({"protocolVersion": 1, "clientInfo": {"name": "test", "version": "1"}});
        let begun = acp.post_to(&format!("{}?agent={agent}", acp.path), &request(0, "initialize", &params));
        assert_eq!(begun.expect(200)["result"]["protocolVersion"], 1);
        let session = acp.new_session();
        (acp, session)
    }

    pub(crate) fn new_session(&self) -> String {
        let params = json!({"cwd": "/tmp", "mcpServers": []});
        let made = self.post(&request(1, "session/new", &params)).expect(200);
        made["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn post(&self, message: &Value) -> Answer {
        self.post_to(&self.path, message)
    }

    fn post_to(&self, path: &str, message: &Value) -> Answer {
        self.web.ask_as(&self.web.token, "POST", path, Some(message), &[("Accept", "application/json")])
    }

    /// A prompt that is held until it is answered, by somebody else.
    pub(crate) fn prompt_apart(&self, id: u64, session: &str, text: &str) -> JoinHandle<Answer> {
        let (address, path) = (self.web.address.clone(), self.path.clone());
        let (bearer, body) = (format!("Bearer {}", self.web.token), prompt(id, session, text).to_string());
        std::thread::spawn(move || {
            let headers = [
                ("Host", address.as_str()),
                ("Authorization", bearer.as_str()),
                ("Content-Type", "application/json"),
            ];
            try_say(&address, "POST", &path, &headers, body.as_bytes()).unwrap()
        })
    }

    pub(crate) fn prompt(&self, id: u64, session: &str, text: &str) -> Value {
        self.post(&prompt(id, session, text)).expect(200)
    }

    pub(crate) fn events(&self, after: Option<u64>) -> Events {
        self.web.events(&self.path, after)
    }

    pub(crate) fn delete(&self) {
        assert_eq!(self.web.ask("DELETE", &self.path, None).status, 204);
    }

    /// Whether it is among those that live.
    pub(crate) fn is_listed(&self) -> bool {
        let listed = self.web.get("/v1/acp").expect(200);
        let name = self.path.rsplit('/').next().unwrap();
        listed["servers"].as_array().unwrap().iter().any(|server| server["serverId"] == name)
    }
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn prompt(id: u64, session: &str, text: &str) -> Value {
    request(id, "session/prompt", &json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
}

/// An answer to a permission.
pub(crate) fn reply(asked: &Value, outcome: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": outcome}})
}

/// Reads until a message of this method comes.
pub(crate) fn until_method(events: &mut Events, method: &str) -> Event {
    events.find(|event| event.data["method"] == method).unwrap()
}

/// A client by WebSocket.
pub(crate) struct Socket {
    reader: BufReader<TcpStream>,
    /// What the other side said when it closed.
    pub(crate) closed_with: Option<String>,
}

impl Socket {
    /// Opens one, or gives the status that refuses it.
    pub(crate) fn open(web: &Web, query: &str, more: &str) -> Result<Socket, u16> {
        Socket::open_at(web, &web.token, &format!("/v1/acp/ws?{query}"), more)
    }

    /// The same at another path, with another token.
    pub(crate) fn open_at(web: &Web, token: &str, path: &str, more: &str) -> Result<Socket, u16> {
        let mut stream = connect(&web.address);
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n",
            web.address, token
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        let mut status = None;
        loop {
            line.clear();
            std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
            status = status.or_else(|| line.split(' ').nth(1)?.parse::<u16>().ok());
            if line.trim().is_empty() {
                break;
            }
        }
        match status.unwrap() {
            101 => Ok(Socket { reader, closed_with: None }),
            status => Err(status),
        }
    }

    /// Sends one text, masked as clients have to.
    pub(crate) fn send(&mut self, message: &Value) {
        let text = message.to_string().into_bytes();
        let mut frame = vec![0x81];
        match text.len() {
            short @ 0..126 => frame.push(0x80 | u8::try_from(short).unwrap()),
            long => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(long).unwrap().to_be_bytes());
            }
        }
        let mask = [7, 11, 13, 17];
        frame.extend(mask);
        frame.extend(text.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.reader.get_mut().write_all(&frame).unwrap();
    }

    /// The next text; nothing once it is closed. Pings are passed over.
    pub(crate) fn receive(&mut self) -> Option<Value> {
        loop {
            let mut head = [0; 2];
            self.reader.read_exact(&mut head).ok()?;
            let mut length = u64::from(head[1] & 0x7f);
            if length == 126 {
                let mut two = [0; 2];
                self.reader.read_exact(&mut two).ok()?;
                length = u64::from(u16::from_be_bytes(two));
            } else if length == 127 {
                let mut eight = [0; 8];
                self.reader.read_exact(&mut eight).ok()?;
                length = u64::from_be_bytes(eight);
            }
            let mut body = vec![0; usize::try_from(length).unwrap()];
            self.reader.read_exact(&mut body).ok()?;
            match head[0] & 0xf {
                1 => return Some(serde_json::from_slice(&body).unwrap()),
                8 => {
                    self.closed_with = body.get(2..).map(|word| String::from_utf8_lossy(word).into_owned());
                    return None;
                }
                _ => {}
            }
        }
    }

    /// The next text that is this.
    pub(crate) fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.receive().unwrap();
            if is_it(&message) {
                return message;
            }
        }
    }
}
