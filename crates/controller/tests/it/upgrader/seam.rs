//! The program as a process whose requests can be seen.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use tower::{BoxError, Service};
use windlass_controller::access::{Etcd, EtcdError, Member};
use windlass_sim::workload::Workload;

/// One run of the program.
#[derive(Clone)]
pub struct Process(Arc<Inner>);

struct Inner {
    seen: Mutex<Seen>,
    witness: Box<dyn Fn(&Process) + Send + Sync>,
}

#[derive(Default)]
struct Seen {
    requests: usize,
    writes: Vec<String>,
}

impl Process {
    pub fn new() -> Self {
        Self::watched_by(|_| ())
    }

    /// One of which somebody is told after each write, before it hears itself that the write was done.
    pub fn watched_by(witness: impl Fn(&Self) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { seen: Mutex::default(), witness: Box::new(witness) }))
    }

    /// What was written, in order.
    pub fn writes(&self) -> Vec<String> {
        self.0.seen.lock().unwrap().writes.clone()
    }

    pub fn requests(&self) -> usize {
        self.0.seen.lock().unwrap().requests
    }

    /// How many objects of a kind were created.
    pub fn created(&self, plural: &str) -> usize {
        self.writes()
            .iter()
            .filter(|write| write.starts_with("POST ") && write.ends_with(&format!("/{plural}")))
            .count()
    }

    fn wrote(&self, write: &str) {
        self.0.seen.lock().unwrap().writes.push(write.to_owned());
        (self.0.witness)(self);
    }
}

/// A service, as a process uses it.
#[derive(Clone)]
pub struct Seam<S> {
    pub inner: S,
    pub process: Process,
}

impl<S, B> Service<Request<kube::client::Body>> for Seam<S>
where
    S: Service<Request<kube::client::Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send + 'static>,
    B: Send,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let process = self.process.clone();
        process.0.seen.lock().unwrap().requests += 1;
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into)?;
            if method != Method::GET && answer.status().is_success() {
                process.wrote(&format!("{method} {path}"));
            }
            Ok(answer)
        })
    }
}

/// The etcd of a workload cluster, as a process uses it.
pub struct SeamEtcd {
    pub workload: Workload,
    pub process: Process,
}

impl Etcd for SeamEtcd {
    fn members(&self) -> BoxFuture<'_, Result<Vec<Member>, EtcdError>> {
        Box::pin(async move {
            let members = self.workload.members().map_err(|error| EtcdError(error.0))?;
            let member = |member: windlass_sim::workload::Member| Member {
                id: member.id,
                name: member.name,
                learner: member.learner,
                healthy: member.healthy,
                leader: member.leader,
                version: member.version,
                alarms: [].into(),
            };
            Ok(members.into_iter().map(member).collect())
        })
    }

    fn remove(&self, id: u64) -> BoxFuture<'_, Result<(), EtcdError>> {
        Box::pin(async move {
            self.workload.remove_member(id).map_err(|error| EtcdError(error.0))?;
            self.process.wrote("remove an etcd member");
            Ok(())
        })
    }

    fn move_leader(&self, to: u64) -> BoxFuture<'_, Result<(), EtcdError>> {
        Box::pin(async move {
            self.workload.move_leader(to).map_err(|error| EtcdError(error.0))?;
            self.process.wrote("move the etcd leader");
            Ok(())
        })
    }
}
