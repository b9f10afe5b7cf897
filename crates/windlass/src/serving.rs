//! What `windlass controller` answers on a cluster: reviews and questions over HTTPS, and probes and metrics over HTTP.

pub mod https;
pub mod probes;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Client;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};
use windlass_api::hook::{HookName, discovery_path};
use windlass_controller::certificates::{self, Certificates};
use windlass_controller::hooks::{Hooks, Reply};
use windlass_controller::webhooks::Webhooks;
use windlass_runtime::clock::Clock;

use probes::Readiness;

/// How often it is looked whether the certificate is still the right one: all replicas have a new one long before they need it.
const LOOK: Duration = Duration::from_secs(60);
/// The same while there is none: nothing is answered without.
const LOOK_FOR_FIRST: Duration = Duration::from_secs(2);

/// What is answered over HTTPS.
#[derive(Clone)]
pub struct Answers {
    /// Reviews of admission.
    pub webhooks: Option<Webhooks>,
    /// Questions of Cluster API.
    pub hooks: Option<Hooks>,
}

impl Answers {
    /// Answers what was posted to a path.
    pub fn reply(&self, path: String, body: Vec<u8>) -> BoxFuture<'static, Reply> {
        let Self { webhooks, hooks } = self.clone();
        Box::pin(async move {
            let is_question = HookName::of_path(&path).is_some() || path == discovery_path();
            match (webhooks, hooks) {
                (Some(webhooks), _) if Webhooks::knows(&path) => webhooks.reply(&path, &body).await,
                (_, Some(hooks)) if is_question => hooks.reply(&path, &body).await,
                _ => Reply { code: 404, body: format!("nothing is answered at {path}").into_bytes() },
            }
        })
    }
}

/// The certificate to serve with, which is another one now and then. A handle: clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Current(Arc<RwLock<Option<Served>>>);

#[derive(Debug)]
struct Served {
    pem: String,
    key: Arc<CertifiedKey>,
}

impl Current {
    /// TLS with whichever certificate is current; HTTP/2 before HTTP/1.1.
    pub fn server_config(&self) -> Result<ServerConfig, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// From now on this one. Connections that there are go on.
    pub fn set(&self, certificates: &Certificates) -> Result<(), String> {
        let pem = certificates.certificate_pem();
        if self.0.read().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|served| served.pem == pem) {
            return Ok(());
        }
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        let chain = chain.map_err(|error| error.to_string())?;
        let key =
            PrivateKeyDer::from_pem_slice(certificates.key_pem().as_bytes()).map_err(|error| error.to_string())?;
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| error.to_string())?;
        let served = Served { pem: pem.to_owned(), key: Arc::new(key) };
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(served);
        tracing::info!("serving with another certificate");
        Ok(())
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|served| Arc::clone(&served.key))
    }
}

/// Keeps the certificate current, and trusted by those who ask. Does not end.
pub async fn keep_certificates(client: Client, clock: Clock, current: Current, readiness: Readiness) {
    let mut period = LOOK_FOR_FIRST;
    loop {
        match certificates::keep(&client, clock.now()).await {
            Ok(certificates) => match current.set(&certificates) {
                Ok(()) => {
                    readiness.set(probes::CERTIFICATE, Ok(()));
                    period = LOOK;
                }
                Err(error) => tracing::error!(error, "the certificate cannot be served with"),
            },
            // The one that there is stays.
            Err(error) => {
                let causes = crate::error::with_causes(&error);
                tracing::warn!(error = causes, "the certificate was not looked after; it is tried again");
            }
        }
        tokio::time::sleep(period).await;
    }
}
