use super::rule::all;
use super::*;

#[test]
fn every_row_can_be_found_and_none_is_there_twice() {
    for found in all() {
        assert_eq!(rule(found.kind, found.field), found, "{} {}", found.kind, found.field);
        let same = all().iter().filter(|other| (other.kind, other.field) == (found.kind, found.field));
        assert_eq!(same.count(), 1, "{} {}", found.kind, found.field);
    }
}

fn check(kind: &str, field: &str, effect: Effect, origin: Origin) {
    let found = rule(kind, field);
    assert_eq!((found.effect, found.origin), (effect, origin), "{kind} {field}: {found:?}");
}

#[test]
fn the_row_about_the_least_counts() {
    use Effect::{Adds, InPlace, Nothing, Refused, Replaces};
    use Origin::{Owner, Release, Windlass};
    check("MachineDeployment", "spec.template.spec.version", Replaces, Release);
    check("MachineDeployment", "spec.template.spec.failureDomain", Replaces, Windlass);
    check("MachineDeployment", "spec.template.spec.deletion.nodeDrainTimeoutSeconds", InPlace, Windlass);
    check("MachineDeployment", "spec.template.metadata.labels", InPlace, Windlass);
    check("MachineDeployment", "spec.rollout.strategy.rollingUpdate.maxSurge", InPlace, Windlass);
    check("MachineDeployment", "spec.replicas", InPlace, Owner);
    // A field whose name only begins so is another one.
    check("MachineDeployment", "spec.replicasMax", InPlace, Windlass);
    check("KubeadmControlPlane", "spec.replicas", Adds, Owner);
    check("KubeadmControlPlane", "spec.kubeadmConfigSpec.files", Replaces, Windlass);
    check("KubeadmControlPlane", "spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag", InPlace, Release);
    check("KubeadmControlPlane", "spec.kubeadmConfigSpec.clusterConfiguration.etcd.local.imageTag", Replaces, Release);
    check(
        "KubeadmControlPlane",
        "spec.kubeadmConfigSpec.joinConfiguration.discovery.bootstrapToken",
        Nothing,
        Windlass,
    );
    check("Cluster", "spec.topology.version", Replaces, Release);
    check("Cluster", "spec.topology.workers.machineDeployments.replicas", InPlace, Owner);
    check("Cluster", "spec.clusterNetwork.pods.cidrBlocks", Refused, Owner);
    check("TanzuKubernetesCluster", "metadata.annotations", Nothing, Owner);
    check("ConfigMap", "data.key", InPlace, Release);
}

#[test]
fn versions_and_the_control_plane_are_never_lowered() {
    for (kind, field) in [
        ("Machine", "spec.version"),
        ("MachineDeployment", "spec.template.spec.version"),
        ("KubeadmControlPlane", "spec.version"),
        ("KubeadmControlPlane", "spec.replicas"),
        ("Cluster", "spec.topology.version"),
        ("Cluster", "spec.topology.controlPlane.replicas"),
        ("TanzuKubernetesCluster", "spec.topology.controlPlane.count"),
    ] {
        let raised = FieldChange::ordered(Stage::ControlPlane, "r", (kind, field), &1, &3).unwrap();
        let lowered = FieldChange::ordered(Stage::ControlPlane, "r", (kind, field), &3, &1).unwrap();
        assert!(matches!(raised.effect, Effect::Adds | Effect::Replaces), "{raised:?}");
        assert_eq!(lowered.effect, Effect::Refused, "{lowered:?}");
        assert_ne!(raised.why, lowered.why);
        assert_eq!(FieldChange::ordered(Stage::ControlPlane, "r", (kind, field), &3, &3), None);
    }
}

/// The line about one field of a pool.
fn check_line(kind: &str, field: &str, line: &str) {
    let [from, to] = ["a", "b"].map(|text| Some(text.to_owned()));
    let change = FieldChange::of(Stage::Workers, "workers/default", rule(kind, field), field, from, to);
    assert_eq!(lines(&[change]), [line]);
}

#[test]
fn what_only_this_windlass_asks_for_is_said_to_be() {
    check_line(
        "KubeadmConfigTemplate",
        "spec.template.spec.joinConfiguration.nodeRegistration.taints",
        "workers/default: another bootstrap configuration (default of this Windlass: \
         spec.template.spec.joinConfiguration.nodeRegistration.taints), forces replacement: bootstrap",
    );
    check_line(
        "KubeadmConfigTemplate",
        "spec.template.spec.joinConfiguration.nodeRegistration.kubeletExtraArgs.value",
        "workers/default: another bootstrap configuration, forces replacement: bootstrap",
    );
    check_line(
        "MachineDeployment",
        "spec.rollout.strategy.rollingUpdate.maxSurge",
        "workers/default: maxSurge a -> b (default of this Windlass)",
    );
    check_line(
        "WCPMachineTemplate",
        "spec.template.spec.className",
        "workers/default: class a -> b, forces replacement: className",
    );
    check_line(
        "MachineDeployment",
        "spec.selector",
        "workers/default: selector a -> b (default of this Windlass), refused: it never changes once the object is there",
    );
}

#[test]
fn what_does_nothing_is_not_told() {
    let field = "spec.machineNaming.template";
    let found = rule("MachineDeployment", field);
    let change = FieldChange::of(Stage::Workers, "workers/default", found, field, None, None);
    assert_eq!(lines(&[change]), [""; 0]);
}
