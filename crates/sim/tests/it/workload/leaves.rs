//! What kubeadm leaves in a cluster, and what it insists on when a machine joins.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, Role};
use kube::api::{Api, DeleteParams, ListParams};
use kube::{Client, ResourceExt};
use windlass_sim::workload::Boot;

use super::{cluster, grown, init_without, node, nodes, on, pods, worker};
use crate::world::{in_world, minutes};

const OWN: &str = "kubeadm:";

async fn roles(client: &Client, namespace: &str) -> Vec<String> {
    let list = Api::<Role>::namespaced(client.clone(), namespace).list(&ListParams::default()).await.unwrap();
    list.items.iter().map(ResourceExt::name_any).collect()
}

async fn has<K>(api: Api<K>, name: &str) -> bool
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    api.get_opt(name).await.unwrap().is_some()
}

#[test]
fn a_cluster_has_what_kubeadm_leaves_for_those_who_join() {
    in_world(|world| async move {
        let workload = world.workloads().ensure(&cluster());
        init_without(&workload, "cp-0", &[]);
        workload.boot(&worker("w-0")).unwrap();
        minutes(5).await;
        let client = workload.client();
        assert_eq!(
            roles(&client, "kube-system").await,
            ["kube-proxy", "kubeadm:kubelet-config-1.16", "kubeadm:nodes-kubeadm-config"]
        );
        assert_eq!(roles(&client, "kube-public").await, ["kubeadm:bootstrap-signer-clusterinfo"]);
        let bindings = Api::<ClusterRoleBinding>::all(client.clone()).list(&ListParams::default()).await.unwrap();
        let bindings: Vec<String> = bindings.items.iter().map(ResourceExt::name_any).collect();
        let own: Vec<&String> = bindings.iter().filter(|name| name.starts_with(OWN)).collect();
        let expected = [
            "kubelet-bootstrap",
            "node-autoapprove-bootstrap",
            "node-autoapprove-certificate-rotation",
            "node-proxier",
        ];
        assert_eq!(own, expected.map(|name| format!("{OWN}{name}")).iter().collect::<Vec<_>>());
        let info = Api::<ConfigMap>::namespaced(client.clone(), "kube-public").get("cluster-info").await.unwrap();
        assert!(info.data.unwrap()["kubeconfig"].contains("https://10.0.0.1:6443"));

        assert_eq!(pods(&client, "k8s-app=kube-proxy").await, on(&["cp-0", "w-0"]));
        assert_eq!(pods(&client, "k8s-app=kube-dns").await.iter().filter(|(_, ready)| *ready).count(), 2);
        let dns = Api::<Deployment>::namespaced(client.clone(), "kube-system").get("coredns").await.unwrap();
        let image = dns.spec.unwrap().template.spec.unwrap().containers[0].image.clone();
        assert_eq!(image.as_deref(), Some("vmware/coredns:1.6.2"));
        let service = Api::<Service>::namespaced(client.clone(), "kube-system").get("kube-dns").await.unwrap();
        assert_eq!(service.spec.unwrap().cluster_ip.as_deref(), Some("10.96.0.10"));
    });
}

#[test]
fn phases_that_are_left_out_leave_nothing() {
    in_world(|world| async move {
        let workload = world.workloads().ensure(&cluster());
        init_without(&workload, "cp-0", &["addon/kube-proxy", "addon/coredns"]);
        minutes(3).await;
        let client = workload.client();
        assert!(pods(&client, "k8s-app").await.is_empty());
        assert!(!has(Api::<ConfigMap>::namespaced(client.clone(), "kube-system"), "kube-proxy").await);
        assert!(!has(Api::<Deployment>::namespaced(client.clone(), "kube-system"), "coredns").await);
        assert!(has(Api::<ConfigMap>::namespaced(client, "kube-public"), "cluster-info").await);
    });
}

/// A machine of this version joins a cluster of 1.16 that has lost something.
fn check_join(version: &str, lost: Option<(&'static str, &'static str)>, failure: Option<&str>) {
    in_world(|world| async move {
        let workload = grown(&world, 1, 0).await;
        let client = workload.client();
        if let Some((namespace, name)) = lost {
            let maps = Api::<ConfigMap>::namespaced(client.clone(), namespace);
            maps.delete(name, &DeleteParams::default()).await.unwrap();
        }
        workload.boot(&Boot { kubelet: version.parse().unwrap(), ..worker("w-0") }).unwrap();
        minutes(30).await;
        assert_eq!(workload.kubeadm_failure(&node("w-0")).as_deref(), failure);
        assert_eq!(nodes(&client).await.contains_key("w-0"), failure.is_none());
    });
}

#[test]
fn a_machine_that_does_not_find_what_kubeadm_insists_on_never_becomes_a_node() {
    check_join("v1.16.8", None, None);
    let not_found = |name: &str, namespace: &str| format!("configmaps \"{name}\" not found in {namespace}");
    check_join("v1.17.4", None, Some(&not_found("kubelet-config-1.17", "kube-system")));
    let info = ("kube-public", "cluster-info");
    check_join("v1.16.8", Some(info), Some(&not_found("cluster-info", "kube-public")));
    let config = ("kube-system", "kubeadm-config");
    check_join("v1.16.8", Some(config), Some(&not_found("kubeadm-config", "kube-system")));
}
