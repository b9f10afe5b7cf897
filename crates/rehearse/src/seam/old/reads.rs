//! Reads that are answered from the past, or not waited for.

use serde_json::{Value, json};
use windlass_sim::actor::Caller;

use super::aged::Aged;
use super::answer::{self, Answer};
use super::sent::Sent;

const CLUSTERS: &str = "clusters";

const PAUSED: &str = "\"paused\":true";

/// A Cluster, or an event of one, says that nobody may touch it.
fn says_paused(text: &str) -> bool {
    text.contains(PAUSED)
}

/// The field is not the one that is looked at.
pub(super) async fn pause_elsewhere(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    let is_read = sent.asked.resource == CLUSTERS && !sent.asked.writes;
    let answer = aged.ask(next, sent).await?;
    Ok(if is_read { answer::rewritten(answer, |text| text.replace(PAUSED, "\"paused\":false")) } else { answer })
}

/// The Cluster stays as it was listed first: no event comes, and whoever reads it gets that.
pub(super) async fn pause_unheard(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    if sent.asked.resource != CLUSTERS || sent.asked.writes {
        return aged.ask(next, sent).await;
    }
    let remembered = aged.memory.lock().cluster.clone();
    match (sent.asked.verb, remembered) {
        ("get", Some(cluster)) => Ok(answer::found(&cluster)),
        ("watch", _) => Ok(answer::silent(aged.ask(next, sent).await?)),
        ("list", None) => {
            let (list, answer) = answer::read(aged.ask(next, sent).await?).await?;
            aged.memory.lock().cluster = list["items"].get(0).map(typed);
            Ok(answer)
        }
        _ => aged.ask(next, sent).await,
    }
}

/// A Cluster of a list, as it is read alone.
fn typed(item: &Value) -> Value {
    let mut cluster = item.clone();
    cluster["apiVersion"] = json!("cluster.x-k8s.io/v1beta2");
    cluster["kind"] = json!("Cluster");
    cluster
}

/// Once the Cluster was seen paused, that is how it is read.
pub(super) async fn paused_for_ever(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    if sent.asked.resource != CLUSTERS || sent.asked.writes {
        return aged.ask(next, sent).await;
    }
    if sent.asked.verb == "watch" {
        let was_read = !aged.memory.lock().answers.is_empty();
        let answer = aged.ask(next, sent).await?;
        return Ok(if was_read { answer::silent(answer) } else { answer::until(answer, says_paused) });
    }
    let asked = sent.asked.to_string();
    let remembered = aged.memory.lock().answers.get(&asked).cloned();
    if let Some(paused) = remembered {
        return Ok(answer::found(&paused));
    }
    let (value, answer) = answer::read(aged.ask(next, sent).await?).await?;
    if says_paused(&value.to_string()) {
        aged.memory.lock().answers.insert(asked, value);
    }
    Ok(answer)
}

/// What a write was answered does not say which state of the object a cache has to have seen.
pub(super) async fn writes_forgotten(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    let is_write = sent.asked.writes && aged.manages(Caller::Controllers);
    let answer = aged.ask(next, sent).await?;
    if !is_write || !answer.status().is_success() {
        return Ok(answer);
    }
    let (mut value, answer) = answer::read(answer).await?;
    value["metadata"]["resourceVersion"] = json!("1");
    Ok(answer::saying(answer, &value))
}

/// Each list of machines is the one that the look before would have got.
pub(super) async fn lists_one_behind(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    if !aged.manages(Caller::Upgrader) || !sent.is("list", "machines") {
        return aged.ask(next, sent).await;
    }
    let asked = sent.asked.to_string();
    let (value, answer) = answer::read(aged.ask(next, sent).await?).await?;
    let before = aged.memory.lock().answers.insert(asked, value);
    Ok(before.map_or_else(|| answer, |before| answer::found(&before)))
}

/// kubeadm's record is read once, and taken to stay so.
pub(super) async fn record_read_once(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    if !aged.works(Caller::Upgrader) || sent.asked.to_string() != "get configmaps kube-system/kubeadm-config (workload)"
    {
        return aged.ask(next, sent).await;
    }
    let asked = sent.asked.to_string();
    let remembered = aged.memory.lock().answers.get(&asked).cloned();
    if let Some(first) = remembered {
        return Ok(answer::found(&first));
    }
    let (value, answer) = answer::read(aged.ask(next, sent).await?).await?;
    aged.memory.lock().answers.insert(asked, value);
    Ok(answer)
}

/// No answer is as good as a refusal.
pub(super) async fn no_patience(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    let answered = aged.ask(next, sent).await;
    let is_answer = answered.as_ref().is_ok_and(|answer| !answer.status().is_server_error());
    if is_answer || !aged.works(Caller::Upgrader) { answered } else { Ok(answer::refused()) }
}
