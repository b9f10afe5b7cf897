//! The server: a tower service without a socket. Everything it knows hangs here.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use jiff::Timestamp;

use crate::admission::Admission;
use crate::body::Body;
use crate::carrier::Carrier;
use crate::identity::Identities;
use crate::kind::{Kind, Registry};
use crate::lifecycle;
use crate::load::{Limits, Load};
use crate::metrics::Metrics;
use crate::reviews::Rights;
use crate::store::{Backend, Entry, Key, Observer, Recovered, Retention, Store};
use crate::subresource::Subresource;

/// Where "now" comes from.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What a server is made with.
#[derive(Clone)]
pub struct Options {
    /// The clock. Tests and rehearsals give a virtual one.
    pub now: Now,
    /// What uids and generated names are made from: the same seed and the same requests give the same answers.
    pub seed: u64,
    /// How much history is kept for watches and paged lists.
    pub retention: Retention,
    /// Whether the server does what controllers do elsewhere: collect garbage, and empty namespaces that are to go. Without
    /// it the server is what a bare kube-apiserver is.
    pub controllers: bool,
    /// Where writes go to survive the process; `None` keeps them in memory only. A fork is always in memory.
    pub backend: Option<Arc<dyn Backend>>,
    /// Who sees every change as it is committed. Forks have the one that they are given.
    pub observer: Option<Arc<dyn Observer>>,
    /// Larger request bodies are refused. Kubernetes takes 3 MiB.
    pub body_bytes_max: usize,
    /// What clients may have in hand at once.
    pub limits: Limits,
}

impl Default for Options {
    /// The system's clock and a fixed seed.
    fn default() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place where a server that was given no clock takes the system's"
        )]
        let now = Arc::new(Timestamp::now);
        Self {
            now,
            seed: 0,
            retention: Retention::default(),
            controllers: true,
            backend: None,
            observer: None,
            body_bytes_max: 3 * 1024 * 1024,
            limits: Limits::default(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// An API server in this process. Cheap to clone: clones are the same server.
#[derive(Clone)]
pub struct ApiServer(Arc<Inner>);

struct Inner {
    options: Options,
    store: Store,
    registry: RwLock<Arc<Registry>>,
    subresources: RwLock<BTreeMap<(String, String), Arc<dyn Subresource>>>,
    admission: Admission,
    rights: RwLock<Option<Arc<dyn Rights>>>,
    identities: Identities,
    queue: lifecycle::Queue,
    requests: Load,
    metrics: Metrics,
}

impl ApiServer {
    /// A server with the built-in kinds and the namespaces that every cluster has.
    pub fn new(options: Options) -> Self {
        let store = Store::with_seams(options.retention, options.backend.clone(), options.observer.clone());
        let identities = Identities::new(options.seed);
        let queue = lifecycle::Queue::default();
        let server = Self::assemble(options, store, identities, crate::kind::builtins::registry(), queue);
        server.create_first_objects();
        // As on any server that has run for a while, history does not reach back to the beginning.
        server.store().compact(server.store().revision());
        server
    }

    /// A server that goes on where another one ended: with its objects and kinds, at its revision, with its history. What was
    /// left to do there is done before the first answer. Webhooks are for whoever makes it to add, and so is what was
    /// [served](Self::serve_kind) without a definition.
    pub fn recovered(options: Options, recovered: Recovered) -> Self {
        let identities = Identities::new(options.seed);
        identities.skip_to(recovered.draws);
        let (backend, observer) = (options.backend.clone(), options.observer.clone());
        let store = Store::recovered(options.retention, backend, observer, recovered);
        let queue = lifecycle::Queue::default();
        let server = Self::assemble(options, store, identities, crate::kind::builtins::registry(), queue);
        server.redefine();
        server.note_all();
        // What a crash left out of them.
        server.create_first_objects();
        server
    }

    fn assemble(
        options: Options,
        store: Store,
        identities: Identities,
        registry: Arc<Registry>,
        queue: lifecycle::Queue,
    ) -> Self {
        let admission = Admission::new(options.seed);
        if let Some(backend) = &options.backend {
            backend.counts(identities.draws());
        }
        let server = Self(Arc::new(Inner {
            options,
            store,
            registry: RwLock::new(registry),
            subresources: RwLock::default(),
            admission,
            rights: RwLock::default(),
            identities,
            queue,
            requests: Load::default(),
            metrics: Metrics::default(),
        }));
        crate::subresource::register(&server);
        server
    }

    /// A server of its own with the same objects and kinds, at the same revision. Webhooks and watches stay behind: the fork
    /// asks nobody whom its objects name, unless it is told how to [reach](Self::reach) them itself.
    #[must_use]
    pub fn fork(&self, options: Options) -> Self {
        let options = Options { backend: None, ..options };
        let identities = self.0.identities.fork(options.seed);
        let store = self.0.store.fork(options.observer.clone());
        let fork = Self::assemble(options, store, identities, self.registry(), self.0.queue.fork());
        fork.0.subresources.write().unwrap_or_else(PoisonError::into_inner).clone_from(&self.subresources());
        fork
    }

    /// The objects, for simulators and invariants that read them directly.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The kinds that are served right now.
    pub fn registry(&self) -> Arc<Registry> {
        self.0.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on asks the webhooks that objects of its store name: this is who takes the questions there. Without it nobody is
    /// asked, which is how a rehearsal is.
    pub fn reach(&self, carrier: Arc<dyn Carrier>) {
        self.admission().reach(carrier, self.store());
    }

    /// From now on questions about rights are answered by this. Without it, as in a fork, everybody may do everything.
    pub fn answer_about_rights(&self, rights: Arc<dyn Rights>) {
        *self.0.rights.write().unwrap_or_else(PoisonError::into_inner) = Some(rights);
    }

    pub(crate) fn rights(&self) -> Option<Arc<dyn Rights>> {
        self.0.rights.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The webhooks, to add to.
    pub fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// Adds something that can be done with objects of a resource, such as `log` of `pods`. It replaces one of that name.
    pub fn add_subresource(&self, resource: &str, name: &str, subresource: Arc<dyn Subresource>) {
        let mut all = self.0.subresources.write().unwrap_or_else(PoisonError::into_inner);
        all.insert((resource.to_owned(), name.to_owned()), subresource);
    }

    /// All subresources that were added, by resource and name.
    pub fn subresources(&self) -> BTreeMap<(String, String), Arc<dyn Subresource>> {
        self.0.subresources.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn subresource(&self, resource: &str, name: &str) -> Option<Arc<dyn Subresource>> {
        let all = self.0.subresources.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&(resource.to_owned(), name.to_owned())).cloned()
    }

    /// The clock's time.
    pub fn now(&self) -> Timestamp {
        (self.0.options.now)()
    }

    pub(crate) fn requests(&self) -> &Load {
        &self.0.requests
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    /// Where uids and generated names come from: whoever puts objects of another server into the store skips what that one
    /// may have given.
    pub fn identities(&self) -> &Identities {
        &self.0.identities
    }

    pub(crate) fn queue(&self) -> &lifecycle::Queue {
        &self.0.queue
    }

    /// Replaces the kinds by a changed copy.
    pub(crate) fn change_registry(&self, change: impl FnOnce(&mut Registry)) {
        let mut current = self.0.registry.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut current));
    }

    /// An object and its kind in the version that it is stored in.
    pub(crate) fn stored(&self, resource: &str, key: &Key) -> Option<(Arc<Kind>, Arc<Entry>)> {
        let entry = self.store().get(resource, key)?;
        let kind = self.registry().stored(resource)?.clone();
        Some((kind, entry))
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer").field("revision", &self.store().revision()).finish_non_exhaustive()
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.respond(request).await) })
    }
}
