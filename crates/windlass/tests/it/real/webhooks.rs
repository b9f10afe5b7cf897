//! Our webhooks, as a real API server reads and asks them: their conditions in its CEL, and the built program that answers.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;

use super::answers::{self, Answers};
use super::server::Server;
use super::stage::{furnish, real};
use super::{manifest, tier};

#[test]
fn a_real_api_server_asks_our_webhooks_and_only_where_it_has_to() {
    let Some(assets) = tier("webhooks") else { return };
    real(async {
        let server = Server::start(assets).await;
        let client = server.client().await;
        answers::install(&server);
        // A second time it is all there already, webhooks among it: nothing is refused, and nothing changes.
        answers::install(&server);
        furnish(&client).await;
        let replica = Answers::start(&server, &client, "pause").await;
        let tkcs: Api<TanzuKubernetesCluster> = Api::default_namespaced(client.clone());
        let mut asked = serde_json::to_value(manifest()).unwrap();
        asked["spec"]["distribution"] = json!({"version": "v1.15.5"});
        let asked: TanzuKubernetesCluster = serde_json::from_value(asked).unwrap();
        let made = tkcs.create(&PostParams::default(), &asked).await.unwrap();
        let spec = |object: &TanzuKubernetesCluster| serde_json::to_value(&object.spec).unwrap();
        let resolved = &spec(&made)["distribution"]["fullVersion"];
        assert_eq!(resolved, "v1.15.5+vmware.1-guest.1", "the hint was resolved by our answer");
        let change = async |patch: Value| tkcs.patch("my-tkc", &PatchParams::default(), &Patch::Merge(patch)).await;
        // A server that has just learned of a kind does not list it for a moment; whoever answers for us has to.
        let updates: Api<ClusterUpdate> = Api::default_namespaced(client.clone());
        for _ in 0..100 {
            if updates.list(&ListParams::default()).await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let too_far = change(json!({"spec": {"distribution": {"version": "v1.17.4", "fullVersion": null}}})).await;
        let words = too_far.unwrap_err().to_string();
        assert!(words.contains("admission webhook") && words.contains("denied the request"), "{words}");

        // Nobody answers: what has to be judged is refused, and all else goes on.
        drop(replica);
        let unjudged = change(json!({"spec": {"distribution": {"version": "v1.16.7", "fullVersion": null}}})).await;
        let words = unjudged.unwrap_err().to_string();
        assert!(words.contains("failed calling webhook"), "{words}");
        let labelled = change(json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/held"]}})).await;
        assert_eq!(labelled.unwrap().labels()["a"], "b");
        tkcs.delete("my-tkc", &DeleteParams::default()).await.unwrap();
        change(json!({"metadata": {"finalizers": null}})).await.unwrap();
        assert!(tkcs.get_opt("my-tkc").await.unwrap().is_none(), "it was let go while nobody answered");
    });
}
