//! The definitions of kinds that belong to others: of Cluster API, of Carvel, of whoever makes machines, and of the values of
//! packages.
//!
//! They are a table: names and columns are those of the originals, and any field is kept as it is given. What is spelled out of
//! a shape is what others rely on: the type of a condition is its key in the list, and `replicas` has a default.
//!
//! `crds/` has them as files, for a real API server.

mod row;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{ApiResource, GroupVersionKind};
use windlass_api::kind::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use windlass_api::kind::cluster_api::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::kind::control_plane::{KubeadmControlPlane, KubeadmControlPlaneTemplate};
use windlass_api::kind::extension::ExtensionConfig;
use windlass_api::kind::machine_health::{MachineDrainRule, MachineHealthCheck};
use windlass_api::kind::package_values::{
    AntreaConfig, CalicoConfig, KappControllerConfig, VSphereCPIConfig, VSphereCSIConfig,
};
use windlass_api::kind::packaging::{App, Package, PackageInstall, PackageMetadata, PackageRepository};
use windlass_api::kind::topology::ClusterClass;
use windlass_api::kind::virtual_machine::{VirtualMachineClass, VirtualMachineImage};

use row::{CLUSTER_NAME, Column, Foreign, boolean, condition, date, foreign_kind, foreign_resource, integer, text};

/// All of them, sorted by name.
pub fn foreign() -> Vec<CustomResourceDefinition> {
    let rows = core().into_iter().chain(providers()).chain(packages()).chain(values()).chain(machines());
    let mut all: Vec<_> = rows.map(|row| row.definition()).collect();
    all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    all
}

/// Cluster API itself.
fn core() -> [Foreign; 8] {
    let core = |row: Foreign| row.of("cluster-api").provided_by("cluster-api");
    [
        core(foreign_kind::<Cluster>("A cluster.").short(&["cl"]).columns(CLUSTER)),
        core(foreign_kind::<ClusterClass>("How clusters of a class are made.").short(&["cc"]).columns(&[
            PAUSED,
            condition("Variables Ready", "VariablesReady"),
            AGE,
        ])),
        core(foreign_kind::<Machine>("A machine.").short(&["ma"]).with(CLUSTER_NAME).columns(MACHINE)),
        core(
            foreign_kind::<MachineSet>("A number of machines that are alike.")
                .short(&["ms"])
                .with(CLUSTER_NAME)
                .scaled()
                .columns(MACHINE_SET),
        ),
        core(
            foreign_kind::<MachineDeployment>("Machines that are replaced by newer ones, a few at a time.")
                .short(&["md"])
                .with(CLUSTER_NAME)
                .scaled()
                .columns(MACHINE_DEPLOYMENT),
        ),
        core(
            foreign_kind::<MachineHealthCheck>("When machines are replaced because something is wrong with them.")
                .short(&["mhc", "mhcs"])
                .with(CLUSTER_NAME)
                .columns(MACHINE_HEALTH_CHECK),
        ),
        core(foreign_kind::<MachineDrainRule>("How pods leave a machine that goes.").without_status().columns(&[
            text("Behavior", ".spec.drain.behavior"),
            text("Order", ".spec.drain.order"),
            AGE,
        ])),
        core(
            foreign_kind::<ExtensionConfig>("Whom Cluster API asks before it goes on.")
                .cluster_scoped()
                .short(&["ext"])
                .columns(&[PAUSED, condition("Discovered", "Discovered"), AGE]),
        ),
    ]
}

/// The kinds of an infrastructure, by the name of its templates: those, the machines that they are of, and what its clusters need once.
pub fn infrastructure(
    group: &str,
    version: &str,
    template: &str,
    cluster: Option<&str>,
) -> Vec<CustomResourceDefinition> {
    let machine = template.strip_suffix("Template").unwrap_or(template);
    let row = |kind: &str, about: &'static str| {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        foreign_resource(resource, about).of("cluster-api").provided_by("infrastructure").columns(&[AGE])
    };
    let templates = row(template, "What machines are cloned from.").without_status();
    let cluster = cluster.map(|kind| row(kind, "What a cluster needs once."));
    let all = [templates, row(machine, "A machine.")].into_iter().chain(cluster);
    all.map(|row| row.definition()).collect()
}

/// The providers of Cluster API that work with kubeadm.
fn providers() -> [Foreign; 4] {
    let bootstrap = |row: Foreign| row.of("cluster-api").provided_by("bootstrap-kubeadm");
    let control_plane = |row: Foreign| row.of("cluster-api").provided_by("control-plane-kubeadm");
    [
        bootstrap(foreign_kind::<KubeadmConfig>("What kubeadm is told on one machine.").columns(&[
            OF_CLUSTER,
            PAUSED,
            text("Data secret created", ".status.initialization.dataSecretCreated"),
            AGE,
        ])),
        bootstrap(
            foreign_kind::<KubeadmConfigTemplate>("What the configurations of kubeadm are cloned from.")
                .without_status()
                .columns(&[OF_CLASS, OF_CLUSTER, AGE]),
        ),
        control_plane(
            foreign_kind::<KubeadmControlPlane>("The machines of a control plane, which are replaced one by one.")
                .short(&["kcp"])
                .scaled()
                .columns(KUBEADM_CONTROL_PLANE),
        ),
        control_plane(
            foreign_kind::<KubeadmControlPlaneTemplate>("What the control planes of a class are made from.")
                .without_status()
                .columns(&[OF_CLASS, AGE]),
        ),
    ]
}

/// Those that packages are brought in by.
pub(super) fn of_packages() -> Vec<CustomResourceDefinition> {
    packages().into_iter().map(|row| row.definition()).collect()
}

/// Carvel's. A real cluster serves the first two through an API server of their own, which takes names that no definition would:
/// that of a Package ends in a version, with its plus.
fn packages() -> [Foreign; 5] {
    let carvel = |row: Foreign| row.of("carvel");
    [
        carvel(
            foreign_kind::<Package>("One version of a package.")
                .short(&["pkg"])
                .without_status()
                .with_any_name()
                .columns(&[text("PackageMetadata name", ".spec.refName"), text("Version", ".spec.version"), AGE]),
        ),
        carvel(
            foreign_kind::<PackageMetadata>("What a package is, whatever its version.")
                .short(&["pkgm"])
                .without_status()
                .columns(&[
                    text("Display name", ".spec.displayName"),
                    text("Categories", ".spec.categories"),
                    text("Short description", ".spec.shortDescription"),
                    AGE,
                ]),
        ),
        carvel(foreign_kind::<App>("What is deployed for a package.").columns(&[
            text("Description", ".status.friendlyDescription"),
            date("Since-Deploy", ".status.deploy.startedAt"),
            AGE,
        ])),
        carvel(foreign_kind::<PackageInstall>("A package that is, or should be, installed.").short(&["pkgi"]).columns(
            &[
                text("Package name", ".spec.packageRef.refName"),
                text("Package version", ".status.version"),
                text("Description", ".status.friendlyDescription"),
                AGE,
            ],
        )),
        carvel(
            foreign_kind::<PackageRepository>("Where packages come from.")
                .short(&["pkgr"])
                .columns(&[AGE, text("Description", ".status.friendlyDescription")]),
        ),
    ]
}

/// What the values of packages are made of.
fn values() -> [Foreign; 5] {
    [
        foreign_kind::<AntreaConfig>("The values of Antrea.").short(&["antreaconf"]).columns(&[
            text("TrafficEncapMode", ".spec.antrea.config.trafficEncapMode"),
            text("DefaultMTU", ".spec.antrea.config.defaultMTU"),
            text("AntreaProxy", ".spec.antrea.config.featureGates.AntreaProxy"),
            text("AntreaPolicy", ".spec.antrea.config.featureGates.AntreaPolicy"),
            SECRET,
        ]),
        foreign_kind::<CalicoConfig>("The values of Calico.")
            .short(&["calicoconf"])
            .columns(&[integer("VethMTU", ".spec.calico.config.vethMTU"), SECRET]),
        foreign_kind::<VSphereCPIConfig>("The values of vSphere's cloud provider.")
            .short(&["vcpic"])
            .columns(&[text("Mode", ".spec.vsphereCPI.mode"), SECRET]),
        foreign_kind::<VSphereCSIConfig>("The values of vSphere's volumes.")
            .columns(&[text("Mode", ".spec.vsphereCSI.mode"), SECRET]),
        foreign_kind::<KappControllerConfig>("The values of kapp-controller.").short(&["kappconf"]).columns(&[
            text("Namespace", ".spec.namespace"),
            text("GlobalNamespace", ".spec.kappController.globalNamespace"),
            SECRET,
        ]),
    ]
}

/// What machines are made from.
fn machines() -> [Foreign; 2] {
    [
        foreign_kind::<VirtualMachineClass>("How much of everything a machine has.")
            .cluster_scoped()
            .short(&["vmclass"])
            .columns(&[integer("CPU", ".spec.hardware.cpus"), text("Memory", ".spec.hardware.memory"), AGE]),
        foreign_kind::<VirtualMachineImage>("An image of a machine's disk; its annotations say what is on it.")
            .cluster_scoped()
            .short(&["vmimage"])
            .columns(&[text("Version", ".spec.productInfo.fullVersion"), text("OS Type", ".spec.osInfo.type"), AGE]),
    ]
}

const CLUSTER: &[Column] = &[
    text("ClusterClass", ".spec.topology.classRef.name"),
    condition("Available", "Available"),
    integer("CP Desired", ".status.controlPlane.desiredReplicas"),
    integer("CP Current", ".status.controlPlane.replicas").wide(),
    integer("CP Ready", ".status.controlPlane.readyReplicas").wide(),
    integer("CP Available", ".status.controlPlane.availableReplicas"),
    integer("CP Up-to-date", ".status.controlPlane.upToDateReplicas"),
    integer("W Desired", ".status.workers.desiredReplicas"),
    integer("W Current", ".status.workers.replicas").wide(),
    integer("W Ready", ".status.workers.readyReplicas").wide(),
    integer("W Available", ".status.workers.availableReplicas"),
    integer("W Up-to-date", ".status.workers.upToDateReplicas"),
    PAUSED,
    text("Phase", ".status.phase"),
    AGE,
    text("Version", ".spec.topology.version"),
];

const MACHINE: &[Column] = &[
    text("Cluster", ".spec.clusterName"),
    text("Node Name", ".status.nodeRef.name"),
    text("Provider ID", ".spec.providerID").wide(),
    condition("Ready", "Ready"),
    condition("Available", "Available"),
    condition("Up-to-date", "UpToDate"),
    PAUSED,
    text("Phase", ".status.phase"),
    AGE,
    text("Version", ".spec.version"),
];

const MACHINE_SET: &[Column] = &[
    text("Cluster", ".spec.clusterName"),
    DESIRED,
    CURRENT,
    READY,
    AVAILABLE,
    UP_TO_DATE,
    PAUSED,
    AGE,
    text("Version", ".spec.template.spec.version"),
];

const MACHINE_DEPLOYMENT: &[Column] = &[
    text("Cluster", ".spec.clusterName"),
    condition("Available", "Available"),
    DESIRED,
    CURRENT,
    READY,
    AVAILABLE,
    UP_TO_DATE,
    PAUSED,
    text("Phase", ".status.phase"),
    AGE,
    text("Version", ".spec.template.spec.version"),
];

const KUBEADM_CONTROL_PLANE: &[Column] = &[
    OF_CLUSTER,
    condition("Available", "Available"),
    DESIRED,
    CURRENT,
    READY,
    AVAILABLE,
    UP_TO_DATE,
    PAUSED,
    boolean("Initialized", ".status.initialization.controlPlaneInitialized"),
    AGE,
    text("Version", ".spec.version"),
];

const MACHINE_HEALTH_CHECK: &[Column] = &[
    text("Cluster", ".spec.clusterName"),
    integer("Replicas", ".status.expectedMachines"),
    integer("Healthy", ".status.currentHealthy"),
    PAUSED,
    AGE,
];

const AGE: Column = date("Age", ".metadata.creationTimestamp");
const PAUSED: Column = condition("Paused", "Paused").wide();
const DESIRED: Column = integer("Desired", ".spec.replicas");
const CURRENT: Column = integer("Current", ".status.replicas");
const READY: Column = integer("Ready", ".status.readyReplicas");
const AVAILABLE: Column = integer("Available", ".status.availableReplicas");
const UP_TO_DATE: Column = integer("Up-to-date", ".status.upToDateReplicas");
const SECRET: Column = text("SecretRef", ".status.secretRef");
const OF_CLUSTER: Column = text("Cluster", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']");
const OF_CLASS: Column = text("ClusterClass", r#".metadata.ownerReferences[?(@.kind=="ClusterClass")].name"#);
