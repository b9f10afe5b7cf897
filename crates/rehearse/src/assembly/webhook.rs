//! The admission of Windlass as a webhook of a World: the same review in, the same answer out, and no wire between.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use serde_json::Value;
use windlass_apiserver::ApiServer;
use windlass_apiserver::admission::{FailurePolicy, Handler, Rule, Scope, Webhook};
use windlass_apiserver::selector::label::LabelSelector;
use windlass_controller::admission;
use windlass_controller::bootstrap::admission as bootstraps;
use windlass_sim::fault::{Faults, Unasked};

/// What a webhook is asked about.
#[derive(Clone, Copy)]
enum Subject {
    Clusters,
    Bootstraps,
}

struct Admission {
    subject: Subject,
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
            match self.subject {
                Subject::Clusters => admission::review(&self.client, review).await,
                Subject::Bootstraps => bootstraps::review(&self.client, review).await,
            }
        }
        .boxed()
    }

    fn concerns(&self, object: Option<&Value>, old: Option<&Value>) -> bool {
        match self.subject {
            Subject::Clusters => admission::concerns(object, old),
            Subject::Bootstraps => bootstraps::concerns(object, old),
        }
    }
}

/// Adds the webhooks to a server. They change nothing but the object, so dry runs ask them too.
pub(super) fn add(server: &ApiServer, client: &Client, faults: &Faults) {
    let webhook = |name: &str, subject: Subject, rule: Rule| Webhook {
        name: name.into(),
        rules: vec![rule],
        namespace_selector: LabelSelector::everything(),
        object_selector: LabelSelector::everything(),
        failure: FailurePolicy::Fail,
        reinvoke: false,
        side_effects: false,
        handler: Arc::new(Admission { subject, client: client.clone(), faults: faults.clone() }),
    };
    let of_clusters = rule(&admission::OPERATIONS, admission::GROUP, admission::VERSION, admission::RESOURCE);
    server.admission().add_mutating(webhook(admission::NAME, Subject::Clusters, of_clusters));
    let of_bootstraps = rule(&bootstraps::OPERATIONS, bootstraps::GROUP, bootstraps::VERSION, bootstraps::RESOURCE);
    server.admission().add_validating(webhook(bootstraps::NAME, Subject::Bootstraps, of_bootstraps));
}

fn rule(operations: &[&str], group: &str, version: &str, resource: &str) -> Rule {
    Rule {
        operations: operations.iter().map(|&operation| operation.to_owned()).collect(),
        groups: vec![group.to_owned()],
        versions: vec![version.to_owned()],
        resources: vec![resource.to_owned()],
        scope: Scope::Namespaced,
    }
}
