//! Writes what was planned, and makes no choices.
//!
//! A step that finds the world other than it was planned for is not an error: it means "observe and plan again". A step that
//! fails keeps those from being made that build on it, and no others: one add-on never stops another.
//!
//! Doing the same steps twice changes nothing, so a crash between any two of them is harmless.

mod kinds;
pub(crate) mod write;

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::Client;
use kube::api::DynamicObject;
use windlass_api::kind::cluster_update::StepOutcome;
use windlass_api::name::NamespacedName;
use windlass_plan::step::{Action, Place, Stage, Step};
use windlass_runtime::clock::Clock;

use crate::access::{KeyMaker, WorkloadCluster};
pub use kinds::Kinds;
pub use write::WriteError;
use write::Written;

/// The field manager of all that we apply.
pub const FIELD_MANAGER: &str = windlass_plan::render::FIELD_MANAGER;

/// What the copy of a release is to its cluster.
const RELEASE: &str = "release";

/// What steps are executed with.
pub struct Executor<'a> {
    /// The cluster that they are for.
    pub cluster: &'a NamespacedName,
    /// The management cluster.
    pub management: &'a Client,
    /// The workload cluster, where it can be talked to.
    pub workload: Option<&'a WorkloadCluster>,
    /// Makes certificates and keys.
    pub keys: &'a dyn KeyMaker,
    /// How kinds are called on the wire.
    pub kinds: &'a Kinds,
    /// The time, for the record.
    pub clock: &'a Clock,
    /// Is told what the management cluster answered to a write, so that caches can be waited for.
    pub wrote: &'a (dyn Fn(&DynamicObject) + Send + Sync),
}

/// What came of the steps.
#[derive(Debug, Default)]
pub struct Executed {
    /// How many of them were made, or found to be made already.
    pub made: usize,
    /// Those that failed.
    pub failures: Vec<StepFailure>,
    /// The world was not as planned for; it has to be observed again.
    pub outdated: bool,
    /// Each of them that was begun, in order.
    pub steps: Vec<ExecutedStep>,
}

/// A step that was begun, and what came of it.
#[derive(Debug, Clone)]
pub struct ExecutedStep {
    /// Its stage.
    pub stage: Stage,
    /// What the object is to the cluster.
    pub role: String,
    /// `create`, `apply` or `delete`.
    pub verb: &'static str,
    /// The object, as `Kind/name`.
    pub object: String,
    /// When it was begun.
    pub started: Timestamp,
    /// When it was over.
    pub finished: Timestamp,
    /// What came of it.
    pub outcome: StepOutcome,
    /// Why it failed.
    pub message: Option<String>,
}

/// A step that failed.
#[derive(Debug)]
pub struct StepFailure {
    /// Its stage.
    pub stage: Stage,
    /// What the object is to the cluster.
    pub role: String,
    /// Why.
    pub error: WriteError,
}

impl Executed {
    /// Why something of an add-on could not be written, or what all of them build on.
    pub fn failure_of_addon(&self, addon: &str) -> Option<&StepFailure> {
        let concerns = |of: Option<&str>| of.is_none_or(|of| of == addon);
        let of_packages = self.failures.iter().filter(|failure| failure.stage == Stage::Packages);
        of_packages.into_iter().find(|failure| concerns(addon_of(failure.stage, &failure.role)))
    }
}

impl Executor<'_> {
    /// Makes the steps, in order.
    pub async fn steps(&self, steps: &[Step]) -> Executed {
        let mut executed = Executed::default();
        let mut broken = BTreeSet::new();
        for step in steps {
            let chain = (step.stage, addon_of(step.stage, &step.role));
            // All add-ons build on what is of none of them: the record of what is applied.
            if broken.contains(&chain) || broken.contains(&(step.stage, None)) {
                continue;
            }
            let started = self.clock.now();
            let written = self.step(step).await;
            executed.steps.push(self.begun(step, started, &written));
            match written {
                Ok(Written::Made) => executed.made += 1,
                Ok(Written::Outdated) => {
                    executed.outdated = true;
                    broken.insert(chain);
                }
                Err(error) => {
                    executed.failures.push(StepFailure { stage: step.stage, role: step.role.clone(), error });
                    broken.insert(chain);
                    // Whatever the stage, it is made of the release.
                    if step.role == RELEASE {
                        break;
                    }
                }
            }
        }
        executed
    }

    /// What is to be known of a step that is over.
    fn begun(&self, step: &Step, started: Timestamp, written: &Result<Written, WriteError>) -> ExecutedStep {
        let (outcome, message) = match written {
            Ok(Written::Made) => (StepOutcome::Done, None),
            Ok(Written::Outdated) => (StepOutcome::Outdated, None),
            Err(error) => (StepOutcome::Failed, Some(error.to_string())),
        };
        ExecutedStep {
            stage: step.stage,
            role: step.role.clone(),
            verb: step.action.verb(),
            object: format!("{}/{}", step.action.kind(), step.action.name()),
            started,
            finished: self.clock.now(),
            outcome,
            message,
        }
    }

    async fn step(&self, step: &Step) -> Result<Written, WriteError> {
        let client = match step.place {
            Place::Management => self.management,
            Place::Workload => &self.workload.ok_or(WriteError::NoWorkload)?.client,
        };
        tracing::info!(verb = step.action.verb(), kind = step.action.kind(), name = step.action.name(), why = step.why);
        let api = |api_version, kind, namespace| self.kinds.api(client, step.place, api_version, kind, namespace);
        match &step.action {
            Action::Create { object } => {
                let object = write::parse(object)?;
                let api = api(&api_version(&object), &kind(&object), object.metadata.namespace.as_deref()).await?;
                let (written, answer) = write::create(&api, &object).await?;
                self.tell(step.place, &answer);
                Ok(written)
            }
            Action::Apply { object, expect } => {
                let parsed = write::parse(object)?;
                let api = api(&api_version(&parsed), &kind(&parsed), parsed.metadata.namespace.as_deref()).await?;
                let Some(answer) = write::apply(&api, object, expect.as_ref()).await? else {
                    return Ok(Written::Outdated);
                };
                self.tell(step.place, &answer);
                Ok(Written::Made)
            }
            Action::CreateSecret { secret, metadata } => {
                write::create_secret(client, self.cluster, self.keys, *secret, metadata).await
            }
            Action::Delete { api_version, kind, namespace, name, expect } => {
                let api = api(api_version, kind, namespace.as_deref()).await?;
                write::delete(&api, kind, name, expect).await
            }
        }
    }

    fn tell(&self, place: Place, answer: &DynamicObject) {
        if place == Place::Management {
            (self.wrote)(answer);
        }
    }
}

/// The add-on that a step is for: `kube-proxy` of `addon/kube-proxy/DaemonSet`. Steps of other stages build on each other.
fn addon_of(stage: Stage, role: &str) -> Option<&str> {
    let rest = (stage == Stage::Packages).then(|| role.strip_prefix("addon/")).flatten()?;
    Some(rest.split_once('/').map_or(rest, |(addon, _)| addon))
}

fn api_version(object: &DynamicObject) -> String {
    object.types.as_ref().map(|types| types.api_version.clone()).unwrap_or_default()
}

fn kind(object: &DynamicObject) -> String {
    object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default()
}
