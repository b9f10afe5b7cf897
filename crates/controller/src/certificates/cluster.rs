//! Certificates and keys of new workload clusters. Each cluster has authorities of its own: nobody is trusted by two.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose};
use windlass_api::name::{ClusterSecret, NamespacedName};
use windlass_runtime::clock::Clock;

use super::state::valid;
use crate::access::{KeyError, KeyMaker};

/// As long as those that kubeadm makes: they are not exchanged while the cluster lives.
const VALID: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

/// Makes them.
pub struct ClusterKeys {
    clock: Clock,
}

impl ClusterKeys {
    /// Those that are valid from the time of this clock.
    pub fn new(clock: Clock) -> Self {
        Self { clock }
    }

    fn authority(&self, name: &str) -> Result<BTreeMap<String, Vec<u8>>, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::KeyCertSign];
        valid(&mut params, self.clock.now(), VALID);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(pair(certificate.pem(), key.serialize_pem()))
    }
}

impl KeyMaker for ClusterKeys {
    fn make(&self, cluster: &NamespacedName, secret: ClusterSecret) -> Result<BTreeMap<String, Vec<u8>>, KeyError> {
        let failed = |why: String| KeyError { cluster: cluster.clone(), secret, why };
        let made = match secret {
            ClusterSecret::CertificateAuthority => self.authority("kubernetes"),
            ClusterSecret::Etcd => self.authority("etcd-ca"),
            ClusterSecret::FrontProxy => self.authority("front-proxy-ca"),
            ClusterSecret::ServiceAccount => {
                KeyPair::generate().map(|key| pair(key.public_key_pem(), key.serialize_pem()))
            }
            ClusterSecret::Kubeconfig => return Err(failed("it is written by Cluster API".to_owned())),
        };
        made.map_err(|error| failed(error.to_string()))
    }
}

/// As kubeadm keeps them in a Secret.
fn pair(certificate: String, key: String) -> BTreeMap<String, Vec<u8>> {
    BTreeMap::from([("tls.crt".to_owned(), certificate.into_bytes()), ("tls.key".to_owned(), key.into_bytes())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_clusters_and_no_two_parts_of_one_trust_the_same() {
        let keys = ClusterKeys::new(Clock::wall());
        let cluster = |name: &str| NamespacedName { namespace: "a".parse().unwrap(), name: name.parse().unwrap() };
        let make = |name: &str, secret| keys.make(&cluster(name), secret).unwrap();
        let (one, other) =
            (make("x", ClusterSecret::CertificateAuthority), make("y", ClusterSecret::CertificateAuthority));
        assert_ne!(one["tls.crt"], other["tls.crt"]);
        assert_ne!(one["tls.key"], make("x", ClusterSecret::Etcd)["tls.key"]);
        assert!(make("x", ClusterSecret::ServiceAccount)["tls.crt"].starts_with(b"-----BEGIN PUBLIC KEY"));
        assert!(keys.make(&cluster("x"), ClusterSecret::Kubeconfig).is_err());
    }
}
