//! Classic clusters on a real API server: a label is changed, and machines follow it, whoever is killed.

use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_rehearse::crash::Crashes;
use windlass_sim::actor::Caller;
use windlass_sim::fault::Moment;

use super::stage::{How, Ran, Stage, really, rehearsed};
use super::{steps, tier, writes};

const EXAMPLE: &str = include_str!("../../../../../deploy/examples/release-by-label.yaml");
const OLD: &str = "35.2.0";
const NEW: &str = "36.1.0";

/// What an update came to.
#[derive(Debug, Clone, PartialEq)]
struct Came {
    steps: Vec<[String; 3]>,
    state: Option<UpdateState>,
    /// The versions of its machines.
    machines: Vec<String>,
    /// How many writes the controllers had made when it was asked for.
    before: u64,
}

/// The objects of the example, with one machine of each sort.
async fn create(client: &Client) {
    let objects: Vec<Value> = serde_saphyr::from_multiple(EXAMPLE).unwrap();
    for mut object in objects {
        if matches!(object["kind"].as_str(), Some("KubeadmControlPlane" | "MachineDeployment")) {
            object["spec"]["replicas"] = json!(1);
        }
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
        let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &ApiResource::from_gvk(&kind));
        api.create(&PostParams::default(), &object).await.unwrap();
    }
}

async fn until(stage: &Stage, release: &str) {
    let clusters: Api<Cluster> = Api::default_namespaced(stage.client.clone());
    for _ in 0..2_000 {
        if let Ok(found) = clusters.get("shop").await {
            let has = found.annotations().get("release.giantswarm.io/last-deployed-version").map(String::as_str);
            let conditions = found.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
            let applied = ConditionType::ReleaseApplied.among(conditions);
            if has == Some(release) && applied.is_some_and(|it| it.status == "True" && it.message == release) {
                return;
            }
        }
        tokio::time::sleep(stage.look).await;
    }
    let found = clusters.get("shop").await.unwrap();
    let update: Api<ClusterUpdate> = Api::default_namespaced(stage.client.clone());
    panic!("never at {release}: {found:#?} {:#?}", update.list(&ListParams::default()).await);
}

fn script(stage: Stage) -> LocalBoxFuture<'static, Came> {
    play(stage).boxed_local()
}

async fn play(stage: Stage) -> Came {
    create(&stage.client).await;
    until(&stage, OLD).await;
    let clusters: Api<Cluster> = Api::default_namespaced(stage.client.clone());
    let before = writes(&stage.crashes);
    let patch = json!({"metadata": {"labels": {"release.giantswarm.io/version": NEW}}});
    clusters.patch("shop", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    until(&stage, NEW).await;
    // The machines of before are on their way out.
    let machines: Api<Machine> = Api::default_namespaced(stage.client.clone());
    let mut left = machines.list(&ListParams::default()).await.unwrap().items;
    for _ in 0..100 {
        if left.len() == 2 {
            break;
        }
        tokio::time::sleep(stage.look.max(Duration::from_millis(250))).await;
        left = machines.list(&ListParams::default()).await.unwrap().items;
    }
    let updates: Api<ClusterUpdate> = Api::default_namespaced(stage.client.clone());
    let all = updates.list(&ListParams::default()).await.unwrap().items;
    let update = all.into_iter().last().and_then(|update| update.status).unwrap_or_default();
    let mut machines: Vec<String> = left.into_iter().filter_map(|machine| machine.spec.version).collect();
    machines.sort();
    Came { steps: steps(&update), state: update.state, machines, before }
}

fn how() -> How {
    How { labels: true, ..How::default() }
}

fn rehearsal(how: &How) -> Ran<Came> {
    let expected = rehearsed(how, &script);
    let wanted = vec!["v1.36.1+vmware.1".to_owned(); 2];
    assert_eq!(
        (expected.came.state, &expected.came.machines),
        (Some(UpdateState::Succeeded), &wanted),
        "{expected:#?}"
    );
    assert_eq!((expected.objects["Machine"], expected.complaints.len()), (4, 0), "{expected:#?}");
    expected
}

#[test]
fn a_label_leads_machines_on_a_real_api_server_as_it_was_rehearsed() {
    let Some(assets) = tier("a release by a label") else { return };
    let mut expected = rehearsal(&how());
    let ran = really(assets, &how(), &script);
    expected.came.before = ran.came.before;
    assert_eq!(ran, expected);
}

#[test]
fn a_label_leads_machines_also_when_the_leader_is_killed() {
    let Some(assets) = tier("a release by a label, with kills") else { return };
    let reference = how();
    let mut expected = rehearsal(&reference);
    let (first, made) = (expected.came.before, writes(&reference.crashes) - expected.came.before);
    let kills = vec![(first + made / 3, Moment::After), (first + 2 * made / 3, Moment::Before)];
    let how = How { crashes: Crashes::of(Caller::Controllers, kills), ..how() };
    let ran = really(assets, &how, &script);
    assert!(how.crashes.left() < 2, "nobody was killed");
    // Notes about the steps of a look whose record was not written are lost.
    expected.came.before = ran.came.before;
    expected.came.steps.clone_from(&ran.came.steps);
    assert_eq!(ran, expected);
}
