//! The table: what a change of each field does, who asks for it, and why it does that.
//!
//! Where Cluster API acts on a change, the rows say what it does: a Machine is never changed into another one, and only what
//! a machine is made from makes it another one.

use super::{Effect, Origin};
use crate::profile::{MachineField, Profile};

/// What a change of a field does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The kind of the object; empty in the row about all kinds that no other row is about.
    pub kind: &'static str,
    /// The field, with all that is in it. Elements of lists are not told apart.
    pub field: &'static str,
    /// What a change does.
    pub effect: Effect,
    /// What it does if the value is lowered.
    pub lowered: Effect,
    /// Who asks for it.
    pub origin: Origin,
    /// Why it does that.
    pub why: &'static str,
    /// Why it does something else if the value is lowered.
    pub lowered_why: &'static str,
}

/// The row for a field, which is written as in `spec.template.spec.version`: of those that it is in, the one about the least.
pub fn rule(kind: &str, field: &str) -> &'static Rule {
    let is_in = |rule: &&Rule| {
        rule.kind == kind
            && field.strip_prefix(rule.field).is_some_and(|rest| {
                rest.is_empty() || rule.field.is_empty() || rest.starts_with('.') || rest.starts_with('[')
            })
    };
    RULES.iter().filter(is_in).max_by_key(|rule| rule.field.len()).unwrap_or(&OTHER)
}

/// The row for a field of a template of machines: what the profile says of it decides, whatever its name.
/// The field is named by its parts within the machine.
pub(super) fn of_template<'n>(profile: &Profile, names: impl Iterator<Item = &'n str>) -> &'static Rule {
    let names: Vec<&str> = names.collect();
    let is_in = |known: Option<&MachineField>| {
        known.is_some_and(|known| known.within().zip(&names).all(|(part, name)| part == *name))
    };
    let known = match () {
        () if is_in(profile.image.as_ref().map(|image| &image.field)) => "spec.template.spec.imageName",
        () if is_in(profile.class.as_ref()) => "spec.template.spec.className",
        () if is_in(profile.storage_class.as_ref()) => "spec.template.spec.storageClass",
        () => "spec.template.spec",
    };
    rule("WCPMachineTemplate", known)
}

const fn row(kind: &'static str, field: &'static str, effect: Effect, origin: Origin, why: &'static str) -> Rule {
    Rule { kind, field, effect, lowered: effect, origin, why, lowered_why: why }
}

impl Rule {
    const fn never_lowered(self, why: &'static str) -> Self {
        Self { lowered: Effect::Refused, lowered_why: why, ..self }
    }
}

use Effect::{Adds, InPlace, Nothing, Refused, Replaces};
use Origin::{Owner, Release, Windlass};

const TKC: &str = "TanzuKubernetesCluster";
const CLUSTER: &str = "Cluster";
const CONTROL_PLANE: &str = "KubeadmControlPlane";
const DEPLOYMENT: &str = "MachineDeployment";

const VERSION: &str = "the programs of a version are on the disk of a machine of that version";
const CLASS: &str = "how much of everything a machine has is decided when it is made";
const STORAGE: &str = "a disk stays where it was made";
/// Why another image is another machine.
pub(crate) const IMAGE: &str =
    "a disk is made from its image once; an image that was renamed or replaced is another one";
const TOLD: &str = "a machine reads what it is told when it first boots, and never again";
const LABELS: &str = "a node says which release it is of when it joins, and add-ons go by that";
const BACK: &str = "what a newer API server has stored need not be readable by an older one";
const COUNT: &str = "the machines that there are stay, and one after the other is made beside them";
const VOTER: &str = "machines of a control plane are never removed: each has a vote in etcd";
const REPLICAS: &str = "machines are made from the template that there is, or go";
const NETWORK: &str = "the addresses of a cluster are in its certificates, its Services and its pods";
const CNI: &str = "pods keep the network that they were started with, and two networks do not know of each other";
const PASSED_ON: &str = "Cluster API passes it on to the machines that there are";
const HOW: &str = "it says how machines are replaced, and not what they are";
const TO_COME: &str = "it counts for machines that are still to come";
const FIXED: &str = "it never changes once the object is there";
const TEMPLATE: &str = "a template is never changed: another template is another machine";
const CLASSY: &str = "what a class makes of it is not known here, so it is taken to replace machines";
const OBJECT: &str = "the object is changed where it is";

/// For kinds that no row is about: the objects of add-ons and packages.
const OTHER: Rule = row("", "", InPlace, Release, OBJECT);

const RULES: &[Rule] = &[
    // What people write.
    row(TKC, "", Nothing, Owner, OBJECT),
    row(TKC, "spec.distribution", Replaces, Owner, VERSION).never_lowered(BACK),
    row(TKC, "spec.topology.controlPlane.count", Adds, Owner, COUNT).never_lowered(VOTER),
    row(TKC, "spec.topology.controlPlane.class", Replaces, Owner, CLASS),
    row(TKC, "spec.topology.controlPlane.storageClass", Replaces, Owner, STORAGE),
    row(TKC, "spec.topology.workers.count", InPlace, Owner, REPLICAS),
    row(TKC, "spec.topology.workers.class", Replaces, Owner, CLASS),
    row(TKC, "spec.topology.workers.storageClass", Replaces, Owner, STORAGE),
    row(TKC, "spec.settings.network", Refused, Owner, NETWORK),
    row(TKC, "spec.settings.network.cni", Refused, Owner, CNI),
    // A machine of the control plane, where we roll it.
    row("Machine", "", InPlace, Windlass, PASSED_ON),
    row("Machine", "spec", Replaces, Windlass, TOLD),
    row("Machine", "spec.version", Replaces, Release, VERSION).never_lowered(BACK),
    row("Machine", "spec.deletion", InPlace, Windlass, OBJECT),
    row("Machine", "spec.minReadySeconds", InPlace, Windlass, OBJECT),
    row("Machine", "spec.readinessGates", InPlace, Windlass, OBJECT),
    row("Machine", "spec.taints", InPlace, Windlass, OBJECT),
    row("WCPMachine", "spec", Replaces, Windlass, TEMPLATE),
    row("WCPMachine", "spec.imageName", Replaces, Release, IMAGE),
    row("WCPMachine", "spec.className", Replaces, Owner, CLASS),
    row("WCPMachine", "spec.storageClass", Replaces, Owner, STORAGE),
    row("KubeadmConfig", "spec", Replaces, Windlass, TOLD),
    row("KubeadmConfig", "spec.initConfiguration.nodeRegistration.kubeletExtraArgs", Replaces, Release, LABELS),
    row("KubeadmConfig", "spec.joinConfiguration.nodeRegistration.kubeletExtraArgs", Replaces, Release, LABELS),
    // A pool of workers.
    row(DEPLOYMENT, "", InPlace, Windlass, OBJECT),
    row(DEPLOYMENT, "spec.clusterName", Refused, Windlass, FIXED),
    row(DEPLOYMENT, "spec.selector", Refused, Windlass, FIXED),
    row(DEPLOYMENT, "spec.replicas", InPlace, Owner, REPLICAS),
    row(DEPLOYMENT, "spec.rollout", InPlace, Windlass, HOW),
    row(DEPLOYMENT, "spec.rollout.after", Replaces, Owner, "at that time all machines that are older are replaced"),
    row(DEPLOYMENT, "spec.deletion", InPlace, Windlass, HOW),
    row(DEPLOYMENT, "spec.machineNaming", Nothing, Windlass, TO_COME),
    row(DEPLOYMENT, "spec.remediation", Nothing, Windlass, HOW),
    row(DEPLOYMENT, "spec.template.metadata", InPlace, Windlass, PASSED_ON),
    row(DEPLOYMENT, "spec.template.spec", Replaces, Windlass, TOLD),
    row(DEPLOYMENT, "spec.template.spec.version", Replaces, Release, VERSION).never_lowered(BACK),
    row(DEPLOYMENT, "spec.template.spec.infrastructureRef", Replaces, Release, TEMPLATE),
    row(DEPLOYMENT, "spec.template.spec.bootstrap", Replaces, Release, TEMPLATE),
    row(DEPLOYMENT, "spec.template.spec.deletion", InPlace, Windlass, PASSED_ON),
    row(DEPLOYMENT, "spec.template.spec.minReadySeconds", InPlace, Windlass, PASSED_ON),
    row(DEPLOYMENT, "spec.template.spec.readinessGates", InPlace, Windlass, PASSED_ON),
    row(DEPLOYMENT, "spec.template.spec.taints", InPlace, Windlass, PASSED_ON),
    row("WCPMachineTemplate", "spec", Replaces, Windlass, TEMPLATE),
    row("WCPMachineTemplate", "spec.template.spec.imageName", Replaces, Release, IMAGE),
    row("WCPMachineTemplate", "spec.template.spec.className", Replaces, Owner, CLASS),
    row("WCPMachineTemplate", "spec.template.spec.storageClass", Replaces, Owner, STORAGE),
    row("KubeadmConfigTemplate", "spec", Replaces, Windlass, TOLD),
    row(
        "KubeadmConfigTemplate",
        "spec.template.spec.joinConfiguration.nodeRegistration.kubeletExtraArgs",
        Replaces,
        Release,
        LABELS,
    ),
    // A control plane that Cluster API rolls.
    row(CONTROL_PLANE, "", InPlace, Windlass, OBJECT),
    row(CONTROL_PLANE, "spec.version", Replaces, Release, VERSION).never_lowered(BACK),
    row(CONTROL_PLANE, "spec.replicas", Adds, Owner, COUNT).never_lowered(VOTER),
    row(CONTROL_PLANE, "spec.machineTemplate.metadata", InPlace, Windlass, PASSED_ON),
    row(CONTROL_PLANE, "spec.machineTemplate.spec", InPlace, Windlass, PASSED_ON),
    row(CONTROL_PLANE, "spec.machineTemplate.spec.infrastructureRef", Replaces, Release, TEMPLATE),
    row(CONTROL_PLANE, "spec.rollout", InPlace, Windlass, HOW),
    row(CONTROL_PLANE, "spec.rollout.after", Replaces, Owner, "at that time all machines that are older are replaced"),
    row(
        CONTROL_PLANE,
        "spec.rollout.before",
        Replaces,
        Owner,
        "machines are replaced before their certificates expire",
    ),
    row(CONTROL_PLANE, "spec.remediation", Nothing, Windlass, HOW),
    row(CONTROL_PLANE, "spec.machineNaming", Nothing, Windlass, TO_COME),
    row(CONTROL_PLANE, "spec.kubeadmConfigSpec", Replaces, Windlass, TOLD),
    row(CONTROL_PLANE, "spec.kubeadmConfigSpec.clusterConfiguration.imageRepository", Replaces, Release, TOLD),
    row(CONTROL_PLANE, "spec.kubeadmConfigSpec.clusterConfiguration.etcd", Replaces, Release, TOLD),
    row(
        CONTROL_PLANE,
        "spec.kubeadmConfigSpec.clusterConfiguration.dns",
        InPlace,
        Release,
        "Cluster API changes CoreDNS in the workload cluster, and no machine",
    ),
    row(CONTROL_PLANE, "spec.kubeadmConfigSpec.clusterConfiguration.controlPlaneEndpoint", Nothing, Windlass, FIXED),
    row(CONTROL_PLANE, "spec.kubeadmConfigSpec.joinConfiguration.discovery", Nothing, Windlass, TO_COME),
    row(
        CONTROL_PLANE,
        "spec.kubeadmConfigSpec.joinConfiguration.nodeRegistration.kubeletExtraArgs",
        Replaces,
        Release,
        LABELS,
    ),
    row(
        CONTROL_PLANE,
        "spec.kubeadmConfigSpec.initConfiguration.nodeRegistration.kubeletExtraArgs",
        Replaces,
        Release,
        LABELS,
    ),
    // A cluster of a class, and what every Cluster has.
    row(CLUSTER, "", InPlace, Windlass, OBJECT),
    row(CLUSTER, "spec.clusterNetwork", Refused, Owner, NETWORK),
    row(CLUSTER, "spec.controlPlaneRef", Refused, Windlass, FIXED),
    row(CLUSTER, "spec.infrastructureRef", Refused, Windlass, FIXED),
    row(CLUSTER, "spec.controlPlaneEndpoint", Refused, Windlass, FIXED),
    row(CLUSTER, "spec.topology", Replaces, Windlass, CLASSY),
    row(CLUSTER, "spec.topology.version", Replaces, Release, VERSION).never_lowered(BACK),
    row(CLUSTER, "spec.topology.classRef", Replaces, Owner, CLASSY),
    row(CLUSTER, "spec.topology.variables", Replaces, Release, CLASSY),
    row(CLUSTER, "spec.topology.controlPlane", InPlace, Windlass, PASSED_ON),
    row(CLUSTER, "spec.topology.controlPlane.replicas", Adds, Owner, COUNT).never_lowered(VOTER),
    row(CLUSTER, "spec.topology.controlPlane.variables", Replaces, Owner, CLASSY),
    row(CLUSTER, "spec.topology.workers.machineDeployments", InPlace, Windlass, PASSED_ON),
    row(CLUSTER, "spec.topology.workers.machineDeployments.class", Refused, Owner, FIXED),
    row(CLUSTER, "spec.topology.workers.machineDeployments.failureDomain", Replaces, Owner, TOLD),
    row(CLUSTER, "spec.topology.workers.machineDeployments.replicas", InPlace, Owner, REPLICAS),
    row(CLUSTER, "spec.topology.workers.machineDeployments.variables", Replaces, Owner, CLASSY),
];

#[cfg(test)]
pub(super) fn all() -> &'static [Rule] {
    RULES
}
