//! A post to a configured address, signed so that the receiver knows whom it is from.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use baton_core::{Digest, Timestamp};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use ureq::Agent;
use ureq::http::{Response, Uri};
use ureq::tls::Certificate;
use zeroize::Zeroizing;

use super::Outcome;
use super::letter::Letter;
use crate::limits::WEBHOOK_HEAD_BYTES_MAX;
use crate::process::short;
use crate::trust;

/// Why a receiver cannot be used. Names variables and rules, never what they hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the variable {0}, which holds the webhook's secret, is not set")]
    NoSecret(String),
    #[error("the variable {0}, which holds the webhook's secret, is empty")]
    EmptySecret(String),
    #[error("the webhook's url is not a web address")]
    NoAddress,
    #[error("the webhook's url must be https; http is for this machine only (localhost, 127.0.0.1, [::1])")]
    NotSafe,
    #[error("the webhook's url has a user name or password in it; posts are signed with the secret instead")]
    Credentials,
    #[error(
        "this machine has no certificate authorities, so no https webhook can be trusted; install ca-certificates, or name a file in SSL_CERT_FILE"
    )]
    NoAuthorities,
}

/// What posts are signed with. Shown nowhere, wiped when it goes.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    pub fn new(bytes: Vec<u8>) -> Self {
        Secret(Zeroizing::new(bytes))
    }

    /// Reads it from a variable of the environment.
    pub fn from_env(name: &str) -> Result<Self, Refused> {
        use std::os::unix::ffi::OsStringExt as _;
        let value = std::env::var_os(name).ok_or_else(|| Refused::NoSecret(name.to_owned()))?;
        let secret = Secret::new(value.into_vec());
        if secret.0.is_empty() { Err(Refused::EmptySecret(name.to_owned())) } else { Ok(secret) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// An address and the secret that it shares with Baton.
#[derive(Clone)]
pub struct Webhook {
    url: Uri,
    is_local: bool,
    /// Who may vouch for the receiver: whom this machine trusts.
    authorities: Vec<Certificate<'static>>,
    secret: Secret,
}

impl fmt::Debug for Webhook {
    /// The host alone: paths of webhooks are often secrets themselves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({})", self.url.host().unwrap_or_default())
    }
}

impl Webhook {
    pub fn new(url: &str, secret: Secret) -> Result<Self, Refused> {
        let (url, is_local) = address(url)?;
        let authorities = if url.scheme_str() == Some("https") { authorities()? } else { Vec::new() };
        Ok(Webhook { url, is_local, authorities, secret })
    }

    /// A client that follows nothing, remembers nothing and waits no longer than it may.
    pub(super) fn agent(&self, timeout: Duration) -> Agent {
        let mut config = Agent::config_builder()
            .tls_config(trust::tls(&self.authorities))
            .timeout_global(Some(timeout))
            .max_redirects(0)
            .http_status_as_error(false)
            .max_response_header_size(WEBHOOK_HEAD_BYTES_MAX)
            .max_idle_connections(0)
            .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")));
        if self.is_local {
            // What stays on this machine is not sent through another one.
            config = config.proxy(None);
        }
        config.build().into()
    }

    /// One attempt.
    pub(super) fn post(&self, agent: &Agent, letter: &Letter, now: Timestamp, timeout: Duration) -> Outcome {
        let body = letter.body();
        let answer = agent
            .post(&self.url)
            .header("Content-Type", "application/json")
            .header("X-Baton-Delivery", &letter.delivery)
            .header("X-Baton-Timestamp", (now.unix_ms() / 1000).to_string())
            .header("X-Baton-Signature", signature(&self.secret, &body))
            .send(&body[..]);
        match answer {
            Ok(answer) => judge(&answer),
            Err(error) => {
                let why = match &error {
                    ureq::Error::Timeout(_) => format!("no answer within {}", short(timeout)),
                    ureq::Error::HostNotFound => "the host is not known".into(),
                    ureq::Error::Io(error) => match of_tls(error) {
                        Some(error) => format!("TLS: {error}"),
                        None => error.kind().to_string(),
                    },
                    ureq::Error::ConnectionFailed => "no connection".into(),
                    ureq::Error::Tls(_) | ureq::Error::Rustls(_) => format!("TLS: {error}"),
                    ureq::Error::Protocol(_) => "the answer is not HTTP".into(),
                    // The texts of the others may repeat the address.
                    _ => "the request failed".into(),
                };
                Outcome::Again { why, after: None }
            }
        }
    }
}

/// The error of TLS that comes as one of the connection, such as a certificate that nobody vouches for.
fn of_tls(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// An address that posts may go to, and whether it is on this machine.
fn address(url: &str) -> Result<(Uri, bool), Refused> {
    let url: Uri = url.parse().map_err(|_| Refused::NoAddress)?;
    let authority = url.authority().ok_or(Refused::NoAddress)?;
    if authority.as_str().contains('@') {
        return Err(Refused::Credentials);
    }
    let host = authority.host();
    let is_local = host.eq_ignore_ascii_case("localhost")
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match url.scheme_str() {
        Some("https") => Ok((url, is_local)),
        Some("http") if is_local => Ok((url, is_local)),
        Some("http") => Err(Refused::NotSafe),
        _ => Err(Refused::NoAddress),
    }
}

/// Whom this machine trusts, which has to be somebody.
fn authorities() -> Result<Vec<Certificate<'static>>, Refused> {
    Some(trust::authorities()).filter(|found| !found.is_empty()).ok_or(Refused::NoAuthorities)
}

/// What an answer means. Its body is hostile and is not read.
fn judge<T>(answer: &Response<T>) -> Outcome {
    let status = answer.status();
    let why = format!("status {}", status.as_u16());
    match status.as_u16() {
        200..=299 => Outcome::Delivered,
        429 | 500..=599 => {
            // The form with a date is as good as none: the waits grow anyway.
            let after = answer.headers().get("Retry-After").and_then(|value| value.to_str().ok());
            let after = after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
            Outcome::Again { why, after }
        }
        300..=399 => Outcome::Never(format!("{why}: redirects are not followed")),
        _ => Outcome::Never(why),
    }
}

/// `sha256=` and the HMAC of the body in hexadecimal.
fn signature(secret: &Secret, body: &[u8]) -> String {
    #[expect(clippy::expect_used, reason = "an HMAC takes a key of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).expect("a key");
    mac.update(body);
    format!("sha256={}", Digest(mac.finalize().into_bytes().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_rfc_4231() {
        let secret = Secret::new(b"Jefe".to_vec());
        let expected = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature(&secret, b"what do ya want for nothing?"), expected);
    }

    #[test]
    fn only_https_or_this_machine() {
        let check = |url: &str| address(url).err();
        for url in [
            "https://example.org/hook",
            "http://localhost:8080/",
            "http://127.0.0.1/x",
            "http://127.8.9.1:1/x",
            "http://[::1]:80/",
        ] {
            assert_eq!(check(url), None, "{url}");
        }
        for url in [
            "http://example.org/",
            "http://127.0.0.1.example.org/",
            "http://localhost.example.org/",
            "http://10.0.0.1/",
        ] {
            assert_eq!(check(url), Some(Refused::NotSafe), "{url}");
        }
        assert_eq!(check("https://me:pw@example.org/"), Some(Refused::Credentials));
        assert_eq!(check("http://localhost@example.org/"), Some(Refused::Credentials));
        for url in ["", "/hook", "example.org", "ftp://localhost/", "https://"] {
            assert_eq!(check(url), Some(Refused::NoAddress), "{url:?}");
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        let webhook = Webhook::new("http://localhost/T0/path", Secret::new(b"hunter2".to_vec())).unwrap();
        assert_eq!(format!("{webhook:?} {:?}", webhook.secret), "Webhook(localhost) Secret");
        let missing = Secret::from_env("BATON_NO_SUCH_VARIABLE").unwrap_err();
        assert_eq!(missing, Refused::NoSecret("BATON_NO_SUCH_VARIABLE".into()));
        assert!(Secret::from_env("PATH").is_ok());
    }

    #[test]
    fn what_is_wrong_with_a_certificate_is_said() {
        let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let error = io::Error::new(io::ErrorKind::InvalidData, unknown);
        assert_eq!(of_tls(&error).unwrap().to_string(), "invalid peer certificate: UnknownIssuer");
        assert!(of_tls(&io::ErrorKind::ConnectionReset.into()).is_none());
    }

    #[test]
    fn answers_mean_what_they_should() {
        let check = |status: u16, after: Option<&str>| {
            let mut answer = Response::builder().status(status);
            if let Some(after) = after {
                answer = answer.header("Retry-After", after);
            }
            judge(&answer.body(()).unwrap())
        };
        let again = |status: u16, after| Outcome::Again { why: format!("status {status}"), after };
        assert_eq!(check(204, None), Outcome::Delivered);
        assert_eq!(check(429, Some(" 7")), again(429, Some(Duration::from_secs(7))));
        assert_eq!(check(503, Some("Fri, 31 Dec 1999 23:59:59 GMT")), again(503, None));
        assert_eq!(check(404, Some("7")), Outcome::Never("status 404".into()));
        assert_eq!(check(302, None), Outcome::Never("status 302: redirects are not followed".into()));
    }
}
