//! The program that replaces the machines of a control plane, one at a time. It runs in the pods of the Job `update-<id>`, and
//! as `windlass control-plane upgrade`; what it has begun it gives up in the pods of the Job `abort-<id>`, and as
//! `windlass control-plane abort`.
//!
//! ```text
//! observe   the machines and what keeps them, as much as the next decision needs      observe.rs
//! decide    windlass_plan::roll::next, or abort::next: one step, a wait, or why not    pure
//! execute   the step                                                                   execute.rs
//! wait      for an event, or for a while                                               wait.rs
//! ```
//!
//! **Invariant**: nothing is decided here, and nothing is remembered. Each run derives where it is from what it observes, under
//! names that follow from the id, so that a run that was killed after any write is carried on by the next one, and no machine
//! is made twice.

pub mod arguments;
mod attempt;
mod error;
mod execute;
mod health;
mod mark;
mod observe;
mod prepare;
mod replacement;
mod wait;
mod write;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::time::{Instant, sleep};
use windlass_api::version::KubernetesVersion;
use windlass_plan::gate::Gates;
use windlass_plan::roll::{self, Next, Observed, RollInput, RollStep, Wait, Waiting};
use windlass_runtime::clock::Clock;

use crate::access::Workloads;
pub use arguments::{Arguments, Command};
pub use error::Error;

use attempt::Attempt;
use execute::Outcome;
use observe::Sight;

/// How long the control plane may take to come to rest after a change to it, and etcd to be well.
const ETCD_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// How often a step is decided anew because the object had changed meanwhile. Statuses change a few times while a machine comes
/// up or goes; more than this is somebody who writes all the time.
const DECISIONS_MAX: usize = 8;

/// What the program is given.
#[derive(Clone)]
pub struct UpgraderAccess {
    /// The management cluster.
    pub client: Client,
    /// The way to the workload cluster.
    pub workloads: Arc<dyn Workloads>,
    /// The time.
    pub clock: Clock,
}

/// What a run has done. Its text is what the pod says last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// How many machines this run has replaced. Earlier runs of the same update may have replaced others.
    pub replaced: usize,
    /// The version that all machines of the control plane have now.
    pub version: KubernetesVersion,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replaced, version } = self;
        let plural = if *replaced == 1 { "" } else { "s" };
        write!(f, "the control plane is at {version}; this run replaced {replaced} machine{plural}")
    }
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Errand {
    Upgrade,
    Abort,
}

/// Does what a command says. Returns what the pod says last.
pub async fn obey(access: &UpgraderAccess, command: &Command) -> Result<String, Error> {
    match command {
        Command::Upgrade(arguments) => run(access, arguments).await.map(|done| done.to_string()),
        Command::Abort(arguments) => {
            abort(access, arguments).await?;
            Ok(format!("the update is given up; the control plane is at {}", arguments.kubernetes_version))
        }
    }
}

/// Replaces every machine of the control plane that this update has not replaced yet.
pub async fn run(access: &UpgraderAccess, arguments: &Arguments) -> Result<Done, Error> {
    let replaced = follow(access, arguments, Errand::Upgrade).await?;
    Ok(Done { replaced, version: arguments.kubernetes_version.clone() })
}

/// Gives an update up: the machine that has come goes, and the cluster is what it was. The version is the one that it had.
pub async fn abort(access: &UpgraderAccess, arguments: &Arguments) -> Result<(), Error> {
    follow(access, arguments, Errand::Abort).await.map(drop)
}

/// Decides and acts until there is nothing left to do. Returns how many machines there were to replace.
async fn follow(access: &UpgraderAccess, arguments: &Arguments, errand: Errand) -> Result<usize, Error> {
    let (attempt, hands_off) = Attempt::begin(access, arguments, errand).await?;
    let mut sight = Sight::new(&attempt, hands_off);
    let mut course = Course::begin(&attempt);
    let decide = match errand {
        Errand::Upgrade => roll::next,
        Errand::Abort => roll::abort::next,
    };
    loop {
        let input = course.input(sight.look().await?);
        match decide(&input) {
            Next::Do(step) => course.execute(&attempt, &mut sight, &step).await?,
            Next::Wait { wait, until } => {
                let patience = until.duration_since(input.now).unsigned_abs();
                match &wait {
                    Wait::Released { by } => tracing::info!("wait until {} is released: {by}", attempt.cluster),
                    other => tracing::debug!(missing = other.missing(), ?patience, "waiting"),
                }
                wait::for_change(&attempt, &sight, &wait, patience).await;
                course.waited_for(wait, input.now);
                sight.lapse();
            }
            Next::Blocked(blocked) => return Err(Error::blocked(&attempt.cluster, blocked)),
            Next::Failed(failure) => return Err(Error::given_up(&attempt.cluster, &input.attempt, failure)),
            Next::Done => return Ok(course.to_replace.unwrap_or_default()),
        }
    }
}

/// Where a run is in time. It is all that a run keeps, and what it decides does not depend on it, only how long it waits.
struct Course {
    attempt: roll::Attempt,
    began: Timestamp,
    /// The same moment, on a clock that nobody sets.
    origin: Instant,
    waiting: Option<Waiting>,
    /// When the cluster was found released after it had been held.
    released: Option<Timestamp>,
    /// Since when one step after another has been refused, by etcd or by an API.
    refused_since: Option<Instant>,
    /// How often in a row something had changed meanwhile.
    changed: usize,
    /// How many machines there were to replace at first.
    to_replace: Option<usize>,
}

impl Course {
    fn begin(attempt: &Attempt<'_>) -> Self {
        let arguments = attempt.arguments;
        let signed = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        Self {
            attempt: roll::Attempt {
                cluster: arguments.cluster_name.clone(),
                id: arguments.upgrade_id,
                version: arguments.kubernetes_version.clone(),
                machine_timeout: signed(arguments.machine_timeout),
                etcd_timeout: signed(ETCD_TIMEOUT),
            },
            began: attempt.access.clock.now(),
            origin: Instant::now(),
            waiting: None,
            released: None,
            refused_since: None,
            changed: 0,
            to_replace: None,
        }
    }

    fn input(&mut self, observed: Observed) -> RollInput {
        let id = self.attempt.id;
        self.to_replace
            .get_or_insert_with(|| observed.machines.iter().filter(|machine| !machine.is_made_by(id)).count());
        let now = self.began.checked_add(self.origin.elapsed()).unwrap_or(Timestamp::MAX);
        let was_held = self.waiting.as_ref().is_some_and(|waiting| matches!(waiting.wait, Wait::Released { .. }));
        if was_held && observed.hands_off.is_none() {
            tracing::info!("{} is released", self.attempt.cluster);
            self.released = Some(now);
            self.waiting = None;
        }
        RollInput {
            attempt: self.attempt.clone(),
            observed,
            began: self.began,
            released: self.released,
            waiting: self.waiting.clone(),
            now,
            gates: Gates::all(),
        }
    }

    fn waited_for(&mut self, wait: Wait, now: Timestamp) {
        let since = self.waiting.take().filter(|waiting| waiting.wait.is_same(&wait)).map(|waiting| waiting.since);
        self.waiting = Some(Waiting { wait, since: since.unwrap_or(now) });
    }

    /// Does one step. etcd may refuse for a while, and an API may not answer: then it is decided anew what to do until they do
    /// not. Every step can be done again; one whose answer was lost is seen to be done.
    async fn execute(&mut self, attempt: &Attempt<'_>, sight: &mut Sight<'_>, step: &RollStep) -> Result<(), Error> {
        self.waiting = None;
        let began = Instant::now();
        match execute::step(attempt, sight, step).await {
            Ok(Outcome::Done) => {
                tracing::info!("{step}");
                self.changed = 0;
                self.refused_since = None;
                Ok(())
            }
            Ok(Outcome::Changed) if self.changed < DECISIONS_MAX => {
                self.changed += 1;
                Ok(())
            }
            Ok(Outcome::Changed) => Err(Error::Restless { step: step.to_string() }),
            Err(error) => {
                let (patience, pause) = match &error {
                    Error::Etcd { .. } => (ETCD_TIMEOUT, wait::ETCD_INTERVAL),
                    silent if silent.is_transient() => (attempt.arguments.machine_timeout, wait::PAUSE_AFTER_FAILURE),
                    _ => return Err(error),
                };
                let since = *self.refused_since.get_or_insert(began);
                if since.elapsed() + pause > patience {
                    return Err(error);
                }
                tracing::debug!(error = %error.report(), "asking again");
                sleep(pause).await;
                sight.lapse();
                Ok(())
            }
        }
    }
}
