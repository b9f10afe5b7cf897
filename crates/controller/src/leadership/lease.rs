//! The Lease that replicas agree by. Each write says which state of it was seen, so that of two only one succeeds.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::Instant;
use windlass_runtime::clock::Clock;

use super::Candidacy;
use crate::said::{is_already_exists, is_conflict, said};

/// The lease as it was when it was last written by its holder.
#[derive(Debug, Clone)]
pub(super) struct Held {
    lease: Lease,
    /// When that was asked for: it was not written before.
    pub asked: Instant,
}

/// What a candidate has seen of the lease of another, and since when.
#[derive(Debug, Default)]
pub(super) struct Seen(Option<(String, Instant)>);

impl Seen {
    /// For how long the lease has been in this state, as far as this candidate knows.
    fn unchanged_for(&mut self, lease: &Lease) -> Duration {
        let state = lease.metadata.resource_version.clone().unwrap_or_default();
        match &self.0 {
            Some((known, since)) if *known == state => since.elapsed(),
            _ => {
                self.0 = Some((state, Instant::now()));
                Duration::ZERO
            }
        }
    }
}

/// Something about the lease was not answered as it should be.
#[derive(Debug, thiserror::Error)]
#[error("{attempt} the Lease: {}", said(source))]
pub(super) struct LeaseError {
    attempt: &'static str,
    #[source]
    source: Box<kube::Error>,
}

impl LeaseError {
    fn while_trying(attempt: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self { attempt, source: Box::new(source) }
    }
}

pub(super) struct Leases {
    api: Api<Lease>,
    candidacy: Candidacy,
    clock: Clock,
}

impl Leases {
    pub(super) fn new(client: Client, candidacy: Candidacy, clock: Clock) -> Self {
        Self { api: Api::namespaced(client, &candidacy.namespace), candidacy, clock }
    }

    /// Takes the lease if nobody has it, or nobody has renewed it for as long as it is valid.
    pub(super) async fn try_take(&self, seen: &mut Seen) -> Result<Option<Held>, LeaseError> {
        let asked = Instant::now();
        let Some(found) = self.read().await? else {
            let metadata = ObjectMeta { name: Some(self.candidacy.name.clone()), ..ObjectMeta::default() };
            let lease = Lease { metadata, spec: Some(self.spec(0, self.now())) };
            return match self.api.create(&PostParams::default(), &lease).await {
                Ok(lease) => Ok(Some(Held { lease, asked })),
                Err(error) if is_already_exists(&error) => Ok(None),
                Err(error) => Err(LeaseError::while_trying("create")(error)),
            };
        };
        let spec = found.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        // It is ours where the answer to our own write was lost.
        if !holder.is_empty() && holder != self.candidacy.identity {
            let promised = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0);
            let valid_for = self.candidacy.valid_for.max(Duration::from_secs(promised));
            if seen.unchanged_for(&found) < valid_for {
                return Ok(None);
            }
            tracing::info!(holder, "the holder of the lease has not renewed it");
        }
        let taken = self.spec(spec.lease_transitions.unwrap_or(0).saturating_add(1), self.now());
        self.write(Lease { spec: Some(taken), ..found }, "take").await
    }

    /// Renews the lease, or says who has it.
    pub(super) async fn renew(&self, held: &Held) -> Result<Result<Held, String>, LeaseError> {
        let mut lease = held.lease.clone();
        loop {
            let spec = lease.spec.get_or_insert_default();
            spec.renew_time = Some(MicroTime(self.now()));
            if let Some(held) = self.write(lease, "renew").await? {
                return Ok(Ok(held));
            }
            // Somebody wrote to it: the one before, whose answer was lost; a person; or who leads now.
            let found = self.read().await?;
            let holder = found.as_ref().and_then(|lease| lease.spec.as_ref()?.holder_identity.clone());
            match (found, holder) {
                (Some(found), Some(holder)) if holder == self.candidacy.identity => lease = found,
                (_, holder) => {
                    return Ok(Err(holder.filter(|holder| !holder.is_empty()).unwrap_or_else(|| "nobody".into())));
                }
            }
        }
    }

    /// Lets the next one take it at once, if it is ours.
    pub(super) async fn release(&self) -> Result<(), LeaseError> {
        let Some(mut lease) = self.read().await? else { return Ok(()) };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(self.candidacy.identity.as_str()) {
            return Ok(());
        }
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        self.write(lease, "release").await.map(drop)
    }

    async fn read(&self) -> Result<Option<Lease>, LeaseError> {
        self.api.get_opt(&self.candidacy.name).await.map_err(LeaseError::while_trying("read"))
    }

    /// Writes it, unless it is in another state than the one that was read, or gone.
    async fn write(&self, lease: Lease, attempt: &'static str) -> Result<Option<Held>, LeaseError> {
        let asked = Instant::now();
        match self.api.replace(&self.candidacy.name, &PostParams::default(), &lease).await {
            Ok(lease) => Ok(Some(Held { lease, asked })),
            Err(error) if is_conflict(&error) || crate::said::is_not_found(&error) => Ok(None),
            Err(error) => Err(LeaseError::while_trying(attempt)(error)),
        }
    }

    fn spec(&self, transitions: i32, now: Timestamp) -> LeaseSpec {
        LeaseSpec {
            acquire_time: Some(MicroTime(now)),
            holder_identity: Some(self.candidacy.identity.clone()),
            lease_duration_seconds: Some(i32::try_from(self.candidacy.valid_for.as_secs()).unwrap_or(i32::MAX)),
            lease_transitions: Some(transitions),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
