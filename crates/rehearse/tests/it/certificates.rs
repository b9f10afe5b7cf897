//! Certificates whose owner is not the Cluster: those of a live configuration are handed over before any machine is made, those
//! that will go with something else hold the update.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde_json::json;
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::label;
use windlass_api::name::ClusterSecret;
use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{Ended, Rehearsal, Verdict, hold, rehearse};
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::world::{Settings, World};

use crate::start::{self, SEED, TO};

const NAMES: [&str; 4] = ["my-tkc-ca", "my-tkc-etcd", "my-tkc-proxy", "my-tkc-sa"];

/// Whose the certificates are.
#[derive(Clone, Copy)]
pub enum Owner {
    /// The configuration of the machine that began the cluster.
    First,
    /// The configuration of a machine of another cluster.
    Foreign,
    /// One that is not there.
    Nobody,
}

/// A World in which the certificates of its cluster have another owner, and no other.
pub fn owned_by(owner: Owner) -> World {
    start::changed(start::one_and_one(), move |world| async move {
        let configurations: Api<KubeadmConfig> = Api::namespaced(world.client(), "default");
        let configuration = match owner {
            Owner::First | Owner::Nobody => first(&configurations).await,
            Owner::Foreign => {
                let object = serde_json::from_value(json!({
                    "metadata": { "name": "other", "labels": { label::CLUSTER_NAME.name: "other" } }, "spec": {},
                }));
                configurations.create(&PostParams::default(), &object.unwrap()).await.unwrap()
            }
        };
        let mut reference = json!(configuration.owner_ref(&()).unwrap());
        if matches!(owner, Owner::Nobody) {
            reference["uid"] = json!("00000000-0000-0000-0000-000000000000");
        }
        let secrets: Api<Secret> = Api::namespaced(world.client(), "default");
        for name in NAMES {
            let patch = Patch::Merge(json!({ "metadata": { "ownerReferences": [reference] } }));
            secrets.patch(name, &PatchParams::default(), &patch).await.unwrap();
        }
    })
}

/// The configuration of the one machine of the control plane.
async fn first(configurations: &Api<KubeadmConfig>) -> KubeadmConfig {
    let all = configurations.list(&ListParams::default()).await.unwrap();
    all.into_iter().find(|found| found.name_any().contains("control-plane")).unwrap()
}

#[test]
fn certificates_of_the_first_machine_outlive_it() {
    let Ended { rehearsal, world, .. } = hold(&owned_by(Owner::First), &start::update(), Crashes::none()).unwrap();
    assert_eq!(rehearsal.verdict, Verdict::Reached { distribution: TO.into() }, "{rehearsal}");
    assert!(rehearsal.violations.is_empty(), "{rehearsal}");
    assert_eq!(rehearsal.machines.len(), 4, "two come and two go\n{rehearsal}");
    let owners = run_virtual(SEED, start::later(), |time| {
        let world = world.fork(Settings { clock: time.clock, ..world.settings().clone() });
        async move {
            let clusters: Api<Cluster> = Api::namespaced(world.client(), "default");
            let cluster = clusters.get("my-tkc").await.unwrap().uid();
            let secrets: Api<Secret> = Api::namespaced(world.client(), "default");
            let mut owners = Vec::new();
            for name in NAMES {
                let secret = secrets.get_metadata(name).await.unwrap();
                owners.push(secret.owner_references().iter().any(|owner| Some(&owner.uid) == cluster.as_ref()));
            }
            owners
        }
    });
    assert_eq!(owners.unwrap(), [true; ClusterSecret::CERTIFICATES.len()]);
}

/// No machine is touched, and a certificate is named.
fn check_held(rehearsal: &Rehearsal) {
    let Verdict::Stuck { waiting_for } = &rehearsal.verdict else { panic!("{rehearsal}") };
    assert!(NAMES.iter().any(|name| waiting_for.contains(name)), "{rehearsal}");
    assert!(rehearsal.machines.is_empty() && rehearsal.violations.is_empty(), "{rehearsal}");
}

#[test]
fn certificates_that_go_with_something_else_hold_every_machine() {
    let foreign = rehearse(&owned_by(Owner::Foreign), &start::update()).unwrap();
    check_held(&foreign);
    // Whose owner is gone is collected at once.
    let dangling = rehearse(&owned_by(Owner::Nobody), &start::update()).unwrap();
    check_held(&dangling);
}
