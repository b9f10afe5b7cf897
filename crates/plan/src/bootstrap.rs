//! The packages of a cluster: which it should have, in which order they are written, and when machines may follow them.
//!
//! ```text
//! Cluster's label ─┐
//! template ────────┼─▶ settle ─▶ ClusterBootstrap ─▶ bring ─▶ [Step], status ─▶ gate ─▶ the hold is released
//! what people chose┘                                  ▲
//!                         Packages, values, installs ─┘
//! ```
//!
//! [`settle`] decides what the `ClusterBootstrap` says: a copy of the release's template for a new cluster, and after a change of
//! release a merge that keeps what people chose. [`bring`] decides what is written next, and whether the machines may follow.
//! [`leave`] is the end of it. All three are functions of what was observed, and each reason to wait is a [`Blocked`].

pub mod abort;
pub mod approval;
mod blocked;
mod bring;
mod clone;
mod condition;
pub mod course;
pub mod envelope;
mod gate;
mod hold;
mod install;
mod listed;
mod management;
mod merge;
mod network;
mod outlive;
pub mod quiet;
mod removal;
mod settle;
mod step;
pub mod validate;
pub mod values;

use std::collections::BTreeMap;

use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::packaging::{App, PackageInstall};
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::name::{ClusterName, NameError, Namespace, NamespacedName, ObjectName, ReleaseName, Uid};
use windlass_api::{annotation, label};

use crate::hook;
use crate::step::Revision;

pub use blocked::Blocked;
pub use bring::{Bringing, Brought, Workload, bring, waiting};
pub(crate) use clone::revision;
pub use clone::{CopyOrder, Reference, local_references, reference, references};
pub use condition::title;
pub use gate::{Judged, PATIENCE, packages_first};
pub use install::prerequisites;
pub use listed::{Listed, listed};
pub use merge::{Draft, Merging, cloned, filled};
pub use outlive::{Hook, WAITS, is_kept, outlive};
pub use removal::{DELETE_TIMEOUT, Leaving, Left, leave, leaving};
pub use settle::{Copies, Settled, Settling, settle};
pub use step::{Object, Step, Write};

/// Where releases have their templates and Packages, and where a workload cluster has its own.
pub const SYSTEM_NAMESPACE: &str = "tkg-system";

/// Keeps a cluster, its kubeconfig and its `ClusterBootstrap` until packages that were added to it have gone.
pub const FINALIZER: &str = "tkg.tanzu.vmware.com/addon";

/// The cluster whose packages these are, as far as they depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: ClusterName,
    /// Which object it is, and in which state it was seen.
    pub revision: Revision,
    /// The release that it is asked to have.
    pub release: ReleaseName,
    /// The release that it is held for.
    pub held_for: Option<String>,
    /// Whether it is paused.
    pub pause: Pause,
    /// Its packages are chosen by somebody else.
    pub custom_bootstrap: bool,
    /// It is the management cluster itself.
    pub management: bool,
    /// Its API has answered.
    pub provisioned: bool,
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// The release whose upgrade is to be given up.
    pub given_up: Option<String>,
    /// Whether machines wait for an answer of ours.
    pub asked: Asked,
    /// By which Cluster API's own checks of its version are switched off.
    pub version_check: Option<String>,
    /// The annotations about its network that its topology asks for, and that it does not have.
    pub network: BTreeMap<String, String>,
}

/// Whether a cluster is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// It is not.
    None,
    /// It is. Whether that is our hold, its annotation says.
    Set,
    /// Its owner had paused it before we held it, and it stays so.
    Kept,
}

/// Whether machines wait for an answer of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Cluster API does not say that it waits for one.
    No,
    /// It says so.
    Waits,
    /// Somebody wants machines to follow without the packages of the release.
    GoesOn,
}

/// A Cluster that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} of the Cluster cannot be read: {source}")]
pub struct SubjectError {
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    #[source]
    pub source: NameError,
}

impl Subject {
    /// What is needed of a Cluster; `None` if it has no release.
    pub fn of(cluster: &Cluster) -> Result<Option<Self>, SubjectError> {
        let metadata = &cluster.metadata;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let wrong = |field: &'static str| move |source: NameError| SubjectError { field, source };
        let (labels, annotations) =
            (metadata.labels.clone().unwrap_or_default(), metadata.annotations.clone().unwrap_or_default());
        let Some(release) = labels.get(label::RELEASE.name).filter(|release| !release.is_empty()) else {
            return Ok(None);
        };
        let initialized = cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
        Ok(Some(Self {
            namespace: Namespace::new(&text(&metadata.namespace)).map_err(wrong("metadata.namespace"))?,
            name: ClusterName::new(&text(&metadata.name)).map_err(wrong("metadata.name"))?,
            revision: Revision {
                uid: Uid::new(&text(&metadata.uid)).map_err(wrong("metadata.uid"))?,
                resource_version: text(&metadata.resource_version),
            },
            release: ReleaseName::new(release).map_err(wrong("metadata.labels[run.tanzu.vmware.com/tkr]"))?,
            held_for: annotations.get(annotation::HELD_FOR_RELEASE.name).cloned(),
            pause: match cluster.spec.paused {
                Some(true) if annotation::KEEP_PAUSED.is_in(&annotations) => Pause::Kept,
                Some(true) => Pause::Set,
                Some(false) | None => Pause::None,
            },
            custom_bootstrap: annotation::CUSTOM_BOOTSTRAP.is_in(&annotations),
            management: label::MANAGEMENT_CLUSTER.is_in(&labels),
            provisioned: initialized.is_some_and(|reached| reached.control_plane_initialized),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            given_up: annotations.get(annotation::ABORT.name).cloned(),
            asked: match () {
                () if hook::goes_on(cluster, release) => Asked::GoesOn,
                () if hook::is_waited_for(cluster) => Asked::Waits,
                () => Asked::No,
            },
            version_check: annotations.get(annotation::DISABLE_VERSION_CHECK.name).cloned(),
            network: network::missing(cluster),
        }))
    }

    /// Its upgrade was given up, and the packages of the release before are not all in yet.
    pub(crate) fn is_taken_back(&self) -> bool {
        self.version_check.as_deref() == Some(hold::OURS)
    }

    /// Its namespace and name.
    pub fn namespaced_name(&self) -> NamespacedName {
        NamespacedName { namespace: self.namespace.clone(), name: ObjectName::from(self.name.clone()) }
    }

    /// The Cluster, as an object that is written.
    pub fn object(&self) -> Object {
        Object {
            api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
            kind: "Cluster".to_owned(),
            namespace: Some(self.namespace.to_string()),
            name: self.name.to_string(),
        }
    }

    /// Its `ClusterBootstrap` as an object that is written, and the state in which it was seen; nothing of one that was never stored.
    pub fn bootstrap(&self, bootstrap: &ClusterBootstrap) -> Option<(Object, Revision)> {
        Some((settle::object(self), settle::state(bootstrap).ok()?))
    }
}

/// What there is of a package in the cluster that installs it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Installed {
    /// The `PackageInstall`.
    pub install: Option<PackageInstall>,
    /// What it became.
    pub app: Option<App>,
    /// The Deployments, `DaemonSet`s and `StatefulSet`s that it deployed; asked for only where the package may wait for new nodes.
    pub pods: Vec<serde_json::Value>,
}

/// By the name of the `PackageInstall`.
pub type Installs = BTreeMap<String, Installed>;
