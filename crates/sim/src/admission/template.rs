//! Templates that are not changed: whoever wants other machines makes another template.
//!
//! `KubeadmConfigTemplate`s are not among them: Cluster API lets them be changed.

use windlass_api::annotation;
use windlass_apiserver::field::FieldError;

use super::{Asked, Verdict};

pub(super) fn judge_machine(asked: &Asked<'_>) -> Verdict {
    // By contract, one who only tries what a topology would become is let through.
    let annotations = &asked.object["metadata"]["annotations"];
    if asked.dry_run && annotations.get(annotation::TOPOLOGY_DRY_RUN.name).is_some() {
        return Verdict::default();
    }
    judge(asked, "WCPMachineTemplate", "a new resource")
}

pub(super) fn judge_control_plane(asked: &Asked<'_>) -> Verdict {
    judge(asked, "KubeadmControlPlaneTemplate", "new resource")
}

fn judge(asked: &Asked<'_>, kind: &str, instead: &str) -> Verdict {
    let Some(before) = asked.before else { return Verdict::default() };
    let spec = &asked.object["spec"]["template"]["spec"];
    if before["spec"]["template"]["spec"] == *spec {
        return Verdict::default();
    }
    let why = format!("{kind} spec.template.spec field is immutable. Please create {instead} instead.");
    vec![FieldError::invalid("spec.template.spec", spec.clone(), why)].into()
}
