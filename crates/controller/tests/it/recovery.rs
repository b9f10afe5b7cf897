//! Certificates that were lost come back from what machines were given, and from nothing else.

mod pairs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::name::{ClusterName, Namespace};
use windlass_controller::recovery::{self, Action, Assessment, Error, Options, SecretState, SecretsReport};
use windlass_sim::world::World;

use crate::world::{api, create, in_world, read, versions};

const RSA: &str = include_str!("recovery/rsa-certificate.pem");
const RSA_PUBLIC: &str = include_str!("recovery/rsa-public.pem");
const RSA_KEY_PKCS1: &str = include_str!("recovery/rsa-key-pkcs1.pem");
const RSA_KEY_PKCS8: &str = include_str!("recovery/rsa-key-pkcs8.pem");
const EC: &str = include_str!("recovery/ec-certificate.pem");
const EC_PUBLIC: &str = include_str!("recovery/ec-public.pem");
const EC_KEY_SEC1: &str = include_str!("recovery/ec-key-sec1.pem");
const EC_KEY_PKCS8: &str = include_str!("recovery/ec-key-pkcs8.pem");
const EC_CLIENT: &str = include_str!("recovery/ec-client-certificate.pem");

const FILES: [(&str, &str); 8] = [
    ("/etc/kubernetes/pki/ca.crt", RSA),
    ("/etc/kubernetes/pki/ca.key", RSA_KEY_PKCS1),
    ("/etc/kubernetes/pki/etcd/ca.crt", EC),
    ("/etc/kubernetes/pki/etcd/ca.key", EC_KEY_SEC1),
    ("/etc/kubernetes/pki/front-proxy-ca.crt", EC),
    ("/etc/kubernetes/pki/front-proxy-ca.key", EC_KEY_PKCS8),
    ("/etc/kubernetes/pki/sa.pub", RSA_PUBLIC),
    ("/etc/kubernetes/pki/sa.key", RSA_KEY_PKCS8),
];

/// The Secrets as they were before anything was lost.
const SECRETS: [(&str, &str, &str); 4] = [
    ("my-tkc-ca", RSA, RSA_KEY_PKCS1),
    ("my-tkc-etcd", EC, EC_KEY_SEC1),
    ("my-tkc-proxy", EC, EC_KEY_PKCS8),
    ("my-tkc-sa", RSA_PUBLIC, RSA_KEY_PKCS8),
];

/// A cluster of two control-plane machines, as Cluster API leaves it, with all of its Secrets.
struct Scene {
    client: Client,
    world: World,
    uid: String,
}

impl Scene {
    async fn new(world: World) -> Self {
        let client = world.client();
        let cluster: Cluster = read(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "my-tkc", "namespace": "default"},
            "spec": {},
        }));
        let uid = create(&client, &cluster).await.metadata.uid.unwrap();
        let scene = Self { client, world, uid };
        for (name, public, private) in SECRETS {
            let owner = scene.owner("Cluster", &scene.uid);
            let data = json!({"tls.crt": STANDARD.encode(public), "tls.key": STANDARD.encode(private)});
            scene.secret(name, &data, &json!([owner])).await;
        }
        scene.machine("m-0", &cloud_config(&FILES)).await;
        scene.machine("m-1", &format!("## template: jinja\n{}", cloud_config(&FILES))).await;
        let authority = STANDARD.encode(RSA);
        let kubeconfig =
            format!("clusters: [{{cluster: {{certificate-authority-data: {authority}}}, name: my-tkc}}]\n");
        scene.secret("my-tkc-kubeconfig", &json!({"value": STANDARD.encode(kubeconfig)}), &Value::Null).await;
        scene
    }

    fn owner(&self, kind: &str, uid: &str) -> Value {
        let group = if kind == "Cluster" { "cluster" } else { "bootstrap.cluster" };
        json!({"apiVersion": format!("{group}.x-k8s.io/v1beta2"), "kind": kind, "name": "my-tkc", "uid": uid})
    }

    async fn secret(&self, name: &str, data: &Value, owners: &Value) {
        let labels = json!({"cluster.x-k8s.io/cluster-name": "my-tkc"});
        let metadata = json!({"name": name, "namespace": "default", "labels": labels, "ownerReferences": owners});
        let object = json!({"metadata": metadata, "type": "cluster.x-k8s.io/secret", "data": data});
        create::<Secret>(&self.client, &read(object)).await;
    }

    async fn machine(&self, name: &str, data: &str) {
        self.secret(name, &json!({"value": STANDARD.encode(data)}), &Value::Null).await;
        let labels = json!({"cluster.x-k8s.io/cluster-name": "my-tkc", "cluster.x-k8s.io/control-plane": ""});
        let machine: Machine = read(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": name, "namespace": "default", "labels": labels},
            "spec": {
                "clusterName": "my-tkc", "bootstrap": {"dataSecretName": name},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.vmware.com", "kind": "WCPMachine", "name": name},
            },
        }));
        create(&self.client, &machine).await;
    }

    /// Another thing that a machine was given.
    async fn give(&self, machine: &str, files: &[(&str, &str)]) {
        let patch = json!({"data": {"value": STANDARD.encode(cloud_config(files))}});
        self.patch(machine, &patch).await;
    }

    async fn patch(&self, secret: &str, patch: &Value) {
        let api: Api<Secret> = api(&self.client);
        api.patch(secret, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    async fn lose(&self, secret: &str) {
        api::<Secret>(&self.client).delete(secret, &DeleteParams::default()).await.unwrap();
    }

    async fn check(&self) -> SecretsReport {
        recovery::check(&self.client, &namespace(), &name()).await.unwrap()
    }

    async fn recover(&self, options: &Options) -> Result<SecretsReport, Error> {
        let clock = &self.world.settings().clock;
        recovery::recover(&self.client, clock, &namespace(), &name(), options).await
    }

    async fn apply(&self) -> SecretsReport {
        self.recover(&Options { apply: true, from: None }).await.unwrap()
    }

    async fn read(&self, secret: &str) -> Secret {
        api(&self.client).get(secret).await.unwrap()
    }
}

fn name() -> ClusterName {
    "my-tkc".parse().unwrap()
}

fn namespace() -> Namespace {
    "default".parse().unwrap()
}

/// As `CABPK` writes it.
fn cloud_config(files: &[(&str, &str)]) -> String {
    let mut text = "#cloud-config\n\nwrite_files:\n".to_owned();
    for (path, content) in files {
        let indented = content.lines().map(|line| format!("      {line}\n")).collect::<String>();
        text +=
            &format!("-   path: {path}\n    owner: root:root\n    permissions: '0640'\n    content: |\n{indented}\n");
    }
    text + "runcmd:\n  - 'kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml'\n"
}

/// What is said of a Secret that cannot be helped.
#[track_caller]
fn why<'a>(report: &'a SecretsReport, secret: &str) -> &'a str {
    let found = report.secrets.iter().find(|found| found.name.as_str() == secret).unwrap();
    assert_eq!(found.action, Action::Person);
    found.why.as_deref().unwrap()
}

#[test]
fn a_cluster_that_has_all_is_left_alone() {
    in_world(|world| async move {
        let scene = Scene::new(world).await;
        let before = versions::<Secret>(&scene.client).await;
        assert_eq!(scene.check().await.assessment, Assessment::Intact);
        assert_eq!(scene.apply().await.assessment, Assessment::Intact);
        assert_eq!(versions::<Secret>(&scene.client).await, before);
    });
}

#[test]
fn what_is_lost_comes_back_as_it_was_and_belongs_to_the_cluster() {
    in_world(|world| async move {
        let scene = Scene::new(world).await;
        for (secret, ..) in SECRETS {
            scene.lose(secret).await;
        }
        let shown = scene.check().await;
        assert_eq!(shown.assessment, Assessment::Recoverable);
        assert!(shown.secrets.iter().all(|secret| secret.state == SecretState::Missing && !secret.done));
        // Without an order nothing is written.
        scene.recover(&Options::default()).await.unwrap();
        assert_eq!(scene.check().await, shown);

        let done = scene.apply().await;
        assert_eq!(done.assessment, Assessment::Recovered);
        assert!(done.secrets.iter().all(|secret| secret.done));
        for (secret, public, private) in SECRETS {
            let found = scene.read(secret).await;
            let data = found.data.unwrap();
            assert_eq!(
                (data["tls.crt"].0.as_slice(), data["tls.key"].0.as_slice()),
                (public.as_bytes(), private.as_bytes())
            );
            assert_eq!(found.type_.as_deref(), Some("cluster.x-k8s.io/secret"));
            assert_eq!(found.metadata.labels.unwrap()["cluster.x-k8s.io/cluster-name"], "my-tkc");
            assert!(found.metadata.annotations.unwrap()["windlass.dev/recovered-from"].starts_with("Machine/m-"));
            assert_eq!(found.metadata.owner_references.unwrap()[0].uid, scene.uid);
        }
        let events = api::<Event>(&scene.client).list(&ListParams::default()).await.unwrap().items;
        assert_eq!(events.iter().filter(|event| event.reason.as_deref() == Some("SecretRecovered")).count(), 4);

        // Once more changes nothing.
        let before = versions::<Secret>(&scene.client).await;
        assert_eq!(scene.apply().await.assessment, Assessment::Intact);
        assert_eq!(versions::<Secret>(&scene.client).await, before);
    });
}

#[test]
fn no_key_is_anywhere_but_in_secrets() {
    in_world(|world| async move {
        let scene = Scene::new(world).await;
        scene.lose("my-tkc-ca").await;
        scene.lose("my-tkc-sa").await;
        scene.patch("my-tkc-etcd", &json!({"data": {"tls.key": STANDARD.encode(RSA_KEY_PKCS1)}})).await;
        let said = [scene.check().await, scene.apply().await];
        let mut all: Vec<String> = said.iter().map(|report| serde_json::to_string(report).unwrap()).collect();
        all.extend(said.iter().map(|report| format!("{report:?}")));
        let events = api::<Event>(&scene.client).list(&ListParams::default()).await.unwrap().items;
        assert_eq!(events.len(), 2);
        all.extend(events.iter().map(|event| serde_json::to_string(event).unwrap()));
        for secret in ["my-tkc-ca", "my-tkc-sa"] {
            all.push(serde_json::to_string(&scene.read(secret).await.metadata).unwrap());
        }
        for key in [RSA_KEY_PKCS1, RSA_KEY_PKCS8, EC_KEY_SEC1, EC_KEY_PKCS8] {
            for line in key.lines().filter(|line| !line.starts_with("-----")) {
                assert!(all.iter().all(|text| !text.contains(line)));
            }
            assert!(all.iter().all(|text| !text.contains(&STANDARD.encode(key))));
        }
    });
}

#[test]
fn a_secret_that_others_own_is_owned_by_the_cluster_too() {
    in_world(|world| async move {
        let scene = Scene::new(world).await;
        let before = scene.read("my-tkc-ca").await.data;
        let config: KubeadmConfig = read(json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig",
            "metadata": {"name": "my-tkc", "namespace": "default"}, "spec": {},
        }));
        let config = create(&scene.client, &config).await.metadata.uid.unwrap();
        let owners = json!([scene.owner("Cluster", "gone"), scene.owner("KubeadmConfig", &config)]);
        scene.patch("my-tkc-ca", &json!({"metadata": {"ownerReferences": owners}})).await;
        scene.patch("my-tkc-sa", &json!({"metadata": {"ownerReferences": null}})).await;
        let shown = scene.check().await;
        let states: Vec<SecretState> = shown.secrets.iter().map(|secret| secret.state).collect();
        assert_eq!(states, [SecretState::AtRisk, SecretState::Intact, SecretState::Intact, SecretState::Intact]);

        assert_eq!(scene.apply().await.assessment, Assessment::Recovered);
        let owned = scene.read("my-tkc-ca").await;
        let owners: Vec<String> = owned.metadata.owner_references.unwrap().into_iter().map(|owner| owner.uid).collect();
        assert_eq!(owners, [config, scene.uid.clone()]);
        assert_eq!(owned.data, before);
        // What a person brought stays with nobody.
        assert_eq!(scene.read("my-tkc-sa").await.metadata.owner_references, None);
    });
}

#[test]
fn machines_that_disagree_are_asked_one_at_a_time() {
    in_world(|world| async move {
        let scene = Scene::new(world).await;
        let mut other = FILES;
        (other[4].1, other[5].1) = (RSA, RSA_KEY_PKCS8);
        scene.give("m-0", &other).await;
        scene.lose("my-tkc-proxy").await;
        let refused = scene.apply().await;
        assert!(why(&refused, "my-tkc-proxy").contains("were given different ones"), "{refused:?}");
        assert_eq!(refused.assessment, Assessment::Damaged);

        let from = |machine: &str| Options { apply: true, from: Some(machine.parse().unwrap()) };
        let refused = scene.recover(&from("m-7")).await.unwrap_err().to_string();
        assert!(
            refused.starts_with("Machine/m-7 is no machine of the control plane of my-tkc; there are m-"),
            "{refused}"
        );
        assert_eq!(scene.recover(&from("m-1")).await.unwrap().assessment, Assessment::Recovered);
        assert_eq!(scene.read("my-tkc-proxy").await.data.unwrap()["tls.crt"].0, EC.as_bytes());
    });
}

#[test]
fn machines_of_another_cluster_are_not_believed() {
    in_world(|world| async move {
        let scene = Scene::new(world).await;
        let mut other = FILES;
        (other[0].1, other[1].1) = (EC, EC_KEY_SEC1);
        for machine in ["m-0", "m-1"] {
            scene.give(machine, &other).await;
        }
        scene.lose("my-tkc-etcd").await;
        let report = scene.check().await;
        assert!(why(&report, "my-tkc-ca").starts_with("it is not what Machine/m-"), "{report:?}");
        assert!(why(&report, "my-tkc-etcd").contains("given another ca than the one that is there"), "{report:?}");

        scene.lose("my-tkc-ca").await;
        let report = scene.apply().await;
        assert!(why(&report, "my-tkc-ca").contains("the kubeconfig of the cluster does not trust"), "{report:?}");
        assert!(why(&report, "my-tkc-etcd").contains("the kubeconfig of the cluster does not trust"), "{report:?}");
        assert!(!versions::<Secret>(&scene.client).await.contains_key("my-tkc-ca"));
    });
}

#[test]
fn what_cannot_be_helped_is_told_and_the_rest_is_done() {
    in_world(|world| async move {
        let scene = Scene::new(world).await;
        scene.lose("my-tkc-sa").await;
        scene.lose("my-tkc-etcd").await;
        scene.patch("my-tkc-proxy", &json!({"data": {"tls.key": STANDARD.encode(RSA_KEY_PKCS1)}})).await;
        scene.give("m-0", &FILES[..6]).await;
        scene.lose("m-1").await;
        let report = scene.apply().await;
        let told = why(&report, "my-tkc-sa");
        assert!(told.contains("Machine/m-0 was not given it"), "{told}");
        assert!(told.contains("Machine/m-1: the Secret m-1, which it booted with, is gone"), "{told}");
        let told = why(&report, "my-tkc-proxy");
        assert!(
            told.starts_with("its private key is not the one of its certificate; what is there is never overwritten")
        );
        assert_eq!(scene.read("my-tkc-etcd").await.data.unwrap()["tls.key"].0, EC_KEY_SEC1.as_bytes());
    });
}

#[test]
fn a_cluster_that_is_not_there_has_nothing_to_recover() {
    in_world(|world| async move {
        let error = recovery::check(&world.client(), &namespace(), &name()).await.unwrap_err();
        assert!(matches!(error, Error::NoCluster { .. }), "{error}");
    });
}
