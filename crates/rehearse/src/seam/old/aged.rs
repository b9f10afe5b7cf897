//! A client as it would have been once: in front of everything else, faults included.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Request;
use http_body_util::Either;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use tower::Service;
use windlass_controller::access::{KeyMaker, Member};
use windlass_sim::actor::Caller;

use super::Old;
use super::answer::Answer;
use super::sent::Sent;
use crate::traffic::Place;

/// A client as it would have been once.
#[derive(Clone)]
pub(crate) struct Aged {
    inner: Client,
    old: Arc<[Old]>,
    pub(super) caller: Caller,
    place: Place,
    /// Makes keys, whether or not anybody needs one.
    pub(super) keys: Arc<dyn KeyMaker>,
    /// What all processes remember.
    pub(super) memory: Memory,
    /// What is still to be sent, and goes with the process.
    pub(super) held_back: Arc<Mutex<Option<Sent>>>,
}

/// What all processes of an assembly remember of what they have seen. A handle: clones are the same memory.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Remembered>>);

#[derive(Default)]
pub(super) struct Remembered {
    /// The Cluster, as it was seen first.
    pub(super) cluster: Option<Value>,
    /// Answers that count instead of later ones, by what was asked.
    pub(super) answers: BTreeMap<String, Value>,
    /// The members of etcd, as they were when somebody asked last.
    members: Option<Vec<Member>>,
    /// What was applied last, and how often it was applied again.
    pub(super) applied: Option<(Sent, u64)>,
    /// The id of the update whose machines are made.
    pub(super) update: Option<String>,
}

impl Memory {
    pub(super) fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was so when somebody asked last; at first, what is so.
    pub(super) fn one_behind(&self, members: Vec<Member>) -> Vec<Member> {
        self.lock().members.replace(members.clone()).unwrap_or(members)
    }
}

impl Aged {
    /// A client of a place in front of another one. Where no request would have been another it is that other one.
    pub(crate) fn client(
        inner: Client,
        old: &[Old],
        (caller, place): (Caller, Place),
        keys: &Arc<dyn KeyMaker>,
        memory: &Memory,
    ) -> Client {
        let old: Arc<[Old]> = old.iter().copied().filter(|old| old.is_of_requests()).collect();
        if old.is_empty() {
            return inner;
        }
        let namespace = inner.default_namespace().to_owned();
        let (keys, memory, held_back) = (Arc::clone(keys), memory.clone(), Arc::default());
        Client::new(Self { inner, old, caller, place, keys, memory, held_back }, namespace)
    }

    /// The management API is asked by this process.
    pub(super) fn manages(&self, caller: Caller) -> bool {
        (self.caller, self.place) == (caller, Place::Management)
    }

    /// The workload cluster is asked by this process.
    pub(super) fn works(&self, caller: Caller) -> bool {
        (self.caller, self.place) == (caller, Place::Workload)
    }

    /// Sends a request on, past what else is old from a number on.
    pub(super) fn ask(&self, from: usize, sent: Sent) -> BoxFuture<'_, Result<Answer, kube::Error>> {
        async move {
            match self.old.get(from) {
                None => self.inner.send(sent.request()).await.map(|answer| answer.map(Either::Left)),
                Some(old) => old.send(self, from + 1, sent).await,
            }
        }
        .boxed()
    }
}

impl Service<Request<Body>> for Aged {
    type Response = Answer;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Answer, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let aged = self.clone();
        Box::pin(async move { aged.ask(0, Sent::of(aged.place, request).await?).await })
    }
}

impl Old {
    /// Sends a request on as it would have been, or instead of it whatever would have been sent.
    async fn send(self, aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
        match self {
            Self::DrawnNames => super::twice::drawn_names(aged, next, sent).await,
            Self::BlindRetries => super::twice::blind_retries(aged, next, sent).await,
            Self::ConfigurationLast => super::twice::configuration_last(aged, next, sent).await,
            Self::AppliesAgain => super::twice::applies_again(aged, next, sent).await,
            Self::CutNames => super::twice::cut_names(aged, next, sent).await,
            Self::OwnedByConfigurations => super::certificates::owned_by_configurations(aged, next, sent).await,
            Self::OwnersTakenForGranted => super::certificates::owners_taken_for_granted(aged, next, sent).await,
            Self::HalfSecrets => super::certificates::half_secrets(aged, next, sent).await,
            Self::KeysAtEveryLook => super::certificates::keys_at_every_look(aged, next, sent).await,
            Self::PauseElsewhere => super::reads::pause_elsewhere(aged, next, sent).await,
            Self::PauseUnheard => super::reads::pause_unheard(aged, next, sent).await,
            Self::PausedForEver => super::reads::paused_for_ever(aged, next, sent).await,
            Self::WritesForgotten => super::reads::writes_forgotten(aged, next, sent).await,
            Self::ListsOneBehind => super::reads::lists_one_behind(aged, next, sent).await,
            Self::RecordReadOnce => super::reads::record_read_once(aged, next, sent).await,
            Self::NoPatience => super::reads::no_patience(aged, next, sent).await,
            Self::NoPreconditions | Self::OwnersByName | Self::UnboundProxy => aged.ask(next, self.changed(sent)).await,
            // Not at this seam.
            Self::Without(_) | Self::MembersOneBehind | Self::NodelessMembersStay | Self::GhostsUnseen => {
                aged.ask(next, sent).await
            }
        }
    }
}
