//! The server with a certificate: who trusts its authority is answered, and nobody else, nor anybody without TLS.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::runs::configure;
use crate::serve::Serving;
use crate::support::Home;
use crate::web_support::{admin, connect};

/// A file made for these tests.
fn made(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

fn secure(home: &Home, cert: &Path, key: &Path) {
    configure(home, &format!("[server]\ntls = {{ cert = {cert:?}, key = {key:?} }}"));
}

/// Serves with the certificate, and gives the address.
fn serve(home: &Home) -> (Serving, String) {
    secure(home, &made("cert.pem"), &made("key.pem"));
    let (serving, said) = Serving::start_saying(home, &["--listen", "127.0.0.1:0", "--no-dispatch"]);
    let address = said["url"].as_str().unwrap().strip_prefix("https://").unwrap().to_owned();
    (serving, address)
}

/// What is answered to whoever trusts this authority.
fn get(address: &str, authority: &Path, path: &str, token: &str) -> Result<String, String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(client, connect(address));
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    // Whoever says `close` need not say good-bye as well.
    let read = stream.read_to_end(&mut answer);
    match read {
        Err(error) if answer.is_empty() => Err(error.to_string()),
        _ => Ok(String::from_utf8(answer).unwrap()),
    }
}

#[test]
fn requests_are_answered_over_tls_and_over_nothing_else() {
    let home = Home::new();
    let (serving, address) = serve(&home);
    let answer = get(&address, &made("authority.pem"), "/v1/health", &admin(&home)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"ok\""), "{answer}");
    let answer = get(&address, &made("authority.pem"), "/v1/health", "wrong").unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    // A certificate is no authority: trusting something else is not enough.
    let error = get(&address, &made("cert.pem"), "/v1/health", "wrong").unwrap_err();
    assert!(error.contains("certificate"), "{error}");

    let mut plain = connect(&address);
    plain.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
    let mut heard = Vec::new();
    let _ = plain.read_to_end(&mut heard);
    assert!(!heard.windows(4).any(|part| part == b"HTTP"), "{:?}", String::from_utf8_lossy(&heard));
    let answer = get(&address, &made("authority.pem"), "/healthz", "").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "others are still answered: {answer}");
    serving.stop();
}

#[test]
fn a_command_goes_there_where_the_authority_is_trusted_and_is_refused_elsewhere() {
    let home = Home::new();
    let (serving, address) = serve(&home);
    let url = format!("https://{address}");
    let token = admin(&home);
    let away = || Home::empty().with_env("BATON_TOKEN", &token).with_env("BATON_DATA_DIR", "");
    let authority = made("authority.pem");
    let trusting = away().with_env("SSL_CERT_FILE", authority.to_str().unwrap());
    let made_there = trusting.run(&["--server", &url, "task", "new", "Over TLS"]);
    made_there.expect(0);
    assert_eq!(home.show(made_there.stdout.trim())["title"], "Over TLS");
    let by_name = url.replace("127.0.0.1", "localhost");
    trusting.run(&["--server", &by_name, "task", "ls"]).expect(0);
    trusting.run(&["--server", &url, "--token", "wrong", "task", "ls"]).refused(4, "W001", "token");

    let distrusting = away().run(&["--server", &url, "task", "new", "Without trust"]);
    distrusting.refused(1, "S004", "certificate");
    trusting.run(&["--server", &url.replace("https", "http"), "task", "ls"]).refused(
        1,
        "S004",
        "cannot be reached",
    );
    assert_eq!(home.events().iter().filter(|event| event["type"] == "task.created").count(), 1);
    serving.stop();
}

#[test]
fn a_certificate_that_does_not_do_is_told_with_its_file() {
    let home = Home::new();
    let (text, odd) = (home.path("text.pem"), home.path("odd.pem"));
    fs::write(&text, "This is no certificate.\n").unwrap();
    fs::write(&odd, "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n").unwrap();
    let (cert, key, missing) = (made("cert.pem"), made("key.pem"), home.path("missing.pem"));
    // Nobody waits for what a pipe may bring, nor for the end of what has none.
    let (pipe, endless) = (home.path("pipe"), PathBuf::from("/dev/zero"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    let before = fs::read_to_string(home.data().join("baton.toml")).unwrap();
    for (bad_cert, bad_key, named, why) in [
        (&missing, &key, &missing, "No such file"),
        (&cert, &missing, &missing, "No such file"),
        (&pipe, &key, &pipe, "it is no regular file"),
        (&cert, &pipe, &pipe, "it is no regular file"),
        (&endless, &key, &endless, "it is no regular file"),
        (&text, &key, &text, "it holds no certificate in PEM form"),
        (&cert, &text, &text, "it holds no private key in PEM form"),
        (&cert, &cert, &cert, "it holds no private key in PEM form"),
        (&odd, &key, &odd, "it holds no certificate that reads"),
        (&cert, &made("other-key.pem"), &made("other-key.pem"), "not the key of the certificate"),
    ] {
        fs::write(home.data().join("baton.toml"), &before).unwrap();
        secure(&home, bad_cert, bad_key);
        let ended = home.run(&["serve", "--listen", "127.0.0.1:0"]);
        ended.refused(4, "W018", why);
        assert!(ended.stderr.contains(named.to_str().unwrap()), "{}", ended.stderr);
    }
}
