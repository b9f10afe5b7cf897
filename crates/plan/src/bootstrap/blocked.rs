//! Why the packages of a cluster are not further, and with them its machines.

use std::fmt;

use windlass_api::annotation;
use windlass_api::name::{ClusterName, Namespace};

use super::{Asked, DELETE_TIMEOUT, SYSTEM_NAMESPACE, Subject};
use crate::gate::by_kubectl;
use crate::target::ClusterKind;

/// The reasons of what waits for a person to decide, for as long as that takes.
const DECISIONS: [&str; 3] = ["ApprovalNeeded", "Rejected", "ReviewedOtherwise"];

/// Why it is waited. `Display` says it in a sentence; [`Blocked::way_out`] says what would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocked {
    /// There is no such release, and none is kept with the cluster.
    ReleaseMissing {
        /// Which.
        release: String,
    },
    /// A release has no template.
    TemplateMissing {
        /// Which release.
        release: String,
    },
    /// Somebody else is to make the `ClusterBootstrap`.
    BootstrapAwaited {
        /// Its namespace.
        namespace: Namespace,
        /// Its name.
        name: ClusterName,
    },
    /// Somebody paused the `ClusterBootstrap`.
    BootstrapPaused {
        /// Its namespace.
        namespace: Namespace,
        /// Its name.
        name: ClusterName,
    },
    /// A field says what nobody can act on.
    Unreadable {
        /// The field of the `ClusterBootstrap`.
        field: String,
        /// What is wrong.
        why: String,
    },
    /// The release has no version of what somebody chose.
    ChoiceMissing {
        /// The field.
        field: String,
        /// What was chosen.
        chosen: String,
        /// The release.
        release: String,
        /// What it has.
        listed: Vec<String>,
    },
    /// There is no such Package.
    PackageMissing {
        /// Its whole name.
        package: String,
    },
    /// What values are made of is not there.
    SourceMissing {
        /// What.
        object: String,
    },
    /// The values of a package are not there yet.
    ValuesAwaited {
        /// The package.
        package: String,
        /// What is missing.
        why: String,
    },
    /// The workload cluster has no API yet.
    NoWorkloadApi,
    /// The workload cluster did not answer.
    WorkloadUnreachable {
        /// What went wrong.
        why: String,
    },
    /// A package is not at the version of the release yet, or not well yet.
    PackageNotReady {
        /// The package.
        package: String,
        /// Its `PackageInstall`, as `namespace/name`.
        install: String,
        /// What is missing.
        why: String,
    },
    /// A package could not be brought in.
    PackageFailed {
        /// The package.
        package: String,
        /// Its `PackageInstall`, as `namespace/name`.
        install: String,
        /// What went wrong.
        why: String,
    },
    /// What was decided could not be written.
    NotWritten {
        /// What it was for.
        what: String,
        /// What the API said.
        why: String,
    },
    /// The cluster is held, and somebody has not let go of it yet.
    PauseAwaited {
        /// What of.
        object: String,
    },
    /// Somebody holds a package.
    PackageHeld {
        /// The package.
        package: String,
        /// Its `PackageInstall`, as `namespace/name`.
        install: String,
        /// What holds it.
        by: String,
    },
    /// The cluster is to go, and packages that were added to it go before.
    PackagesGoFirst {
        /// What is still there, or keeps it from being known.
        why: String,
    },
    /// The topology of the Cluster says what nobody can act on.
    Malformed {
        /// What is wrong.
        why: String,
    },
    /// The upgrade has to be approved, and nobody has.
    ApprovalNeeded {
        /// The cluster.
        cluster: ClusterName,
        /// What would be approved.
        digest: String,
        /// The release that it leads to.
        release: String,
    },
    /// Somebody does not want the upgrade.
    Rejected {
        /// The cluster.
        cluster: ClusterName,
        /// What was rejected.
        digest: String,
        /// Who did.
        by: String,
        /// Why; empty where nothing was said.
        because: String,
    },
    /// What would be done is not what was reviewed.
    ReviewedOtherwise {
        /// The cluster.
        cluster: ClusterName,
        /// The release that it leads to.
        release: String,
        /// The envelope that was reviewed.
        reviewed: String,
        /// The envelope of what would be done.
        found: String,
    },
    /// The hold on the cluster is for another release than it is asked to have.
    HeldForAnother {
        /// The release of the hold.
        held_for: String,
        /// The release of the cluster.
        release: String,
    },
}

/// What stands between what is waited for and what can be done about it.
pub(super) const WAY_OUT: &str = "; way out: ";

impl Blocked {
    /// What conditions and Events say of it: what is waited for, and what can be done about it.
    pub fn told(&self) -> String {
        // As in the conditions of all other clusters: what is asked of somebody comes after what it is about.
        let between = if matches!(self, Self::ApprovalNeeded { .. } | Self::Rejected { .. }) { "; " } else { WAY_OUT };
        format!("{self}{between}{}", self.way_out())
    }

    /// Both again, of what was told. What others have written has no way out.
    pub fn read(told: &str) -> (&str, Option<&str>) {
        told.split_once(WAY_OUT).map_or((told, None), |(what, way_out)| (what, Some(way_out)))
    }

    /// The reason in one word, the same everywhere.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::ReleaseMissing { .. } => "ReleaseMissing",
            Self::TemplateMissing { .. } => "TemplateMissing",
            Self::BootstrapAwaited { .. } => "BootstrapAwaited",
            Self::BootstrapPaused { .. } => "BootstrapPaused",
            Self::Unreadable { .. } => "Unreadable",
            Self::ChoiceMissing { .. } => "ChoiceMissing",
            Self::PackageMissing { .. } => "PackageMissing",
            Self::SourceMissing { .. } => "SourceMissing",
            Self::ValuesAwaited { .. } => "ValuesAwaited",
            Self::NoWorkloadApi => "NoWorkloadApi",
            Self::WorkloadUnreachable { .. } => "WorkloadUnreachable",
            Self::PackageNotReady { .. } => "PackageNotReady",
            Self::PackageFailed { .. } => "PackageFailed",
            Self::NotWritten { .. } => "NotWritten",
            Self::PauseAwaited { .. } => "PauseAwaited",
            Self::PackageHeld { .. } => "PackageHeld",
            Self::PackagesGoFirst { .. } => "PackagesGoFirst",
            Self::HeldForAnother { .. } => "HeldForAnother",
            Self::Malformed { .. } => "Malformed",
            Self::ApprovalNeeded { .. } => DECISIONS[0],
            Self::Rejected { .. } => DECISIONS[1],
            Self::ReviewedOtherwise { .. } => DECISIONS[2],
        }
    }

    /// Whether it waits for a person to decide. However long that takes, it does not stall.
    pub fn is_decision(&self) -> bool {
        is_decision(self.reason())
    }

    /// The next thing that a person can do about it, or `wait`.
    pub fn way_out(&self) -> String {
        match self {
            Self::NoWorkloadApi => "wait".to_owned(),
            Self::ReleaseMissing { release } | Self::TemplateMissing { release } => {
                format!(
                    "put {release} back with its template, or ask for a release that is there: windlass release list"
                )
            }
            Self::BootstrapAwaited { namespace, name } => format!(
                "create ClusterBootstrap {namespace}/{name}, or take the annotation {} off the Cluster",
                annotation::CUSTOM_BOOTSTRAP
            ),
            Self::BootstrapPaused { namespace, name } => format!(
                "kubectl -n {namespace} patch clusterbootstrap {name} --type=merge -p '{{\"spec\":{{\"paused\":false}}}}'"
            ),
            Self::Unreadable { field, .. } => format!("correct {field} of the ClusterBootstrap"),
            Self::ChoiceMissing { field, .. } => {
                format!("ask for a release that has it, or choose another package in {field} of the ClusterBootstrap")
            }
            Self::PackageMissing { package } => {
                format!("put Package {SYSTEM_NAMESPACE}/{package} back: kubectl -n {SYSTEM_NAMESPACE} get packages")
            }
            Self::SourceMissing { object } => format!("put {object} back"),
            Self::ValuesAwaited { package, .. } => {
                format!("wait; if it lasts, look at the values of {package} that the ClusterBootstrap names")
            }
            Self::WorkloadUnreachable { .. } => {
                "wait; if it lasts, look at the machines of the control plane".to_owned()
            }
            Self::PackageNotReady { install, .. } => {
                format!("wait; if it lasts, look at PackageInstall {install} and the pods of the package")
            }
            Self::PackageFailed { install, .. } => {
                format!("repair what it says; PackageInstall {install} is tried again by itself")
            }
            Self::NotWritten { .. } => "repair what it says; it is tried again by itself".to_owned(),
            Self::PauseAwaited { .. } => {
                "wait; if it lasts, look at the controllers of Cluster API: each says Paused on what it looks after"
                    .to_owned()
            }
            Self::PackageHeld { install, .. } => format!("let PackageInstall {install} go on"),
            Self::PackagesGoFirst { .. } => {
                let minutes = DELETE_TIMEOUT.as_mins();
                format!("wait; {minutes} min after its deletion the cluster goes without that")
            }
            Self::Malformed { .. } => "correct it".to_owned(),
            Self::ApprovalNeeded { cluster, digest, .. } => {
                format!("agree to it: windlass approve {cluster} {}", by_kubectl(ClusterKind::Cluster, cluster, digest))
            }
            Self::Rejected { cluster, digest, .. } => format!(
                "ask for something else: give it up with windlass abort {cluster}, or agree to it after all: windlass approve \
                 {cluster} {}",
                by_kubectl(ClusterKind::Cluster, cluster, digest)
            ),
            Self::ReviewedOtherwise { cluster, release, .. } => format!(
                "review it again with windlass plan {cluster} --to {release}, and take the annotation {} off the Cluster or give the \
                 upgrade up with windlass abort {cluster}",
                annotation::REVIEWED_ENVELOPE
            ),
            Self::HeldForAnother { release, .. } => format!(
                "wait; if it lasts, hold the cluster for {release}: kubectl annotate --overwrite cluster … {}={release}",
                annotation::HELD_FOR_RELEASE
            ),
        }
    }

    /// What a person can type to let the machines of a cluster go on without what it is waited for, where any wait. Nobody does that
    /// for them.
    pub fn way_on(cluster: &Subject) -> Option<String> {
        let (namespace, name) = (&cluster.namespace, &cluster.name);
        if cluster.held_for.is_some() {
            return Some(format!(
                "to let the machines go on without it: kubectl -n {namespace} patch cluster {name} --type=merge -p \
                 '{{\"metadata\":{{\"annotations\":{{\"{}\":null}}}},\"spec\":{{\"paused\":false}}}}'",
                annotation::HELD_FOR_RELEASE
            ));
        }
        let (key, release) = (annotation::GO_ON_WITHOUT_PACKAGES, &cluster.release);
        (cluster.asked == Asked::Waits).then(|| {
            format!(
                "to let the machines go on without it: kubectl -n {namespace} annotate --overwrite cluster {name} {key}={release}"
            )
        })
    }
}

impl Blocked {
    /// How the upgrade could be given up instead, where machines wait for it and it is not given up already.
    pub fn way_back(cluster: &Subject) -> Option<String> {
        let waits = cluster.held_for.is_some() || cluster.asked == Asked::Waits;
        let (namespace, name) = (&cluster.namespace, &cluster.name);
        (waits && cluster.asked != Asked::GoesOn && !cluster.is_taken_back())
            .then(|| format!("to give the upgrade up while no machine is new: windlass abort {name} -n {namespace}"))
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReleaseMissing { release } => write!(f, "there is no TanzuKubernetesRelease {release}"),
            Self::TemplateMissing { release } => {
                write!(f, "there is no ClusterBootstrapTemplate {SYSTEM_NAMESPACE}/{release}")
            }
            Self::BootstrapAwaited { namespace, name } => {
                write!(f, "ClusterBootstrap {namespace}/{name} is to be made by somebody else, and is not there")
            }
            Self::BootstrapPaused { namespace, name } => {
                write!(f, "spec.paused of ClusterBootstrap {namespace}/{name} is true")
            }
            Self::Unreadable { field, why } => write!(f, "{field} of the ClusterBootstrap cannot be acted on: {why}"),
            Self::ChoiceMissing { field, chosen, release, listed } => {
                let listed = if listed.is_empty() { "none at all".to_owned() } else { listed.join(", ") };
                write!(f, "{field} is {chosen}, and {release} has no such package; it has {listed}")
            }
            Self::PackageMissing { package } => write!(f, "there is no Package {SYSTEM_NAMESPACE}/{package}"),
            Self::SourceMissing { object } => write!(f, "{object} is not there"),
            Self::ValuesAwaited { package, why } => write!(f, "the values of {package} are not there yet: {why}"),
            Self::NoWorkloadApi => write!(f, "the workload cluster has no API yet"),
            Self::WorkloadUnreachable { why } => write!(f, "the workload cluster does not answer: {why}"),
            Self::PackageNotReady { package, why, .. } => write!(f, "the package {package} is not ready: {why}"),
            Self::PackageFailed { package, why, .. } => write!(f, "the package {package} has failed: {why}"),
            Self::NotWritten { what, why } => write!(f, "it could not be written that {what}: {why}"),
            Self::PauseAwaited { object } => {
                write!(f, "{object} has not said yet that it is paused, and packages are touched when all is quiet")
            }
            Self::PackageHeld { package, by, .. } => write!(f, "the package {package} is held: {by}"),
            Self::PackagesGoFirst { why } => {
                write!(f, "the cluster is to go, and packages that were added to it go first: {why}")
            }
            Self::Malformed { why } => write!(f, "spec.topology of the Cluster cannot be acted on: {why}"),
            Self::ApprovalNeeded { release, .. } => {
                write!(f, "the upgrade to {release} is not approved, and has to be here")
            }
            Self::Rejected { by, because, .. } if because.is_empty() => write!(f, "{by} has rejected the upgrade"),
            Self::Rejected { by, because, .. } => write!(f, "{by} has rejected the upgrade: {because}"),
            Self::ReviewedOtherwise { release, reviewed, found, .. } => write!(
                f,
                "what was reviewed for {release} has the envelope {reviewed}, and what would be done has {found}"
            ),
            Self::HeldForAnother { held_for, release } => {
                write!(f, "the cluster is held for {held_for}, and asked to have {release}")
            }
        }
    }
}

/// Whether what has this reason waits for a person to decide.
pub(super) fn is_decision(reason: &str) -> bool {
    DECISIONS.contains(&reason)
}
