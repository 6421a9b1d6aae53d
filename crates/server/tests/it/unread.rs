//! Somebody who asks for much and reads none of it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use baton_runtime::harness::Waits;
use baton_server::limits::Patience;

use crate::support::{Served, until};

/// More than all buffers on the way hold.
const REQUESTS: usize = 1000;

/// Whether a process still has the server's end of a connection, as the kernel has it: one that was let go belongs to nobody.
fn is_held(served: &Served, stream: &TcpStream) -> bool {
    let (server, client) = (served.address.port(), stream.local_addr().unwrap().port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_port = |field: &str, port: u16| field.ends_with(&format!(":{port:04X}"));
        is_port(fields[1], server) && is_port(fields[2], client) && fields[9] != "0"
    })
}

#[test]
fn whoever_does_not_read_is_let_go_and_others_are_served() {
    let patience = Patience { write: Duration::from_millis(300), ..Patience::default() };
    let served = Served::start(patience, Waits::default());
    let mut deaf = served.connect();
    let request = served.request("GET /v1/openapi.json", "");
    deaf.write_all(request.repeat(REQUESTS).as_bytes()).unwrap();
    until("it is taken up", || is_held(&served, &deaf));
    until("it is let go", || {
        assert_eq!(served.get("/healthz").status, 200);
        !is_held(&served, &deaf)
    });
    // What was on its way arrives, and it is not all that was asked for.
    let mut read = Vec::new();
    let _ = deaf.read_to_end(&mut read);
    let heads = read.windows(15).filter(|part| *part == b"HTTP/1.1 200 OK").count();
    assert!(heads > 0 && heads < REQUESTS, "{heads}");
    assert_eq!(served.get("/healthz").status, 200);
}

#[test]
fn whoever_reads_gets_everything() {
    let patience = Patience { write: Duration::from_millis(300), ..Patience::default() };
    let served = Served::start(patience, Waits::default());
    let mut reader = served.connect();
    let request = served.request("GET /v1/openapi.json", "");
    let last = request.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    reader.write_all(format!("{}{last}", request.repeat(REQUESTS / 10)).as_bytes()).unwrap();
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    let heads = read.windows(15).filter(|part| *part == b"HTTP/1.1 200 OK").count();
    assert_eq!(heads, REQUESTS / 10 + 1);
}
