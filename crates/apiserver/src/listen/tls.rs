//! The server's own authority, its certificate, and the certificates it gives to clients.
//!
//! Keys are made anew and live in memory only, unless whoever has the authority keeps its certificate and key and
//! [brings them back](Authority::restored); what leaves is the authority's certificate and a client's credential. Keys and tokens are the one thing here that a seed must not decide: they come from the operating system.

use std::sync::Arc;

use jiff::{Span, Timestamp, civil, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tokio_rustls::rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::{ClientCertVerifierBuilder, WebPkiClientVerifier};
use tokio_rustls::rustls::{RootCertStore, ServerConfig, SupportedCipherSuite};

use super::Error;
use super::auth::{ADMIN_NAME, Token};
use crate::auth::GROUP_MASTERS;

pub(super) const ALPN_HTTP2: &[u8] = b"h2";
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// Two years: some clients refuse server certificates that are valid for more than 825 days.
const VALID_DAYS: i64 = 730;

/// The names that clients on this machine know the server by.
const SERVER_NAMES: [&str; 3] = ["127.0.0.1", "::1", "localhost"];

/// What a client shows to be let in.
#[derive(Clone)]
pub enum Credential {
    /// A certificate and its key, both PEM.
    ClientCertificate {
        /// The certificate.
        certificate_pem: String,
        /// Its private key.
        key_pem: String,
    },
    /// A bearer token.
    Token(Token),
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ClientCertificate { certificate_pem, .. } => {
                f.debug_struct("ClientCertificate").field("certificate_pem", certificate_pem).finish_non_exhaustive()
            }
            Self::Token(token) => f.debug_tuple("Token").field(token).finish(),
        }
    }
}

/// A certificate authority for one server, and that server's certificate.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    server_certificate: CertificateDer<'static>,
    server_key: PrivatePkcs8KeyDer<'static>,
    validity: Validity,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("certificate_pem", &self.certificate_pem).finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes new keys; the certificates are valid from the day before `now`, so that clocks may differ a little.
    pub fn new(now: Timestamp) -> Result<Self, Error> {
        let validity = Validity::around(now)?;
        let params = authority_params(validity)?;
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let (der, pem) = (certificate.der().clone(), certificate.pem());
        Self::with(Issuer::new(params, key), (der, pem), validity)
    }

    /// The authority with this certificate and key, both PEM, as another one gave them: clients that know it know this one. The
    /// server has a new certificate.
    pub fn restored(certificate_pem: &str, key_pem: &str, now: Timestamp) -> Result<Self, Error> {
        let validity = Validity::around(now)?;
        let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes()).map_err(|_| Error::NoAuthority)?;
        let key = KeyPair::from_pem(key_pem)?;
        // Of these parameters only the name and the key's identifier get into what it signs, and they are the same.
        let issuer = Issuer::new(authority_params(validity)?, key);
        Self::with(issuer, (certificate, certificate_pem.to_owned()), validity)
    }

    fn with(
        issuer: Issuer<'static, KeyPair>,
        (certificate, certificate_pem): (CertificateDer<'static>, String),
        validity: Validity,
    ) -> Result<Self, Error> {
        let mut params = validity.params(&SERVER_NAMES)?;
        params.distinguished_name = distinguished_name("kube-apiserver", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server_key = KeyPair::generate()?;
        let server_certificate = params.signed_by(&server_key, &issuer)?.der().clone();
        let server_key = server_key.serialize_der().into();
        Ok(Self { issuer, certificate, certificate_pem, server_certificate, server_key, validity })
    }

    /// The authority's certificate, by which clients know the server.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The authority's private key as PEM, for those who keep an authority beside their server: whoever has it is let in.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// A certificate for the administrator: `CN=kubernetes-admin`, `O=system:masters`.
    pub fn admin(&self) -> Result<Credential, Error> {
        self.client(ADMIN_NAME, GROUP_MASTERS)
    }

    /// A certificate for a user with a group.
    pub fn client(&self, user: &str, group: &str) -> Result<Credential, Error> {
        let mut params = self.validity.params(&[])?;
        params.distinguished_name = distinguished_name(user, Some(group));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Credential::ClientCertificate { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }

    /// TLS 1.2 and 1.3, HTTP/2 before HTTP/1.1, client certificates optional but never from somebody else.
    pub(super) fn server_config(&self) -> Result<ServerConfig, Error> {
        let mut config = self.config(ClientCertVerifierBuilder::allow_unauthenticated)?;
        config.alpn_protocols = vec![ALPN_HTTP2.to_vec(), ALPN_HTTP1.to_vec()];
        Ok(config)
    }

    /// TLS for a server that knows nobody but whom this authority has signed, and speaks HTTP/2 alone, as etcd does.
    pub fn closed_server_config(&self) -> Result<ServerConfig, Error> {
        let mut config = self.config(|verifier| verifier)?;
        config.alpn_protocols = vec![ALPN_HTTP2.to_vec()];
        Ok(config)
    }

    fn config(
        &self,
        lets_in: impl FnOnce(ClientCertVerifierBuilder) -> ClientCertVerifierBuilder,
    ) -> Result<ServerConfig, Error> {
        let provider = provider();
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let key = PrivateKeyDer::Pkcs8(self.server_key.clone_key());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let config = config.with_client_cert_verifier(lets_in(verifier).build()?);
        Ok(config.with_single_cert(vec![self.server_certificate.clone()], key)?)
    }
}

/// A pair of keys that sign and verify, both PEM.
pub struct SigningKey {
    /// What signs.
    pub private_pem: String,
    /// What verifies.
    pub public_pem: String,
}

impl SigningKey {
    /// A new pair.
    pub fn new() -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        Ok(Self { private_pem: key.serialize_pem(), public_pem: key.public_key_pem() })
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("public_pem", &self.public_pem).finish_non_exhaustive()
    }
}

/// The cryptography in use; named here instead of in a process-wide default, which is the application's to choose.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Random bytes from the operating system.
pub(super) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    ring::default_provider().secure_random.fill(&mut bytes).map_err(|_| Error::Random)?;
    Ok(bytes)
}

/// The SHA-256 digest in hexadecimal, by the hash that TLS brings along.
pub(super) fn sha256_hex(data: &[u8]) -> String {
    let hash = match TLS13_AES_128_GCM_SHA256 {
        SupportedCipherSuite::Tls13(suite) => suite.common.hash_provider,
        SupportedCipherSuite::Tls12(suite) => suite.common.hash_provider,
    };
    let digest = hash.hash(data);
    let nibbles = digest.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    nibbles.filter_map(|nibble| char::from_digit(nibble.into(), 16)).collect()
}

/// Two days between which certificates are valid.
#[derive(Clone, Copy)]
struct Validity {
    from: civil::Date,
    to: civil::Date,
}

impl Validity {
    fn around(now: Timestamp) -> Result<Self, Error> {
        let today = now.to_zoned(TimeZone::UTC).date();
        let error = |_| Error::Clock { now };
        let from = today.yesterday().map_err(error)?;
        let to = today.checked_add(Span::new().days(VALID_DAYS)).map_err(error)?;
        if from.year() < 1970 { Err(Error::Clock { now }) } else { Ok(Self { from, to }) }
    }

    /// Parameters of a certificate with this validity.
    fn params(self, names: &[&str]) -> Result<CertificateParams, Error> {
        let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        // A date that exists has a month and a day that fit.
        let midnight = |date: civil::Date| {
            rcgen::date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs())
        };
        params.not_before = midnight(self.from);
        params.not_after = midnight(self.to);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        Ok(params)
    }
}

fn authority_params(validity: Validity) -> Result<CertificateParams, Error> {
    let mut params = validity.params(&[])?;
    params.distinguished_name = distinguished_name("embedded-kubernetes-ca", None);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn distinguished_name(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_printed_with_leading_zeros() {
        // The example of FIPS 180-2; it has bytes below 16.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), expected);
    }
}
