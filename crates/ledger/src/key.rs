//! Ed25519 keys as values: made from bytes that arrive, wiped when dropped, never printed.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::{Digest, KeyId, PublicKeyText};
use ed25519_dalek::{Signature as DalekSignature, Signer as _, SigningKey, VerifyingKey};
use zeroize::Zeroizing;

use crate::hash::{sha256, signed_bytes};

/// 64 bytes of an Ed25519 signature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(pub [u8; 64]);

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(self.0))
    }
}

/// Why bytes are not a usable key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("expected a public key (`ed25519:` and base64, or a PEM of an Ed25519 key), got {0:?}")]
    Form(String),
    #[error("the public key uses another algorithm than Ed25519")]
    Algorithm,
    #[error("the public key is not a point that can sign (not canonical, or of small order)")]
    Point,
    #[error("expected the secret key file of Baton (`ed25519-secret:` and base64 of 32 bytes)")]
    Secret,
}

/// The public half, checked to be a canonical point that is not of small order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey {
    inner: VerifyingKey,
    id: KeyId,
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)
    }
}

/// The DER prefix of an Ed25519 SubjectPublicKeyInfo; the 32 key bytes follow it.
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

impl PublicKey {
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, Error> {
        let inner = VerifyingKey::from_bytes(bytes).map_err(|_| Error::Point)?;
        let point = inner.to_edwards();
        if inner.is_weak() || point.compress().as_bytes() != bytes {
            return Err(Error::Point);
        }
        Ok(PublicKey { inner, id: KeyId::from_digest(&sha256(bytes)) })
    }

    /// Reads `ed25519:` and base64.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let form = || Error::Form(text.chars().take(80).collect());
        let Some(encoded) = text.strip_prefix("ed25519:") else {
            let algorithm = text.split(':').next().filter(|a| *a != text && a.len() <= 20);
            return Err(if algorithm.is_some() { Error::Algorithm } else { form() });
        };
        let bytes = BASE64.decode(encoded).map_err(|_| form())?;
        PublicKey::from_bytes(&bytes.try_into().map_err(|_| form())?)
    }

    /// Reads what people have in files: our own text, or a PEM as other tools write it.
    pub fn parse_file(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let Some(rest) = text.strip_prefix("-----BEGIN PUBLIC KEY-----") else {
            return PublicKey::parse(text.split_whitespace().next().unwrap_or_default());
        };
        let encoded: String = rest.split("-----END").next().unwrap_or_default().split_whitespace().collect();
        let der = BASE64.decode(encoded).map_err(|_| Error::Form("a PEM that is not base64".into()))?;
        let bytes = der.strip_prefix(&SPKI_PREFIX[..]).ok_or(Error::Algorithm)?;
        PublicKey::from_bytes(&bytes.try_into().map_err(|_| Error::Algorithm)?)
    }

    pub fn id(&self) -> KeyId {
        self.id
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        self.inner.as_bytes()
    }

    pub fn to_text(&self) -> PublicKeyText {
        let text = format!("ed25519:{}", BASE64.encode(self.as_bytes()));
        #[expect(clippy::expect_used, reason = "base64 of 32 bytes always has that form")]
        text.parse().expect("32 bytes in base64")
    }

    /// The rule of record: RFC 8032, cofactorless, canonical encodings, no small order.
    pub fn verify_strict(&self, message: &[u8], signature: &Signature) -> bool {
        self.inner.verify_strict(message, &DalekSignature::from_bytes(&signature.0)).is_ok()
    }

    /// Whether this key signed an event with that body.
    pub fn verify_event(&self, body: &Digest, signature: &Signature) -> bool {
        self.verify_strict(&signed_bytes(body), signature)
    }

    pub(crate) fn point(&self) -> curve25519_dalek::EdwardsPoint {
        self.inner.to_edwards()
    }
}

/// The private half. Wiped when dropped; its debug form shows the public id only.
pub struct SecretKey {
    inner: SigningKey,
    public: PublicKey,
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.public.id)
    }
}

impl SecretKey {
    /// Makes a key of 32 random bytes, which arrive as data.
    pub fn from_seed(seed: &Zeroizing<[u8; 32]>) -> Self {
        let inner = SigningKey::from_bytes(seed);
        let public = inner.verifying_key();
        let id = KeyId::from_digest(&sha256(public.as_bytes()));
        SecretKey { inner, public: PublicKey { inner: public, id } }
    }

    /// The one line that a key file holds.
    pub fn to_file_text(&self) -> Zeroizing<String> {
        let encoded = Zeroizing::new(BASE64.encode(self.inner.as_bytes()));
        Zeroizing::new(format!("ed25519-secret:{}\n", encoded.as_str()))
    }

    pub fn parse_file(text: &str) -> Result<Self, Error> {
        let encoded = text.trim_end().strip_prefix("ed25519-secret:").ok_or(Error::Secret)?;
        let bytes = Zeroizing::new(BASE64.decode(encoded).map_err(|_| Error::Secret)?);
        if bytes.len() != 32 {
            return Err(Error::Secret);
        }
        // Copied into its wrapper, so that no copy stays behind unwiped.
        let mut seed = Zeroizing::new([0; 32]);
        seed.copy_from_slice(&bytes);
        Ok(SecretKey::from_seed(&seed))
    }

    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    pub fn id(&self) -> KeyId {
        self.public.id
    }

    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.inner.sign(message).to_bytes())
    }

    /// Signs an event by its body's digest.
    pub fn sign_event(&self, body: &Digest) -> Signature {
        self.sign(&signed_bytes(body))
    }
}

#[cfg(test)]
impl PublicKey {
    /// This key under the id of another: what a search for two keys with equal ids would find.
    pub(crate) fn with_id(self, id: KeyId) -> Self {
        PublicKey { id, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(n: u8) -> SecretKey {
        SecretKey::from_seed(&Zeroizing::new([n; 32]))
    }

    #[test]
    fn keys_survive_their_text_forms() {
        let key = secret(1);
        assert_eq!(PublicKey::parse(key.public().to_text().as_str()), Ok(*key.public()));
        assert_eq!(SecretKey::parse_file(&key.to_file_text()).unwrap().id(), key.id());
        let mut der = SPKI_PREFIX.to_vec();
        der.extend_from_slice(key.public().as_bytes());
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", BASE64.encode(der));
        assert_eq!(PublicKey::parse_file(&pem), Ok(*key.public()));
    }

    #[test]
    fn other_algorithms_and_weak_points_are_refused() {
        assert_eq!(PublicKey::parse("rsa:AAAA").unwrap_err(), Error::Algorithm);
        assert!(matches!(PublicKey::parse("hello").unwrap_err(), Error::Form(_)));
        let mut identity = [0; 32];
        identity[0] = 1;
        assert_eq!(PublicKey::from_bytes(&identity), Err(Error::Point));
        assert!(SecretKey::parse_file("-----BEGIN PRIVATE KEY-----").is_err());
    }

    #[test]
    fn a_secret_key_never_shows_itself() {
        let shown = format!("{:?}", secret(3));
        assert!(shown.starts_with("SecretKey(key_ed25519_") && shown.len() < 50, "{shown}");
    }

    #[test]
    fn a_signature_holds_for_its_body_and_no_other() {
        let key = secret(2);
        let body = sha256(b"body");
        let signature = key.sign_event(&body);
        assert!(key.public().verify_event(&body, &signature));
        assert!(!key.public().verify_event(&sha256(b"other"), &signature));
        assert!(!secret(4).public().verify_event(&body, &signature));
    }
}
