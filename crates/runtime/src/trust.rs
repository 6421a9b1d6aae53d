//! Whom this machine trusts over TLS, the same for every client of Baton's own.

use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// The authorities of this machine. What cannot be read of them is left out; whoever needs it is then not trusted.
pub(crate) fn authorities() -> Vec<Certificate<'static>> {
    let found = rustls_native_certs::load_native_certs().certs;
    found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect()
}

/// TLS that trusts these and nobody else.
pub(crate) fn tls(authorities: &[Certificate<'static>]) -> TlsConfig {
    TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(authorities))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}
