//! Versions that do not go together.

use windlass_api::version::{KubernetesVersion, facts};

use super::evidence::{Evidence, Node};
use super::{Found, Risk, RiskId, Severity};

pub(super) fn check(evidence: &Evidence, found: &mut Found) {
    // The versions of machines that stay are not asked for anything new.
    if !evidence.rolls.control_plane {
        return;
    }
    let Some(to) = found.read_one(&[RiskId::SkewKubelet, RiskId::SkewEtcd], &evidence.to) else { return };
    for node in found.read(&[RiskId::SkewKubelet], &evidence.nodes) {
        found.risks.extend(kubelet(node, &to.kubernetes));
    }
    // Without a tag, etcd is what kubeadm has for its own version, and that fits.
    let Some(tag) = &to.etcd else { return };
    let Ok(wanted) = tag.parse::<KubernetesVersion>() else { return };
    for member in found.read(&[RiskId::SkewEtcd], &evidence.members) {
        let Some(at) = &member.version else { continue };
        let Some(why) = etcd_step(at, &wanted) else { continue };
        found.raise(Risk {
            severity: Severity::Blocks,
            id: RiskId::SkewEtcd,
            object: format!("Member {}", member.shown()),
            message: format!("it runs etcd {at}, and the release has {wanted}: {why}"),
            because: vec!["members of both live side by side while the control plane is replaced".to_owned()],
            way_out: "ask for a release with an etcd between the two".to_owned(),
        });
    }
}

fn kubelet(node: &Node, to: &KubernetesVersion) -> Option<Risk> {
    let at = node.kubelet.as_ref()?;
    let max = facts::behind_max(at);
    let why = if at.distance_from(to).is_within(max, u64::MAX) {
        (at.minor() > to.minor()).then_some("a kubelet may not be newer than an API server".to_owned())
    } else {
        Some(format!("a kubelet of {} may be at most {max} minors behind", at.minor()))
    }?;
    Some(Risk {
        severity: Severity::Blocks,
        id: RiskId::SkewKubelet,
        object: format!("Node {}", node.name),
        message: format!("its kubelet has {at}, and API servers would have {to}: {why}"),
        because: vec![format!("the kubelet is {}", at.distance_from(to))],
        way_out: format!("update or remove the node {} first, or ask for a nearer release", node.name),
    })
}

fn etcd_step(at: &KubernetesVersion, to: &KubernetesVersion) -> Option<String> {
    if to < at {
        return Some("that is older, and etcd never goes back".to_owned());
    }
    if !to.distance_from(at).is_within(0, 1) {
        return Some("that is more than one minor ahead".to_owned());
    }
    let floor = facts::etcd_floor(at.minor(), to.minor()).filter(|floor| at.patch() < *floor)?;
    Some(format!("every member must have at least {}.{floor} before", at.minor()))
}
