//! How a model's server is talked to, and what its refusals mean.

use std::fmt;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use baton_core::session::Cause;
use serde_json::Value;
use ureq::Agent;
use ureq::http::{HeaderValue, Response, Uri};
use ureq::tls::Certificate;

use super::{Api, Key, LlmSetup};
use crate::clock::{Clock as _, SystemClock};
use crate::harness::Failure;
use crate::limits::{
    LLM_CONNECT_TIMEOUT, LLM_ERROR_BYTES_MAX, LLM_LIMIT_SECONDS_MAX, LLM_MESSAGE_CHARS_MAX,
    WEBHOOK_HEAD_BYTES_MAX,
};
use crate::process::short;
use crate::trust;

/// Which version of its API Anthropic's server is to speak.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) failure: Failure,
    /// Whether it was what was said that the server does not take.
    pub(super) is_for_good: bool,
    /// How long a server that is busy wants to be left alone.
    pub(super) after: Option<Duration>,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Refused { failure, is_for_good: false, after: None }
    }
}

/// Talks to one server.
#[derive(Clone)]
pub(super) struct Client {
    agent: Agent,
    url: Uri,
    key: Option<(Key, HeaderValue)>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.url.host().unwrap_or_default())
    }
}

impl Client {
    /// Checks the address and the key, and what this machine trusts.
    pub(super) fn new(setup: &LlmSetup) -> io::Result<Self> {
        let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
        let path = match setup.api {
            Api::OpenAi => "chat/completions",
            Api::Anthropic => "messages",
        };
        let url: Uri = format!("{}/{path}", setup.base_url.trim_end_matches('/'))
            .parse()
            .map_err(|_| refused("the model's base_url is not a web address"))?;
        let authority = url.authority().ok_or_else(|| refused("the model's base_url has no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused(
                "the model's base_url has a user name or password in it; the key has a place of its own",
            ));
        }
        let host = authority.host();
        let is_local = host.eq_ignore_ascii_case("localhost")
            || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        let is_tls = match url.scheme_str() {
            Some("https") => true,
            Some("http") if is_local || setup.key.is_none() => false,
            Some("http") => {
                return Err(refused(
                    "the model's base_url must be https where a key is sent; http is for this machine (localhost, 127.0.0.1, [::1])",
                ));
            }
            _ => return Err(refused("the model's base_url is not a web address")),
        };
        if setup.model.is_empty() {
            return Err(refused("the model has no name"));
        }
        let key = setup.key.as_ref().map(|key| header(setup.api, key).map(|header| (key.clone(), header)));
        let key =
            key.transpose().map_err(|_| refused("the model's key has characters that no header takes"))?;
        let agent = agent(setup.timeout, is_tls, is_local)?;
        Ok(Client { agent, url, key })
    }

    /// One of its own, whose end ends nobody else's connections.
    pub(super) fn fresh(&self) -> Self {
        Client { agent: self.agent.config().clone().into(), ..self.clone() }
    }

    /// Ends whatever is under way.
    pub(super) fn shutdown(&self) {
        self.agent.clone().shutdown();
    }

    /// Sends a request; what comes back is the beginning of an answer.
    pub(super) fn post(&self, setup: &LlmSetup, request: &Value) -> Result<impl io::Read + use<>, Refused> {
        let mut post = self.agent.post(&self.url).header("Content-Type", "application/json");
        post = post.header("Accept", "text/event-stream");
        if setup.api == Api::Anthropic {
            post = post.header("anthropic-version", ANTHROPIC_VERSION);
        }
        if let Some((_, value)) = &self.key {
            let name = match setup.api {
                Api::OpenAi => "Authorization",
                Api::Anthropic => "x-api-key",
            };
            post = post.header(name, value.clone());
        }
        let answer = post.send(request.to_string());
        let answer = answer.map_err(|error| self.failure(&error, setup.timeout))?;
        match answer.status().as_u16() {
            200..=299 => Ok(answer.into_body().into_reader()),
            _ => Err(self.judge(answer)),
        }
    }

    /// What an answer means that is none.
    fn judge(&self, answer: Response<ureq::Body>) -> Refused {
        let status = answer.status().as_u16();
        let after = answer.headers().get("Retry-After").and_then(|after| after.to_str().ok());
        let after = after.and_then(|after| retry_after(after, SystemTime::now()));
        let mut body = Vec::new();
        // As much as there is of it.
        let _ = answer.into_body().into_reader().take(LLM_ERROR_BYTES_MAX).read_to_end(&mut body);
        let error: Value = serde_json::from_slice(&body).unwrap_or_default();
        let said = said(&error).unwrap_or_default();
        let message = match said.is_empty() {
            true => format!("the model's server answered with status {status}"),
            false => format!("the model's server answered with status {status}: {said}"),
        };
        let message = self.without_key(&message);
        let is_spent = ["insufficient_quota", "billing_hard_limit_reached"]
            .iter()
            .any(|code| error["error"]["code"] == *code || error["error"]["type"] == *code);
        let failure = match status {
            401 | 403 => Failure::of(Cause::Auth, message),
            402 => Failure::of(Cause::Quota, message),
            429 if is_spent => Failure::of(Cause::Quota, message),
            429 | 503 | 529 if status == 429 || after.is_some() => {
                // A limit that says when it ends is not tried before that.
                let ends = |after: Duration| {
                    let ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
                    SystemClock.now().plus_ms(ms)
                };
                let resets_at = after.map(ends);
                Failure { retryable: after.is_none(), resets_at, ..Failure::of(Cause::Quota, message) }
            }
            408 | 409 | 425 | 500..=599 => Failure { retryable: true, ..Failure::new(message) },
            300..=399 => Failure::new(format!("{message}: redirects are not followed")),
            _ => Failure::new(message),
        };
        let after = after.filter(|_| matches!(status, 429 | 503 | 529) && !is_spent);
        Refused { failure, is_for_good: matches!(status, 400 | 413 | 422), after }
    }

    /// What a request means that has no answer. The texts of errors are not repeated: they may name what was sent.
    fn failure(&self, error: &ureq::Error, timeout: Duration) -> Failure {
        let why = match error {
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                format!("no connection within {}", short(LLM_CONNECT_TIMEOUT))
            }
            ureq::Error::Timeout(_) => return self.silence(timeout),
            ureq::Error::HostNotFound => "the host is not known".to_owned(),
            ureq::Error::ConnectionFailed => "no connection".to_owned(),
            ureq::Error::Io(error) => return self.failure_of_read(error, timeout),
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) => format!("TLS: {error}"),
            ureq::Error::Protocol(_) => "the answer is not HTTP".to_owned(),
            _ => "the request failed".to_owned(),
        };
        Failure { retryable: true, ..Failure::new(format!("{}: {why}", self.name())) }
    }

    /// What it means that an answer cannot be read on.
    pub(super) fn failure_of_read(&self, error: &io::Error, timeout: Duration) -> Failure {
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>()) {
            return self.failure(error, timeout);
        }
        let name = self.name();
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match (tls, error.kind()) {
            // A certificate that nobody vouches for stays so.
            (Some(tls), _) => Failure::new(format!("{name}: TLS: {tls}")),
            (None, io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) => self.silence(timeout),
            (None, io::ErrorKind::InvalidData) => {
                Failure { retryable: true, ..Failure::of(Cause::Protocol, error.to_string()) }
            }
            (None, kind) => Failure { retryable: true, ..Failure::new(format!("{name}: {kind}")) },
        }
    }

    pub(super) fn silence(&self, timeout: Duration) -> Failure {
        let message = format!("{} was silent for {}", self.name(), short(timeout));
        Failure { retryable: true, ..Failure::of(Cause::Timeout, message) }
    }

    /// The host alone: paths and queries may hold secrets.
    fn name(&self) -> String {
        format!("the model's server ({})", self.url.host().unwrap_or_default())
    }

    /// A text of the server without the key, should it repeat that.
    fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some((key, _)) if !key.text().is_empty() => text.replace(key.text(), "[key]"),
            _ => text.to_owned(),
        }
    }

    pub(super) fn scrub(&self, failure: &Failure) -> Failure {
        Failure { message: self.without_key(&failure.message), ..failure.clone() }
    }
}

/// What an error in the middle of an answer means.
pub(super) fn failure_of_event(error: &Value) -> Failure {
    let text = |name: &str| error[name].as_str().unwrap_or_default();
    let kind = format!("{} {}", text("type"), text("code"));
    let said = cut(text("message"));
    let message =
        format!("the model's server broke off: {}", if said.is_empty() { kind.trim() } else { &said });
    let status = error["code"].as_u64();
    let is = |word: &str| kind.contains(word);
    if is("authentication") || is("permission") || matches!(status, Some(401 | 403)) {
        Failure::of(Cause::Auth, message)
    } else if is("insufficient_quota") {
        Failure::of(Cause::Quota, message)
    } else if is("rate_limit") || status == Some(429) {
        Failure { retryable: true, ..Failure::of(Cause::Quota, message) }
    } else if is("invalid_request") || status == Some(400) {
        Failure::new(message)
    } else {
        // Overloaded, a fault of the server, or something that nobody here knows.
        Failure { retryable: true, ..Failure::new(message) }
    }
}

/// What a server says of its refusal, in whichever of the usual places.
fn said(error: &Value) -> Option<String> {
    let places = [&error["error"]["message"], &error["error"], &error["message"], &error["detail"]];
    places.iter().find_map(|place| place.as_str()).map(cut)
}

fn cut(text: &str) -> String {
    let mut cut: String = text.chars().filter(|c| !c.is_control()).take(LLM_MESSAGE_CHARS_MAX).collect();
    if text.chars().count() > LLM_MESSAGE_CHARS_MAX {
        cut.push('…');
    }
    cut
}

/// How long a server wants to be left alone: in seconds, or until a date.
fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let after = match text.trim().parse::<f64>() {
        Ok(seconds) => (0.0..=f64::MAX).contains(&seconds).then_some(seconds)?,
        Err(_) => {
            let until = httpdate::parse_http_date(text.trim()).ok()?;
            until.duration_since(now).unwrap_or_default().as_secs_f64()
        }
    };
    // More than anybody waits for, and a number that a moment can be made of.
    Some(Duration::from_secs_f64(after.min(LLM_LIMIT_SECONDS_MAX)))
}

fn header(api: Api, key: &Key) -> Result<HeaderValue, ureq::http::header::InvalidHeaderValue> {
    let mut value = match api {
        Api::OpenAi => HeaderValue::from_str(&zeroize::Zeroizing::new(format!("Bearer {}", key.text()))),
        Api::Anthropic => HeaderValue::from_str(key.text()),
    }?;
    value.set_sensitive(true);
    Ok(value)
}

/// A client that follows nothing and waits no longer than it may.
fn agent(timeout: Duration, is_tls: bool, is_local: bool) -> io::Result<Agent> {
    let authorities = if is_tls { authorities()? } else { Vec::new() };
    let mut config = Agent::config_builder()
        .tls_config(trust::tls(&authorities))
        .timeout_resolve(Some(LLM_CONNECT_TIMEOUT.min(timeout)))
        .timeout_connect(Some(LLM_CONNECT_TIMEOUT.min(timeout)))
        .timeout_per_read(Some(timeout))
        .timeout_per_write(Some(timeout))
        .max_redirects(0)
        .http_status_as_error(false)
        .max_response_header_size(WEBHOOK_HEAD_BYTES_MAX)
        .max_idle_connections(0)
        .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")));
    if is_local {
        // What stays on this machine is not sent through another one.
        config = config.proxy(None);
    }
    Ok(config.build().into())
}

/// Whom this machine trusts, which has to be somebody.
fn authorities() -> io::Result<Vec<Certificate<'static>>> {
    let why = "this machine has no certificate authorities, so no https server can be trusted; install ca-certificates, or name a file in SSL_CERT_FILE";
    let nobody = || io::Error::new(io::ErrorKind::InvalidInput, why);
    Some(trust::authorities()).filter(|found| !found.is_empty()).ok_or_else(nobody)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base_url: &str, key: Option<&str>) -> Option<String> {
        let setup = LlmSetup {
            api: Api::OpenAi,
            base_url: base_url.into(),
            model: "m".into(),
            key: key.map(Key::new),
            system: None,
            tools: Vec::new(),
            max_tokens: None,
            timeout: Duration::from_secs(1),
        };
        Client::new(&setup).err().map(|error| error.to_string())
    }

    #[test]
    fn a_key_goes_to_this_machine_or_over_https() {
        for url in ["http://127.0.0.1:1/v1", "http://localhost/", "http://[::1]:8/v1/"] {
            assert_eq!(check(url, Some("sk-1")), None, "{url}");
        }
        assert_eq!(check("http://10.0.0.1/v1", None), None, "without a key there is nothing to lose");
        assert!(check("http://10.0.0.1/v1", Some("sk-1")).unwrap().contains("must be https"));
        assert!(check("https://me:pw@example.org/", Some("k")).unwrap().contains("user name or password"));
        for url in ["", "ftp://localhost/", "example.org"] {
            assert!(check(url, None).is_some(), "{url:?}");
        }
        let broken = check("http://localhost/", Some("sk-hunter2\n")).unwrap();
        assert!(broken.contains("characters") && !broken.contains("hunter2"), "{broken}");
    }

    #[test]
    fn a_wait_is_asked_for_in_seconds_or_until_a_date() {
        let now = httpdate::parse_http_date("Fri, 31 Dec 1999 23:59:00 GMT").unwrap();
        let seconds = |text: &str| retry_after(text, now).map(|after| after.as_secs());
        assert_eq!(seconds(" 7"), Some(7));
        assert_eq!(seconds("Fri, 31 Dec 1999 23:59:59 GMT"), Some(59));
        assert_eq!(seconds("Fri, 31 Dec 1999 23:58:00 GMT"), Some(0), "it has passed");
        assert_eq!(seconds("1e300"), Some(86_400 * 40));
        for text in ["", "soon", "-1", "NaN", "Fri, 31 Dec 1999"] {
            assert_eq!(seconds(text), None, "{text:?}");
        }
    }

    #[test]
    fn errors_in_the_middle_mean_what_they_should() {
        let failure = |kind: &str| failure_of_event(&serde_json::json!({"type": kind, "message": "why"}));
        assert!(failure("overloaded_error").retryable);
        assert_eq!(failure("authentication_error").cause, Some(Cause::Auth));
        let limit = failure("rate_limit_error");
        assert_eq!((limit.cause, limit.retryable), (Some(Cause::Quota), true));
        assert!(!failure("invalid_request_error").retryable);
    }
}
