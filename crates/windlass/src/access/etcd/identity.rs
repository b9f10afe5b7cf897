//! Who we are to etcd: its authority is in a Secret of the management cluster, and signs a certificate for us.
//!
//! The certificate is valid for hours and is not written down; whoever has the authority could make another one anyway.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose};
use tokio::sync::Mutex;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use windlass_api::name::{ClusterName, ClusterSecret, NamespacedName};
use windlass_runtime::clock::Clock;

use crate::error::with_causes;

/// By which name etcd knows us: it lets in whoever its authority has signed.
const NAME: &str = "windlass";
/// For how long a certificate is valid.
const VALID: SignedDuration = SignedDuration::from_hours(12);
/// When it is made anew. An authority that somebody has exchanged is known by then, too.
const RENEWED_AFTER: SignedDuration = SignedDuration::from_hours(1);
/// Clocks may differ a little.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Who we are to the etcd of one cluster.
pub struct Identity {
    management: Client,
    cluster: NamespacedName,
    clock: Clock,
    known: Mutex<Option<(Timestamp, Arc<ClientConfig>)>>,
}

impl Identity {
    /// By the Secret of this cluster.
    pub fn new(management: Client, cluster: NamespacedName, clock: Clock) -> Self {
        Self { management, cluster, clock, known: Mutex::new(None) }
    }

    /// How TLS is spoken with its members.
    pub async fn tls(&self) -> Result<Arc<ClientConfig>, String> {
        let now = self.clock.now();
        let mut known = self.known.lock().await;
        if let Some((since, tls)) = &*known
            && now.duration_since(*since) < RENEWED_AFTER
        {
            return Ok(Arc::clone(tls));
        }
        let cluster = ClusterName::new(self.cluster.name.as_str()).map_err(|error| error.to_string())?;
        let name = ClusterSecret::Etcd.object_name(&cluster);
        let api: Api<Secret> = Api::namespaced(self.management.clone(), self.cluster.namespace.as_str());
        let secret = api.get(name.as_str()).await;
        let secret = secret.map_err(|error| format!("read Secret/{name}: {}", with_causes(&error)))?;
        let data = secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
        let made = signed(&data, now).map_err(|why| format!("Secret/{name}: {why}"))?;
        *known = Some((now, Arc::clone(&made)));
        Ok(made)
    }
}

/// TLS with a new certificate of the authority that is in these data.
pub fn signed(data: &BTreeMap<String, Vec<u8>>, now: Timestamp) -> Result<Arc<ClientConfig>, String> {
    let part = |key: &str| {
        let found = data.get(key).filter(|bytes| !bytes.is_empty());
        found.ok_or_else(|| format!("it has no {key}, without which etcd cannot be asked"))
    };
    let authority = part("tls.crt")?;
    let authority = CertificateDer::from_pem_slice(authority).map_err(|error| format!("tls.crt: {error}"))?;
    let key = PrivateKeyDer::from_pem_slice(part("tls.key")?).map_err(|error| format!("tls.key: {error}"))?;
    let key = KeyPair::try_from(&readable(key)).map_err(|error| format!("tls.key: {error}"))?;
    let issuer = Issuer::from_ca_cert_der(&authority, key).map_err(|error| format!("tls.crt: {error}"))?;
    let (certificate, key) = own(&issuer, now).map_err(|error| format!("sign a certificate: {error}"))?;
    let mut roots = RootCertStore::empty();
    roots.add(authority).map_err(|error| format!("tls.crt: {error}"))?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_root_certificates(roots).with_client_auth_cert(vec![certificate], key));
    let mut config = config.map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

fn own(
    issuer: &Issuer<'_, KeyPair>,
    now: Timestamp,
) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), rcgen::Error> {
    let at = |time: Timestamp| {
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default())
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, NAME);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.not_before = at(now - SKEW);
    params.not_after = at(now + VALID);
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    Ok((certificate.der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into())))
}

/// A key in the form that it can be used in. Cluster API writes RSA keys in a form of their own (PKCS #1), which is the other one
/// without what says that it is RSA.
fn readable(key: PrivateKeyDer<'static>) -> PrivateKeyDer<'static> {
    /// Version 0, and the algorithm rsaEncryption without parameters.
    const RSA: &[u8] =
        &[0x02, 0x01, 0x00, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
    let PrivateKeyDer::Pkcs1(rsa) = key else { return key };
    let whole = tagged(0x30, &[RSA, &tagged(0x04, rsa.secret_pkcs1_der())].concat());
    PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(whole))
}

/// A value of DER: what it is, how long it is, and itself.
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut value = vec![tag];
    match significant.as_slice() {
        [] => value.push(0),
        [short] if *short < 0x80 => value.push(*short),
        long => {
            value.push(0x80 | u8::try_from(long.len()).unwrap_or_default());
            value.extend(long);
        }
    }
    value.extend(content);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_as_short_as_they_can_be() {
        assert_eq!(tagged(4, &[]), [4, 0]);
        assert_eq!(tagged(4, &[7; 127])[..3], [4, 127, 7]);
        assert_eq!(tagged(4, &[7; 128])[..4], [4, 0x81, 128, 7]);
        assert_eq!(tagged(4, &[7; 1200])[..5], [4, 0x82, 4, 0xb0, 7]);
    }

    #[test]
    fn a_secret_that_lacks_something_is_named_by_what_it_lacks() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24);
        let refused = |pairs: &[(&str, &str)]| {
            let data = pairs.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
            signed(&data, now).unwrap_err()
        };
        assert_eq!(refused(&[]), "it has no tls.crt, without which etcd cannot be asked");
        assert!(refused(&[("tls.crt", "nonsense"), ("tls.key", "")]).starts_with("tls.crt: "));
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::default().self_signed(&key).unwrap().pem();
        assert_eq!(refused(&[("tls.crt", &certificate)]), "it has no tls.key, without which etcd cannot be asked");
        assert!(refused(&[("tls.crt", &certificate), ("tls.key", "nonsense")]).starts_with("tls.key: "));
    }
}
