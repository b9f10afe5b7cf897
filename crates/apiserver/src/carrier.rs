//! How the server reaches others: the webhooks that objects in its store name.
//!
//! A [`Carrier`] takes bytes to an address and brings bytes back. [`InProcess`] carries them to functions in this process, over
//! no socket; `https` (a feature) carries them over HTTPS. A server without a carrier reaches nobody.

#[cfg(feature = "webhooks")]
pub mod https;
#[cfg(feature = "webhooks")]
mod resolve;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::field::quote;
use crate::store::Store;
use crate::value::Fields;

/// Takes a question to somebody outside of the server.
pub trait Carrier: Send + Sync {
    /// The answer; an error says, in words that follow `failed to call webhook:`, why there is none.
    fn carry<'a>(&'a self, errand: Errand<'a>) -> BoxFuture<'a, Result<Bytes, String>>;
}

/// A question, and where it goes.
pub struct Errand<'a> {
    /// Where to.
    pub endpoint: &'a Endpoint,
    /// What is asked: JSON.
    pub body: Bytes,
    /// How long the answer may take.
    pub timeout: Duration,
    /// Where to look services up.
    pub store: &'a Store,
}

/// Where a webhook is: the `clientConfig` of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// By which it is found.
    pub address: Address,
    /// Whose signature its certificate must have: PEM. Nothing means those that the machine trusts.
    pub authority: Vec<u8>,
}

/// How a webhook is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// By its URL.
    Url(String),
    /// By the name of a service in the cluster.
    Service {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
        /// The port of the service.
        port: u16,
        /// The path, with its slash in front.
        path: String,
    },
}

impl Endpoint {
    /// Reads a `clientConfig`.
    pub fn read(config: &Value) -> Self {
        let decoded = base64::engine::general_purpose::STANDARD.decode(config.text("caBundle"));
        let service = config.at("service");
        let address = if service.is_object() {
            let port = service.int("port").and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
            let path = service.text("path");
            let slash = if path.starts_with('/') { "" } else { "/" };
            Address::Service {
                namespace: service.text("namespace").to_owned(),
                name: service.text("name").to_owned(),
                port,
                path: format!("{slash}{path}"),
            }
        } else {
            Address::Url(config.text("url").to_owned())
        };
        Self { address, authority: decoded.unwrap_or_default() }
    }

    /// The whole address, as refusals print it.
    pub fn url(&self, timeout: Duration) -> String {
        let base = match &self.address {
            Address::Url(url) => url.clone(),
            Address::Service { namespace, name, port, path } => format!("https://{name}.{namespace}.svc:{port}{path}"),
        };
        format!("{base}?timeout={}s", timeout.as_secs())
    }
}

/// Somebody in this process who answers bytes with bytes.
pub type Service = Arc<dyn Fn(Bytes) -> BoxFuture<'static, Result<Bytes, String>> + Send + Sync>;

/// Carries questions to services of this process. It opens no socket: a URL is out of its reach.
#[derive(Clone, Default)]
pub struct InProcess(BTreeMap<(String, String), Service>);

impl InProcess {
    /// Puts a service where a namespace and a name lead.
    #[must_use]
    pub fn with(mut self, namespace: &str, name: &str, service: Service) -> Self {
        self.0.insert((namespace.to_owned(), name.to_owned()), service);
        self
    }
}

impl Carrier for InProcess {
    fn carry<'a>(&'a self, errand: Errand<'a>) -> BoxFuture<'a, Result<Bytes, String>> {
        Box::pin(async move {
            let post = format!("Post {}", quote(&errand.endpoint.url(errand.timeout)));
            let Address::Service { namespace, name, .. } = &errand.endpoint.address else {
                return Err(format!("{post}: nobody outside of this process is called"));
            };
            let Some(service) = self.0.get(&(namespace.clone(), name.clone())) else {
                return Err(format!("{post}: service {} not found", quote(name)));
            };
            let answering = tokio::time::timeout(errand.timeout, service(errand.body));
            answering
                .await
                .unwrap_or_else(|_| Err("context deadline exceeded".to_owned()))
                .map_err(|why| format!("{post}: {why}"))
        })
    }
}
