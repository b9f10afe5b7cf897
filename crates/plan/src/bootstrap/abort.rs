//! An upgrade of a cluster of a class that is given up before its first machine.
//!
//! ```text
//! the order ─▶ hold ─▶ everybody has let go ─▶ too late? ─┬─ no: what the control plane has is asked for again
//!                                                         └─ yes: the order goes, and the upgrade goes on
//! ```
//!
//! Between an answer that Cluster API was given and what it writes by it, nothing that is read says whether it is too late. So the
//! way is the same however machines are kept back: the cluster is held, and judged when nobody moves it any more
//! ([decision 25](../../../../docs/decisions/0025-an-upgrade-of-a-class-is-given-up-under-a-hold.md)).

use std::fmt;

use serde_json::json;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::name::ReleaseName;
use windlass_api::version::KubernetesVersion;
use windlass_api::{annotation, label};

use super::hold::{OURS, release};
use super::step::{Step, Write};
use super::{Asked, Blocked, Pause, Subject};
use crate::resolve::cluster::of_control_plane;
use crate::step::Place;

/// What a cluster goes back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Back {
    /// The release that is given up.
    pub from: ReleaseName,
    /// The release that its machines have.
    pub release: ReleaseName,
    /// Its version of Kubernetes.
    pub kubernetes: KubernetesVersion,
}

/// Why an upgrade is not given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Its machines have the Kubernetes of the release that it is asked to have.
    Nothing {
        /// The cluster.
        cluster: String,
        /// That release.
        release: ReleaseName,
    },
    /// Machines follow.
    TooLate {
        /// The cluster.
        cluster: String,
        /// The release that it is asked to have.
        release: ReleaseName,
        /// What has followed.
        what: String,
    },
    /// What it had before is not known.
    Unknown {
        /// The cluster.
        cluster: String,
        /// What is missing.
        why: String,
    },
}

impl Refused {
    /// The reason in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Nothing { .. } => "NothingToGiveUp",
            Self::TooLate { .. } => "AbortTooLate",
            Self::Unknown { .. } => "AbortImpossible",
        }
    }

    /// The next thing that a person can do about it.
    pub fn way_out(&self) -> String {
        match self {
            Self::Nothing { cluster, .. } => format!("windlass status {cluster}"),
            Self::TooLate { cluster, .. } => {
                format!("windlass why {cluster}, which says what keeps the machines that are left")
            }
            Self::Unknown { cluster, .. } => {
                format!(
                    "ask for the release by name: windlass release list, then windlass upgrade {cluster} --to RELEASE"
                )
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing { cluster, release } => {
                write!(f, "the machines of {cluster} have the Kubernetes of {release}: there is nothing to give up")
            }
            Self::TooLate { cluster, release, what } => {
                write!(
                    f,
                    "the upgrade of {cluster} to {release} goes on: {what}, and from there on there is only forward"
                )
            }
            Self::Unknown { cluster, why } => write!(f, "what {cluster} would go back to is not known: {why}"),
        }
    }
}

/// What a cluster would go back to, by the version that its control plane is told to have and by its machines.
pub fn back(
    cluster: &Cluster,
    control_plane: Option<&KubernetesVersion>,
    machines: &[Machine],
) -> Result<Back, Refused> {
    let name = || cluster.metadata.name.clone().unwrap_or_default();
    let unknown = |why: String| Refused::Unknown { cluster: name(), why };
    let labels = cluster.metadata.labels.clone().unwrap_or_default();
    let asked = label::RELEASE.get(&labels).map_err(|error| unknown(error.to_string()))?;
    let from = asked.ok_or_else(|| unknown(format!("it has no label {} with a release", label::RELEASE)))?;
    let version: String = cluster.spec.topology.as_ref().map(|topology| topology.version.clone()).unwrap_or_default();
    let has = control_plane.ok_or_else(|| unknown("its control plane has no version".to_owned()))?;
    let of = |machine: &Machine| machine.spec.version.clone().unwrap_or_default();
    let named = |machine: &Machine| machine.metadata.name.clone().unwrap_or_default();
    let too_late = |what: String| Refused::TooLate { cluster: name(), release: from.clone(), what };
    if version.parse().as_ref() == Ok(has) {
        let is_behind = machines.iter().any(|machine| of(machine) != version);
        let what = format!("its control plane is to have {version} already");
        return Err(if is_behind { too_late(what) } else { Refused::Nothing { cluster: name(), release: from } });
    }
    if let Some(ahead) = machines.iter().find(|machine| of(machine) == version) {
        return Err(too_late(format!("Machine {} has {version}", named(ahead))));
    }
    let recorded = of_control_plane(cluster).map_err(|malformed| unknown(malformed.to_string()))?;
    let entry =
        recorded.at(has).ok_or_else(|| unknown(format!("no release with {has} is on record in its topology")))?;
    Ok(Back { from, release: entry.release.clone(), kubernetes: entry.kubernetes.clone() })
}

/// What was observed of a cluster whose upgrade is to be given up.
#[derive(Debug, Clone)]
pub struct Aborting<'a> {
    /// The cluster.
    pub cluster: &'a Subject,
    /// The release that is to be given up.
    pub order: &'a str,
    /// What it would go back to, as far as can be seen.
    pub back: Result<Back, Refused>,
    /// What somebody has not let go of yet, of a cluster that is held.
    pub moving: Option<&'a str>,
}

/// What comes next of an order to give up.
#[derive(Debug, Clone, PartialEq)]
pub enum Abort {
    /// This is written.
    Write(Step),
    /// The order goes; why it is not followed, where it is about what the cluster is asked for.
    Refuse(Step, Option<Refused>),
    /// It has to be waited.
    Wait(Blocked),
}

/// What comes next of an order to give up.
pub fn abort(seen: &Aborting<'_>) -> Abort {
    let cluster = seen.cluster;
    if seen.order != cluster.release.as_str() {
        let why = format!("{} is given up, and {} is asked for", seen.order, cluster.release);
        return Abort::Refuse(forget(cluster, why), None);
    }
    let back = match &seen.back {
        Ok(back) => back,
        Err(refused) => return Abort::Refuse(forget(cluster, refused.to_string()), Some(refused.clone())),
    };
    if cluster.held_for.as_deref() != Some(seen.order) {
        return Abort::Write(hold(cluster));
    }
    match seen.moving {
        Some(object) => Abort::Wait(Blocked::PauseAwaited { object: object.to_owned() }),
        None => Abort::Write(ask_back(cluster, back)),
    }
}

/// Holds a cluster for the release that it is asked to have. A pause that is there is its owner's.
fn hold(cluster: &Subject) -> Step {
    let mut annotations = json!({(annotation::HELD_FOR_RELEASE.name): cluster.release.as_str()});
    if cluster.pause != Pause::None && cluster.held_for.is_none() {
        annotations[annotation::KEEP_PAUSED.name] = json!("");
    }
    let patch = json!({"metadata": {"annotations": annotations}, "spec": {"paused": true}});
    step(cluster, patch, format!("its upgrade to {} is given up, and nobody is to move it meanwhile", cluster.release))
}

/// One write of all that the upgrade has changed. Cluster API is told that the version may be lower: no machine has had the other.
fn ask_back(cluster: &Subject, back: &Back) -> Step {
    let mut annotations = json!({(annotation::ABORT.name): null, (annotation::GO_ON_WITHOUT_PACKAGES.name): null});
    if cluster.version_check.is_none() {
        annotations[annotation::DISABLE_VERSION_CHECK.name] = json!(OURS);
    }
    let labels = json!({(label::RELEASE.name): back.release.as_str()});
    let patch = json!({
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"topology": {"version": back.kubernetes.as_str()}},
    });
    step(cluster, patch, format!("{} is given up: {} is asked for again", back.from, back.release))
}

/// Takes the order back. A hold ends as ever, when packages are in; where somebody wants machines without them, at once.
fn forget(cluster: &Subject, why: String) -> Step {
    let mut patch = json!({"metadata": {"annotations": {(annotation::ABORT.name): null}}});
    let end = release(cluster, String::new()).filter(|_| cluster.asked == Asked::GoesOn);
    if let Some(Step { write: Write::Patch { patch: ended, .. }, .. }) = end {
        merge(&mut patch, &ended);
    }
    step(cluster, patch, why)
}

fn merge(patch: &mut serde_json::Value, more: &serde_json::Value) {
    match (patch.as_object_mut(), more.as_object()) {
        (Some(fields), Some(more)) => {
            for (key, value) in more {
                merge(fields.entry(key.clone()).or_insert(json!(null)), value);
            }
        }
        _ => patch.clone_from(more),
    }
}

fn step(cluster: &Subject, patch: serde_json::Value, why: String) -> Step {
    let (object, expect) = (cluster.object(), cluster.revision.clone());
    Step::new(Place::Management, Write::Patch { object, patch, expect }, why)
}
