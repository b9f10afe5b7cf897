//! Real certificates and keys for the clusters of `up`: their APIs can be reached, so they must be worth something.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use windlass_api::name::{ClusterSecret, NamespacedName};
use windlass_apiserver::listen;
use windlass_apiserver::listen::tls::{Authority, SigningKey};
use windlass_controller::access::{KeyError, KeyMaker};

use super::kept::Kept;
use super::wall_now;

/// The keys of a kubeadm Secret.
const CERTIFICATE: &str = "tls.crt";
const PRIVATE_KEY: &str = "tls.key";

/// The authorities of each cluster: the Secret `<cluster>-ca` and the listener have the same. Cheap to clone.
#[derive(Clone, Default)]
pub struct Authorities {
    known: Arc<Mutex<BTreeMap<String, Arc<Authority>>>>,
    kept: Option<Kept>,
}

/// By which name the authority of its etcd is kept: no cluster has a name with two slashes.
fn of_etcd(cluster: &NamespacedName) -> String {
    format!("{cluster}/etcd")
}

impl Authorities {
    /// Those that were kept, and new ones that are kept, too.
    pub fn kept(kept: Option<Kept>) -> Self {
        Self { kept, ..Self::default() }
    }

    /// Where they are kept, if they are.
    pub fn keeper(&self) -> Option<&Kept> {
        self.kept.as_ref()
    }

    /// The authority of a cluster; a new one for a new cluster.
    pub fn of(&self, cluster: &NamespacedName) -> Result<Arc<Authority>, listen::Error> {
        self.named(cluster.to_string())
    }

    /// The authority of its etcd: the Secret `<cluster>-etcd` and the members have the same.
    pub fn of_etcd(&self, cluster: &NamespacedName) -> Result<Arc<Authority>, listen::Error> {
        self.named(of_etcd(cluster))
    }

    fn named(&self, name: String) -> Result<Arc<Authority>, listen::Error> {
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(authority) = all.get(&name) {
            return Ok(Arc::clone(authority));
        }
        let authority = match &self.kept {
            Some(kept) => kept.authority(&name)?,
            None => Authority::new(wall_now())?,
        };
        let authority = Arc::new(authority);
        all.insert(name, Arc::clone(&authority));
        Ok(authority)
    }

    /// The cluster is gone: another one of its name trusts nobody that this one did.
    pub fn forget(&self, cluster: &NamespacedName) {
        for name in [cluster.to_string(), of_etcd(cluster)] {
            self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
            if let Some(kept) = &self.kept {
                kept.forget(&name);
            }
        }
    }
}

impl KeyMaker for Authorities {
    fn make(&self, cluster: &NamespacedName, secret: ClusterSecret) -> Result<BTreeMap<String, Vec<u8>>, KeyError> {
        let failed = |why: String| KeyError { cluster: cluster.clone(), secret, why };
        let pair = |certificate: &str, key: String| {
            BTreeMap::from([
                (CERTIFICATE.to_owned(), certificate.as_bytes().to_vec()),
                (PRIVATE_KEY.to_owned(), key.into_bytes()),
            ])
        };
        match secret {
            ClusterSecret::CertificateAuthority => {
                let authority = self.of(cluster).map_err(|error| failed(error.to_string()))?;
                Ok(pair(authority.certificate_pem(), authority.key_pem()))
            }
            ClusterSecret::Etcd => {
                let authority = self.of_etcd(cluster).map_err(|error| failed(error.to_string()))?;
                Ok(pair(authority.certificate_pem(), authority.key_pem()))
            }
            ClusterSecret::FrontProxy => {
                let authority = Authority::new(wall_now()).map_err(|error| failed(error.to_string()))?;
                Ok(pair(authority.certificate_pem(), authority.key_pem()))
            }
            ClusterSecret::ServiceAccount => {
                let key = SigningKey::new().map_err(|error| failed(error.to_string()))?;
                Ok(pair(&key.public_pem, key.private_pem))
            }
            ClusterSecret::Kubeconfig => Err(failed("it is written by Cluster API".to_owned())),
        }
    }
}
