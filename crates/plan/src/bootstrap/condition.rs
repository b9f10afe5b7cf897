//! How far the packages of a cluster are, as conditions of its `ClusterBootstrap`.
//!
//! Each package has one, `Antrea-ReconcileSucceeded`, whose type says how it is. Whose a condition is, is read from its whole
//! type: by a part of it, `Antrea` would take those of `Antrea-Extra` for its own.

use jiff::Timestamp;
use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::kind::packaging::{PackageInstall, is_true};
use windlass_api::kind::{Condition, condition};

use super::blocked::is_decision;
use super::{Blocked, Installed, Listed};

/// How a package can be, in the order in which it is asked.
const STATES: [ConditionType; 5] = [
    ConditionType::Reconciling,
    ConditionType::ReconcileFailed,
    ConditionType::ReconcileSucceeded,
    ConditionType::Deleting,
    ConditionType::DeleteFailed,
];

/// The conditions that are not of one package.
const OF_ALL: [ConditionType; 3] =
    [ConditionType::PackagesReady, ConditionType::Stalled, ConditionType::PackagesOutsideRelease];

/// What is useful in a message of kapp-controller begins so.
const USEFUL: &str = "kapp: Error";

/// A package as conditions name it: `Kapp-Controller`.
pub fn title(short: &str) -> String {
    let mut after_letter = false;
    let letter = |character: char| {
        let first = !after_letter;
        after_letter = character.is_alphanumeric();
        if first { character.to_ascii_uppercase() } else { character }
    };
    short.chars().map(letter).collect()
}

/// Which package a condition is of, as it is named there; nothing if it is of none.
fn package_of(type_: &str) -> Option<&str> {
    STATES.iter().find_map(|state| type_.strip_suffix(state.as_str())?.strip_suffix('-'))
}

/// The part of a message that people can do something with.
pub(super) fn useful(message: &str) -> &str {
    message.find(USEFUL).and_then(|at| message.get(at..)).unwrap_or(message)
}

/// How a package is, not dated yet; nothing where there is none.
fn of_package(listed: &Listed, install: &PackageInstall) -> Option<Condition> {
    let status = install.status.clone().unwrap_or_default();
    let current = status.observed_generation == install.metadata.generation;
    // What was found out for an earlier state of it says nothing about this one.
    let state = if current {
        STATES.into_iter().find(|state| is_true(&status.conditions, state.as_str()))?
    } else {
        ConditionType::Reconciling
    };
    let message = status.useful_error_message.unwrap_or_default();
    Some(Condition {
        type_: format!("{}-{}", title(listed.short()), state.as_str()),
        status: ConditionStatus::True.as_str().to_owned(),
        observed_generation: None,
        last_transition_time: String::new(),
        reason: state.as_str().to_owned(),
        message: useful(&message).to_owned(),
    })
}

/// A package that cannot even be written.
fn of_blocked(listed: &Listed, blocked: &Blocked) -> Condition {
    Condition {
        type_: format!("{}-{}", title(listed.short()), ConditionType::ReconcileFailed.as_str()),
        status: ConditionStatus::True.as_str().to_owned(),
        observed_generation: None,
        last_transition_time: String::new(),
        reason: blocked.reason().to_owned(),
        message: blocked.told(),
    }
}

/// What there is to tell of one package.
pub(super) struct Told<'a> {
    pub listed: &'a Listed,
    pub installed: Option<&'a Installed>,
    pub blocked: Option<&'a Blocked>,
    /// It could not be asked: what was told last stands.
    pub unknown: bool,
}

/// What is told of all packages together.
pub(super) struct Gate<'a> {
    pub blocked: Option<&'a Blocked>,
    /// What is said once it has lasted too long.
    pub stalled: Option<String>,
    /// Packages that the release does not have.
    pub outside: Vec<String>,
}

/// The conditions of a `ClusterBootstrap`. Those of others are left as they are.
pub(super) fn conditions(
    before: &[Condition],
    packages: &[Told<'_>],
    gate: &Gate<'_>,
    now: Timestamp,
) -> Vec<Condition> {
    let is_ours = |type_: &str| OF_ALL.iter().any(|known| known.as_str() == type_) || package_of(type_).is_some();
    let mut conditions: Vec<Condition> = before.iter().filter(|known| !is_ours(&known.type_)).cloned().collect();
    for told in packages {
        let name = title(told.listed.short());
        let install = told.installed.and_then(|installed| installed.install.as_ref());
        match (told.blocked, install) {
            (Some(blocked), _) => conditions.push(of_blocked(told.listed, blocked)),
            (None, Some(install)) => conditions.extend(of_package(told.listed, install)),
            (None, None) if told.unknown => {
                conditions.extend(before.iter().find(|known| package_of(&known.type_) == Some(&name)).cloned());
            }
            (None, None) => {}
        }
    }
    conditions.extend(of_all(gate));
    dated(before, conditions, now)
}

/// The conditions while nothing new is known of the packages.
pub(super) fn with_gate(before: &[Condition], gate: &Gate<'_>, now: Timestamp) -> Vec<Condition> {
    let conditions = of_packages_only(before).into_iter().chain(of_all(gate)).collect();
    dated(before, conditions, now)
}

/// Gives each condition the time at which its status last changed.
fn dated(before: &[Condition], mut conditions: Vec<Condition>, now: Timestamp) -> Vec<Condition> {
    for new in &mut conditions {
        // Since when machines wait for packages does not begin while somebody decides whether packages come at all.
        let same = |old: &&Condition| old.status == new.status && is_decision(&old.reason) == is_decision(&new.reason);
        let old = condition(before, &new.type_).filter(same);
        let at = || now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        new.last_transition_time = old.map_or_else(at, |old| old.last_transition_time.clone());
    }
    conditions
}

/// What is told of all packages together, not dated yet.
fn of_all(gate: &Gate<'_>) -> Vec<Condition> {
    let of = |type_: ConditionType, status: ConditionStatus, reason: &str, message: String| Condition {
        type_: type_.as_str().to_owned(),
        status: status.as_str().to_owned(),
        observed_generation: None,
        last_transition_time: String::new(),
        reason: reason.to_owned(),
        message,
    };
    let reason = gate.blocked.map(Blocked::reason);
    let told = gate.blocked.map(Blocked::told);
    let ready = if gate.blocked.is_none() { ConditionStatus::True } else { ConditionStatus::False };
    let mut all = vec![of(ConditionType::PackagesReady, ready, reason.unwrap_or("AllWell"), told.unwrap_or_default())];
    all.push(match &gate.stalled {
        Some(message) => {
            of(ConditionType::Stalled, ConditionStatus::True, reason.unwrap_or("Stalled"), message.clone())
        }
        None => of(ConditionType::Stalled, ConditionStatus::False, "Moving", String::new()),
    });
    if !gate.outside.is_empty() {
        let message = format!(
            "the release has no version of {}: they stay as they are; raise their versions in spec.additionalPackages",
            gate.outside.join(", ")
        );
        all.push(of(ConditionType::PackagesOutsideRelease, ConditionStatus::True, "NotInRelease", message));
    }
    all
}

/// Since when machines have waited for packages.
pub(super) fn waiting_since(before: &[Condition]) -> Option<Timestamp> {
    let ready = ConditionType::PackagesReady.among(before).filter(|ready| !is_decision(&ready.reason))?;
    if ready.status == ConditionStatus::False.as_str() { ready.last_transition_time.parse().ok() } else { None }
}

/// What stays when the release changes: how long it was waited for the last one does not count for the next.
pub(super) fn of_packages_only(conditions: &[Condition]) -> Vec<Condition> {
    let of_all = |type_: &str| OF_ALL.iter().any(|known| known.as_str() == type_);
    conditions.iter().filter(|condition| !of_all(&condition.type_)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_belongs_to_the_package_that_its_whole_type_names() {
        assert_eq!(title("kapp-controller"), "Kapp-Controller");
        assert_eq!(title("antrea"), "Antrea");
        assert_eq!(title("vsphere-pv-csi2"), "Vsphere-Pv-Csi2");
        assert_eq!(package_of("Antrea-Extra-ReconcileSucceeded"), Some("Antrea-Extra"));
        assert_eq!(package_of("Antrea-ReconcileFailed"), Some("Antrea"));
        assert_eq!(package_of("Antrea-Ready"), None);
        assert_eq!(package_of("Deleting"), None);
    }

    #[test]
    fn of_a_message_the_useful_part_is_told() {
        assert_eq!(useful("Deploying: exit 1, kapp: Error: no"), "kapp: Error: no");
        assert_eq!(useful("no version"), "no version");
    }
}
