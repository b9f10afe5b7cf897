//! What packages run is on the disks of new machines only, or waits for new nodes: machines follow where the release says so.

use k8s_openapi::api::core::v1::Pod;
use windlass_api::kind::virtual_machine::VirtualMachineImage;

use super::*;

const BUNDLE: &str = include_str!("../../../../sim/catalogue/bundles/antrea.yaml");
/// A repository without a host is in no registry: its images are on the disks that have them.
const ON_OLD_DISKS: &str = "vmware/antrea:v1.7.2";
const ON_NEW_DISKS: &str = "vmware/antrea:v1.9.0";

/// A cluster of the old release, whose disks have an image of the old network, and those of the new release one of the new. Made once.
fn created_of_disks() -> &'static World {
    static CREATED: OnceLock<World> = OnceLock::new();
    CREATED.get_or_init(|| {
        play(HoldBy::Pause, &empty(), start::founded(), |world| async move {
            let disks: Api<VirtualMachineImage> = Api::all(world.client());
            for (disk, image) in [
                ("ubuntu-2004-k8sd-v1.24.9-vmware.1-tkg.1", ON_OLD_DISKS),
                ("ubuntu-2004-k8sd-v1.25.7-vmware.2-tkg.1", ON_NEW_DISKS),
            ] {
                let addon = json!({"name": "antrea", "type": "inline", "value": format!("image: {image}")}).to_string();
                let annotations = json!({"vmware-system.guest.kubernetes.addons.antrea": addon});
                let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
                disks.patch(disk, &PatchParams::default(), &patch).await.unwrap();
            }
            cluster(&world).await;
            ready(&world).await;
            rolled(&world, "v1.24.9+vmware.1").await;
            seconds(600).await;
        })
    })
}

/// How the pods of the new network are brought in.
#[derive(Clone, Copy)]
struct Pods {
    image: &'static str,
    /// Of the `DaemonSet`, which has a pod on each node.
    strategy: &'static str,
    /// The Package says that they may wait for new nodes.
    declared: bool,
}

/// The network of the new release runs other pods than usual.
async fn network_runs(world: &World, pods: Pods) {
    let text = BUNDLE
        .replace("#@ data.values.daemonset.updateStrategy", pods.strategy)
        .replace("projects.registry.vmware.com/tkg/antrea/antrea-advanced-debian:${tag}", pods.image);
    // One more before one less: the old one goes when the new one runs.
    let text = text.replace("#@ data.values.deployment.rollingUpdate", "{maxSurge: 1, maxUnavailable: 0}");
    let fetch = json!([{"inline": {"paths": {"config/antrea.yaml": text}}}]);
    let annotations = if pods.declared { json!({"windlass.dev/waits-for-new-nodes": ""}) } else { json!({}) };
    let patch = json!({"metadata": {"annotations": annotations}, "spec": {"template": {"spec": {"fetch": fetch}}}});
    let api: Api<Package> = Api::namespaced(world.client(), "tkg-system");
    api.patch(ANTREA, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

/// The pods of the network on nodes that are ready: the image that each runs.
async fn running(world: &World) -> Vec<String> {
    let api: Api<Pod> = Api::namespaced(inside(world), "kube-system");
    let pods = api.list(&ListParams::default().labels("app=antrea-agent")).await.unwrap().items;
    let is_ready = |pod: &Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|it| it.type_ == "Ready" && it.status == "True"))
    };
    let image = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap_or_default();
    pods.iter().filter(|pod| is_ready(pod)).map(image).collect()
}

async fn first_new_machine(world: &World) {
    let began = now(world);
    while machines(world, NEW_KUBERNETES).await == 0 {
        seconds(1).await;
        assert!(now(world).duration_since(began).as_secs() < 3600, "{:#?}", told(world, "PackagesReady").await);
    }
}

/// Images that old nodes do not have: nobody is evicted for them there, and machines follow, because the release says that pods wait.
#[test]
fn pods_whose_images_are_on_new_disks_only_wait_for_new_nodes_and_drive_nobody_away() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        let script = |world: World| async move {
            let pods = Pods { image: ON_NEW_DISKS, strategy: "OnDelete", declared: true };
            network_runs(&world, pods).await;
            seconds(30).await;
            let before = running(&world).await;
            assert_eq!(before.len(), 2);
            upgrade(&world).await;
            first_new_machine(&world).await;
            assert_eq!(running(&world).await, before, "on each old node the old network runs");
            let [ready, reason, message] = told(&world, "PackagesReady").await;
            assert_eq!(ready, "True", "{reason}: {message}");

            rolled(&world, NEW_KUBERNETES).await;
            seconds(1200).await;
            assert_eq!(running(&world).await, [ON_NEW_DISKS, ON_NEW_DISKS]);
            assert_eq!(package(&world, "antrea").await, "1.9.0+vmware.2-tkg.1-advanced ReconcileSucceeded");
        };
        let (_, complaints) = witnessed(Scenario::default(), by, created_of_disks(), start::later(), script);
        // Whoever watches takes no declaration for an answer.
        let only =
            "the first machine of v1.25.7+vmware.2 is there, and antrea is 1.9.0+vmware.2-tkg.1-advanced Reconciling";
        assert_eq!(complaints, [only], "{by}");
    }
}

/// The same pods, of a release that says nothing of it: for all that is known they will never run.
#[test]
fn pods_that_do_not_come_hold_the_machines_where_no_release_says_that_they_wait() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created_of_disks(), start::later(), |world| async move {
            let pods = Pods { image: ON_NEW_DISKS, strategy: "OnDelete", declared: false };
            network_runs(&world, pods).await;
            seconds(30).await;
            upgrade(&world).await;
            seconds(600).await;
            let [_, reason, message] = told(&world, "PackagesReady").await;
            assert_eq!(reason, "PackageNotReady");
            assert!(message.contains("deployment/antrea-controller"), "{message}");
            assert_eq!((running(&world).await.len(), machines(&world, NEW_KUBERNETES).await), (2, 0));
            seconds(1500).await;
            let [stalled, _, message] = told(&world, "Stalled").await;
            assert_eq!((stalled.as_str(), machines(&world, NEW_KUBERNETES).await), ("True", 0), "{message}");

            // Images that can be had everywhere are the end of it.
            fetches(&world, "v1.9.0_vmware.2-tkg.1-advanced").await;
            first_new_machine(&world).await;
        });
    }
}

/// Pods are replaced on old nodes, where their image is not: the first is gone, the others stay, and no machine follows.
#[test]
fn where_pods_are_replaced_at_once_an_image_that_is_not_there_costs_one_of_them_and_no_machine() {
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created_of_disks(), start::later(), |world| async move {
            let pods = Pods { image: ON_NEW_DISKS, strategy: "RollingUpdate", declared: true };
            network_runs(&world, pods).await;
            seconds(30).await;
            upgrade(&world).await;
            seconds(2400).await;
            assert_eq!((running(&world).await.len(), machines(&world, NEW_KUBERNETES).await), (1, 0));
            let [_, reason, message] = told(&world, "PackagesReady").await;
            assert!(reason.starts_with("Package") && message.contains("daemonset/antrea-agent"), "{reason}: {message}");
            assert_eq!(told(&world, "Stalled").await[0], "True");
            fetches(&world, "v1.9.0_vmware.2-tkg.1-advanced").await;
            first_new_machine(&world).await;
            assert_eq!(running(&world).await.len(), 2);
        });
    }
}

/// A `DaemonSet` that is replaced on deletion is as it should be while its old pods run: nobody has to say so.
#[test]
fn pods_that_are_replaced_when_their_nodes_go_make_no_package_wait() {
    const NEW_IMAGE: &str = "projects.registry.vmware.com/tkg/antrea/antrea-advanced-debian:v1.9.0";
    for by in [HoldBy::Pause, HoldBy::Hooks] {
        play(by, created(), start::later(), |world| async move {
            network_runs(&world, Pods { image: NEW_IMAGE, strategy: "OnDelete", declared: false }).await;
            seconds(30).await;
            let before = running(&world).await;
            upgrade(&world).await;
            first_new_machine(&world).await;
            assert_eq!(running(&world).await, before);
            rolled(&world, NEW_KUBERNETES).await;
            seconds(300).await;
            assert_eq!(running(&world).await, [NEW_IMAGE, NEW_IMAGE]);
        });
    }
}
