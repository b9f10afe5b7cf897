//! What becomes of clusters of a class before they are stored.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::extension::ExtensionConfig;
use windlass_api::kind::release::TanzuKubernetesRelease;
use windlass_api::kind::topology::ClusterClass;
use windlass_apiserver::admission::{Handler, Webhook};
use windlass_controller::admission::cluster::{GROUP, NAME, OPERATIONS, RESOURCE, VERSION, concerns, review};
use windlass_controller::hooks;
use windlass_plan::resolve::hold::HoldBy;
use windlass_sim::world::World;

use crate::world::{api, create, in_world, read, versions, webhook};

const OLD: &str = "v1.24.9---vmware.1-tkg.1";
const NEW: &str = "v1.25.7---vmware.2-tkg.1";

/// Ours; or one that nobody answers for.
enum Webhooks {
    Ours(Client, HoldBy),
    Down,
}

impl Handler for Webhooks {
    fn review(&self, question: Value) -> BoxFuture<'_, Result<Value, String>> {
        match self {
            Self::Ours(client, hold_by) => review(client, *hold_by, question).boxed(),
            Self::Down => async { Err("connection refused".to_owned()) }.boxed(),
        }
    }

    fn concerns(&self, object: Option<&Value>, old: Option<&Value>) -> bool {
        concerns(object, old)
    }
}

/// Somebody else's, which puts a label on all that it sees, so that ours is asked again.
struct Other;

impl Handler for Other {
    fn review(&self, question: Value) -> BoxFuture<'_, Result<Value, String>> {
        // [{"op":"add","path":"/metadata/labels/seen","value":"yes"}]
        let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscy9zZWVuIiwidmFsdWUiOiJ5ZXMifV0=";
        let response = json!({
            "uid": question["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch,
        });
        let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        async { Ok(answer) }.boxed()
    }
}

fn add(world: &World, name: &str, reinvoke: bool, handler: Arc<dyn Handler>) {
    let webhook = webhook(name, &OPERATIONS, [GROUP, VERSION, RESOURCE], handler);
    world.management().admission().add_mutating(Webhook { reinvoke, ..webhook });
}

/// Puts our webhook in front of the management API.
fn guard(world: &World) -> Client {
    guard_by(world, HoldBy::Pause)
}

fn guard_by(world: &World, hold_by: HoldBy) -> Client {
    add(world, NAME, true, Arc::new(Webhooks::Ours(world.client(), hold_by)));
    world.client()
}

/// A cluster of the World's class. Nothing runs that would have made a control plane for Cluster API to ask.
fn cluster(version: &str) -> Cluster {
    read(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {
            "name": "wl", "namespace": "default", "labels": {},
            "annotations": {"unsafe.topology.cluster.x-k8s.io/disable-update-version-check": ""},
        },
        "spec": {"topology": {
            "classRef": {"name": "tkg-vsphere-default-v1.0.0", "namespace": "tkg-system"},
            "version": version,
            "controlPlane": {"replicas": 3},
            "workers": {"machineDeployments": [{"class": "tkg-worker", "name": "md-0", "replicas": 2}]},
        }},
    }))
}

/// A cluster at the old release whose API has answered.
async fn running(client: &Client) {
    create(client, &cluster("v1.24")).await;
    let reached = json!({"status": {"initialization": {"controlPlaneInitialized": true}}});
    let params = PatchParams::default();
    api::<Cluster>(client).patch_status("wl", &params, &Patch::Merge(reached)).await.unwrap();
}

async fn patched(client: &Client, patch: Value) -> Result<Cluster, String> {
    let answer = api::<Cluster>(client).patch("wl", &PatchParams::default(), &Patch::Merge(patch)).await;
    answer.map_err(|error| match error {
        kube::Error::Api(status) => status.message.clone(),
        other => panic!("{other}"),
    })
}

fn version(version: &str) -> Value {
    json!({"spec": {"topology": {"version": version}}})
}

/// `release at version`, and how it is held.
fn told(cluster: &Cluster) -> String {
    let topology = cluster.spec.topology.as_ref().unwrap();
    let release = &cluster.labels()["run.tanzu.vmware.com/tkr"];
    let paused = if cluster.spec.paused == Some(true) { " paused" } else { "" };
    let held = cluster.annotations().get("tkg.tanzu.vmware.com/paused");
    let held = held.map(|release| format!(" for {release}")).unwrap_or_default();
    format!("{release} at {}{paused}{held}", topology.version)
}

#[test]
fn a_cluster_is_resolved_when_it_is_made_and_held_in_the_write_that_changes_its_release() {
    in_world(|world| async move {
        let client = guard(&world);
        running(&client).await;
        let made = api::<Cluster>(&client).get("wl").await.unwrap();
        assert_eq!(told(&made), format!("{OLD} at v1.24.9+vmware.1"));
        assert!(made.annotations().contains_key("run.tanzu.vmware.com/tkr-spec"));
        let data = made.spec.topology.as_ref().unwrap().variable("TKR_DATA").unwrap();
        let image = &data["v1.24.9+vmware.1"]["osImageRef"]["name"];
        assert_eq!(image, "ubuntu-2004-k8sd-v1.24.9-vmware.1-tkg.1");

        let held = format!("{NEW} at v1.25.7+vmware.2 paused for {NEW}");
        let dry = PatchParams { dry_run: true, ..PatchParams::default() };
        let tried = api::<Cluster>(&client).patch("wl", &dry, &Patch::Merge(version("v1.25"))).await.unwrap();
        assert_eq!(told(&tried), held, "a dry run is told the truth");
        let stored = api::<Cluster>(&client).get("wl").await.unwrap();
        assert_eq!(stored.metadata.resource_version, Some(versions::<Cluster>(&client).await["wl"].clone()));
        assert_eq!(told(&stored), format!("{OLD} at v1.24.9+vmware.1"), "and leaves no trace");

        let by_label = json!({"metadata": {"labels": {"run.tanzu.vmware.com/tkr": NEW}}});
        let changed = patched(&client, by_label).await.unwrap();
        assert_eq!(told(&changed), held);
        let data = changed.spec.topology.as_ref().unwrap().variable("TKR_DATA").unwrap().as_object().unwrap();
        assert_eq!(data.keys().collect::<Vec<_>>(), ["v1.24.9+vmware.1", "v1.25.7+vmware.2"]);

        // To set the field is not to end our hold; to take the annotation away is.
        let unpaused = patched(&client, json!({"spec": {"paused": false}})).await.unwrap();
        assert_eq!(told(&unpaused), held);
        let released =
            json!({"metadata": {"annotations": {"tkg.tanzu.vmware.com/paused": null}}, "spec": {"paused": false}});
        assert_eq!(told(&patched(&client, released).await.unwrap()), format!("{NEW} at v1.25.7+vmware.2"));
    });
}

#[test]
fn before_cluster_api_asks_us_a_cluster_is_paused_that_hooks_are_to_hold() {
    in_world(|world| async move {
        let client = guard_by(&world, HoldBy::Hooks);
        running(&client).await;
        let raised = async || {
            let dry = PatchParams { dry_run: true, ..PatchParams::default() };
            told(&api::<Cluster>(&client).patch("wl", &dry, &Patch::Merge(version("v1.25"))).await.unwrap())
        };
        let (paused, free) =
            (format!("{NEW} at v1.25.7+vmware.2 paused for {NEW}"), format!("{NEW} at v1.25.7+vmware.2"));
        assert_eq!(raised().await, paused, "nobody has told Cluster API");

        hooks::register(&client).await.unwrap();
        assert_eq!(raised().await, paused, "it was told, and has not found us");
        let handler = json!({
            "name": "before-cluster-upgrade.windlass",
            "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterUpgrade"},
        });
        let discovered = |status: &str| {
            let condition = json!({
                "type": "Discovered", "status": status, "reason": "Discovered", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            Patch::Merge(json!({"status": {"conditions": [condition], "handlers": [handler]}}))
        };
        let extensions: Api<ExtensionConfig> = Api::all(client.clone());
        let params = PatchParams::default();
        extensions.patch_status(hooks::CONFIG, &params, &discovered("True")).await.unwrap();
        assert_eq!(raised().await, free, "it asks");
        extensions.patch_status(hooks::CONFIG, &params, &discovered("False")).await.unwrap();
        assert_eq!(raised().await, paused, "it cannot find us any more");
    });
}

#[test]
fn whoever_else_changes_the_object_in_between_the_answer_is_the_same() {
    in_world(|world| async move {
        let client = guard(&world);
        add(&world, "others.example.com", false, Arc::new(Other));
        running(&client).await;
        let changed = patched(&client, version("v1.25.7+vmware.2-tkg.1")).await.unwrap();
        assert_eq!(told(&changed), format!("{NEW} at v1.25.7+vmware.2 paused for {NEW}"));
        assert!(!changed.annotations().contains_key("windlass.dev/keep-paused"), "our own pause is not the owner's");
        assert_eq!(changed.labels()["seen"], "yes");
    });
}

#[test]
fn what_cannot_be_done_is_refused_with_what_could_and_the_rest_stays_possible() {
    in_world(|world| async move {
        let client = guard(&world);
        running(&client).await;
        let refusal = patched(&client, version("v1.27")).await.unwrap_err();
        assert_eq!(
            refusal,
            "admission webhook \"releases.clusters.windlass.dev\" denied the request: spec.topology: no release fits; \
             the control plane: no release begins with v1.27; pool md-0: no release begins with v1.27; there are \
             v1.24.9+vmware.1-tkg.1, v1.25.7+vmware.2-tkg.1, v1.26.5+vmware.2-tkg.1, v1.35.2+vmware.1-tkg.1, \
             v1.36.1+vmware.1-tkg.1"
        );
        let releases: Api<TanzuKubernetesRelease> = Api::all(client.clone());
        let off = Patch::Merge(json!({"metadata": {"labels": {"deactivated": ""}}}));
        releases.patch(NEW, &PatchParams::default(), &off).await.unwrap();
        let refusal = patched(&client, version("v1.25")).await.unwrap_err();
        assert!(refusal.contains("v1.25.7+vmware.2-tkg.1 is deactivated"), "{refusal}");

        // The release of the cluster is gone: everything else about the cluster can still be changed.
        releases.delete(OLD, &DeleteParams::default()).await.unwrap();
        let scaled = patched(&client, json!({"spec": {"topology": {"controlPlane": {"replicas": 1}}}})).await.unwrap();
        assert_eq!(told(&scaled), format!("{OLD} at v1.24.9+vmware.1"));

        let mut classless = cluster("v1.24");
        classless.metadata.name = Some("classless".to_owned());
        classless.annotations_mut().insert("run.tanzu.vmware.com/resolve-tkr".to_owned(), String::new());
        classless.spec.topology.as_mut().unwrap().class_ref.name = "none".to_owned();
        let refused = api::<Cluster>(&client).create(&PostParams::default(), &classless).await.unwrap_err();
        assert!(refused.to_string().contains("there is no ClusterClass tkg-system/none"), "{refused}");
    });
}

#[test]
fn where_upgrades_have_to_be_approved_who_asks_is_written_down_and_what_nothing_holds_is_refused() {
    in_world(|world| async move {
        let client = guard(&world);
        running(&client).await;
        let required = json!({"metadata": {"labels": {"windlass.dev/approval": "required"}}});
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.patch("default", &PatchParams::default(), &Patch::Merge(required)).await.unwrap();
        let stamps = |cluster: &Cluster| {
            let keys = ["windlass.dev/approval", "windlass.dev/asked-by", "windlass.dev/decided-by"];
            keys.map(|key| cluster.annotations().get(key).cloned().unwrap_or_default())
        };
        let admin = || "system:admin".to_owned();
        let asked = patched(&client, version("v1.25")).await.unwrap();
        assert_eq!(told(&asked), format!("{NEW} at v1.25.7+vmware.2 paused for {NEW}"));
        assert_eq!(stamps(&asked), ["required".to_owned(), admin(), String::new()]);
        // What comes to the same is not asked for anew, and who decides is written down.
        let decided = json!({"metadata": {"annotations": {"windlass.dev/approved": "sha256:1"}}, "spec": version("v1.25.7")["spec"]});
        let decided = patched(&client, decided).await.unwrap();
        assert_eq!(stamps(&decided), ["required".to_owned(), admin(), admin()]);
        assert_eq!(decided.annotations()["windlass.dev/approved"], "sha256:1");

        let released =
            json!({"metadata": {"annotations": {"tkg.tanzu.vmware.com/paused": null}}, "spec": {"paused": false}});
        let refusal = patched(&client, released.clone()).await.unwrap_err();
        assert!(refusal.contains("has to be approved, and is held until then: windlass approve wl"), "{refusal}");
        // When the upgrade is on record, its hold ends as ever.
        let uid = api::<Cluster>(&client).get("wl").await.unwrap().metadata.uid;
        let machines = json!({"count": 1, "class": "", "storageClass": ""});
        let end = |version: &str| json!({"distribution": version, "kubernetes": "", "controlPlane": machines, "workers": machines});
        let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "wl", "uid": uid});
        let record: ClusterUpdate = read(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "ClusterUpdate",
            "metadata": {"name": "wl-1", "labels": {"cluster.x-k8s.io/cluster-name": "wl"}, "ownerReferences": [owner]},
            "spec": {"cluster": "wl", "ordinal": 1, "id": "7", "envelopeDigest": "sha256:1",
                "from": end("v1.24.9+vmware.1-tkg.1"), "to": end("v1.25.7+vmware.2-tkg.1")},
        }));
        create(&client, &record).await;
        assert_eq!(told(&patched(&client, released).await.unwrap()), format!("{NEW} at v1.25.7+vmware.2"));

        // A class that asks for no release: neither packages nor a pause would hold another version.
        let classes: Api<ClusterClass> = Api::namespaced(client.clone(), "tkg-system");
        let foreign = Patch::Merge(json!({"metadata": {"annotations": {"run.tanzu.vmware.com/resolve-tkr": null}}}));
        classes.patch("tkg-vsphere-default-v1.0.0", &PatchParams::default(), &foreign).await.unwrap();
        let refusal = patched(&client, version("v1.26.5+vmware.2")).await.unwrap_err();
        assert!(refusal.contains("nothing would hold this one until then"), "{refusal}");
        patched(&client, json!({"spec": {"topology": {"controlPlane": {"replicas": 1}}}})).await.unwrap();
    });
}

#[test]
fn while_nobody_answers_a_cluster_can_still_end_and_be_left_as_it_is() {
    in_world(|world| async move {
        let client = world.client();
        create(&client, &cluster("v1.24.9+vmware.1")).await;
        add(&world, NAME, true, Arc::new(Webhooks::Down));
        let held = json!({"metadata": {"finalizers": ["example.com/hold"], "labels": {"team": "a"}}});
        patched(&client, held).await.unwrap();
        let refusal = patched(&client, version("v1.25")).await.unwrap_err();
        assert!(refusal.contains("connection refused"), "{refusal}");
        let clusters = api::<Cluster>(&client);
        clusters.delete("wl", &DeleteParams::default()).await.unwrap();
        patched(&client, json!({"metadata": {"finalizers": null}, "spec": {"paused": true}})).await.unwrap();
        assert!(clusters.get_opt("wl").await.unwrap().is_none());
    });
}
