//! A web server that answers as it is told, and remembers what it got.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What it does with one request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// A status and further lines of the head.
    Status(u16, &'static str),
    /// Nothing, ever.
    Silence,
    /// The connection ends before an answer.
    Close,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    /// By their names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    pub(crate) at: Instant,
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Receiver {
    /// Answers as listed, then always with the last of them.
    pub(crate) fn start(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let got = Arc::new(Mutex::new(Vec::new()));
        let (mut answers, seen) = (VecDeque::from(answers.to_vec()), got.clone());
        // Ends with the process: a test's receiver harms nobody.
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(request) = read(&stream) else { continue };
                seen.lock().unwrap().push(request);
                let answer = answers.front().unwrap().clone();
                if answers.len() > 1 {
                    answers.pop_front();
                }
                match answer {
                    Answer::Status(status, head) => {
                        let _ = write!(stream, "HTTP/1.1 {status} X\r\n{head}Content-Length: 2\r\n\r\nok");
                    }
                    Answer::Silence => silent.push(stream),
                    Answer::Close => {}
                }
            }
        });
        Receiver { url, got }
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> Option<Got> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let at = Instant::now();
    let mut reader = BufReader::new(stream);
    let mut headers = BTreeMap::new();
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Got { headers, body, at })
}
