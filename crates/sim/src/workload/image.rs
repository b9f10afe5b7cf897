//! Which images a machine can run: those on its disk, and those that can be pulled.
//!
//! A repository without a host (`vmware`) is in no registry: its images are where the image of the machine's disk has them, and
//! nowhere else. Which repositories those are is told by what is on the disk; all others can be reached.

use super::record::Machine;
use super::seen::PodSpec;

/// The first image of a pod that cannot be had on a machine.
pub(super) fn missing<'a>(machine: &Machine, spec: &'a PodSpec) -> Option<&'a str> {
    spec.images().find(|image| !can_be_had(&machine.images, image))
}

/// Whether an image is on a disk, or could be pulled.
pub(super) fn can_be_had(disk: &[String], image: &str) -> bool {
    disk.iter().any(|known| known == image) || !disk.iter().any(|known| is_of_disks(known, repository(image)))
}

/// Whether an image on a disk is of this repository, and of no registry.
fn is_of_disks(known: &str, repository: &str) -> bool {
    !has_registry(known) && self::repository(known) == repository
}

/// What stands before the last part of an image's name.
fn repository(image: &str) -> &str {
    image.rsplit_once('/').map_or("", |(repository, _)| repository)
}

/// Whether an image's name begins with a host.
pub(super) fn has_registry(image: &str) -> bool {
    let first = image.split_once('/').map(|(first, _)| first);
    first.is_some_and(|first| first.contains(['.', ':']) || first == "localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_a_repository_on_disks_are_nowhere_else() {
        let disk = ["vmware/kube-proxy:v1.16.7_vmware.1", "registry.k8s.io/pause:3.9"].map(str::to_owned);
        let check = |image: &str, expected: bool| assert_eq!(can_be_had(&disk, image), expected, "{image}");
        check("vmware/kube-proxy:v1.16.7_vmware.1", true);
        check("vmware/kube-proxy:v1.15.5_vmware.1", false);
        check("vmware/coredns:v1.6.2_vmware.6", false);
        check("registry.k8s.io/pause:3.10", true);
        check("registry.example.com/vmware/kube-proxy:v1", true);
        check("nginx:1", true);
        check("bitnami/nginx:1", true);
        assert!(can_be_had(&[], "vmware/kube-proxy:v1.15.5_vmware.1"), "nobody knows what is on that disk");
    }
}
