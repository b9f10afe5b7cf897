//! The admission of Windlass as webhooks of a World: the same review in, the same answer out, and no wire between.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use serde_json::Value;
use windlass_apiserver::ApiServer;
use windlass_apiserver::admission::{FailurePolicy, Handler, Rule, Scope, Webhook};
use windlass_apiserver::selector::label::LabelSelector;
use windlass_controller::admission::{self, classic, cluster};
use windlass_controller::bootstrap::admission as bootstraps;
use windlass_plan::resolve::hold::HoldBy;
use windlass_sim::fault::{Faults, Unasked};

/// What a webhook is asked about.
#[derive(Clone, Copy)]
enum Of {
    /// `TanzuKubernetesCluster`s.
    Clusters,
    /// Clusters of a class, which are held by this.
    ClassyClusters(HoldBy),
    /// Classic clusters, whose release is a label.
    LabelledClusters,
    /// The packages of clusters of a class.
    Bootstraps,
}

struct Admission {
    of: Of,
    client: Client,
    faults: Faults,
}

impl Handler for Admission {
    fn review(&self, review: Value) -> BoxFuture<'_, Result<Value, String>> {
        async move {
            if let Some(Unasked { after, why }) = self.faults.webhook() {
                tokio::time::sleep(after).await;
                if let Some(why) = why {
                    return Err(why.to_owned());
                }
            }
            match self.of {
                Of::Clusters => admission::review(&self.client, review).await,
                Of::ClassyClusters(hold_by) => cluster::review(&self.client, hold_by, review).await,
                Of::LabelledClusters => classic::review(&self.client, review).await,
                Of::Bootstraps => bootstraps::review(&self.client, review).await,
            }
        }
        .boxed()
    }

    fn concerns(&self, object: Option<&Value>, old: Option<&Value>) -> bool {
        match self.of {
            Of::Clusters => admission::concerns(object, old),
            Of::ClassyClusters(_) => cluster::concerns(object, old),
            Of::LabelledClusters => classic::concerns(object, old),
            Of::Bootstraps => bootstraps::concerns(object, old),
        }
    }
}

/// Adds the webhooks to a server. They change nothing but the object, so dry runs ask them too.
pub(super) fn add(server: &ApiServer, (classes, labels): (Option<HoldBy>, bool), client: &Client, faults: &Faults) {
    let webhook = |name: &str, of: Of, rule: Rule| Webhook {
        name: name.into(),
        rules: vec![rule],
        namespace_selector: LabelSelector::everything(),
        object_selector: LabelSelector::everything(),
        failure: FailurePolicy::Fail,
        // That of clusters of a class is asked again when another has changed the release.
        reinvoke: matches!(of, Of::ClassyClusters(_)),
        side_effects: false,
        equivalent: false,
        conditions: None,
        handler: Arc::new(Admission { of, client: client.clone(), faults: faults.clone() }),
    };
    let of_clusters = rule(&admission::OPERATIONS, [admission::GROUP, admission::VERSION, admission::RESOURCE]);
    server.admission().add_mutating(webhook(admission::NAME, Of::Clusters, of_clusters));
    if labels {
        let of_labelled = rule(&classic::OPERATIONS, [classic::GROUP, classic::VERSION, classic::RESOURCE]);
        server.admission().add_mutating(webhook(classic::NAME, Of::LabelledClusters, of_labelled));
    }
    let Some(hold_by) = classes else { return };
    let of_classy = rule(&cluster::OPERATIONS, [cluster::GROUP, cluster::VERSION, cluster::RESOURCE]);
    server.admission().add_mutating(webhook(cluster::NAME, Of::ClassyClusters(hold_by), of_classy));
    let of_bootstraps = rule(&bootstraps::OPERATIONS, [bootstraps::GROUP, bootstraps::VERSION, bootstraps::RESOURCE]);
    server.admission().add_validating(webhook(bootstraps::NAME, Of::Bootstraps, of_bootstraps));
}

fn rule(operations: &[&str], [group, version, resource]: [&str; 3]) -> Rule {
    Rule {
        operations: operations.iter().map(|&text| text.to_owned()).collect(),
        groups: vec![group.to_owned()],
        versions: vec![version.to_owned()],
        resources: vec![resource.to_owned()],
        scope: Scope::Namespaced,
    }
}
