//! A cluster whose class was copied to its namespace, in a World with all of Windlass.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::condition;
use windlass_api::kind::topology::ClusterClass;
use windlass_api::kind::wcp::WCPMachineTemplate;

use crate::classes::played;
use crate::start::{CLASS, of_copied_class};

fn classes(client: &Client, namespace: &str) -> Api<ClusterClass> {
    Api::namespaced(client.clone(), namespace)
}

/// Looks every ten seconds until it is so.
macro_rules! until {
    ($what:literal, $is_so:expr) => {{
        let mut tries = 0;
        while !$is_so {
            tries += 1;
            assert!(tries < 1000, "never {}", $what);
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    }};
}

#[test]
fn a_cluster_is_made_by_a_copy_of_its_class_which_outlives_its_source_for_as_long_as_it_is_used() {
    let world = played(|client| async move {
        let clusters: Api<Cluster> = Api::namespaced(client.clone(), "team-a");
        let labels = json!({"windlass.dev/cluster-classes": ""});
        let namespace: Namespace =
            serde_json::from_value(json!({"metadata": {"name": "team-a", "labels": labels}})).unwrap();
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        until!("copied", classes(&client, "team-a").get_opt(CLASS).await.unwrap().is_some());

        // It says nothing of where its class is.
        let manifest = of_copied_class();
        clusters.create(&PostParams::default(), &manifest).await.unwrap();
        let is_available = |cluster: Cluster| {
            let conditions = cluster.status.map(|status| status.conditions).unwrap_or_default();
            condition(&conditions, "Available").is_some_and(|it| it.status == "True")
        };
        until!("available", is_available(clusters.get("wl").await.unwrap()));

        classes(&client, "tkg-system").delete(CLASS, &DeleteParams::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let copy = classes(&client, "team-a").get(CLASS).await.unwrap();
        assert_eq!(copy.labels()["windlass.dev/copied-from"], "tkg-system");
        assert!(is_available(clusters.get("wl").await.unwrap()), "its class is still there");

        clusters.delete("wl", &DeleteParams::default()).await.unwrap();
        until!("gone", classes(&client, "team-a").get_opt(CLASS).await.unwrap().is_none());
        let templates: Api<WCPMachineTemplate> = Api::namespaced(client.clone(), "team-a");
        let left = templates.list(&ListParams::default()).await.unwrap().items;
        assert!(left.iter().all(|template| !template.labels().contains_key("windlass.dev/copied-from")), "{left:?}");
    });
    assert!(world.recorder().violations().is_empty(), "{:?}", world.recorder().violations());
}
