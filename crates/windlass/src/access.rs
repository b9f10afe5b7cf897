//! Clusters that are reached over the network: how the programs of a real management cluster get to it, and from it to
//! workload clusters.

mod capped;
mod counted;
mod etcd;
mod trusted;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::timeout::TimeoutLayer;
use tower::util::option_layer;
use windlass_api::name::NamespacedName;
use windlass_controller::access::{ConnectError, WorkloadCluster, Workloads};
use windlass_controller::metrics::{Asked, Metrics};
use windlass_runtime::clock::Clock;
use windlass_runtime::steady::SteadyLayer;

use crate::error::{Explained, Kind};
use capped::CapLayer;
use counted::CountLayer;
use etcd::{Forwarded, Identity, OverPods};
use trusted::Loopback;

/// How long a server may take to accept a connection. Behind a load balancer the next try may meet another one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server may take to begin its answer: longer than the minute that it gives itself for its own work.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(75);
/// How long an answer may say nothing. A watch is ended by the server after 290 seconds, and says something before.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(300);

/// A client of the cluster that this program runs in, or that the kubeconfig of its surroundings names.
pub async fn ambient() -> Result<Client, Error> {
    let config = Config::infer().await.map_err(|source| Error::Infer(Box::new(source)))?;
    client(config, None).map_err(|source| Error::Client(Box::new(source)))
}

/// A client that waits neither for ever nor too shortly, and sends nothing twice: whether a write that was not answered was
/// done is for its author to find out.
fn client(config: Config, counts: Option<CountLayer>) -> Result<Client, kube::Error> {
    let builder = ClientBuilder::try_from(patient(config))?.with_layer(&option_layer(counts));
    Ok(builder.with_layer(&TimeoutLayer::new(ANSWER_TIMEOUT)).with_layer(&SteadyLayer).build())
}

fn patient(mut config: Config) -> Config {
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(SILENCE_TIMEOUT);
    config.reset_reader_on_write = true;
    config.default_retry = false;
    config
}

/// A client of the cluster that a kubeconfig names; without one, as [`ambient`]. What it asks is counted.
pub async fn management(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    metrics: &Arc<Metrics>,
) -> Result<Client, Error> {
    let config = if kubeconfig.is_none() && context.is_none() {
        Config::infer().await.map_err(|source| Error::Infer(Box::new(source)))?
    } else {
        let read = match kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(read.map_err(Error::Kubeconfig)?, &options).await;
        config.map_err(Error::Kubeconfig)?
    };
    let counts = CountLayer::new(Arc::clone(metrics), Asked::Management);
    client(config, Some(counts)).map_err(|source| Error::Client(Box::new(source)))
}

/// A client of a workload cluster, with the content of its kubeconfig Secret.
pub async fn from_kubeconfig(kubeconfig: &[u8]) -> Result<Client, String> {
    from_untrusted(kubeconfig, Loopback::here(), None).await
}

/// The same. Others wrote the kubeconfig, and others answer.
async fn from_untrusted(kubeconfig: &[u8], loopback: Loopback, counts: Option<CountLayer>) -> Result<Client, String> {
    let kubeconfig = trusted::read(kubeconfig, loopback)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = patient(config.map_err(|error| error.to_string())?);
    let builder = ClientBuilder::try_from(config).map_err(|error| error.to_string())?;
    let builder = builder.with_layer(&option_layer(counts)).with_layer(&CapLayer);
    Ok(builder.with_layer(&TimeoutLayer::new(ANSWER_TIMEOUT)).with_layer(&SteadyLayer).build())
}

/// Connects to workload clusters as anybody with their kubeconfig can.
pub struct OverKubeconfig {
    /// Whether one may be on this machine.
    loopback: Loopback,
    /// Where the authorities of their etcds are.
    management: Client,
    clock: Clock,
    /// Where it is counted what they are asked.
    counts: Option<CountLayer>,
}

impl OverKubeconfig {
    /// The clusters that this management cluster has.
    pub fn of(management: Client, clock: Clock) -> Self {
        Self { loopback: Loopback::here(), management, clock, counts: None }
    }

    /// The same, and what they are asked is counted.
    #[must_use]
    pub fn counted_by(self, metrics: &Arc<Metrics>) -> Self {
        Self { counts: Some(CountLayer::new(Arc::clone(metrics), Asked::Workload)), ..self }
    }
}

impl Loopback {
    /// In a pod nothing but ourselves is on this machine; elsewhere `windlass up` may be.
    fn here() -> Self {
        let in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        if in_pod { Self::Refused } else { Self::Allowed }
    }
}

impl Workloads for OverKubeconfig {
    fn connect<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        kubeconfig: &'a [u8],
    ) -> BoxFuture<'a, Result<WorkloadCluster, ConnectError>> {
        Box::pin(async move {
            let refused = |why| ConnectError { cluster: cluster.clone(), why };
            let client = from_untrusted(kubeconfig, self.loopback, self.counts.clone()).await.map_err(refused)?;
            let identity = Identity::new(self.management.clone(), cluster.clone(), self.clock.clone());
            let etcd = Arc::new(OverPods::new(Forwarded::new(client.clone(), identity)));
            Ok(WorkloadCluster { client, etcd })
        })
    }
}

/// There is no management cluster to talk to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is neither a kubeconfig that can be used nor a cluster that this program runs in")]
    Infer(#[source] Box<kube::config::InferConfigError>),
    #[error("cannot use the kubeconfig")]
    Kubeconfig(#[source] KubeconfigError),
    #[error("cannot make a client")]
    Client(#[source] Box<kube::Error>),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        Kind::Environment
    }

    fn hint(&self) -> Option<String> {
        Some("KUBECONFIG=PATH, of a management cluster that kubectl can use".to_owned())
    }
}
