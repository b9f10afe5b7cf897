//! What is different about a control plane that Cluster API rolls.

use serde_json::{Value, json};

use super::machines::{Sort, shown, template};
use super::{Effect, FieldChange, classic, rule};
use crate::diff;
use crate::inventory::KubeadmControlPlane;
use crate::planner::role;
use crate::render::{Scope, kubeadm, kubeadm_control_plane};
use crate::step::Stage;

const KIND: &str = "KubeadmControlPlane";
const STAGE: Stage = Stage::ControlPlane;

/// A control plane that is not there yet.
pub(crate) fn new(scope: &Scope<'_>) -> FieldChange {
    let field = "spec.replicas";
    let to = Some(scope.target.control_plane.count.to_string());
    FieldChange::of(STAGE, role::CONTROL_PLANE, rule(KIND, field), field, None, to)
}

/// What is different about one that is there.
pub(crate) fn changes(scope: &Scope<'_>, observed: &KubeadmControlPlane) -> Vec<FieldChange> {
    let (role, release) = (role::CONTROL_PLANE, &scope.target.release);
    if let Some(fields) = &scope.target.fields {
        let mut changes = classic::object((STAGE, role), KIND, &observed.live, &fields.control_plane);
        changes.extend(template_changes(scope, observed));
        return changes;
    }
    let version = FieldChange::ordered(STAGE, role, (KIND, "spec.version"), &observed.version, &release.kubernetes);
    let mut changes: Vec<FieldChange> = version.into_iter().collect();
    changes.extend(template_changes(scope, observed));
    changes.extend(configuration(scope, &observed.configuration));
    changes.extend(count(role, (KIND, "spec.replicas"), observed.replicas, scope.target.control_plane.count));
    changes
}

/// What is different about the template that its machines are made from.
pub(crate) fn template_changes(scope: &Scope<'_>, observed: &KubeadmControlPlane) -> Vec<FieldChange> {
    let desired = kubeadm_control_plane::template_spec(scope);
    let made_from = Sort::Infrastructure(scope.target.control_plane_profile());
    template((STAGE, role::CONTROL_PLANE), made_from, &desired, &observed.infrastructure_template)
}

/// The number of machines. Nothing is replaced when it grows, and nothing new is there that people would have to know by name.
pub(super) fn count(role: &str, of: (&str, &str), from: u32, to: u32) -> Option<FieldChange> {
    let change = FieldChange::ordered(STAGE, role, of, &from, &to)?;
    let effect = if change.effect == Effect::Adds { Effect::InPlace } else { change.effect };
    Some(FieldChange { effect, ..change })
}

/// What only its first machine was told is done, and no difference any more.
fn configuration(scope: &Scope<'_>, live: &Value) -> Vec<FieldChange> {
    let mut desired = json!(kubeadm::control_plane(scope));
    if let Some(desired) = desired.as_object_mut() {
        desired.remove("initConfiguration");
    }
    let different = diff::differences(&desired, live);
    let [live, desired] = [live, &desired].map(diff::redacted);
    let change = |difference: diff::Difference| {
        let path = difference.path;
        let field = format!("spec.kubeadmConfigSpec.{}", path.fields());
        let shown = |side: &Value| path.get(side).map(shown);
        FieldChange::of(STAGE, role::CONTROL_PLANE, rule(KIND, &field), &field, shown(&live), shown(&desired))
    };
    different.into_iter().map(change).collect()
}
