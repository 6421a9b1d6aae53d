//! As much of HTTP/1.1 as a model's clients use.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::Seen;

/// Largest request that is read, in bytes; agents send their whole conversation.
const BODY_BYTES_MAX: u64 = 64 << 20;

/// Most bytes of a request's head.
const HEAD_BYTES_MAX: u64 = 64 << 10;

pub(super) fn read(stream: &mut TcpStream) -> io::Result<Seen> {
    let mut reader = BufReader::new(&*stream);
    let mut head = (&mut reader).take(HEAD_BYTES_MAX);
    let mut line = String::new();
    head.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        head.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let body = if headers.get("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        chunks(&mut reader)?
    } else {
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0u64);
        let mut body = Vec::new();
        reader.take(length.min(BODY_BYTES_MAX)).read_to_end(&mut body)?;
        body
    };
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Seen { method, path, headers, body })
}

fn chunks(reader: &mut BufReader<&TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = u64::from_str_radix(line.trim().split(';').next().unwrap_or_default(), 16);
        let size = size.map_err(|_| io::Error::other("no chunk"))?;
        if size == 0 || body.len() as u64 + size > BODY_BYTES_MAX {
            return Ok(body);
        }
        reader.take(size).read_to_end(&mut body)?;
        let mut end = [0; 2];
        reader.read_exact(&mut end)?;
    }
}

/// An answer at once.
pub(super) fn whole(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    body: &Value,
) -> io::Result<()> {
    let body = body.to_string();
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let answer = format!(
        "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{more}Connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes())
}

/// The head of an answer in parts.
pub(super) fn begin(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
    )
}

/// One part.
pub(super) fn part(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

/// No more parts.
pub(super) fn end(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n")
}

/// Ends the connection the hard way.
#[expect(clippy::needless_pass_by_value, reason = "that it goes is the point")]
pub(super) fn reset(stream: TcpStream) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?)
}
