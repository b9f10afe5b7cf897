//! Extensions of Cluster API: who is asked before it goes on, and what they say.
//!
//! An `ExtensionConfig` says where somebody listens; what they answer is found out once and kept in its status. A question goes
//! to all who answer it and whose namespaces fit, in the order of their names. Answers are not kept: where Cluster API would
//! not ask again before the time that an answer names, the World may ask sooner.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use windlass_api::hook::{Answer, AnswerStatus, HookName, Question, discovery_path};
use windlass_api::kind::extension::{ExtensionConfig, ExtensionConfigStatus, ExtensionHandler};
use windlass_runtime::runner::Outcome;

use super::conditions::{self, Fact};
use super::context::{Error, Turn};

/// How soon somebody who did not answer is asked again.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How long an answer may take where a handler does not say, in seconds.
const TIME_OUT_SECONDS: u32 = 10;

/// What all who were asked say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// Go on. Nobody else says anything, either, where nobody is asked.
    Open(Answer),
    /// Wait, for this reason, and ask again then.
    Held { message: String, after: Duration },
}

/// Finds out what an extension can be asked.
pub(super) async fn reconcile(turn: &Turn, extension: &ExtensionConfig) -> Result<Outcome, Error> {
    let before = extension.status.clone().unwrap_or_default();
    let mut status = before.clone();
    let found = post(turn, extension, &discovery_path(), TIME_OUT_SECONDS, &Question::discovery()).await;
    let (fact, outcome) = match found {
        Ok(answer) => {
            status.handlers = registered(extension, answer.handlers);
            (Fact::yes("Discovered", "Discovered"), Outcome::done())
        }
        Err(why) => (Fact::no("Discovered", "NotDiscovered", why), Outcome::requeue_after(PATIENCE)),
    };
    conditions::set(&mut status.conditions, fact, extension.metadata.generation, &turn.now());
    if status != before {
        write(turn, extension, &status).await?;
    }
    Ok(outcome)
}

/// Handlers under the names that they are known by.
fn registered(extension: &ExtensionConfig, handlers: Vec<ExtensionHandler>) -> Vec<ExtensionHandler> {
    let config = extension.metadata.name.as_deref().unwrap_or_default();
    handlers
        .into_iter()
        .map(|handler| ExtensionHandler { name: format!("{}.{config}", handler.name), ..handler })
        .collect()
}

async fn write(turn: &Turn, extension: &ExtensionConfig, status: &ExtensionConfigStatus) -> Result<(), Error> {
    let name = extension.metadata.name.clone().unwrap_or_default();
    let change = json!({"status": status});
    let api: Api<ExtensionConfig> = Api::all(turn.client.clone());
    let written = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&change)).await;
    let written = written.map_err(|source| Error::Api {
        verb: "change the status of",
        object: format!("ExtensionConfig {name}"),
        source: Box::new(source),
    })?;
    turn.wrote(&turn.caches.extensions, &written);
    Ok(())
}

/// Whether anybody answers a hook for clusters of a namespace.
pub(super) fn is_answered(turn: &Turn, hook: HookName, namespace: &str) -> bool {
    let extensions = turn.caches.extensions.list();
    let mut fitting = extensions.iter().filter(|extension| fits(extension, namespace));
    fitting.any(|extension| handlers(extension, hook).next().is_some())
}

/// Asks all who answer a hook. An error is a text that is the same for the same reason.
pub(super) async fn ask(turn: &Turn, hook: HookName, question: &Question) -> Result<Reply, String> {
    let namespace = question.cluster.as_ref().and_then(|cluster| cluster.metadata.namespace.as_deref());
    let extensions = turn.caches.extensions.list();
    let (mut messages, mut after, mut last) = (Vec::new(), None, Answer::go_on(hook));
    for extension in extensions.iter().filter(|extension| fits(extension, namespace.unwrap_or_default())) {
        for handler in handlers(extension, hook) {
            let Some(answer) = ask_one(turn, extension, handler, hook, question).await? else { continue };
            if answer.retry_after_seconds > 0 {
                let seconds = answer.retry_after_seconds;
                after = Some(after.map_or(seconds, |known: u32| known.min(seconds)));
                messages.push(answer.message.clone());
            }
            last = answer;
        }
    }
    Ok(match after {
        None => Reply::Open(last),
        Some(seconds) => Reply::Held { message: messages.join(", "), after: Duration::from_secs(u64::from(seconds)) },
    })
}

/// Asks one handler. `None` if it does not answer and may be ignored.
async fn ask_one(
    turn: &Turn,
    extension: &ExtensionConfig,
    handler: &ExtensionHandler,
    hook: HookName,
    question: &Question,
) -> Result<Option<Answer>, String> {
    let own = handler.name.split_once('.').map_or(handler.name.as_str(), |(own, _)| own);
    let seconds = handler.timeout_seconds.unwrap_or(TIME_OUT_SECONDS);
    let question = Question { settings: extension.spec.settings.clone(), ..question.clone() };
    match post(turn, extension, &hook.path(own), seconds, &question).await {
        Ok(answer) if answer.status == AnswerStatus::Failure => Err(format!(
            "failed to call extension handler \"{}\": got failure response: {}",
            handler.name, answer.message
        )),
        Ok(answer) => Ok(Some(answer)),
        Err(_) if handler.failure_policy.as_deref() == Some("Ignore") => Ok(None),
        Err(why) => Err(format!("failed to call extension handler \"{}\": {why}", handler.name)),
    }
}

fn handlers(extension: &ExtensionConfig, hook: HookName) -> impl Iterator<Item = &ExtensionHandler> {
    let all = extension.status.as_ref().map(|status| status.handlers.as_slice()).unwrap_or_default();
    all.iter().filter(move |handler| handler.request_hook.hook == hook.as_str())
}

async fn post(
    turn: &Turn,
    extension: &ExtensionConfig,
    path: &str,
    seconds: u32,
    question: &Question,
) -> Result<Answer, String> {
    let url = format!("{}{path}?timeout={seconds}s", address(extension));
    let body = serde_json::to_vec(question).map_err(|error| error.to_string())?;
    let reply = tokio::time::timeout(Duration::from_secs(u64::from(seconds)), turn.programs.post(url.clone(), body));
    let reply = match reply.await {
        Ok(Ok(reply)) => reply,
        Ok(Err(unheard)) => return Err(unheard.to_string()),
        Err(_) => return Err(format!("Post \"{url}\": context deadline exceeded")),
    };
    if reply.code != 200 {
        return Err(format!("Post \"{url}\": non-ok response {}", reply.code));
    }
    serde_json::from_slice(&reply.body).map_err(|error| format!("Post \"{url}\": undecodable response: {error}"))
}

/// Where an extension listens.
fn address(extension: &ExtensionConfig) -> String {
    let client = &extension.spec.client_config;
    if let Some(url) = &client.url {
        return url.trim_end_matches('/').to_owned();
    }
    let Some(service) = &client.service else { return String::new() };
    let path = service.path.as_deref().unwrap_or_default().trim_matches('/');
    let slash = if path.is_empty() { "" } else { "/" };
    format!("https://{}.{}.svc:{}{slash}{path}", service.name, service.namespace, service.port.unwrap_or(443))
}

/// Whether an extension is for clusters of a namespace. Of the labels of a namespace only its name is known here.
fn fits(extension: &ExtensionConfig, namespace: &str) -> bool {
    let labels = BTreeMap::from([("kubernetes.io/metadata.name".to_owned(), namespace.to_owned())]);
    extension.spec.namespace_selector.as_ref().is_none_or(|selector| selects(selector, &labels))
}

fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let pairs = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let expressions = selector.match_expressions.iter().flatten();
    pairs
        && expressions.into_iter().all(|expression| {
            let value = labels.get(&expression.key);
            let listed = value.is_some_and(|value| expression.values.iter().flatten().any(|known| known == value));
            match expression.operator.as_str() {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
}
