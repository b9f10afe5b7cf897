//! The etcd of a workload cluster. It listens on the machines of the control plane only, so that it is reached through the API
//! server: a port is forwarded to each of its pods, and on that there is TLS with the cluster's own authority, and gRPC.
//!
//! Nothing is kept between two questions but the certificate that we show: connections end when what they were made for is
//! answered.

mod call;
mod forward;
mod identity;
mod message;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::ClientConfig;
use windlass_controller::access::{Etcd, EtcdError, Member};
use windlass_plan::inventory::Alarm;

use call::{CallError, Connection};
use message::{Listed, Status};

pub use forward::Forwarded;
pub use identity::Identity;

/// How long one member may take for all that it is asked at once. A look waits for ten seconds, and asks the members at the same
/// time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes to and from a member.
pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// The way to the members of one cluster.
pub trait Route: Send + Sync {
    /// Those that could be asked: the pods that run.
    fn pods(&self) -> BoxFuture<'_, Result<Vec<String>, String>>;
    /// A connection to one of them.
    fn open<'a>(&'a self, pod: &'a str) -> BoxFuture<'a, Result<Box<dyn Wire>, String>>;
    /// Who we are, and whom we believe.
    fn tls(&self) -> BoxFuture<'_, Result<Arc<ClientConfig>, String>>;
}

/// An etcd whose members are reached by a route.
pub struct OverPods<R> {
    route: R,
}

/// A member that has answered.
struct Answering {
    pod: String,
    status: Status,
    connection: Connection,
}

/// Who was asked, and why some did not answer.
struct Asked {
    /// The leader comes first, learners last: these answer for themselves and for nobody else.
    answering: Vec<Answering>,
    silent: Vec<String>,
}

impl<R: Route> OverPods<R> {
    /// The etcd at the end of this route.
    pub fn new(route: R) -> Self {
        Self { route }
    }

    /// Asks every member how it is.
    async fn ask(&self) -> Result<Asked, EtcdError> {
        let pods = self.route.pods().await.map_err(EtcdError)?;
        if pods.is_empty() {
            return Err(EtcdError("no pod of etcd runs in the namespace kube-system of the cluster".to_owned()));
        }
        let tls = self.route.tls().await.map_err(EtcdError)?;
        let all = join_all(pods.into_iter().map(|pod| {
            let tls = Arc::clone(&tls);
            async move {
                let answered = tokio::time::timeout(PATIENCE, self.status(&pod, tls)).await;
                let answered = answered.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())));
                answered.map_err(|why| format!("{pod}: {why}"))
            }
        }))
        .await;
        let mut asked = Asked { answering: Vec::new(), silent: Vec::new() };
        for answer in all {
            match answer {
                Ok(answering) => asked.answering.push(answering),
                Err(why) => asked.silent.push(why),
            }
        }
        asked.answering.sort_by_key(|it| (it.status.learner, !it.status.leads(), it.pod.clone()));
        Ok(asked)
    }

    async fn status(&self, pod: &str, tls: Arc<ClientConfig>) -> Result<Answering, String> {
        let wire = self.route.open(pod).await?;
        let mut connection = Connection::over(wire, tls).await.map_err(|error| said(&error))?;
        let status = connection.status().await.map_err(|error| said(&error))?;
        Ok(Answering { pod: pod.to_owned(), status, connection })
    }

    /// Has the members that may speak for all do something, one after the other until one has done it.
    async fn by_one<T>(
        asked: &mut Asked,
        what: &str,
        does: impl for<'c> Fn(&'c mut Connection) -> BoxFuture<'c, Result<T, CallError>> + Send + Sync,
    ) -> Result<T, EtcdError> {
        let mut whys = std::mem::take(&mut asked.silent);
        for answering in &mut asked.answering {
            if answering.status.learner {
                continue;
            }
            let done = tokio::time::timeout(PATIENCE, does(&mut answering.connection)).await;
            match done {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => whys.push(format!("{}: {}", answering.pod, said(&error))),
                Err(_) => whys.push(format!("{}: no answer within {} s", answering.pod, PATIENCE.as_secs())),
            }
        }
        Err(EtcdError(format!("cannot {what}: {}", whys.join("; "))))
    }

    async fn seen(&self) -> Result<Vec<Member>, EtcdError> {
        let mut asked = self.ask().await?;
        let by_id: BTreeMap<u64, Status> = asked.answering.iter().map(|it| (it.status.id, it.status.clone())).collect();
        // What is asked of the leader first is true for all of them; without a quorum nobody answers it.
        let listed = Self::by_one(&mut asked, "list the members", |connection| {
            Box::pin(async { Ok((connection.members().await?, connection.alarms().await?)) })
        });
        let (listed, alarms) = listed.await?;
        Ok(listed.into_iter().map(|member| joined(member, &by_id, &alarms)).collect())
    }
}

/// What the cluster says of a member, and what it says itself.
fn joined(listed: Listed, said: &BTreeMap<u64, Status>, alarms: &[(u64, Alarm)]) -> Member {
    let own = said.get(&listed.id);
    let alarms: BTreeSet<Alarm> = alarms.iter().filter(|(id, _)| *id == listed.id).map(|(_, alarm)| *alarm).collect();
    Member {
        id: listed.id,
        name: listed.name,
        learner: listed.learner,
        // Who knows no leader takes part in nothing.
        healthy: own.is_some_and(|own| own.leader != 0),
        leader: own.is_some_and(Status::leads),
        version: own.and_then(|own| format!("v{}", own.version).parse().ok()),
        alarms,
    }
}

impl<R: Route> Etcd for OverPods<R> {
    fn members(&self) -> BoxFuture<'_, Result<Vec<Member>, EtcdError>> {
        Box::pin(self.seen())
    }

    fn remove(&self, id: u64) -> BoxFuture<'_, Result<(), EtcdError>> {
        Box::pin(async move {
            let mut asked = self.ask().await?;
            // One that is to go would answer before it has heard that it is gone.
            asked.answering.sort_by_key(|it| it.status.id == id);
            let what = format!("remove the member {id:x}");
            Self::by_one(&mut asked, &what, move |connection| Box::pin(connection.remove(id))).await
        })
    }

    fn move_leader(&self, to: u64) -> BoxFuture<'_, Result<(), EtcdError>> {
        Box::pin(async move {
            let mut asked = self.ask().await?;
            // Only who leads can hand it over; whoever leads already need not.
            asked.answering.retain(|it| it.status.leads());
            if asked.answering.iter().any(|it| it.status.id == to) {
                return Ok(());
            }
            let what = format!("have the member {to:x} lead");
            Self::by_one(&mut asked, &what, move |connection| Box::pin(connection.move_leader(to))).await
        })
    }
}

/// An error with its causes.
fn said(error: &CallError) -> String {
    crate::error::with_causes(error)
}
