//! Which of several replicas runs the controllers: the one that holds a Lease.
//!
//! A Lease does not promise that only one acts: a process that stood still may go on with what it was at, while another has taken
//! over. So nothing that is decided depends on it. It keeps replicas from doing everything twice; what makes an old leader
//! harmless are names that follow from the update, expectations in writes, and preconditions of deletions. Two things make such a
//! time short besides: a leader whose lease was not renewed in time drops all that it was at, before another may take over; and
//! after that moment its client sends no write ([`Term::fence`]), so that what wakes up late has nothing to say.
//!
//! Nobody's clock is compared with another's: a candidate waits for as long as a lease is valid, by its own clock, since it has
//! last seen the lease change.

mod fence;
mod lease;

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use windlass_runtime::chance::{Chance, Seed};
use windlass_runtime::clock::Clock;

use lease::{Held, Leases, Seen};

/// How long a request about the lease may take. Several fit into the time in which it has to be renewed.
const REQUEST: Duration = Duration::from_secs(3);
/// How long a leader may take to say that it leads no more. It has nothing else to do by then.
const RELEASE: Duration = Duration::from_secs(3);

/// Which lease, for whom, and how long it is valid.
#[derive(Debug, Clone)]
pub struct Candidacy {
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub name: String,
    /// Who this is. No two processes may have the same, also not one after the other.
    pub identity: String,
    /// How long others wait since they have seen the lease change.
    pub valid_for: Duration,
    /// How long the holder goes on without having renewed it: less than that, so that it has stopped when others begin.
    pub renewed_within: Duration,
    /// How often it is renewed, and looked at by those who wait.
    pub every: Duration,
}

impl Candidacy {
    /// With the times that most controllers have: 15, 10 and 2 seconds.
    pub fn usual(namespace: &str, name: &str, identity: String) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity,
            valid_for: Duration::from_secs(15),
            renewed_within: Duration::from_secs(10),
            every: Duration::from_secs(2),
        }
    }
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It was told to stop. If it led, the lease is free for the next.
    Stopped,
    /// It leads no more, or cannot know that it does. Whatever it was at was dropped.
    Lapsed {
        /// Why.
        why: String,
    },
}

/// The time for which a replica leads. A handle: clones are the same.
#[derive(Debug, Clone)]
pub struct Term {
    lease: Arc<str>,
    until: Arc<Mutex<Instant>>,
}

impl Term {
    /// Whether it may be over: the lease was not renewed in time.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until()
    }

    /// The same client, which sends no write when the term is over.
    pub fn fence(&self, client: Client) -> Client {
        fence::fence(client, self.clone())
    }

    fn until(&self) -> Instant {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn extend(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

/// Waits until this replica holds the lease, does `work` for as long as it does, and lets go of it when `stop` has come and the
/// work has ended. The work is told to stop by whoever made it; it is dropped when the lease lapses.
pub async fn lead<W: Future<Output = ()>>(
    client: &Client,
    candidacy: Candidacy,
    (clock, seed): (&Clock, Seed),
    work: impl FnOnce(Term) -> W,
    stop: impl Future<Output = ()>,
) -> Ended {
    let mut replica = Replica {
        leases: Leases::new(client.clone(), candidacy.clone(), clock.clone()),
        jitter: seed.stream(&candidacy.identity),
        candidacy,
    };
    let held = tokio::select! {
        biased;
        () = stop => return Ended::Stopped,
        held = replica.acquire() => held,
    };
    let Candidacy { namespace, name, identity, renewed_within, .. } = replica.candidacy.clone();
    let lease = format!("{namespace}/{name}");
    let until = Arc::new(Mutex::new(held.asked + renewed_within));
    let term = Term { lease: lease.as_str().into(), until };
    tracing::info!(lease, identity, "this replica leads");
    let mut work = pin!(work(term.clone()));
    let why = {
        let mut keep = pin!(replica.keep(held, &term));
        tokio::select! {
            biased;
            why = &mut keep => Some(why),
            () = &mut work => None,
        }
    };
    if let Some(why) = why {
        tracing::error!(lease, identity, why, "this replica leads no more");
        return Ended::Lapsed { why };
    }
    // Whoever cannot say so lets the others wait for as long as the lease is valid.
    match timeout(RELEASE, replica.leases.release()).await {
        Ok(Ok(())) => tracing::info!(lease, identity, "the lease is free for the next replica"),
        Ok(Err(error)) => tracing::warn!(lease, %error, "the lease could not be given back"),
        Err(_) => tracing::warn!(lease, "the lease could not be given back in time"),
    }
    Ended::Stopped
}

struct Replica {
    leases: Leases,
    candidacy: Candidacy,
    jitter: Chance,
}

impl Replica {
    /// Waits until this replica holds the lease.
    async fn acquire(&mut self) -> Held {
        let mut seen = Seen::default();
        loop {
            match timeout(REQUEST, self.leases.try_take(&mut seen)).await {
                Ok(Ok(Some(held))) => return held,
                Ok(Ok(None)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the lease cannot be had"),
                Err(_) => tracing::warn!("no answer about the lease"),
            }
            // Those who wait do not all ask in the same moment.
            sleep(self.candidacy.every.mul_f64(1.0 + 0.2 * self.jitter.f64())).await;
        }
    }

    /// Renews the lease for as long as that succeeds; why it does no more.
    async fn keep(&self, mut held: Held, term: &Term) -> String {
        let mut trouble = String::new();
        loop {
            let until = term.until();
            sleep_until((Instant::now() + self.candidacy.every).min(until)).await;
            // Also where this process stood still for longer than the lease is valid.
            if Instant::now() >= until {
                let within = self.candidacy.renewed_within.as_secs_f64();
                return format!("the lease was not renewed within {within} s{trouble}");
            }
            let asked = (Instant::now() + REQUEST).min(until);
            match timeout_at(asked, self.leases.renew(&held)).await {
                Ok(Ok(Ok(renewed))) => {
                    term.extend(renewed.asked + self.candidacy.renewed_within);
                    held = renewed;
                    trouble.clear();
                }
                Ok(Ok(Err(other))) => return format!("the lease is held by {other}"),
                Ok(Err(error)) => trouble = format!(": {error}"),
                Err(_) => ": no answer".clone_into(&mut trouble),
            }
        }
    }
}
