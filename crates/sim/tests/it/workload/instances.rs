//! One API server on each machine of a control plane, and members of etcd that learn before they count.

use std::collections::BTreeSet;

use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass_sim::workload::{Begins, Boot, Capacity, Member, Workload};

use super::{VERSION, cloud_config, cluster, grown, join_control_plane, join_control_plane_at, node, power_off};
use crate::world::{in_world, minutes};

const NEWER: &str = "v1.16.8+vmware.1";

/// What the API says it is, asked often enough for all API servers to have their turn.
async fn versions(workload: &Workload) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for _ in 0..6 {
        let request = Request::get("/version").body(Vec::new()).unwrap();
        let answer: Value = workload.client().request(request).await.unwrap();
        seen.insert(answer["gitVersion"].as_str().unwrap().to_owned());
    }
    seen
}

#[test]
fn each_api_server_has_the_version_that_its_machine_was_joined_with() {
    in_world(|world| async move {
        let workload = grown(&world, 1, 0).await;
        assert_eq!(versions(&workload).await, [VERSION.to_owned()].into());

        let maps = Api::<ConfigMap>::namespaced(workload.client(), "kube-system");
        let text = maps.get("kubeadm-config").await.unwrap().data.unwrap()["ClusterConfiguration"].clone();
        let data = json!({"data": {"ClusterConfiguration": text.replace(VERSION, NEWER)}});
        maps.patch("kubeadm-config", &PatchParams::default(), &Patch::Merge(data)).await.unwrap();
        // The images of a version are on the disks of that version only, and kubeadm begins nothing without them.
        join_control_plane(&workload, "cp-of-another-disk");
        minutes(3).await;
        assert_eq!((workload.instances().len(), workload.members().unwrap().len()), (1, 1));
        power_off(&workload, "cp-of-another-disk");

        join_control_plane_at(&workload, "cp-1", NEWER);
        minutes(3).await;
        let instances: Vec<_> =
            workload.instances().into_iter().map(|each| (each.version.to_string(), each.serves)).collect();
        assert_eq!(instances, [(VERSION.to_owned(), true), (NEWER.to_owned(), true)]);
        assert_eq!(versions(&workload).await, [VERSION.to_owned(), NEWER.to_owned()].into());

        let first = workload.members().unwrap().into_iter().find(|member| member.name == "cp-0").unwrap();
        workload.remove_member(first.id).unwrap();
        power_off(&workload, "cp-0");
        assert_eq!(versions(&workload).await, [NEWER.to_owned()].into(), "the load balancer leads to nobody else");
    });
}

fn boot(workload: &Workload, name: &str, begins: Begins) {
    let user_data = match begins {
        Begins::Init => {
            let cluster = json!({"kind": "ClusterConfiguration", "kubernetesVersion": "v1.31.1"});
            cloud_config("/run/kubeadm/kubeadm.yaml", &[cluster, json!({"kind": "InitConfiguration"})])
        }
        Begins::JoinControlPlane | Begins::Join => {
            let join = json!({"kind": "JoinConfiguration", "controlPlane": {}});
            cloud_config("/run/kubeadm/kubeadm-join-config.yaml", &[join])
        }
    };
    let boot = Boot {
        node: node(name),
        provider_id: format!("vsphere://{name}"),
        address: "10.0.0.1".to_owned(),
        kubelet: "v1.31.1".parse().unwrap(),
        images: Vec::new(),
        capacity: Capacity::default(),
        zone: None,
        user_data,
    };
    assert_eq!(workload.boot(&boot).unwrap(), begins);
}

/// Waits until a member of etcd other than the first is so.
async fn until(workload: &Workload, is_so: impl Fn(&Member) -> bool) -> Vec<Member> {
    for _ in 0..600_000 {
        let members = workload.members().unwrap();
        if members.iter().any(|member| member.name != "cp-0" && is_so(member)) {
            return members;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("no member became so: {:?}", workload.members())
}

#[test]
fn a_member_learns_before_it_counts_and_one_that_is_removed_meanwhile_never_joins() {
    in_world(|world| async move {
        let workload = world.workloads().ensure(&cluster());
        boot(&workload, "cp-0", Begins::Init);
        minutes(3).await;
        boot(&workload, "cp-1", Begins::JoinControlPlane);
        let added = until(&workload, |member| member.name.is_empty()).await;
        assert!(added.len() == 2 && added.iter().any(|member| member.learner), "{added:?}");
        assert!(workload.answers(), "a learner does not count");
        until(&workload, |member| member.name == "cp-1" && member.learner && member.healthy).await;
        until(&workload, |member| member.name == "cp-1" && !member.learner).await;

        boot(&workload, "cp-2", Begins::JoinControlPlane);
        let added = until(&workload, |member| member.name.is_empty()).await;
        let new = added.iter().find(|member| member.name.is_empty()).unwrap();
        workload.remove_member(new.id).unwrap();
        minutes(20).await;
        assert_eq!(workload.members().unwrap().len(), 2);
        let why = workload.kubeadm_failure(&node("cp-2")).unwrap();
        assert!(why.contains("member not found"), "{why}");
    });
}
