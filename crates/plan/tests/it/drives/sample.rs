//! Clusters that Cluster API rolls, as their owners ask for them.

use serde_json::json;
use windlass_api::annotation;
use windlass_api::key::Present;
use windlass_api::kind::cluster_api::{Cluster, ClusterSpec, MachineDeployment, MachineDeploymentSpec};
use windlass_api::kind::control_plane::{KubeadmControlPlane, KubeadmControlPlaneSpec};
use windlass_api::kind::topology::{ClusterClass, Topology};
use windlass_api::kind::wcp::{WCPMachineSpec, WCPMachineTemplate, WCPMachineTemplateResource, WCPMachineTemplateSpec};
use windlass_plan::profile::Profile;
use windlass_plan::release::Release;
use windlass_plan::target::{KubeadmParts, MachineTemplate, PoolParts, Target};

use crate::sample::image;

pub fn release(version: &str) -> Release {
    Release::from_image(&image(version)).unwrap()
}

pub fn cluster(topology: Option<Topology>) -> Cluster {
    let mut cluster = Cluster::new("c1", ClusterSpec { topology, ..ClusterSpec::default() });
    cluster.metadata.namespace = Some("default".to_owned());
    cluster.metadata.uid = Some("208025ff-0cc9-4c88-b22d-5a43b1c33831".to_owned());
    cluster
}

/// A control plane that leaves kube-proxy and `CoreDNS` to us.
pub fn control_plane(replicas: u32) -> KubeadmControlPlane {
    let spec = KubeadmControlPlaneSpec { replicas: Some(replicas), ..KubeadmControlPlaneSpec::default() };
    let mut control_plane = KubeadmControlPlane::new("c1-control-plane", spec);
    let skipped = [annotation::SKIP_KUBE_PROXY, annotation::SKIP_COREDNS].map(|key| key.entry(&Present));
    control_plane.metadata.annotations = Some(skipped.into());
    control_plane
}

pub fn template(class: &str) -> MachineTemplate {
    let spec = WCPMachineSpec {
        image_name: String::new(),
        class_name: class.to_owned(),
        storage_class: "gc-storage-profile".to_owned(),
        provider_id: None,
    };
    let template = WCPMachineTemplateResource { metadata: None, spec };
    let object = json!(WCPMachineTemplate::new("template", WCPMachineTemplateSpec { template }));
    MachineTemplate { object, profile: Profile::built_in().clone() }
}

pub fn pool(name: &str, replicas: u32, class: &str) -> PoolParts {
    let spec = MachineDeploymentSpec { replicas: Some(replicas), ..MachineDeploymentSpec::default() };
    PoolParts { deployment: MachineDeployment::new(name, spec), template: template(class) }
}

/// A cluster whose control plane Cluster API rolls, with pools of so many machines of a class.
pub fn kubeadm(replicas: u32, pools: [(u32, &str); 2], version: &str) -> Target {
    let pools = [("md-0", pools[0]), ("md-1", pools[1])].map(|(name, (count, class))| pool(name, count, class));
    let parts = KubeadmParts {
        cluster: &cluster(None),
        control_plane: &control_plane(replicas),
        template: &template("best-effort-small"),
        pools: &pools,
    };
    Target::of_kubeadm_control_plane(&parts, release(version)).unwrap()
}

pub fn class() -> ClusterClass {
    let variables = json!([{"name": "TKR_DATA"}, {"name": "vmClass"}, {"name": "storageClass"}, {"name": "proxy"}]);
    let spec = json!({ "variables": variables });
    ClusterClass::new("tkg-vsphere", serde_json::from_value(spec).unwrap())
}

/// A topology as a person writes it. One pool has a class of its own; a variable is nobody's but theirs.
pub fn topology(replicas: u32, pools: [(u32, Option<&str>); 2], version: &str) -> Topology {
    let pool = |(name, (count, class)): (&str, (u32, Option<&str>))| {
        let overrides: Vec<_> = class.iter().map(|class| json!({"name": "vmClass", "value": class})).collect();
        json!({"class": "tkg-worker", "name": name, "replicas": count, "variables": {"overrides": overrides}})
    };
    let pools = [("md-0", pools[0]), ("md-1", pools[1])].map(pool);
    let topology = json!({
        "classRef": {"name": "tkg-vsphere"},
        "version": format!("{version}+vmware.1"),
        "controlPlane": {"replicas": replicas, "metadata": {"annotations": {"run.tanzu.vmware.com/resolve-os-image": "os-name=photon"}}},
        "workers": {"machineDeployments": pools},
        "variables": [
            {"name": "vmClass", "value": "best-effort-small"},
            {"name": "storageClass", "value": "gc-storage-profile"},
            {"name": "proxy", "value": {"httpProxy": "http://proxy:3128"}},
        ],
    });
    serde_json::from_value(topology).unwrap()
}

/// What a cluster with that topology is asked to be, with the release of a version.
pub fn of_topology(topology: &Topology, version: &str) -> Target {
    let cluster = cluster(Some(topology.clone()));
    Target::of_topology(&cluster, &class(), Some(&control_plane(3)), release(version)).unwrap()
}
