//! The objects, as they go over the wire.

use serde_json::{Value, json};
use windlass_api::name::{ClusterSecret, Uid, UpdateId};
use windlass_plan::render::machine::{Start, control_plane};
use windlass_plan::render::workers::{PoolTemplates, deployment, templates};
use windlass_plan::render::{Scope, cluster, job};
use windlass_plan::target::Target;

use crate::sample::target;

fn scope(target: &Target) -> Scope<'_> {
    Scope { target, update: "1280807".parse::<UpdateId>().unwrap() }
}

fn uid() -> Uid {
    Uid::new("uid-of-the-cluster").unwrap()
}

fn cluster_owner() -> Value {
    json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "my-tkc", "uid": "uid-of-the-cluster"}])
}

#[test]
fn the_job_is_told_what_to_change_in_the_form_that_its_predecessor_knew() {
    let target = target(3, 1, "v1.16.7");
    let job = job::job(&scope(&target));
    assert_eq!(job["metadata"]["name"], "update-1280807");
    assert_eq!(job["metadata"]["namespace"], "vmware-system-tkg");
    assert_eq!(job["metadata"].get("ownerReferences"), None, "an owner may not be in another namespace");
    assert_eq!(job["metadata"]["annotations"], json!({"upgrade-id": "1280807", "upgrade-version": "v1.16.7+vmware.1"}));
    assert_eq!(job["spec"]["template"]["metadata"]["annotations"], job["metadata"]["annotations"]);
    assert_eq!(job["spec"]["template"]["metadata"]["labels"], job["metadata"]["labels"]);
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["windlass", "control-plane", "upgrade"]));
    assert_eq!(
        container["args"],
        json!([
            "--kubernetes-version=$(VERSION)",
            "--upgrade-id=$(UPGRADE_ID)",
            "--cluster-name=$(CLUSTER_NAME)",
            "--cluster-namespace=default",
            r#"--infrastructure-patches=[{"op":"replace","path":"/spec/imageName","value":"photon-k8sd-v1.16.7-vmware.1-guest.1"},{"op":"replace","path":"/spec/className","value":"best-effort-small"},{"op":"replace","path":"/spec/storageClass","value":"gc-storage-profile"}]"#,
            r#"--kubeadm-configmap-patches=[{"op":"replace","path":"/dns/imageRepository","value":"vmware"},{"op":"replace","path":"/dns/imageTag","value":"v1.6.2_for_v1.16.7"},{"op":"replace","path":"/etcd/local/imageRepository","value":"vmware"},{"op":"replace","path":"/etcd/local/imageTag","value":"v3.3.15_vmware.6"},{"op":"replace","path":"/imageRepository","value":"vmware"},{"op":"replace","path":"/kubernetesVersion","value":"v1.16.7+vmware.1"}]"#,
            r#"--bootstrap-patches=[{"op":"replace","path":"/spec/joinConfiguration/nodeRegistration/kubeletExtraArgs","value":[{"name":"node-labels","value":"run.tanzu.vmware.com/kubernetesDistributionVersion=v1.16.7_vmware.1-guest.1"}]}]"#,
        ])
    );
}

#[test]
fn only_the_first_machine_begins_a_cluster() {
    let target = target(3, 1, "v1.16.7");
    let [config, infrastructure, machine] = control_plane(&scope(&target), 0, Start::Init, &uid());
    let labels = json!({"node-labels": "run.tanzu.vmware.com/kubernetesDistributionVersion=v1.16.7_vmware.1-guest.1"});
    let argument = json!([{"name": "node-labels", "value": labels["node-labels"]}]);
    let init = &config["spec"]["initConfiguration"];
    assert_eq!(init["skipPhases"], json!(["addon/kube-proxy", "addon/coredns"]));
    assert_eq!(init["nodeRegistration"]["kubeletExtraArgs"], argument);
    assert_eq!(config["spec"].get("joinConfiguration"), None);
    assert_eq!(
        infrastructure["spec"],
        json!({"imageName": "photon-k8sd-v1.16.7-vmware.1-guest.1", "className": "best-effort-small",
            "storageClass": "gc-storage-profile"})
    );
    assert_eq!(machine["spec"]["version"], "v1.16.7+vmware.1");
    for object in [&config, &infrastructure, &machine] {
        assert_eq!(object["metadata"]["name"], "my-tkc-control-plane-0-1280807");
        assert_eq!(object["metadata"]["ownerReferences"], cluster_owner());
        assert_eq!(
            object["metadata"]["annotations"],
            json!({"upgrade.cluster-api.vmware.com/machine-name-base": "my-tkc-control-plane-0"})
        );
    }

    let [config, ..] = control_plane(&scope(&target), 1, Start::Join, &uid());
    let join = json!({"nodeRegistration": {"kubeletExtraArgs": argument}, "controlPlane": {}});
    assert_eq!(config["spec"], json!({"joinConfiguration": join}));
}

#[test]
fn a_pool_refers_to_templates_of_its_update() {
    let target = target(3, 2, "v1.16.7");
    let (scope, pool) = (scope(&target), &target.pools[0]);
    let deployment = deployment(&scope, pool, &PoolTemplates::of(&scope, pool), &uid());
    assert_eq!(deployment["metadata"]["name"], "my-tkc-workers-default");
    let spec = &deployment["spec"];
    assert_eq!(spec["replicas"], 2);
    assert_eq!(
        spec["rollout"]["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    );
    assert_eq!(spec["selector"]["matchLabels"], spec["template"]["metadata"]["labels"]);
    let [infrastructure, bootstrap] = templates(&scope, pool, [None, None], &uid());
    let machine = &spec["template"]["spec"];
    assert_eq!(machine["infrastructureRef"]["name"], infrastructure["metadata"]["name"]);
    assert_eq!(machine["bootstrap"]["configRef"]["name"], bootstrap["metadata"]["name"]);
    assert_eq!(infrastructure["metadata"]["name"], "my-tkc-workers-default-0-1280807");
    assert_eq!(bootstrap["spec"]["template"]["spec"]["joinConfiguration"].get("controlPlane"), None);
}

#[test]
fn certificates_belong_to_the_cluster_and_to_no_machine() {
    let target = target(1, 1, "v1.16.7");
    let metadata = cluster::secret_metadata(&scope(&target), ClusterSecret::Etcd, &uid());
    assert_eq!(metadata["name"], "my-tkc-etcd");
    assert_eq!(metadata["ownerReferences"], cluster_owner());
    let owners = &cluster::cluster(&scope(&target))["metadata"]["ownerReferences"];
    assert_eq!(owners[0]["kind"], "TanzuKubernetesCluster");
    assert_eq!(owners[0]["controller"], true);
    let owners = &cluster::wcp_cluster(&scope(&target))["metadata"]["ownerReferences"];
    assert_eq!(owners[0].get("controller"), None, "Cluster API controls it");
}
