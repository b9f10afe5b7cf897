use windlass_api::annotation;
use windlass_api::kind::tanzu::{AddonPhase, AddonStatus, Cni, Settings, TanzuKubernetesClusterSpec, Topology};
use windlass_api::kind::virtual_machine::VirtualMachineImage;

use super::*;

fn release() -> Release {
    release_with(&["calico", "antrea"])
}

/// A release with these add-ons, which have no objects.
fn release_with(addons: &[&str]) -> Release {
    let mut image = VirtualMachineImage::default();
    image.metadata.name = Some("photon".to_owned());
    let text = r#"{"distribution":{"version":"v1.16.7+vmware.1-guest.1"},
        "kubernetes":{"imageRepository":"vmware","version":"v1.16.7+vmware.1"},
        "etcd":{"imageRepository":"vmware","version":"v3"},"coredns":{"imageRepository":"vmware","version":"v1"}}"#;
    let addon =
        |name: &str| (format!("{}{name}", annotation::ADDON_PREFIX), r#"{"type":"inline","value":""}"#.to_owned());
    let distribution = (annotation::DISTRIBUTION.name.to_owned(), text.to_owned());
    image.metadata.annotations = Some(addons.iter().map(|name| addon(name)).chain([distribution]).collect());
    Release::from_image(&image).unwrap()
}

fn cluster() -> TanzuKubernetesCluster {
    let machines =
        |count| Machines { count, class: "small".to_owned(), storage_class: "gc-storage-profile".to_owned() };
    let mut tkc = TanzuKubernetesCluster::new(
        "my-tkc",
        TanzuKubernetesClusterSpec {
            topology: Topology { control_plane: machines(3), workers: machines(2) },
            ..TanzuKubernetesClusterSpec::default()
        },
    );
    tkc.metadata.namespace = Some("default".to_owned());
    tkc.metadata.uid = Some("uid".to_owned());
    tkc
}

fn check(change: impl FnOnce(&mut TanzuKubernetesCluster), refusal: &str) {
    let mut tkc = cluster();
    change(&mut tkc);
    let answer = Target::new(&tkc, release()).map(|_| ()).map_err(|error| error.to_string());
    assert!(answer.clone().is_err_and(|error| error.starts_with(refusal)), "{answer:?}");
}

fn network(tkc: &mut TanzuKubernetesCluster, network: Network) {
    tkc.spec.settings = Some(Settings { network: Some(network) });
}

#[test]
fn a_refusal_names_the_field() {
    check(|tkc| tkc.spec.topology.control_plane.class.clear(), r#"spec.topology.controlPlane.class: "" is not"#);
    check(|tkc| tkc.spec.topology.workers.storage_class = "A".to_owned(), "spec.topology.workers.storageClass: ");
    for count in [0, 2, 4, 7] {
        let refusal =
            format!("spec.topology.controlPlane.count: {count} machines are no control plane; accepted are 1, 3 and 5");
        check(|tkc| tkc.spec.topology.control_plane.count = count, &refusal);
    }
    let pods = |text: &str| Some(CidrBlocks { cidr_blocks: vec![text.to_owned()] });
    for text in ["10.0.0.0", "10.0.0.0/33", "pods/8"] {
        check(
            |tkc| network(tkc, Network { pods: pods(text), ..Network::default() }),
            &format!("spec.settings.network.pods.cidrBlocks: {text:?} is no range of addresses"),
        );
    }
}

#[test]
fn what_the_owner_left_out_has_a_default() {
    let target = Target::new(&cluster(), release()).unwrap();
    assert_eq!(target.network.pods, ["192.168.0.0/16"]);
    assert_eq!(target.network.services, ["10.96.0.0/12"]);
    assert_eq!(target.network.service_domain, "cluster.local");
    assert_eq!(target.pools[0].name.as_str(), "default");
}

/// What comes of a choice of the network add-on, in a cluster that has one or none, with a release that has these.
fn check_cni(asked: Option<&str>, present: Option<&str>, offered: &[&str], wanted: Result<&[&str], &str>) {
    let mut tkc = cluster();
    let cni = asked.map(|name| Cni { name: name.to_owned() });
    network(&mut tkc, Network { cni, ..Network::default() });
    let has = |name: &str| AddonStatus {
        name: name.to_owned(),
        status: AddonPhase::Applied,
        version: None,
        last_error_message: None,
    };
    let status = tkc.status.get_or_insert_default();
    status.addons = present.map(|name| ("cni".to_owned(), has(name))).into_iter().collect();
    let chosen = |target: Target| {
        let addons = target.release.addons.keys().map(ToString::to_string);
        addons.filter(|name| !matches!(name.as_str(), "coredns" | "kube-proxy")).collect::<Vec<_>>()
    };
    let found = Target::new(&tkc, release_with(offered)).map(chosen).map_err(|error| error.to_string());
    let wanted = wanted.map(|names| names.iter().map(ToString::to_string).collect());
    assert_eq!(
        found,
        wanted.map_err(|why: &str| format!("spec.settings.network.cni.name: {why}")),
        "{asked:?} {present:?}"
    );
}

#[test]
fn a_cluster_has_one_network_and_keeps_it() {
    let both = ["calico", "antrea"];
    check_cni(Some("calico"), None, &both, Ok(&["calico"]));
    check_cni(None, None, &both, Ok(&["antrea"]));
    check_cni(None, Some("calico"), &both, Ok(&["calico"]));
    check_cni(Some("antrea"), Some("calico"), &both, Ok(&["antrea"]));
    check_cni(None, None, &["calico"], Ok(&["calico"]));
    check_cni(None, None, &[], Ok(&[]));
    check_cni(None, Some("calico"), &[], Ok(&[]));
}

#[test]
fn a_network_that_the_release_does_not_have_is_refused_with_those_that_it_has() {
    let release = "release v1.16.7+vmware.1-guest.1";
    let unknown = format!(r#""cilium" is no network add-on of {release}; accepted are antrea and calico"#);
    check_cni(Some("cilium"), None, &["calico", "antrea"], Err(&unknown));
    let none = format!(r#""calico" is not to be had: {release} has no network add-on; accepted is to choose none"#);
    check_cni(Some("calico"), None, &[], Err(&none));
}

#[test]
fn the_end_of_an_update_leads_back_to_its_target() {
    let target = Target::new(&cluster(), release()).unwrap();
    let mut tkc = cluster();
    tkc.spec.topology.workers.count = 9;
    assert_eq!(Target::of_update(&tkc, &target.end(), release()), Ok(target));
}

/// Whether the workers of a cluster whose oldest machines have a version wait at the hop v1.16.7.
fn check_waits(on_the_way_to: &str, oldest: Option<&str>, version: PoolVersion) {
    let mut tkc = cluster();
    tkc.metadata.annotations = Some([(annotation::ON_THE_WAY_TO.name.to_owned(), on_the_way_to.to_owned())].into());
    let status = tkc.status.get_or_insert_default();
    status.version = oldest.map(str::to_owned);
    let target = Target::new(&tkc, release()).unwrap();
    assert_eq!(target.pools[0].version, version, "{on_the_way_to} {oldest:?}");
    assert_eq!(Target::of_update(&cluster(), &target.end(), release()), Ok(target));
}

#[test]
fn workers_wait_at_a_hop_if_they_may_be_that_far_behind() {
    let (from, to) = ("v1.15.5+vmware.1-guest.1", "v1.17.4+vmware.1-guest.1");
    check_waits(to, Some(from), PoolVersion::Kept);
    check_waits(to, Some("v1.16.7+vmware.1-guest.1"), PoolVersion::Kept);
    check_waits(to, Some("v1.14.9+vmware.1-guest.1"), PoolVersion::Release);
    check_waits(to, None, PoolVersion::Release);
    // There, or past it, it is no hop.
    check_waits("v1.16.7+vmware.1-guest.1", Some(from), PoolVersion::Release);
    check_waits("v1.15.5+vmware.1-guest.1", Some(from), PoolVersion::Release);
    check(
        |tkc| {
            tkc.metadata.annotations = Some([(annotation::ON_THE_WAY_TO.name.to_owned(), "newest".to_owned())].into());
        },
        "metadata.annotations: the value of windlass.dev/on-the-way-to cannot be read: \"newest\" is not a version",
    );
}
