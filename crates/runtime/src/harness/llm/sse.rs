//! The events of a stream as servers send them: lines, of which those that begin with `data:` count.

use std::io::{self, BufRead as _, BufReader, Read};

use crate::limits::LLM_EVENT_BYTES_MAX;

/// A stream, cut into events.
#[derive(Debug)]
pub(super) struct Events<R: Read> {
    lines: BufReader<R>,
}

impl<R: Read> Events<R> {
    pub(super) fn new(body: R) -> Self {
        Events { lines: BufReader::new(body) }
    }

    /// The data of the next event; nothing at the end, and empty for a line that is only a sign of life.
    pub(super) fn next(&mut self) -> io::Result<Option<String>> {
        let mut data: Option<String> = None;
        loop {
            let Some(line) = self.line()? else {
                // What was not ended by an empty line is no event.
                return Ok(None);
            };
            if line.is_empty() {
                match data {
                    Some(data) => return Ok(Some(data)),
                    None => continue,
                }
            }
            if line.starts_with(':') {
                if data.is_none() {
                    return Ok(Some(String::new()));
                }
            } else if let Some(text) = line.strip_prefix("data:") {
                let text = text.strip_prefix(' ').unwrap_or(text);
                match &mut data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(text);
                    }
                    None => data = Some(text.to_owned()),
                }
                if data.as_ref().is_some_and(|data| data.len() > LLM_EVENT_BYTES_MAX) {
                    return Err(too_long());
                }
            }
        }
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let max = LLM_EVENT_BYTES_MAX as u64 + 1;
        if (&mut self.lines).take(max).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') && line.len() > LLM_EVENT_BYTES_MAX {
            return Err(too_long());
        }
        while matches!(line.last(), Some(b'\n' | b'\r')) {
            line.pop();
        }
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }
}

fn too_long() -> io::Error {
    let message = format!("the model's server sent an event of more than {LLM_EVENT_BYTES_MAX} bytes");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut events = Events::new(text.as_bytes());
        std::iter::from_fn(|| events.next().unwrap()).collect()
    }

    #[test]
    fn lines_become_events() {
        let text = ": hello\n\nevent: a\ndata: {\"x\":1}\n\ndata:one\r\ndata: two\r\n\r\nid: 3\n\ndata: unfinished\n";
        assert_eq!(all(text), ["", "{\"x\":1}", "one\ntwo"]);
        assert_eq!(all(""), [""; 0]);
    }

    #[test]
    fn an_event_without_end_is_not_kept() {
        let mut events = Events::new(io::repeat(b'x'));
        assert_eq!(events.next().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
