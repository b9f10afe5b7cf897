//! Why a machine of a control plane is replaced.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_api::annotation;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::wcp::WCPMachine;
use windlass_runtime::key::Key;

use super::wire;
use crate::management::context::{Error, Turn};

/// How long the certificates that kubeadm makes are good for.
const CERTIFICATES_LAST: SignedDuration = SignedDuration::from_hours(365 * 24);

/// The reasons, in the words of Cluster API. None of them: the machine is as it should be.
pub(super) async fn reasons(
    turn: &Turn,
    control_plane: &KubeadmControlPlane,
    wish: &Value,
    machine: &Machine,
) -> Result<Vec<String>, Error> {
    let mut reasons: Vec<String> =
        by_time(control_plane, machine, turn.clock.now()).into_iter().map(str::to_owned).collect();
    let (has, wanted) = (machine.spec.version.as_deref().unwrap_or_default(), &control_plane.spec.version);
    if has != wanted {
        reasons.push(format!("Version {has}, {wanted} required"));
    }
    if is_of_another_template(turn, control_plane, machine) {
        reasons.push(format!("{} is not up-to-date", machine.spec.infrastructure_ref.kind));
    }
    if was_told_otherwise(turn, wish, machine).await? {
        reasons.push("KubeadmConfig is not up-to-date".to_owned());
    }
    Ok(reasons)
}

/// What time alone brings about.
fn by_time(control_plane: &KubeadmControlPlane, machine: &Machine, now: Timestamp) -> Vec<&'static str> {
    let mut reasons = Vec::new();
    if rolls_after(control_plane).is_some_and(|after| after <= now && created(machine) < after) {
        reasons.push("KubeadmControlPlane spec.rollout.after expired");
    }
    if renewal_due(control_plane, machine).is_some_and(|due| due <= now) {
        reasons.push("Certificates will expire soon");
    }
    reasons
}

/// When time alone will next bring about that a machine is replaced.
pub(super) fn next_by_time(
    control_plane: &KubeadmControlPlane,
    machine: &Machine,
    now: Timestamp,
) -> Option<Timestamp> {
    let after = rolls_after(control_plane);
    [after, renewal_due(control_plane, machine)].into_iter().flatten().filter(|at| *at > now).min()
}

fn rolls_after(control_plane: &KubeadmControlPlane) -> Option<Timestamp> {
    control_plane.spec.rollout.as_ref()?.after.as_ref()?.parse().ok()
}

/// When the machine's certificates are to be replaced. Where nobody says when they expire, kubeadm made them with the machine.
fn renewal_due(control_plane: &KubeadmControlPlane, machine: &Machine) -> Option<Timestamp> {
    let days = control_plane.spec.rollout.as_ref()?.before.as_ref()?.certificates_expiry_days?;
    let said = machine.metadata.annotations.as_ref();
    let said = said.and_then(|all| all.get(annotation::CERTIFICATES_EXPIRY.name)?.parse::<Timestamp>().ok());
    let expire = match said {
        Some(at) => at,
        None => created(machine).checked_add(CERTIFICATES_LAST).ok()?,
    };
    expire.checked_sub(SignedDuration::from_hours(i64::from(days) * 24)).ok()
}

fn created(machine: &Machine) -> Timestamp {
    machine.metadata.creation_timestamp.as_ref().map_or(Timestamp::MAX, |at| at.0)
}

/// Whether the machine's infrastructure was cloned from another template. One that does not say counts as cloned from this.
fn is_of_another_template(turn: &Turn, control_plane: &KubeadmControlPlane, machine: &Machine) -> bool {
    let (made_as, namespace) = (&machine.spec.infrastructure_ref, machine.metadata.namespace.as_deref());
    let Some(infrastructure) = turn.caches.provided::<WCPMachine>(made_as, namespace) else { return false };
    let Some(annotations) = infrastructure.metadata.annotations.as_ref() else { return false };
    let template = &control_plane.spec.machine_template.spec.infrastructure_ref;
    let group_kind = format!("{}.{}", template.kind, template.api_group);
    let differs = |key: &str, wanted: &str| annotations.get(key).is_some_and(|found| found != wanted);
    differs(annotation::CLONED_FROM_NAME.name, &template.name)
        || differs(annotation::CLONED_FROM_GROUP_KIND.name, &group_kind)
}

/// Whether kubeadm was told something else on the machine. One whose configuration is gone is left alone.
async fn was_told_otherwise(turn: &Turn, wish: &Value, machine: &Machine) -> Result<bool, Error> {
    let Some(config) = &machine.spec.bootstrap.config_ref else { return Ok(false) };
    let key = Key { namespace: machine.metadata.namespace.clone(), name: config.name.clone() };
    let Some(config) = turn.caches.bootstraps.get(&key) else { return Ok(false) };
    let Some(told) = wire::told(turn, &config).await? else { return Ok(false) };
    let wanted = if config.spec.join_configuration.is_some() { wire::joins(wish) } else { wire::begins(wish) };
    Ok(told != wire::hash(&wanted))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(rollout: &Value, now: &str, expected: &[&str], next: Option<&str>) {
        let mut control_plane = KubeadmControlPlane::default();
        control_plane.spec.rollout = serde_json::from_value(rollout.clone()).unwrap();
        let mut machine = Machine::default();
        machine.metadata.creation_timestamp = Some(Time("2026-01-01T00:00:00Z".parse().unwrap()));
        let now = now.parse().unwrap();
        assert_eq!(by_time(&control_plane, &machine, now), expected, "{rollout} at {now}");
        assert_eq!(next_by_time(&control_plane, &machine, now), next.map(|at| at.parse().unwrap()), "{rollout}");
    }

    #[test]
    fn machines_are_replaced_after_a_time_and_before_their_certificates_expire() {
        const DUE: &str = "2026-12-22T00:00:00Z";
        let after = json!({"after": "2026-02-01T00:00:00Z"});
        check(&after, "2026-01-31T00:00:00Z", &[], Some("2026-02-01T00:00:00Z"));
        check(&after, "2026-02-01T00:00:00Z", &["KubeadmControlPlane spec.rollout.after expired"], None);
        check(&json!({"after": "2025-12-01T00:00:00Z"}), "2026-02-01T00:00:00Z", &[], None);
        let before = json!({"before": {"certificatesExpiryDays": 10}});
        check(&before, "2026-12-21T23:59:59Z", &[], Some(DUE));
        check(&before, DUE, &["Certificates will expire soon"], None);
        check(&json!({}), "2030-01-01T00:00:00Z", &[], None);
    }
}
