//! What is on the disk of a machine, as the annotations of its image tell it.

use windlass_api::annotation;
use windlass_api::machine_image::{Addon, Distribution};
use windlass_api::version::KubernetesVersion;
use windlass_runtime::key::Key;

use crate::management::context::Turn;

/// What is on a disk.
pub(super) struct Disk {
    pub kubelet: KubernetesVersion,
    /// Container images: those that the image lists, or else those of Kubernetes and of the add-ons that come with it.
    pub images: Vec<String>,
}

/// What is on the disk of this name.
pub(super) fn read(turn: &Turn, name: &str) -> Result<Disk, String> {
    let image = turn.caches.images.get(&Key::cluster(name)).ok_or_else(|| format!("there is no image {name}"))?;
    let annotations = image.metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(annotation::DISTRIBUTION.name));
    let text = text.ok_or_else(|| format!("the image {name} does not say what is on it"))?;
    let distribution: Distribution =
        serde_json::from_str(text).map_err(|error| format!("what the image {name} says is on it: {error}"))?;
    if let Some(listed) = annotations.and_then(|all| all.get(annotation::CONTAINER_IMAGES.name)) {
        let images = serde_json::from_str(listed)
            .map_err(|error| format!("the container images that the image {name} says are on it: {error}"))?;
        return Ok(Disk { kubelet: distribution.kubernetes.version, images });
    }
    let mut images = kubernetes_images(&distribution);
    for (_, addon) in annotations.into_iter().flatten().filter(|(key, _)| annotation::addon_name(key).is_some()) {
        // What cannot be read is refused where somebody wants to install it.
        if let Ok(addon) = serde_json::from_str::<Addon>(addon) {
            images.extend(images_in(&addon.value));
        }
    }
    images.sort();
    images.dedup();
    Ok(Disk { kubelet: distribution.kubernetes.version, images })
}

/// What is on a disk that is made for a version of Kubernetes, whatever it is called: its programs. All images are in registries.
pub(super) fn of_version(version: &str) -> Result<Disk, String> {
    let kubelet = version.parse().map_err(|error| format!("no disk is made for the version {version:?}: {error}"))?;
    Ok(Disk { kubelet, images: Vec::new() })
}

fn kubernetes_images(distribution: &Distribution) -> Vec<String> {
    let Distribution { kubernetes, etcd, coredns, .. } = distribution;
    let tag = kubernetes.version.tag();
    let of_kubernetes = ["kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler"];
    let mut images: Vec<String> =
        of_kubernetes.map(|component| format!("{}/{component}:{tag}", kubernetes.image_repository)).into();
    images.push(format!("{}/etcd:{}", etcd.image_repository, etcd.version));
    images.push(format!("{}/coredns:{}", coredns.image_repository, coredns.version));
    images
}

/// The images that manifests name, line by line: to read all of the YAML for each machine that boots would be dear.
fn images_in(manifests: &str) -> impl Iterator<Item = String> {
    let image = |line: &str| {
        let line = line.trim_start().trim_start_matches("- ");
        let value = line.strip_prefix("image:")?.trim();
        let value = value.split(" #").next().unwrap_or_default().trim_matches(['"', '\'', ' ']);
        (!value.is_empty()).then(|| value.to_owned())
    };
    manifests.lines().filter_map(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_images_of_an_add_on_are_those_that_its_manifests_name() {
        let manifests = "containers:\n- image: vmware/calico:v3\n  name: a\n- name: b\n  image: \"vmware/typha:v3\" # b\n  imagePullPolicy: Never\n";
        assert_eq!(images_in(manifests).collect::<Vec<_>>(), ["vmware/calico:v3", "vmware/typha:v3"]);
    }
}
