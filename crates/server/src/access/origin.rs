//! Where a request may come from. A page of another site can make a browser call this machine, by its name or by one that it has made to lead here:
//! neither gets anywhere.

use axum::http::{HeaderMap, header};

use crate::asked::shown;

/// The names under which this server may be called.
#[derive(Debug, Clone)]
pub struct Hosts {
    names: Vec<String>,
    port: u16,
}

/// Names of this machine for itself.
const OWN: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

impl Hosts {
    /// Those of the machine itself, and others that were configured.
    pub fn new(port: u16, more: impl IntoIterator<Item = String>) -> Self {
        let own = OWN.iter().map(|name| (*name).to_owned());
        Hosts { names: own.chain(more.into_iter().map(|name| name.to_ascii_lowercase())).collect(), port }
    }

    /// Whether a request is meant for this server: by its `Host`, and by its `Origin` where a browser says one.
    pub fn expect(&self, headers: &HeaderMap) -> Result<(), String> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (host, another) = (hosts.next(), hosts.next());
        let host = host.filter(|_| another.is_none()).and_then(|host| host.to_str().ok());
        let host = host.ok_or_else(|| "expected one Host".to_owned())?;
        if !self.is_own(host) {
            return Err(format!("Host: expected this server's own name, got {:?}", shown(host)));
        }
        match headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or("?")) {
            None => Ok(()),
            Some(origin) if is_of(origin, host) => Ok(()),
            Some(origin) => Err(format!("Origin: expected this server's own, got {:?}", shown(origin))),
        }
    }

    fn is_own(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        self.names.iter().any(|name| match host.strip_prefix(name.as_str()) {
            Some("") => true,
            Some(port) => port.strip_prefix(':').and_then(|port| port.parse().ok()) == Some(self.port),
            None => false,
        })
    }
}

fn is_of(origin: &str, host: &str) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
}

/// Whether a browser says, or leaves open, that a page of another site made this request. Asked where the cookie alone speaks for somebody.
pub fn is_cross_site(headers: &HeaderMap) -> bool {
    match headers.get("sec-fetch-site").map(axum::http::HeaderValue::as_bytes) {
        Some(b"same-origin") => false,
        Some(_) => true,
        // An old browser: then the Origin, which was checked, has to be there.
        None => !headers.contains_key(header::ORIGIN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hosts: &Hosts, given: &[(&'static str, &str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(*name, value.parse().unwrap());
        }
        hosts.expect(&headers).is_ok()
    }

    #[test]
    fn only_this_servers_own_names_are_heeded() {
        let hosts = Hosts::new(7433, ["baton.example.org".to_owned()]);
        for good in ["localhost:7433", "127.0.0.1:7433", "[::1]:7433", "LOCALHOST", "baton.example.org"] {
            assert!(check(&hosts, &[("host", good)]), "{good}");
        }
        for bad in [
            "evil.example:7433",
            "127.0.0.1.evil.example",
            "localhost:80",
            "localhost:7433x",
            "",
            "10.0.0.1:7433",
        ] {
            assert!(!check(&hosts, &[("host", bad)]), "{bad}");
        }
        assert!(!check(&hosts, &[]));
        assert!(!check(&hosts, &[("host", "localhost"), ("host", "evil.example")]));
    }

    #[test]
    fn pages_of_other_sites_get_nowhere() {
        let hosts = Hosts::new(7433, []);
        let from = |origin| check(&hosts, &[("host", "localhost:7433"), ("origin", origin)]);
        assert!(from("http://localhost:7433") && from("https://localhost:7433"));
        for bad in
            ["http://evil.example", "null", "http://localhost:7434", "http://127.0.0.1:7433", "file://"]
        {
            assert!(!from(bad), "{bad}");
        }
    }
}
