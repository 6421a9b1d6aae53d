//! What a browser keeps instead of a token. Cookies know no ports: whatever else answers under the same name of a machine is shown it as well, and so it is not
//! the token, opens nothing where a token is asked for, and nothing at any other server.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_core::Digest;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// What a request shows to be let in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A token, in its header.
    Token(String),
    /// What the cookie of this server has.
    Key(String),
}

/// The name of the cookie of a server at this port: others on the same machine have their own.
pub fn login_cookie(port: u16) -> String {
    format!("baton_{port}")
}

/// The name of the cookie that says for a moment that a token was not accepted, so that no address has to.
pub(crate) fn refusal_cookie(login: &str) -> String {
    format!("{login}_refused")
}

/// What a cookie of this name has for the token of this digest. It is made of what is on the disk, so that a browser is still let in after a restart, and ends
/// with the token.
pub(super) fn key(token: &Digest, cookie: &str) -> String {
    #[expect(clippy::expect_used, reason = "an HMAC takes a key of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(&token.0).expect("a key");
    mac.update(b"baton page 1\n");
    mac.update(cookie.as_bytes());
    URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
}

/// What a request shows.
pub(crate) fn shown(headers: &HeaderMap, cookie: &str) -> Option<Shown> {
    if let Some(given) = headers.get(header::AUTHORIZATION) {
        let given = given.to_str().ok()?;
        let (kind, token) = given.split_once(' ')?;
        return kind.eq_ignore_ascii_case("bearer").then(|| Shown::Token(token.trim().to_owned()));
    }
    find(headers, cookie).map(|key| Shown::Key(key.to_owned()))
}

/// The value of a cookie.
pub(crate) fn find<'a>(headers: &'a HeaderMap, cookie: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == cookie).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_in_its_header_and_what_is_made_of_it_in_the_cookie_of_this_server() {
        let headers = |pairs: &[(&'static str, &str)]| {
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
        };
        let shown = |pairs: &[(&'static str, &str)]| shown(&headers(pairs), "baton_7433");
        assert_eq!(shown(&[("authorization", "Bearer t")]), Some(Shown::Token("t".into())));
        assert_eq!(shown(&[("cookie", "a=b; baton_7433=t")]), Some(Shown::Key("t".into())));
        assert_eq!(shown(&[("cookie", "baton_1=t")]), None);
        assert_eq!(shown(&[("cookie", "baton_7433_refused=1")]), None);
        assert_eq!(shown(&[("authorization", "Basic t"), ("cookie", "baton_7433=t")]), None);
    }

    #[test]
    fn each_token_has_a_key_of_its_own_at_each_server() {
        let keys = [
            key(&Digest([1; 32]), "baton_1"),
            key(&Digest([1; 32]), "baton_2"),
            key(&Digest([2; 32]), "baton_1"),
        ];
        assert_eq!(keys[0], key(&Digest([1; 32]), "baton_1"), "also after a restart");
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2], "{keys:?}");
    }
}
