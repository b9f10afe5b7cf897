//! The way to the members of etcd through the API server of their cluster.

use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use tokio::io::DuplexStream;
use tokio_rustls::rustls::ClientConfig;

use super::{Identity, Route, Wire};
use crate::error::with_causes;

/// Where kubeadm has its pods.
const NAMESPACE: &str = "kube-system";
/// How it labels those of etcd.
const LABELS: &str = "component=etcd,tier=control-plane";
/// Where they listen for clients.
const PORT: u16 = 2379;

/// A route by forwarded ports.
pub struct Forwarded {
    /// The workload cluster.
    client: Client,
    identity: Identity,
}

impl Forwarded {
    /// The way through this cluster's API server.
    pub fn new(client: Client, identity: Identity) -> Self {
        Self { client, identity }
    }

    fn api(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    async fn forwarded(&self, pod: &str) -> Result<DuplexStream, String> {
        let mut forwarder = self.api().portforward(pod, &[PORT]).await.map_err(|error| with_causes(&error))?;
        // It goes on for as long as somebody has the stream.
        forwarder.take_stream(PORT).ok_or_else(|| format!("port {PORT} was not forwarded"))
    }
}

impl Route for Forwarded {
    fn pods(&self) -> BoxFuture<'_, Result<Vec<String>, String>> {
        Box::pin(async {
            let listed = self.api().list(&ListParams::default().labels(LABELS)).await;
            let listed = listed.map_err(|error| format!("list the pods of etcd: {}", with_causes(&error)))?;
            // Nothing can be forwarded to one that does not run.
            let runs = |pod: &Pod| {
                pod.metadata.deletion_timestamp.is_none()
                    && pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"))
            };
            Ok(listed.items.iter().filter(|pod| runs(pod)).map(ResourceExt::name_any).collect())
        })
    }

    fn open<'a>(&'a self, pod: &'a str) -> BoxFuture<'a, Result<Box<dyn Wire>, String>> {
        Box::pin(async move {
            let stream = self.forwarded(pod).await.map_err(|why| format!("forward a port: {why}"))?;
            Ok(Box::new(stream) as Box<dyn Wire>)
        })
    }

    fn tls(&self) -> BoxFuture<'_, Result<Arc<ClientConfig>, String>> {
        Box::pin(self.identity.tls())
    }
}
