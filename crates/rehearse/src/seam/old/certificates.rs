//! Certificates: whose they are, and how they are made.

use serde_json::{Value, json};
use windlass_api::label;
use windlass_api::name::{ClusterSecret, NamespacedName};
use windlass_sim::actor::Caller;

use super::aged::Aged;
use super::answer::{self, Answer};
use super::sent::Sent;

/// A reference to an object.
fn reference(object: &Value) -> Value {
    let of = |field: &str| object[field].clone();
    let metadata = &object["metadata"];
    json!({"apiVersion": of("apiVersion"), "kind": of("kind"), "name": metadata["name"], "uid": metadata["uid"]})
}

/// The new configuration of a machine of the control plane gets the certificates, in place of whoever had them.
pub(super) async fn owned_by_configurations(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    if !sent.is("create", "kubeadmconfigs") {
        return aged.ask(next, sent).await;
    }
    let (made, answer) = answer::read(aged.ask(next, sent.clone()).await?).await?;
    let labels = &made["metadata"]["labels"];
    if !answer.status().is_success() || labels[label::CONTROL_PLANE.name].is_null() {
        return Ok(answer);
    }
    let cluster = labels[label::CLUSTER_NAME.name].as_str().unwrap_or_default();
    let owners = json!({"metadata": {"ownerReferences": [reference(&made)]}});
    for secret in ClusterSecret::CERTIFICATES {
        let path = format!("/api/v1/namespaces/{}/secrets/{cluster}-{secret}", sent.asked.object);
        aged.ask(next, sent.patch(&path, &owners)).await?;
    }
    Ok(answer)
}

/// Whoever owns a certificate is read as the Cluster.
pub(super) async fn owners_taken_for_granted(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    let is_cluster = sent.is("get", "clusters");
    if !aged.manages(Caller::Upgrader) || !(is_cluster || sent.is("get", "secrets")) {
        return aged.ask(next, sent).await;
    }
    let (mut value, answer) = answer::read(aged.ask(next, sent).await?).await?;
    if is_cluster {
        aged.memory.lock().cluster = Some(value);
        return Ok(answer);
    }
    let Some(cluster) = aged.memory.lock().cluster.as_ref().map(reference) else { return Ok(answer) };
    let owners = value.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    owners.into_iter().flatten().for_each(|owner| *owner = cluster.clone());
    Ok(answer::saying(answer, &value))
}

/// The certificate first, and then its key.
pub(super) async fn half_secrets(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    let mut body = if sent.is("create", "secrets") { sent.json() } else { Value::Null };
    let key = body.get_mut("data").and_then(Value::as_object_mut).and_then(|data| data.remove("tls.key"));
    let Some(key) = key else { return aged.ask(next, sent).await };
    let answer = aged.ask(next, sent.clone().saying(&body)).await?;
    if !answer.status().is_success() {
        return Ok(answer);
    }
    let path = format!("{}/{}", sent.path(), body["metadata"]["name"].as_str().unwrap_or_default());
    aged.ask(next, sent.patch(&path, &json!({"data": {"tls.key": key}}))).await
}

/// Whoever looks makes keys, and throws them away.
pub(super) async fn keys_at_every_look(aged: &Aged, next: usize, sent: Sent) -> Result<Answer, kube::Error> {
    let namespace = &sent.asked.object;
    if aged.manages(Caller::Controllers)
        && sent.is("list", "secrets")
        && let Ok(cluster) = format!("{namespace}/any").parse::<NamespacedName>()
    {
        for secret in ClusterSecret::CERTIFICATES {
            // Nobody asked for them, so nobody misses one that cannot be made.
            drop(aged.keys.make(&cluster, secret));
        }
    }
    aged.ask(next, sent).await
}
