//! What machines read when they boot: all that people said, and what only the provider knows.

use k8s_openapi::api::core::v1::{Node, Secret};
use kube::Api;
use serde_json::{Value, json};
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::kind::condition;

use super::is_available;
use super::stage::{NEW, OLD, Stage, machine_spec, stage};

const NAME: &str = "c-control-plane-0";

/// The first machine of a control plane, told this.
async fn machine(stage: &Stage, version: &str, spec: Value) {
    stage.cluster("c").await;
    let labels = json!({"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/control-plane": ""});
    let metadata = json!({"name": NAME, "labels": labels});
    let reference = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": NAME});
    for (api_version, kind, spec) in [
        ("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", spec),
        ("infrastructure.cluster.vmware.com/v1alpha2", "WCPMachine", machine_spec(OLD)),
        (
            "cluster.x-k8s.io/v1beta2",
            "Machine",
            json!({
                "clusterName": "c", "version": format!("{version}+vmware.1"),
                "bootstrap": {"configRef": reference("bootstrap.cluster.x-k8s.io", "KubeadmConfig")},
                "infrastructureRef": reference("infrastructure.cluster.vmware.com", "WCPMachine"),
            }),
        ),
    ] {
        stage.create(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})).await;
    }
}

#[test]
fn nothing_is_lost_on_the_way_to_a_machine() {
    stage(|stage| async move {
        let said = json!({
            "clusterConfiguration": {"imageRepository": "vmware", "apiServer": {"certSANs": ["api.example.com"]}},
            "initConfiguration": {
                "nodeRegistration": {
                    "taints": [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}],
                    "criSocket": "/run/containerd.sock",
                    "kubeletExtraArgs": [{"name": "node-labels", "value": "a=b"}],
                },
                "localAPIEndpoint": {"bindPort": 8443},
            },
            "files": [
                {"path": "/etc/motd", "content": "be kind\n"},
                {"path": "/etc/key", "permissions": "0600", "contentFrom": {"secret": {"name": "of-people", "key": "k"}}},
            ],
            "preKubeadmCommands": ["hostname set"],
            "postKubeadmCommands": ["kubectl apply -f authsvc.yaml"],
            "users": [{"name": "me"}],
            "ntp": {"servers": ["0.pool.ntp.org"]},
            "verbosity": 5,
        });
        machine(&stage, OLD, said).await;
        stage.pass(60).await;
        let config: KubeadmConfig = stage.get(NAME).await;
        let waits = condition(&config.status.as_ref().unwrap().conditions, "DataSecretAvailable").unwrap().clone();
        assert_eq!(waits.message, "there is no Secret default/of-people, which a file is read from");

        let metadata = json!({"name": "of-people"});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"k": "hidden"}});
        stage.create(secret).await;
        stage.until(NAME, is_available).await;
        let secret: Secret = Api::default_namespaced(stage.client()).get(NAME).await.unwrap();
        let text = String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap();
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        let run = json!([
            "hostname set",
            "kubeadm init --config /run/kubeadm/kubeadm.yaml --v 5",
            "kubectl apply -f authsvc.yaml"
        ]);
        assert_eq!(read["runcmd"], run);
        assert_eq!((&read["users"][0]["name"], &read["ntp"]["servers"][0]), (&json!("me"), &json!("0.pool.ntp.org")));
        let file = |path: &str| {
            let files = read["write_files"].as_array().unwrap();
            files.iter().find(|file| file["path"] == path).unwrap()["content"].as_str().unwrap().to_owned()
        };
        assert_eq!([file("/etc/motd"), file("/etc/key")], ["be kind\n", "hidden"]);
        let documents: Vec<Value> = serde_saphyr::from_multiple(&file("/run/kubeadm/kubeadm.yaml")).unwrap();
        assert_eq!(documents[0]["apiServer"]["certSANs"][0], "api.example.com");
        assert_eq!(documents[0]["kubernetesVersion"], format!("{OLD}+vmware.1"));
        let registration = &documents[1]["nodeRegistration"];
        assert_eq!((&registration["criSocket"], &registration["name"]), (&json!("/run/containerd.sock"), &json!(NAME)));
        assert_eq!(documents[1]["localAPIEndpoint"]["bindPort"], 8443);

        let node: Node = Api::all(stage.workload("c").client()).get(NAME).await.unwrap();
        let taints = node.spec.unwrap().taints.unwrap();
        let taints: Vec<&str> = taints.iter().map(|taint| taint.key.as_str()).collect();
        assert_eq!(taints, ["dedicated"], "what people say of taints stands in for what kubeadm would");
    });
}

#[test]
fn a_disk_of_another_version_does_not_run_a_control_plane() {
    stage(|stage| async move {
        machine(&stage, NEW, json!({"clusterConfiguration": {"imageRepository": "vmware"}, "initConfiguration": {}}))
            .await;
        stage.pass(3600).await;
        let config: KubeadmConfig = stage.get(NAME).await;
        assert!(config.status.unwrap().data_secret_name.is_some(), "it was told all that it needs");
        assert!(!stage.workload("c").answers(), "the images of one version are not on a disk of another");
        let told = stage.world.recorder().timeline().text();
        let why = format!("kubeadm gives up on {NAME}: [ERROR ImagePull]: failed to pull image vmware/");
        assert!(told.contains(&why), "{told}");
    });
}
