//! Taking a machine out of the control plane: out of etcd first, then the machine itself, then its traces.

use std::time::Duration;

use kube::ResourceExt;
use windlass_api::kind::cluster_api::Machine;

use super::attempt::Attempt;
use super::prepare::kubeadm;
use super::row::Place;
use super::wait::{Patience, missing, named};
use super::{Error, etcd, health, write};

/// How long the others may take to be well enough for one to leave.
const PART_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Removes a machine whose replacement is healthy, and has become this node.
pub async fn original(attempt: &Attempt<'_>, place: &Place, heir: &str) -> Result<(), Error> {
    let name = place.original.name_any();
    // A machine without a node has no member that is known by another name than its own.
    let node = health::node_name(&place.original).unwrap_or_else(|| name.clone());
    let patience = Patience::of(PART_TIMEOUT, format!("etcd to do without {node}"));
    etcd::part(attempt, &patience, &node, heir).await?;
    // Again, and last: without its member the old machine is of no use, so this is the last moment to find out that the new
    // one is of none either.
    let patience = Patience::of(PART_TIMEOUT, format!("the machine {} to be healthy", place.name));
    health::wait(attempt, place.name.as_str(), &patience).await?;
    write::delete(&attempt.machines(), &place.original, &format!("delete the machine {name}")).await?;
    gone(attempt, &place.original).await?;
    tracing::info!(machine = name, "the machine is gone");
    kubeadm::forget(attempt, &node).await
}

/// Removes a replacement that did not become healthy, so that it can be made anew. Only while the machine that it was to replace
/// still does its work: otherwise the replacement may be all that there is.
pub async fn replacement(attempt: &Attempt<'_>, place: &Place, failed: &Machine) -> Result<(), Error> {
    let name = failed.name_any();
    let irreplaceable = |why: String| Error::Irreplaceable { machine: name.clone(), why };
    let doing = || format!("read the machine {}, which {name} replaces", place.original.name_any());
    let original = attempt.machines().get_opt(&place.original.name_any()).await.map_err(Error::api(doing()))?;
    let original = original
        .filter(|found| found.uid() == place.original.uid() && found.metadata.deletion_timestamp.is_none())
        .ok_or_else(|| irreplaceable(format!("{}, which it replaces, is gone", place.original.name_any())))?;
    let original_node = health::node_name(&original).unwrap_or_else(|| original.name_any());
    let members = etcd::members(attempt).await?;
    if !etcd::votes(&members, &original_node) {
        return Err(irreplaceable(format!("{original_node}, which it replaces, is no healthy etcd member any more")));
    }
    let node = health::node_name(failed).unwrap_or_else(|| name.clone());
    if members.iter().any(|member| member.name == node) {
        let patience = Patience::of(PART_TIMEOUT, format!("etcd to do without {node}"));
        etcd::part(attempt, &patience, &node, &original_node).await?;
    }
    write::delete(&attempt.machines(), failed, &format!("delete the machine {name}")).await?;
    gone(attempt, failed).await?;
    // A machine that never came up may have left a member that nobody knows by name. It goes only now: until the machine was
    // gone for good, it could still have started.
    let patience = Patience::of(PART_TIMEOUT, format!("etcd to forget {node}"));
    etcd::sweep(attempt, &patience).await
}

async fn gone(attempt: &Attempt<'_>, machine: &Machine) -> Result<(), Error> {
    let (name, uid) = (machine.name_any(), machine.uid());
    let patience = Patience::of(attempt.arguments.machine_timeout, format!("the machine {name} to be gone"));
    patience
        .until(attempt.machines(), named(&name), |found| match found.get(&name) {
            Some(still) if still.uid() == uid => missing("it is still there"),
            _ => Ok(()),
        })
        .await
}
