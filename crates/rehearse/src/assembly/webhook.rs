//! The admission of Windlass as a webhook of a World: the same review in, the same answer out, and no wire between.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use serde_json::Value;
use windlass_apiserver::ApiServer;
use windlass_apiserver::admission::{FailurePolicy, Handler, Rule, Scope, Webhook};
use windlass_apiserver::selector::label::LabelSelector;
use windlass_controller::admission::{self, GROUP, NAME, OPERATIONS, RESOURCE, VERSION};
use windlass_sim::fault::{Faults, Unasked};

struct Admission {
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
            admission::review(&self.client, review).await
        }
        .boxed()
    }
}

/// Adds the webhook to a server. It changes nothing but the object, so dry runs ask it too.
pub(super) fn add(server: &ApiServer, client: Client, faults: Faults) {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let rule = Rule {
        operations: texts(&OPERATIONS),
        groups: texts(&[GROUP]),
        versions: texts(&[VERSION]),
        resources: texts(&[RESOURCE]),
        scope: Scope::Namespaced,
    };
    server.admission().add_mutating(Webhook {
        name: NAME.into(),
        rules: vec![rule],
        namespace_selector: LabelSelector::everything(),
        object_selector: LabelSelector::everything(),
        failure: FailurePolicy::Fail,
        reinvoke: false,
        side_effects: false,
        handler: Arc::new(Admission { client, faults }),
    });
}
