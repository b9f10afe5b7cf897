//! Images, releases and clusters to plan for.

use windlass_api::annotation;
use windlass_api::kind::tanzu::{Distribution, Machines, TanzuKubernetesCluster, TanzuKubernetesClusterSpec, Topology};
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_plan::gate::Gates;
use windlass_plan::release::Release;
use windlass_plan::target::Target;

/// A storage driver: a plain object, and one that runs on every node.
const PVCSI: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: pvcsi-settings, namespace: vmware-system-csi}
data: {feature: 'on'}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: pvcsi, namespace: vmware-system-csi}
spec:
  selector: {matchLabels: {app: pvcsi}}
  template:
    metadata: {labels: {app: pvcsi}}
    spec:
      containers: [{name: driver, image: 'vmware/pvcsi:VERSION'}]
";

/// An add-on that runs on workers only: its new pods have to wait for the last stage.
const AUTHSVC: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: authsvc, namespace: vmware-system-auth}
spec:
  replicas: 1
  selector: {matchLabels: {app: authsvc}}
  template:
    metadata: {labels: {app: authsvc}}
    spec:
      containers: [{name: authsvc, image: 'vmware/authsvc:VERSION'}]
";

/// The image of a release: `v1.16.7` and so on.
pub fn image(version: &str) -> VirtualMachineImage {
    let distribution = serde_json::json!({
        "distribution": {"version": format!("{version}+vmware.1-guest.1")},
        "kubernetes": {"imageRepository": "vmware", "version": format!("{version}+vmware.1")},
        "etcd": {"imageRepository": "vmware", "version": "v3.3.15_vmware.6"},
        "coredns": {"imageRepository": "vmware", "version": format!("v1.6.2_for_{version}")},
    });
    let addon = |value: &str| {
        let value = value.replace("VERSION", version);
        serde_json::json!({"type": "inline", "value": value}).to_string()
    };
    let mut image = VirtualMachineImage::default();
    image.metadata.name = Some(format!("photon-k8sd-{version}-vmware.1-guest.1"));
    image.metadata.annotations = Some(
        [
            (annotation::DISTRIBUTION.name.to_owned(), distribution.to_string()),
            (format!("{}pvcsi", annotation::ADDON_PREFIX), addon(PVCSI)),
            (format!("{}authsvc", annotation::ADDON_PREFIX), addon(AUTHSVC)),
        ]
        .into(),
    );
    image
}

/// A cluster with so many machines.
pub fn cluster(control_plane: u32, workers: u32) -> TanzuKubernetesCluster {
    let machines = |count| Machines {
        count,
        class: "best-effort-small".to_owned(),
        storage_class: "gc-storage-profile".to_owned(),
    };
    let mut cluster = TanzuKubernetesCluster::new(
        "my-tkc",
        TanzuKubernetesClusterSpec {
            topology: Topology { control_plane: machines(control_plane), workers: machines(workers) },
            distribution: Distribution::default(),
            settings: None,
        },
    );
    cluster.metadata.namespace = Some("default".to_owned());
    cluster.metadata.uid = Some("208025ff-0cc9-4c88-b22d-5a43b1c33831".to_owned());
    cluster
}

/// What such a cluster is asked to be, with the release of a version.
pub fn target(control_plane: u32, workers: u32, version: &str) -> Target {
    let release = Release::from_image(&image(version)).unwrap();
    Target::new(&cluster(control_plane, workers), release).unwrap()
}

/// The gates that are in force in tests: all, but for the one that the environment leaves out. Each gate is left out once by
/// `scripts/without-gates`, and then some test has to fail.
#[allow(clippy::disallowed_methods, reason = "tests are told by the environment which gate to do without")]
pub fn gates() -> Gates {
    match std::env::var("WINDLASS_WITHOUT_GATE") {
        Ok(gate) => Gates::without(&[gate.parse().unwrap()]),
        Err(_) => Gates::all(),
    }
}
