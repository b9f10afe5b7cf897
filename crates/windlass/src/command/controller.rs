//! `windlass controller`: what `windlass up` runs inside of itself, for a real management cluster.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use windlass_api::name::Namespace;
use windlass_apiserver::listen::auth::Token;
use windlass_controller::access::Access;
use windlass_controller::certificates::ClusterKeys;
use windlass_controller::controllers::{self, Kinds};
use windlass_controller::hooks::Hooks;
use windlass_controller::leadership::{Candidacy, Ended, Term, lead};
use windlass_controller::metrics::Metrics;
use windlass_controller::webhooks::{NAMESPACE, Webhooks};
use windlass_plan::gate::Gates;
use windlass_plan::render::Defaults;
use windlass_plan::resolve::hold::HoldBy;
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;

use super::up::{Interruption, registration};
use crate::access::{self, OverKubeconfig};
use crate::client::wall_now;
use crate::error::{Exit, Explained, Failure, Kind};
use crate::log;
use crate::serving::https::Stop;
use crate::serving::probes::{self, Readiness};
use crate::serving::{Answers, Current, https, keep_certificates};

/// The lease that replicas agree by.
pub const LEASE: &str = "windlass-controllers";
/// How long looks that have begun may go on after SIGTERM.
const GRACE: Duration = Duration::from_secs(20);
/// How long it is answered after SIGTERM: until nobody is sent here any more.
const LEAVES: Duration = Duration::from_secs(5);

/// Run the controllers, the webhooks and the hooks on a management cluster
///
/// In a pod, for the cluster that it is in; elsewhere, for the one of a kubeconfig. All three run unless some of them are named.
/// Several replicas may run: all answer, and the one that holds the lease runs the controllers. What happens is said on standard
/// error, a JSON object on a line for each thing. SIGTERM ends it when what was begun is done, and hands the lease over.
#[derive(clap::Args)]
pub struct Controller {
    /// The kubeconfig [default: that of the surroundings, or the cluster that this pod is in]
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
    /// The context in it
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Run the controllers
    #[arg(long)]
    controllers: bool,
    /// Answer the reviews of admission
    #[arg(long)]
    webhooks: bool,
    /// Answer what Cluster API asks
    #[arg(long)]
    hooks: bool,
    /// How the machines of clusters of a class are kept back until the packages of a new release are in: pause, or hooks
    #[arg(long, value_name = "HOW", default_value = "pause")]
    hold: HoldBy,
    /// Where webhooks and hooks listen, by HTTPS
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:9443")]
    listen: SocketAddr,
    /// Where /healthz, /readyz and /metrics are, by HTTP
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:8080")]
    probes: SocketAddr,
    /// The namespace of the lease
    #[arg(long, value_name = "NAME", default_value = NAMESPACE)]
    lease_namespace: Namespace,
    /// What this replica is called in the lease [default: the name of its machine]
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// What is said: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: tracing::Level,
    /// Have nodes register with this: imagePullPolicy=Always. May be given several times
    #[arg(long, value_name = "FIELD=VALUE", value_parser = registration)]
    node_registration: Vec<(String, String)>,
}

/// What a part of this program is given.
struct Parts {
    client: Client,
    clock: Clock,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    stop: Stop,
}

impl Controller {
    /// Runs until SIGINT or SIGTERM, or until it may run no longer.
    pub fn run(self) -> Result<Exit, Failure> {
        log::to_standard_error(self.log_level);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Runtime)?;
        let ended = runtime.block_on(self.serve());
        // Whatever is left would act without being asked.
        runtime.shutdown_background();
        ended
    }

    async fn serve(self) -> Result<Exit, Failure> {
        let mut interruption = Interruption::listen()?;
        let metrics = Arc::default();
        let client = access::management(self.kubeconfig.as_deref(), self.context.as_deref(), &metrics).await?;
        let (sender, stopped) = watch::channel(false);
        let stop: Stop = async move {
            let mut stopped = stopped;
            // An error means that nobody can stop it any more: whoever could is gone.
            drop(stopped.wait_for(|stopped| *stopped).await);
        }
        .boxed()
        .shared();
        let parts = Parts { client, clock: Clock::wall(), metrics, readiness: Readiness::default(), stop };
        let probes = bind(self.probes).await?;
        tracing::info!(address = %address(&probes, self.probes), "probes and metrics");
        parts.readiness.set(probes::RUNNING, Ok(()));
        let answering =
            probes::serve(probes, parts.client.clone(), Arc::clone(&parts.metrics), parts.readiness.clone());
        let answering = tokio::spawn(answering);
        let ended = {
            let work = self.work(&parts);
            let mut work = std::pin::pin!(work);
            let ended = tokio::select! {
                biased;
                ended = &mut work => Some(ended),
                () = interruption.once() => None,
            };
            if let Some(ended) = ended {
                ended
            } else {
                tracing::info!("stopping: what was begun may end");
                parts.readiness.set(probes::RUNNING, Err("it stops"));
                sender.send_replace(true);
                tokio::select! {
                    biased;
                    ended = work => ended,
                    () = interruption.once() => Ok(()),
                    () = tokio::time::sleep(GRACE + LEAVES) => Ok(()),
                }
            }
        };
        answering.abort();
        ended.map(|()| Exit::Done)
    }

    /// Whatever was asked for, until it is stopped, or until one of it can go on no longer.
    async fn work(&self, parts: &Parts) -> Result<(), Failure> {
        let all = !(self.controllers || self.webhooks || self.hooks);
        let controllers = async { if all || self.controllers { self.controllers(parts).await } else { Ok(()) } };
        let (webhooks, hooks) = (all || self.webhooks, all || self.hooks);
        let answers = async { if webhooks || hooks { self.answers(parts, (webhooks, hooks)).await } else { Ok(()) } };
        // The first failure ends all of it: a replica without one of its parts would look well, and not be.
        futures::future::try_join(controllers, answers).await.map(|((), ())| ())
    }

    async fn controllers(&self, parts: &Parts) -> Result<(), Failure> {
        let random = Token::generate().map_err(Error::Random)?;
        let unique: String = random.secret().chars().take(12).collect();
        let name =
            self.identity.clone().or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_else(|| "windlass".into());
        let candidacy = Candidacy::usual(self.lease_namespace.as_str(), LEASE, format!("{name}_{unique}"));
        // It decides jitter only, which is to differ between replicas.
        let seed = Seed(u64::try_from(wall_now().as_nanosecond() & i128::from(u64::MAX)).unwrap_or_default());
        let seed = seed.child(&candidacy.identity);
        let (clock, stop) = (parts.clock.clone(), parts.stop.clone());
        let work = |term: Term| {
            let access = Access {
                client: term.fence(parts.client.clone()),
                workloads: Arc::new(OverKubeconfig::of(parts.client.clone(), clock.clone()).counted_by(&parts.metrics)),
                keys: Arc::new(ClusterKeys::new(clock.clone())),
                clock: clock.clone(),
                seed,
                gates: Gates::all(),
                defaults: Defaults { node_registration: self.node_registration.iter().cloned().collect() },
                trace: None,
                metrics: Some(Arc::clone(&parts.metrics)),
            };
            let running =
                Box::pin(controllers::run(access, Kinds { classes: Some(self.hold), labels: true }, stop.clone()));
            async move {
                let late = async {
                    stop.await;
                    tokio::time::sleep(GRACE).await;
                };
                tokio::select! {
                    biased;
                    () = running => {}
                    () = late => tracing::warn!("looks that did not end in time are dropped"),
                }
            }
        };
        match lead(&parts.client, candidacy, (&parts.clock, seed), work, parts.stop.clone()).await {
            Ended::Stopped => Ok(()),
            Ended::Lapsed { why } => Err(Error::Lapsed { why }.into()),
        }
    }

    async fn answers(&self, parts: &Parts, (webhooks, hooks): (bool, bool)) -> Result<(), Failure> {
        let listener = bind(self.listen).await?;
        tracing::info!(address = %address(&listener, self.listen), webhooks, hooks, "reviews and questions");
        let answers = Answers {
            webhooks: webhooks.then(|| Webhooks::new(parts.client.clone(), self.hold)),
            hooks: hooks.then(|| Hooks::new(parts.client.clone(), parts.clock.clone())),
        };
        let current = Current::default();
        let acceptor = TlsAcceptor::from(Arc::new(current.server_config().map_err(Error::Tls)?));
        parts.readiness.set(probes::CERTIFICATE, Err("there is none yet"));
        let kept =
            keep_certificates(parts.client.clone(), parts.clock.clone(), current.clone(), parts.readiness.clone());
        let stop = parts.stop.clone();
        let leaves: Stop = async move {
            stop.await;
            tokio::time::sleep(LEAVES).await;
        }
        .boxed()
        .shared();
        tokio::select! {
            biased;
            () = https::serve(listener, acceptor, answers, leaves) => {}
            () = kept => {}
        }
        Ok(())
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Bind { address, source })
}

/// Where it listens, with the port that was found.
fn address(listener: &TcpListener, asked: SocketAddr) -> SocketAddr {
    listener.local_addr().unwrap_or(asked)
}

/// It cannot run, or no longer.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error("cannot listen on {address}")]
    Bind { address: SocketAddr, source: io::Error },
    #[error("cannot set up TLS")]
    Tls(#[source] tokio_rustls::rustls::Error),
    #[error("cannot tell this replica from others")]
    Random(#[source] windlass_apiserver::listen::Error),
    #[error("another replica runs the controllers, or will: {why}")]
    Lapsed { why: String },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Bind { .. } => Kind::User,
            Self::Runtime(_) | Self::Random(_) | Self::Lapsed { .. } => Kind::Environment,
            Self::Tls(_) => Kind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Bind { .. } => Some("--listen ADDR and --probes ADDR, which nobody else uses".to_owned()),
            Self::Lapsed { .. } => Some("the same again: it waits for its turn".to_owned()),
            Self::Runtime(_) | Self::Random(_) | Self::Tls(_) => None,
        }
    }
}
