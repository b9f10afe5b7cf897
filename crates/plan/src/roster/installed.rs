//! A package as a cluster has it: which version was asked for, and what kapp-controller says of it.

use serde::Serialize;
use windlass_api::condition::ConditionType;
use windlass_api::kind::packaging::{PackageInstall, PackageInstallStatus, is_true};

/// How a package is, as kapp-controller tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// It is as it should be.
    Succeeded,
    /// It is being brought in, or what is known is about an earlier wish.
    Reconciling,
    /// It could not be brought in.
    Failed,
    /// It is being taken out.
    Deleting,
    /// It could not be taken out.
    DeleteFailed,
    /// Somebody paused or canceled it: nothing is done for it.
    Held,
    /// There is no `PackageInstall` of it.
    NotInstalled,
    /// It is brought in by its own manifests, and not as a package.
    ByManifests,
}

impl State {
    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Reconciling => "reconciling",
            Self::Failed => "failed",
            Self::Deleting => "deleting",
            Self::DeleteFailed => "delete failed",
            Self::Held => "paused",
            Self::NotInstalled => "not installed",
            Self::ByManifests => "by manifests",
        }
    }

    fn of(install: &PackageInstall, status: &PackageInstallStatus) -> Self {
        if install.metadata.deletion_timestamp.is_none() {
            if install.spec.paused == Some(true) || install.spec.canceled == Some(true) {
                return Self::Held;
            }
            // What was found out about an earlier wish says nothing about this one.
            if status.observed_generation != install.metadata.generation {
                return Self::Reconciling;
            }
        }
        let is = |type_: ConditionType| is_true(&status.conditions, type_.as_str());
        let known = [
            (ConditionType::DeleteFailed, Self::DeleteFailed),
            (ConditionType::Deleting, Self::Deleting),
            (ConditionType::ReconcileFailed, Self::Failed),
            (ConditionType::ReconcileSucceeded, Self::Succeeded),
        ];
        let found = known.into_iter().find(|(type_, _)| is(*type_)).map(|(_, state)| state);
        let begun = if install.metadata.deletion_timestamp.is_some() { Self::Deleting } else { Self::Reconciling };
        found.unwrap_or(begun)
    }
}

/// A package that somebody asked for, in one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Install {
    /// Where its `PackageInstall` is.
    pub namespace: String,
    /// What that is called.
    pub name: String,
    /// The package, by its short name.
    pub package: String,
    /// The version, or the versions, that were asked for.
    pub wanted: Option<String>,
    /// The version that is there. Nothing says so but a success: kapp-controller does not tell what runs beside a failure.
    pub observed: Option<String>,
    /// How it is.
    pub state: State,
    /// What went wrong.
    pub message: Option<String>,
}

impl Install {
    /// What a `PackageInstall` says.
    pub fn of(install: &PackageInstall) -> Self {
        let status = install.status.clone().unwrap_or_default();
        let state = State::of(install, &status);
        let package = &install.spec.package_ref;
        let failed = matches!(state, State::Failed | State::DeleteFailed);
        let described = status.useful_error_message.or(status.friendly_description);
        Self {
            namespace: install.metadata.namespace.clone().unwrap_or_default(),
            name: install.metadata.name.clone().unwrap_or_default(),
            package: package.ref_name.split('.').next().unwrap_or_default().to_owned(),
            wanted: package.version_selection.as_ref().map(|selection| selection.constraints.clone()),
            observed: status.version.filter(|_| state == State::Succeeded),
            state,
            message: described.filter(|_| failed),
        }
    }
}
