//! The admission of Windlass as webhooks of a World: the same review in, the same answer out, and no wire between.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use serde_json::Value;
use windlass_apiserver::ApiServer;
use windlass_apiserver::admission::{FailurePolicy, Handler, Rule, Scope, Webhook};
use windlass_apiserver::selector::label::LabelSelector;
use windlass_controller::admission::{self, cluster};
use windlass_plan::resolve::hold::HoldBy;
use windlass_sim::fault::{Faults, Unasked};

/// What a webhook is asked about, and by which name refusals mention it.
#[derive(Clone, Copy)]
enum Of {
    /// `TanzuKubernetesCluster`s.
    Clusters,
    /// Clusters of a class, which are held by this.
    ClassyClusters(HoldBy),
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
            }
        }
        .boxed()
    }

    fn concerns(&self, object: Option<&Value>, old: Option<&Value>) -> bool {
        match self.of {
            Of::Clusters => admission::concerns(object, old),
            Of::ClassyClusters(_) => cluster::concerns(object, old),
        }
    }
}

/// Adds the webhooks to a server. They change nothing but the object, so dry runs ask them too; and that of clusters of a class is
/// asked again when another has changed the release.
pub(super) fn add(server: &ApiServer, classes: Option<HoldBy>, client: &Client, faults: &Faults) {
    for of in std::iter::once(Of::Clusters).chain(classes.map(Of::ClassyClusters)) {
        let (name, rule) = match of {
            Of::Clusters => {
                use admission::{GROUP, NAME, OPERATIONS, RESOURCE, VERSION};
                (NAME, rule(&OPERATIONS, [GROUP, VERSION, RESOURCE]))
            }
            Of::ClassyClusters(_) => {
                use cluster::{GROUP, NAME, OPERATIONS, RESOURCE, VERSION};
                (NAME, rule(&OPERATIONS, [GROUP, VERSION, RESOURCE]))
            }
        };
        server.admission().add_mutating(Webhook {
            name: name.into(),
            rules: vec![rule],
            namespace_selector: LabelSelector::everything(),
            object_selector: LabelSelector::everything(),
            failure: FailurePolicy::Fail,
            reinvoke: matches!(of, Of::ClassyClusters(_)),
            side_effects: false,
            handler: Arc::new(Admission { of, client: client.clone(), faults: faults.clone() }),
        });
    }
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
