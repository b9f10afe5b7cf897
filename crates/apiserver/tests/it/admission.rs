//! Admission in process: who is asked, what they see, what they may change, and how a refusal reads.

mod asking;
mod changes;
mod forks;
mod verdicts;

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use futures::future::BoxFuture;
use http::{Method, Request};
use serde_json::{Value, json};
use windlass_apiserver::admission::{FailurePolicy, Handler, Rule, Scope, Webhook};
use windlass_apiserver::selector::label::LabelSelector;
use windlass_apiserver::{ApiServer, Options};

use crate::client::{Answered, send, send_request};

/// Answers with a function of the request, and remembers what it was asked.
struct Says<F> {
    answer: F,
    asked: Asked,
}

/// The requests that a webhook was asked about.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<Value>>>);

impl Asked {
    fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn count(&self) -> usize {
        self.take().len()
    }

    /// The only request.
    fn one(&self) -> Value {
        let mut asked = self.take();
        assert_eq!(asked.len(), 1, "{asked:#?}");
        asked.remove(0)
    }
}

impl<F: Fn(&Value) -> Result<Value, String> + Send + Sync> Handler for Says<F> {
    fn review(&self, review: Value) -> BoxFuture<'_, Result<Value, String>> {
        let request = &review["request"];
        self.asked.0.lock().unwrap().push(request.clone());
        let answer = (self.answer)(request).map(|mut response| {
            if response.is_object() && response.get("uid").is_none() {
                response["uid"] = request["uid"].clone();
            }
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        });
        Box::pin(async { answer })
    }
}

/// A webhook for everything, which answers so.
fn webhook(answer: impl Fn(&Value) -> Result<Value, String> + Send + Sync + 'static) -> (Webhook, Asked) {
    let asked = Asked::default();
    let all = || vec!["*".to_owned()];
    let rule = Rule {
        operations: all(),
        groups: all(),
        versions: all(),
        resources: vec!["*/*".to_owned()],
        scope: Scope::All,
    };
    let webhook = Webhook {
        name: "hook.test.dev".into(),
        rules: vec![rule],
        namespace_selector: LabelSelector::everything(),
        object_selector: LabelSelector::everything(),
        failure: FailurePolicy::Fail,
        reinvoke: false,
        side_effects: false,
        equivalent: false,
        conditions: None,
        handler: Arc::new(Says { answer, asked: asked.clone() }),
    };
    (webhook, asked)
}

fn allows() -> (Webhook, Asked) {
    webhook(|_| Ok(json!({"allowed": true})))
}

fn patches(patch: Value) -> (Webhook, Asked) {
    webhook(move |_| Ok(patched(&patch)))
}

fn patched(patch: &Value) -> Value {
    let patch = base64::engine::general_purpose::STANDARD.encode(patch.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

fn selector(text: &str) -> LabelSelector {
    LabelSelector::parse(text).unwrap()
}

fn server() -> ApiServer {
    ApiServer::new(Options::default())
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

async fn create(server: &ApiServer, object: &Value) -> Answered {
    send(server, Method::POST, MAPS, object).await
}

async fn merge(server: &ApiServer, path: &str, change: &Value) -> Answered {
    let request = Request::patch(path).header("content-type", "application/merge-patch+json");
    send_request(server, request.body(change.to_string()).unwrap()).await
}

fn message(answered: &Answered) -> &str {
    answered.body["message"].as_str().unwrap_or_default()
}
