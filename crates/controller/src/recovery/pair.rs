//! Whether two halves are a pair: the public key of a certificate is that of the private key beside it.

use std::fmt;

use jiff::Timestamp;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use windlass_api::name::ClusterSecret;
use x509_parser::parse_x509_certificate;

use super::bootstrap::Pem;

/// The SHA-256 of something public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicDigest([u8; 32]);

impl PublicDigest {
    fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

/// `sha256:` and 64 digits, as openssl has them without colons.
impl fmt::Display for PublicDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for PublicDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a certificate says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateFacts {
    /// Whose it is: `CN=kubernetes`.
    pub subject: String,
    /// What tells it from all others.
    #[schemars(with = "String")]
    pub sha256: PublicDigest,
    /// When it expires.
    #[schemars(with = "String")]
    pub expires: Timestamp,
}

/// Which pair it is, told by its public half.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// The SHA-256 of the public key, as `SubjectPublicKeyInfo`.
    #[schemars(with = "String")]
    pub public_key: PublicDigest,
    /// The certificate, where the public half is one.
    pub certificate: Option<CertificateFacts>,
}

/// Why two halves are no pair. None of it shows what is in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// There is no certificate.
    #[error("its certificate is not one in PEM")]
    Certificate,
    /// The certificate is one of a server or a client.
    #[error("its certificate is not that of an authority, and can sign no others")]
    NoAuthority,
    /// There is no public key.
    #[error("its public key is not one in PEM")]
    PublicKey,
    /// There is no private key.
    #[error("its private key is not one in PEM: neither PKCS#1, nor PKCS#8, nor SEC1")]
    PrivateKey,
    /// A private key that cannot be judged.
    #[error(
        "its private key cannot be judged: known are RSA of 2048 to 4096 bits, ECDSA on P-256 and P-384, and Ed25519"
    )]
    UnknownAlgorithm,
    /// Each half is one, and they are of two pairs.
    #[error("its private key is not the one of its certificate")]
    Mismatch,
}

/// Judges the two halves of a Secret.
pub fn verify(secret: ClusterSecret, public: &Pem, private: &Pem) -> Result<Identity, PairError> {
    let (certificate, public_key) = match CertificateDer::from_pem_slice(public.as_bytes()) {
        Ok(der) => {
            let (facts, public_key) = read(&der, secret != ClusterSecret::ServiceAccount)?;
            (Some(facts), public_key)
        }
        Err(_) if secret == ClusterSecret::ServiceAccount => {
            let der = SubjectPublicKeyInfoDer::from_pem_slice(public.as_bytes()).map_err(|_| PairError::PublicKey)?;
            (None, der.to_vec())
        }
        Err(_) => return Err(PairError::Certificate),
    };
    let private = PrivateKeyDer::from_pem_slice(private.as_bytes()).map_err(|_| PairError::PrivateKey)?;
    let private = any_supported_type(&private).map_err(|_| PairError::UnknownAlgorithm)?;
    let of_private = private.public_key().ok_or(PairError::UnknownAlgorithm)?;
    if of_private.as_ref() != public_key {
        return Err(PairError::Mismatch);
    }
    Ok(Identity { public_key: PublicDigest::of(&public_key), certificate })
}

/// What a certificate says, and its public key.
fn read(der: &CertificateDer<'_>, authority: bool) -> Result<(CertificateFacts, Vec<u8>), PairError> {
    let (_, certificate) = parse_x509_certificate(der).map_err(|_| PairError::Certificate)?;
    if authority && !certificate.is_ca() {
        return Err(PairError::NoAuthority);
    }
    let expires = Timestamp::from_second(certificate.validity().not_after.timestamp());
    let facts = CertificateFacts {
        subject: certificate.subject().to_string(),
        sha256: PublicDigest::of(der),
        expires: expires.map_err(|_| PairError::Certificate)?,
    };
    Ok((facts, certificate.public_key().raw.to_vec()))
}

/// The certificates in a bundle, told by their digests.
pub fn bundle(text: &[u8]) -> Vec<PublicDigest> {
    CertificateDer::pem_slice_iter(text).flatten().map(|der| PublicDigest::of(&der)).collect()
}
