//! Where the API of a workload cluster can be reached from outside, and with which credentials.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use windlass_api::kind::wcp::Endpoint;
use windlass_api::name::{ClusterSecret, NamespacedName};
use windlass_runtime::chance::Seed;

use crate::workload::Workload;

/// A door that does not open.
#[derive(Debug, thiserror::Error)]
#[error("open the API of {cluster}: {why}")]
pub struct DoorError {
    /// The cluster.
    pub cluster: NamespacedName,
    /// Why not.
    pub why: String,
}

/// Opens the APIs of workload clusters. In a rehearsal nobody knocks, and no socket is opened; `windlass up` listens.
pub trait Doors: Send + Sync {
    /// Opens the API of a cluster, if it is not open yet, and says where it is.
    fn open<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        workload: &'a Workload,
    ) -> BoxFuture<'a, Result<Endpoint, DoorError>>;

    /// The kubeconfig of its administrator.
    fn kubeconfig<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        endpoint: &'a Endpoint,
    ) -> BoxFuture<'a, Result<String, DoorError>>;

    /// What is in one of a cluster's Secrets with certificates, `tls.crt` and `tls.key`. Where nobody knocks these are texts
    /// that stand where certificates and keys would be, and say so.
    fn certificate(
        &self,
        cluster: &NamespacedName,
        secret: ClusterSecret,
    ) -> Result<BTreeMap<String, Vec<u8>>, DoorError> {
        let text = |part: &str| {
            format!("-----BEGIN STAND-IN-----\nthe {part} of {secret} of {cluster}\n-----END STAND-IN-----\n")
        };
        Ok(["tls.crt", "tls.key"].into_iter().map(|part| (part.to_owned(), text(part).into_bytes())).collect())
    }

    /// Closes it: the cluster is gone.
    fn close(&self, cluster: &NamespacedName);
}

/// The doors of a rehearsal: every cluster has an address, and nobody listens there.
#[derive(Debug, Clone, Copy)]
pub struct Inside {
    /// Decides the addresses.
    pub seed: Seed,
}

impl Doors for Inside {
    fn open<'a>(&'a self, cluster: &'a NamespacedName, _: &'a Workload) -> BoxFuture<'a, Result<Endpoint, DoorError>> {
        let drawn = self.seed.child("load balancer").stream(&cluster.to_string()).u64().to_be_bytes();
        let host = format!("10.{}.{}.{}", drawn[0], drawn[1], drawn[2]);
        Box::pin(std::future::ready(Ok(Endpoint { host, port: 6443 })))
    }

    fn kubeconfig<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        endpoint: &'a Endpoint,
    ) -> BoxFuture<'a, Result<String, DoorError>> {
        let (name, Endpoint { host, port }) = (&cluster.name, endpoint);
        let text = format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: {name}\n  \
               cluster:\n    \
                 server: https://{host}:{port}\n\
             users:\n\
             - name: {name}-admin\n  \
               user:\n    \
                 token: nobody-listens-there\n\
             contexts:\n\
             - name: {name}-admin@{name}\n  \
               context:\n    \
                 cluster: {name}\n    \
                 user: {name}-admin\n\
             current-context: {name}-admin@{name}\n"
        );
        Box::pin(std::future::ready(Ok(text)))
    }

    fn close(&self, _: &NamespacedName) {}
}
