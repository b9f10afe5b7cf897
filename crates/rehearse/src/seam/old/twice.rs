//! Writes that come twice, late, or under another name.

use std::sync::PoisonError;

use http::StatusCode;
use serde_json::json;
use windlass_api::label;
use windlass_sim::actor::Caller;

use super::aged::Aged;
use super::answer::Answer;
use super::change::drawn;
use super::sent::Sent;

/// What others give names that are drawn.
const DRAWN: [&str; 6] =
    ["machines", "machinedeployments", "wcpmachinetemplates", "kubeadmconfigtemplates", "jobs", "clusterupdates"];

fn is_drawn(sent: &Sent) -> bool {
    sent.asked.verb == "create" && sent.asked.writes && DRAWN.contains(&sent.asked.resource.as_str())
}

/// The first to ask for a name gets it, and the second another one.
pub(super) async fn drawn_names(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    let answer = aged.ask(next, sent.clone()).await?;
    if answer.status() != StatusCode::CONFLICT || !is_drawn(&sent) {
        return Ok(answer);
    }
    aged.ask(next, drawn(sent)).await
}

/// What was not answered is sent again, and nobody looks first.
pub(super) async fn blind_retries(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    let answered = aged.ask(next, sent.clone()).await;
    let is_answer = answered.as_ref().is_ok_and(|answer| !answer.status().is_server_error());
    if is_answer || !is_drawn(&sent) {
        return answered;
    }
    aged.ask(next, drawn(sent)).await
}

/// The configuration of a machine is only tried when it is to be written, and written after the machine.
pub(super) async fn configuration_last(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    let held_back = || aged.held_back.lock().unwrap_or_else(PoisonError::into_inner);
    if sent.is("create", "kubeadmconfigs") && aged.manages(Caller::Upgrader) {
        *held_back() = Some(sent.clone());
        return aged.ask(next, sent.tried()).await;
    }
    let is_machine = sent.is("create", "machines");
    let answer = aged.ask(next, sent).await?;
    let late = if is_machine { held_back().take() } else { None };
    if let Some(late) = late {
        aged.ask(next, late).await?;
    }
    Ok(answer)
}

/// What was applied last is applied again when somebody looks, and is never what it was.
pub(super) async fn applies_again(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    if !aged.works(Caller::Controllers) {
        return aged.ask(next, sent).await;
    }
    if sent.is("patch", "deployments") {
        aged.memory.lock().applied = Some((sent.clone(), 0));
    }
    let again = match aged.memory.lock().applied.as_mut().filter(|_| sent.is("list", "nodes")) {
        Some((applied, times)) => {
            *times += 1;
            let mut body = applied.json();
            body["metadata"]["annotations"]["example.dev/applied"] = json!(times.to_string());
            Some(applied.clone().saying(&body))
        }
        None => None,
    };
    if let Some(again) = again {
        aged.ask(next, again).await?;
    }
    aged.ask(next, sent).await
}

/// All replacements have the name of the first one.
pub(super) async fn cut_names(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    if !aged.manages(Caller::Upgrader) {
        return aged.ask(next, sent).await;
    }
    if sent.asked.verb == "create" {
        let id = sent.json()["metadata"]["labels"][label::UPDATE_ID.name].as_str().map(str::to_owned);
        let mut memory = aged.memory.lock();
        memory.update = id.or(memory.update.take());
    }
    let Some(id) = aged.memory.lock().update.clone() else { return aged.ask(next, sent).await };
    let cut = |text: &str| {
        let numbers = 1..10;
        numbers.fold(text.to_owned(), |text, number| {
            text.replace(&format!("-control-plane-{number}-{id}"), &format!("-control-plane-0-{id}"))
        })
    };
    let (place, body) = (cut(&sent.place()), sent.json());
    let cut_body = serde_json::from_str(&cut(&body.to_string())).unwrap_or_default();
    let sent = if body.is_null() { sent } else { sent.saying(&cut_body) };
    aged.ask(next, sent.to(&place)).await
}
