//! What Cluster API is told when it asks whether it may go on: packages come first.
//!
//! The answers are functions of the Cluster in the question and of what the `ClusterBootstrap` says; nothing is kept. Clusters that
//! are not ours pass: Cluster API asks about every cluster of a namespace, and a hold that nobody ends would stop them all.

mod unasked;

use windlass_api::condition::ConditionType;
use windlass_api::hook::{Answer, HookName, Question};
use windlass_api::kind::cluster_api::{Cluster, UpgradeStep};
use windlass_api::kind::condition;
use windlass_api::kind::release::{ClusterBootstrap, TanzuKubernetesRelease};
use windlass_api::version::{KubernetesVersion, MinorVersion};
use windlass_api::{annotation, label};

use crate::bootstrap::approval::needs_record;
use crate::bootstrap::{SYSTEM_NAMESPACE, is_kept};
use crate::resolve::cluster::wanted_releases;
use crate::resolve::copy;

pub use unasked::{Unasked, unasked};

/// How soon we want to be asked again while packages are brought in. Cluster API asks no sooner, whatever happens meanwhile: a
/// long time would be lost when they are ready.
pub const RETRY_SECONDS: u32 = 10;

/// The release that a cluster is asked to have; `None` if it is none of ours.
pub fn release(cluster: &Cluster) -> Option<&str> {
    let labels = cluster.metadata.labels.as_ref()?;
    labels.get(label::RELEASE.name).map(String::as_str).filter(|release| !release.is_empty())
}

/// Whether a cluster is none of ours: it has no release, and is not to have one.
pub fn is_foreign(cluster: &Cluster) -> bool {
    release(cluster).is_none() && wanted_releases(cluster.metadata.annotations.as_ref()).is_none()
}

/// What is known beside a cluster.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// What is said of its packages.
    pub bootstrap: Option<&'a ClusterBootstrap>,
    /// Its release, if that is there. Not looked for where packages of it were chosen.
    pub release: Option<&'a TanzuKubernetesRelease>,
    /// Whether the template of its packages is there. Only before a cluster is made.
    pub has_template: bool,
    /// Whether an upgrade to its release is on record, and goes on. Only where an upgrade has to be approved.
    pub is_begun: bool,
}

/// What is told when Cluster API has come somewhere, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// In one word.
    pub reason: &'static str,
    /// In a sentence.
    pub note: &'static str,
}

/// What it means that a question is asked and answered with: go on. Nothing but what has come to its end is told.
pub fn reached(hook: HookName) -> Option<Reached> {
    let (reason, note) = match hook {
        HookName::AfterControlPlaneInitialized => {
            ("ControlPlaneInitialized", "the control plane answers: now its packages are brought in")
        }
        HookName::AfterControlPlaneUpgrade => (
            "ControlPlaneUpgraded",
            "the control plane has its next version, and packages are well: workers may follow",
        ),
        HookName::AfterWorkersUpgrade => ("WorkersUpgraded", "the workers have their next version"),
        HookName::AfterClusterUpgrade => ("ClusterUpgraded", "all machines have the version that was asked for"),
        HookName::BeforeClusterCreate
        | HookName::BeforeClusterUpgrade
        | HookName::BeforeControlPlaneUpgrade
        | HookName::BeforeWorkersUpgrade
        | HookName::BeforeClusterDelete
        | HookName::GenerateUpgradePlan => return None,
    };
    Some(Reached { reason, note })
}

/// Whether Cluster API may go on with a cluster.
pub fn answer(hook: HookName, cluster: &Cluster, known: &Known<'_>) -> Answer {
    if is_foreign(cluster) {
        return Answer::go_on(hook);
    }
    let bootstrap = known.bootstrap;
    let Some(release) = release(cluster) else {
        // It was to be resolved when it was written, and nobody did.
        let why = format!("the release comes first: the Cluster has no label {} with one", label::RELEASE);
        let is_new = hook == HookName::BeforeClusterCreate;
        return if is_new { Answer::wait(hook, why, RETRY_SECONDS) } else { Answer::go_on(hook) };
    };
    let why = match hook {
        HookName::BeforeClusterUpgrade
        | HookName::BeforeControlPlaneUpgrade
        | HookName::AfterControlPlaneUpgrade
        | HookName::BeforeWorkersUpgrade => {
            // Who wants machines without their packages has approved nothing.
            let may_go_on = known.is_begun || !needs_record(cluster, bootstrap);
            let without = || goes_on(cluster, release) || !has_packages(cluster, known);
            packages_first(release, bootstrap).filter(|_| !(may_go_on && without()))
        }
        HookName::BeforeClusterDelete => packages_go_first(cluster),
        HookName::BeforeClusterCreate => release_first(cluster, release, known),
        HookName::AfterControlPlaneInitialized
        | HookName::AfterWorkersUpgrade
        | HookName::AfterClusterUpgrade
        | HookName::GenerateUpgradePlan => None,
    };
    why.map_or_else(|| Answer::go_on(hook), |why| Answer::wait(hook, why, RETRY_SECONDS))
}

/// What keeps a cluster from being made: machines without the packages of their release would have no network.
fn release_first(cluster: &Cluster, name: &str, known: &Known<'_>) -> Option<String> {
    let first = |why: String| Some(format!("the release comes first: {why}"));
    let annotations = cluster.metadata.annotations.clone().unwrap_or_default();
    let Some(release) = known.release else {
        let kept = annotations.get(annotation::RELEASE_COPY.name);
        let is_kept = name.parse().is_ok_and(|name| copy::is_of(kept, &name));
        let missing = format!("there is no TanzuKubernetesRelease {name}; put it back, or ask for one that is there");
        return if is_kept { None } else { first(missing) };
    };
    let labels = release.metadata.labels.clone().unwrap_or_default();
    let out_of_use = label::EXCLUDED_FROM_RESOLUTION.into_iter().find(|it| it.is_in(&labels));
    if let Some(label) = out_of_use {
        return first(format!("TanzuKubernetesRelease {name} is {label}; ask for one that can be used"));
    }
    let conditions = release.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    if let Some(ready) = condition(conditions, ConditionType::Ready.as_str()).filter(|it| it.status == "False") {
        return first(format!("TanzuKubernetesRelease {name} is not ready: {}", ready.message));
    }
    let needs_template = brings_packages(release) && !annotation::CUSTOM_BOOTSTRAP.is_in(&annotations);
    if needs_template && !known.has_template {
        return first(format!("there is no ClusterBootstrapTemplate {SYSTEM_NAMESPACE}/{name}; put it back"));
    }
    None
}

/// Whether a release has packages. An older one has none, and nobody would ever bring in what machines wait for.
fn brings_packages(release: &TanzuKubernetesRelease) -> bool {
    let is_legacy = release.metadata.labels.as_ref().is_some_and(|labels| label::LEGACY_RELEASE.is_in(labels));
    release.spec.bootstrap_packages.is_some() && !is_legacy
}

/// Whether the release of a cluster has packages, by what there is of it or by the copy that is kept with the cluster. Of one that
/// is nowhere nobody knows: machines wait.
pub(crate) fn has_packages(cluster: &Cluster, known: &Known<'_>) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    let kept = || copy::read(annotations?.get(annotation::RELEASE_COPY.name)?).ok();
    let of_name = |release: &TanzuKubernetesRelease| release.metadata.name.as_deref() == self::release(cluster);
    known.release.map_or_else(|| kept().filter(of_name).is_none_or(|kept| brings_packages(&kept)), brings_packages)
}

/// Whether packages were chosen of the release that a cluster is asked to have.
pub fn is_chosen(release: &str, bootstrap: Option<&ClusterBootstrap>) -> bool {
    let resolved = bootstrap.and_then(|bootstrap| bootstrap.status.as_ref()?.resolved_tkr.as_deref());
    resolved == Some(release)
}

/// What an answer begins with that has machines wait for packages.
const FIRST: &str = "packages of";

/// Whether Cluster API says that it waits for such an answer.
pub(crate) fn is_waited_for(cluster: &Cluster) -> bool {
    let status = cluster.status.as_ref();
    let said = status.and_then(|status| ConditionType::TopologyReconciled.among(&status.conditions));
    said.is_some_and(|said| said.status != "True" && said.message.contains(&format!(": {FIRST} ")))
}

/// Whether somebody wants machines to follow without the packages of this release.
pub(crate) fn goes_on(cluster: &Cluster, release: &str) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    let wanted = annotations.and_then(|annotations| annotations.get(annotation::GO_ON_WITHOUT_PACKAGES.name));
    wanted.is_some_and(|wanted| wanted == release)
}

/// What keeps machines from following the packages of a release.
fn packages_first(release: &str, bootstrap: Option<&ClusterBootstrap>) -> Option<String> {
    let first = |why: &str| Some(format!("{FIRST} {release} come first: {why}"));
    let Some(bootstrap) = bootstrap else { return first("there is no ClusterBootstrap yet") };
    let status = bootstrap.status.clone().unwrap_or_default();
    let ready = condition(&status.conditions, ConditionType::PackagesReady.as_str());
    if !is_chosen(release, Some(bootstrap)) {
        // What keeps them from being chosen is told where it is told of those that are.
        let why = ready
            .filter(|ready| ready.status != "True")
            .map_or("they are not chosen yet", |ready| ready.message.as_str());
        return first(why);
    }
    match ready {
        Some(ready) if ready.status == "True" => None,
        Some(ready) => first(&ready.message),
        None => first("nobody has looked at them yet"),
    }
}

/// What keeps machines until the packages that need them have gone.
fn packages_go_first(cluster: &Cluster) -> Option<String> {
    is_kept(cluster).then(|| "packages that were added to the cluster go first".to_owned())
}

/// Through which versions a control plane goes: the newest that is offered of each minor on the way, and the one that is asked for.
/// Which of them the workers take is left to Cluster API.
pub fn upgrade_plan(question: &Question, offered: &[KubernetesVersion]) -> Answer {
    let hook = HookName::GenerateUpgradePlan;
    let read = |field: &str, text: Option<&String>| -> Result<KubernetesVersion, String> {
        let text = text.ok_or_else(|| format!("{field} is missing"))?;
        text.parse().map_err(|error| format!("{field}: {error}"))
    };
    let ends = read("fromControlPlaneKubernetesVersion", question.from_control_plane_kubernetes_version.as_ref())
        .and_then(|from| Ok((from, read("toKubernetesVersion", question.to_kubernetes_version.as_ref())?)));
    match ends.and_then(|(from, to)| stations(&from, &to, offered)) {
        Ok(versions) => {
            let steps = versions.into_iter().map(|version| UpgradeStep { version: version.to_string() }).collect();
            Answer { control_plane_upgrades: steps, ..Answer::go_on(hook) }
        }
        Err(why) => Answer::failure(hook, why),
    }
}

fn stations(
    from: &KubernetesVersion,
    to: &KubernetesVersion,
    offered: &[KubernetesVersion],
) -> Result<Vec<KubernetesVersion>, String> {
    if from == to {
        return Ok(Vec::new());
    }
    let after = |minor: &MinorVersion| minor.next();
    let minors = std::iter::successors(from.minor().next(), after).take_while(|minor| *minor < to.minor());
    let newest = |minor: MinorVersion| {
        let fitting = offered.iter().filter(|version| version.minor() == minor).max();
        fitting.cloned().ok_or_else(|| format!("there is no release of v{minor}, which is between {from} and {to}"))
    };
    let mut versions = minors.map(newest).collect::<Result<Vec<_>, _>>()?;
    versions.push(to.clone());
    Ok(versions)
}
