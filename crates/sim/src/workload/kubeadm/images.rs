//! The images that a control plane is run from, and whether a machine can have them.

use serde_json::Value;
use windlass_api::version::facts;

use super::super::image;
use super::super::record::Machine;
use super::version;

/// What a machine runs of a control plane.
pub(super) struct StaticPod {
    pub component: &'static str,
    pub image: String,
    pub cpu: &'static str,
}

/// What runs a control plane of this configuration on a machine.
pub(super) fn static_pods(machine: &Machine, cluster: &Value) -> [StaticPod; 4] {
    let version = version(cluster).unwrap_or_else(|| machine.kubelet.clone());
    let repository = cluster["imageRepository"].as_str().unwrap_or(facts::image_repository(&version));
    let etcd = &cluster["etcd"]["local"];
    let etcd_repository = etcd["imageRepository"].as_str().unwrap_or(repository);
    let etcd_tag = etcd["imageTag"].as_str().or_else(|| on_disk(machine, "etcd")).unwrap_or("latest");
    let of_kubernetes =
        |component, cpu| StaticPod { component, image: format!("{repository}/{component}:{}", version.tag()), cpu };
    [
        StaticPod { component: "etcd", image: format!("{etcd_repository}/etcd:{etcd_tag}"), cpu: "100m" },
        of_kubernetes("kube-apiserver", "250m"),
        of_kubernetes("kube-controller-manager", "200m"),
        of_kubernetes("kube-scheduler", "100m"),
    ]
}

/// Why kubeadm cannot run that control plane on a machine, in its words: an image is neither on the disk nor in a registry. What a
/// vendor has built is on the disks of its own version, and nowhere else.
pub(super) fn missing(machine: &Machine, cluster: &Value) -> Option<String> {
    let version = version(cluster).unwrap_or_else(|| machine.kubelet.clone());
    let elsewhere = version.build().is_some() && version != machine.kubelet;
    let pods = static_pods(machine, cluster);
    let gone = pods.iter().find(|pod| {
        let of_kubernetes = pod.component != "etcd";
        !image::can_be_had(&machine.images, &pod.image)
            || (of_kubernetes && elsewhere && !machine.images.contains(&pod.image))
    })?;
    Some(format!("[ERROR ImagePull]: failed to pull image {}: not found", gone.image))
}

/// The tag of an image that is on the disk.
fn on_disk<'a>(machine: &'a Machine, name: &str) -> Option<&'a str> {
    let tags = machine.images.iter().filter_map(|image| {
        let (path, tag) = image.rsplit_once(':')?;
        (path.rsplit('/').next() == Some(name)).then_some(tag)
    });
    tags.max()
}
