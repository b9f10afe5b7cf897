//! Packages come first: machines follow when every core package is at its version, and well.
//!
//! What counts was observed, and of the very version that is wanted: the generation that was written has been seen, both by the
//! `PackageInstall` and by the App that it became. For a moment a `PackageInstall` tells of a new version what was true of the old
//! one (kapp-controller's issue 341); its App does not.

use jiff::SignedDuration;
use serde_json::Value;
use windlass_api::annotation;
use windlass_api::condition::ConditionType;
use windlass_api::kind::packaging::{App, PackageInstall, is_true};

use super::{Blocked, Installed, Listed};

/// How long packages may take until it is said that waiting will not help.
pub const PATIENCE: SignedDuration = SignedDuration::from_mins(30);

/// Which version of a package an App is of.
const PACKAGE_VERSION: &str = "packaging.carvel.dev/package-version";
/// How kapp says that pods did not come up in time.
const TIMED_OUT: &str = "Timed out waiting";

/// A package, what there is of it, and where.
#[derive(Debug, Clone)]
pub struct Judged<'a> {
    /// The package.
    pub listed: &'a Listed,
    /// What there is of it.
    pub installed: Option<&'a Installed>,
    /// Its `PackageInstall`, as `namespace/name`.
    pub install: String,
    /// Its release declares that its new pods may wait for new nodes.
    pub may_wait: bool,
}

/// Refuses to let machines follow while a core package is not at its version, or not well.
pub fn packages_first<'a>(packages: impl IntoIterator<Item = Judged<'a>>) -> Option<Blocked> {
    packages.into_iter().filter(|package| package.listed.slot.is_core()).find_map(|package| package.complaint())
}

impl Judged<'_> {
    /// What keeps a package from being ready.
    pub fn complaint(&self) -> Option<Blocked> {
        let Some(install) = self.installed.and_then(|installed| installed.install.as_ref()) else {
            return Some(self.not_ready("it is not installed yet"));
        };
        let app = self.installed.and_then(|installed| installed.app.as_ref());
        if let Some(by) = held(install, app) {
            return Some(Blocked::PackageHeld { package: self.name(), install: self.install.clone(), by });
        }
        let status = install.status.clone().unwrap_or_default();
        if status.observed_generation != install.metadata.generation {
            return Some(self.not_ready("its latest change was not seen yet"));
        }
        let wanted = self.listed.version();
        let failed = is_true(&status.conditions, ConditionType::ReconcileFailed.as_str());
        if status.version.as_deref() != Some(&wanted) && !failed {
            return Some(self.not_ready(&format!(
                "it is at {}, and should be at {wanted}",
                status.version.as_deref().unwrap_or("no version")
            )));
        }
        if failed {
            let why = super::condition::useful(status.useful_error_message.as_deref().unwrap_or_default());
            let waits = why.contains(TIMED_OUT) && self.waits_for_new_nodes(app, &wanted);
            let (package, install) = (self.name(), self.install.clone());
            return (!waits).then(|| Blocked::PackageFailed { package, install, why: why.to_owned() });
        }
        let succeeded = is_true(&status.conditions, ConditionType::ReconcileSucceeded.as_str());
        match deployed(app, &wanted) {
            Err(why) => Some(self.not_ready(&why)),
            Ok(true) if succeeded => None,
            Ok(_) if self.waits_for_new_nodes(app, &wanted) => None,
            Ok(_) => Some(self.not_ready(&self.waits_for(app))),
        }
    }

    fn name(&self) -> String {
        self.listed.short().to_owned()
    }

    fn not_ready(&self, why: &str) -> Blocked {
        Blocked::PackageNotReady { package: self.name(), install: self.install.clone(), why: why.to_owned() }
    }

    /// What is waited for while it is brought in: kapp says so.
    fn waits_for(&self, app: Option<&App>) -> String {
        let said = app.and_then(|app| app.status.as_ref()?.deploy.as_ref()?.stdout.clone());
        let first = said.as_deref().and_then(|said| said.lines().next()).filter(|line| !line.trim().is_empty());
        let version = self.listed.version();
        first.map_or_else(|| format!("{version} is being brought in"), |line| format!("{version}: {}", line.trim()))
    }

    /// All is applied, and the pods that there are run; new ones may wait for new nodes, as its release declares.
    fn waits_for_new_nodes(&self, app: Option<&App>, wanted: &str) -> bool {
        let pods = self.installed.map(|installed| installed.pods.as_slice()).unwrap_or_default();
        let applied = app.and_then(|app| app.status.as_ref()?.deploy.as_ref()).is_some();
        let current = deployed(app, wanted).is_ok();
        self.may_wait && applied && current && !pods.is_empty() && pods.iter().all(runs)
    }
}

/// Whether what a package became is of the wanted version, seen as it is now, and well; why that cannot be said yet.
pub(super) fn deployed(app: Option<&App>, wanted: &str) -> Result<bool, String> {
    let Some(app) = app else { return Err("nothing is deployed yet".to_owned()) };
    let version = app.metadata.annotations.as_ref().and_then(|annotations| annotations.get(PACKAGE_VERSION));
    if version.map(String::as_str) != Some(wanted) {
        let version = version.map_or("no version", String::as_str);
        return Err(format!("what is deployed is {version}, and should be {wanted}"));
    }
    let status = app.status.clone().unwrap_or_default();
    if status.observed_generation != app.metadata.generation {
        return Err("what it deploys was not looked at yet".to_owned());
    }
    Ok(is_true(&status.conditions, ConditionType::ReconcileSucceeded.as_str()))
}

/// Who keeps a package from moving.
fn held(install: &PackageInstall, app: Option<&App>) -> Option<String> {
    let annotations = app.and_then(|app| app.metadata.annotations.clone()).unwrap_or_default();
    let fields = [("spec.paused", install.spec.paused), ("spec.canceled", install.spec.canceled)];
    let set = fields.into_iter().find(|(_, value)| *value == Some(true)).map(|(field, _)| format!("{field} is true"));
    set.or_else(|| {
        let key = annotation::MANUALLY_CONTROLLED;
        key.is_in(&annotations).then(|| format!("somebody deploys it by hand: its App has the annotation {key}"))
    })
}

/// Whether the pods of an object run, be they old or new.
fn runs(live: &Value) -> bool {
    let status = |field: &str| live["status"][field].as_u64().unwrap_or_default();
    let replicas = live["spec"]["replicas"].as_u64().unwrap_or(1);
    let seen = status("observedGeneration") >= live["metadata"]["generation"].as_u64().unwrap_or_default();
    let run = match live["kind"].as_str() {
        Some("DaemonSet") => status("numberReady") >= status("desiredNumberScheduled"),
        Some("Deployment") => status("availableReplicas") >= replicas,
        Some("StatefulSet") => status("readyReplicas") >= replicas,
        _ => true,
    };
    seen && run
}
