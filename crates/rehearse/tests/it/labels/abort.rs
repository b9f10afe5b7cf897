//! An update that is given up: the label names the release again that the cluster has. Until Cluster API is told of the new one that
//! is all there is to do; from then on the update goes on.

use std::time::Duration;

use kube::Client;
use kube::api::{Api, ListParams};
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_sim::actor::Caller;
use windlass_sim::fault::{Fault, Requests, Scenario, When};

use super::bad::{label, version};
use super::{played, played_through, start};

const OLD: &str = "v1.35.2+vmware.1";
const NEW: &str = "v1.36.1+vmware.1";

/// How each update of the cluster is, in order.
async fn updates(client: &Client) -> Vec<(String, Option<UpdateState>)> {
    let api: Api<ClusterUpdate> = Api::default_namespaced(client.clone());
    let mut updates = api.list(&ListParams::default()).await.unwrap().items;
    updates.sort_by_key(|update| update.spec.ordinal);
    let state = |update: &ClusterUpdate| update.status.as_ref().and_then(|status| status.state);
    updates.iter().map(|update| (update.spec.to.distribution.clone(), state(update))).collect()
}

/// What is said of the cluster, once it is this.
async fn until_applied(client: &Client, release: &str) {
    let api: Api<Cluster> = Api::default_namespaced(client.clone());
    let mut told = None;
    for _ in 0..3600 {
        let cluster = api.get("shop").await.unwrap();
        let conditions = cluster.status.unwrap_or_default().conditions;
        told = ConditionType::ReleaseApplied.among(&conditions).cloned();
        if told.as_ref().is_some_and(|it| it.status == "True" && it.message == release) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("{release}: {told:?}");
}

async fn until_begun(client: &Client, count: usize) {
    while updates(client).await.len() < count {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn until_cluster_api_is_told_the_label_can_go_back_and_the_update_is_given_up() {
    // New templates come before Cluster API is told: three times there is none.
    let templates = Requests::to("write", "wcpmachinetemplates").by(Caller::Controllers);
    let refused = Fault::Refusal { on: templates, code: 503, retry_after_seconds: None };
    let faults = Scenario::default().and(refused, When::times(3));
    let ended = played_through(&start().world, &faults, |world| async move {
        let client = &world.client();
        let machines: Api<Machine> = Api::default_namespaced(client.clone());
        let names = |list: Vec<Machine>| list.into_iter().map(|it| it.metadata.name).collect::<Vec<_>>();
        let before = names(machines.list(&ListParams::default()).await.unwrap().items);
        label(client, "36.1.0").await.unwrap();
        until_begun(client, 1).await;
        assert_eq!(version(client).await, OLD, "nobody was told yet");
        label(client, "35.2.0").await.unwrap();
        until_applied(client, "35.2.0").await;
        assert_eq!(updates(client).await, [("v36.1.0".to_owned(), Some(UpdateState::Aborted))]);
        assert_eq!(version(client).await, OLD);
        assert_eq!(names(machines.list(&ListParams::default()).await.unwrap().items), before);

        // It can be asked for again, and is another update then.
        label(client, "36.1.0").await.unwrap();
        until_applied(client, "36.1.0").await;
        let states = [Some(UpdateState::Aborted), Some(UpdateState::Succeeded)];
        assert_eq!(updates(client).await.into_iter().map(|(_, state)| state).collect::<Vec<_>>(), states);
    });
    assert!(ended.recorder().violations().is_empty(), "{:?}", ended.recorder().violations());
}

#[test]
fn once_cluster_api_is_told_there_is_only_forward() {
    played(|client| async move {
        let client = &client;
        label(client, "36.1.0").await.unwrap();
        while version(client).await != NEW {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let why = label(client, "35.2.0").await.unwrap_err();
        assert!(why.contains("the update to 36.1.0 goes on: Cluster API was told that"), "{why}");
        assert!(why.contains("there is only forward"), "{why}");
        until_applied(client, "36.1.0").await;
        assert_eq!(updates(client).await, [("v36.1.0".to_owned(), Some(UpdateState::Succeeded))]);
    });
}
