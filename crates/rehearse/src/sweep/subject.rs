//! What is swept: a cluster of a size, and what is asked of it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::{NameError, NamespacedName};
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::durations::Durations;
use windlass_sim::fault::Scenario;
use windlass_sim::world::{self, World};

use crate::rehearsal::{self, Request, Verdict, Wish};
use crate::settle;

/// The release that clusters are made with.
const FROM: &str = "v1.15.5";
/// The release that they are upgraded to.
const TO: &str = "v1.16.7";
/// The cluster that everything is about.
const CLUSTER: &str = "my-tkc";
/// When it is made: 2026 begins.
const FOUNDED: Timestamp = Timestamp::constant(1_767_225_600, 0);
/// When something is asked of it: a day later, when nothing moves any more.
const LATER: Timestamp = Timestamp::constant(1_767_225_600 + 24 * 60 * 60, 0);
/// Four attempts of a quarter of an hour, twice, and what goes wrong before.
const DEADLINE: Duration = Duration::from_secs(4 * 60 * 60);

/// How many machines a cluster has: `3+3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct Size {
    /// In the control plane.
    pub control_plane: u32,
    /// Beside it.
    pub workers: u32,
}

/// A text that is no size.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is no size: write it as 3+3, machines of the control plane and workers")]
pub struct SizeError(String);

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let sides = text.split_once('+').map(|(left, right)| (left.parse().ok(), right.parse().ok()));
        match sides {
            Some((Some(control_plane @ 1..), Some(workers))) => Ok(Self { control_plane, workers }),
            _ => Err(SizeError(text.to_owned())),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.control_plane, self.workers)
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        size.to_string()
    }
}

/// What is asked of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// The next release.
    Upgrade,
    /// That it is made.
    Create,
    /// One worker more.
    Scale,
    /// Other machines.
    Class,
    /// That it goes.
    Delete,
}

impl Change {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Upgrade, Self::Create, Self::Scale, Self::Class, Self::Delete];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upgrade => "upgrade",
            Self::Create => "create",
            Self::Scale => "scale",
            Self::Class => "class",
            Self::Delete => "delete",
        }
    }

    fn wish(self, size: Size) -> Wish {
        match self {
            Self::Upgrade => Wish::release(TO),
            Self::Create => Wish::Nothing,
            Self::Scale => Wish::Patch(json!({"spec": {"topology": {"workers": {"count": size.workers + 1}}}})),
            Self::Class => {
                let class = json!({"class": "best-effort-large"});
                Wish::Patch(json!({"spec": {"topology": {"controlPlane": class, "workers": class}}}))
            }
            Self::Delete => Wish::Delete,
        }
    }
}

/// A text that is no change.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("nothing is called {0:?} that can be asked of a cluster: try upgrade, create, scale, class or delete")]
pub struct ChangeError(String);

impl FromStr for Change {
    type Err = ChangeError;

    fn from_str(text: &str) -> Result<Self, ChangeError> {
        Self::ALL.into_iter().find(|change| change.as_str() == text).ok_or_else(|| ChangeError(text.to_owned()))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// There is nothing to sweep.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// There is no runtime.
    #[error("make a World to sweep")]
    Begin(#[source] std::io::Error),
    /// There is no World.
    #[error("make a World to sweep")]
    World(#[source] Box<world::Error>),
    /// Its cluster has no name.
    #[error("name the cluster that is to be swept")]
    Name(#[source] NameError),
    /// Its cluster is written wrongly.
    #[error("write down the cluster that is to be swept")]
    Manifest(#[source] serde_json::Error),
    /// There is no cluster.
    #[error("make the cluster of {size} that is to be swept")]
    Rehearse {
        /// Its size.
        size: Size,
        /// Why.
        #[source]
        source: Box<rehearsal::Error>,
    },
    /// There is none that works.
    #[error("the cluster of {size} that is to be swept was not made: {verdict}")]
    NotThere {
        /// Its size.
        size: Size,
        /// What became of it.
        verdict: Verdict,
    },
}

/// A World, and what is asked of a cluster in it.
pub struct Subject {
    /// Where every run starts.
    pub start: World,
    /// What is asked.
    pub request: Request,
    /// The cluster that is to be made; nothing where it is there already.
    pub create: Option<Box<TanzuKubernetesCluster>>,
}

impl Subject {
    /// Something that is asked of a cluster that is there.
    pub fn new(start: World, request: Request) -> Self {
        Self { start, request, create: None }
    }

    /// A cluster of a size, made for this, and what is asked of it.
    pub fn make(change: Change, size: Size, seed: Seed) -> Result<Self, SubjectError> {
        let cluster: NamespacedName = format!("default/{CLUSTER}").parse().map_err(SubjectError::Name)?;
        let empty = empty(seed)?;
        let wanted = manifest(&cluster, size)?;
        let asking = |wish: Wish, at: Timestamp| Request {
            deadline: DEADLINE,
            ..Request::asking(cluster.clone(), wish, seed, at)
        };
        if change == Change::Create {
            return Ok(Self { create: Some(Box::new(wanted)), ..Self::new(empty, asking(Wish::Nothing, FOUNDED)) });
        }
        let created = rehearsal::create(&empty, &asking(Wish::Nothing, FOUNDED), &wanted);
        let created = created.map_err(|source| SubjectError::Rehearse { size, source: Box::new(source) })?;
        match created.rehearsal.verdict {
            Verdict::Reached { .. } => Ok(Self::new(created.world, asking(change.wish(size), LATER))),
            verdict => Err(SubjectError::NotThere { size, verdict }),
        }
    }

    /// What the cluster was asked to be before.
    pub(super) fn spec(&self) -> Value {
        let found = settle::cluster(&self.start, &self.request.cluster);
        found.and_then(|cluster| serde_json::to_value(cluster.spec).ok()).unwrap_or_default()
    }
}

/// A World without clusters.
fn empty(seed: Seed) -> Result<World, SubjectError> {
    let made = run_virtual(seed, FOUNDED, |time| async move {
        let durations = Durations::default();
        World::new(world::Settings { clock: time.clock, seed: time.seed, durations, faults: Scenario::default() }).await
    });
    made.map_err(SubjectError::Begin)?.map_err(|source| SubjectError::World(Box::new(source)))
}

/// A cluster as people write it.
fn manifest(cluster: &NamespacedName, size: Size) -> Result<TanzuKubernetesCluster, SubjectError> {
    let machines = |count| json!({"count": count, "class": "best-effort-xlarge", "storageClass": "gc-storage-profile"});
    let written = json!({
        "apiVersion": "run.tanzu.vmware.com/v1alpha1",
        "kind": "TanzuKubernetesCluster",
        "metadata": {"name": cluster.name.as_str(), "namespace": cluster.namespace.as_str()},
        "spec": {
            "topology": {"controlPlane": machines(size.control_plane), "workers": machines(size.workers)},
            "distribution": {"version": FROM},
        },
    });
    serde_json::from_value(written).map_err(SubjectError::Manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_changes_are_read_as_they_are_written() {
        for text in ["1+1", "3+3", "5+0"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        for text in ["", "3", "0+1", "3+", "three+3"] {
            assert!(text.parse::<Size>().unwrap_err().to_string().contains("write it as 3+3"), "{text}");
        }
        for change in Change::ALL {
            assert_eq!(change.as_str().parse(), Ok(change));
        }
        assert!("up".parse::<Change>().unwrap_err().to_string().contains("upgrade, create, scale, class or delete"));
    }
}
