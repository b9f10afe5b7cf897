//! The node of a Machine, in the workload cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::api::DeleteParams;
use kube::{Api, Error as ClientError};
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_runtime::key::Key;

use crate::management::context::{Error, Turn, workload_name};
use crate::management::write::failed;

/// What was seen of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// There is none.
    None,
    /// It is there.
    Node {
        /// Its kubelet says that it is ready.
        ready: bool,
    },
    /// Nobody answered.
    Unreachable,
}

/// What was last read of nodes, by namespace and name of their Machines, until they change: what a watch would have seen.
#[derive(Clone, Default)]
pub(in crate::management) struct Nodes(Arc<Mutex<BTreeMap<Key, Known>>>);

#[derive(Default)]
struct Known {
    /// How often the node has changed: what was read before the last change is not known.
    changes: u64,
    read: Option<Read>,
}

/// All that matters of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Read {
    Absent,
    Present { provider_id: Option<String>, ready: bool },
}

impl Nodes {
    /// The node has changed.
    pub(in crate::management) fn forget(&self, machine: &Key) {
        let mut all = self.lock();
        let known = all.entry(machine.clone()).or_default();
        *known = Known { changes: known.changes + 1, read: None };
    }

    /// What is known, and how often the node had changed by then.
    fn recall(&self, machine: &Key) -> (u64, Option<Read>) {
        self.lock().get(machine).map(|known| (known.changes, known.read.clone())).unwrap_or_default()
    }

    /// Remembers what was read, unless the node has changed since.
    fn remember(&self, machine: &Key, changes: u64, read: Read) {
        let mut all = self.lock();
        let known = all.entry(machine.clone()).or_default();
        if known.changes == changes {
            known.read = Some(read);
        }
    }

    // The map is whole after every statement, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks for the node: the one with the Machine's name, if it also has its provider id.
pub(super) async fn look(turn: &Turn, machine: &Machine, cluster: &Cluster) -> Result<Sight, Error> {
    let key = Key::of(machine);
    let (changes, known) = turn.nodes.recall(&key);
    let read = match known {
        Some(read) => read,
        None => match read(turn, machine, cluster).await? {
            Some(read) => {
                turn.nodes.remember(&key, changes, read.clone());
                read
            }
            None => return Ok(Sight::Unreachable),
        },
    };
    Ok(match read {
        Read::Present { provider_id, ready } if provider_id.is_some() && provider_id == machine.spec.provider_id => {
            Sight::Node { ready }
        }
        Read::Present { .. } | Read::Absent => Sight::None,
    })
}

/// Asks the workload API. `None` if nobody answered.
async fn read(turn: &Turn, machine: &Machine, cluster: &Cluster) -> Result<Option<Read>, Error> {
    let Some(workload) = turn.workloads.get(&workload_name(cluster)?) else { return Ok(None) };
    let api: Api<Node> = Api::all(workload.client());
    match api.get_opt(machine.metadata.name.as_deref().unwrap_or_default()).await {
        Ok(None) => Ok(Some(Read::Absent)),
        Ok(Some(node)) => {
            let conditions = node.status.and_then(|status| status.conditions);
            let is_ready = |condition: &NodeCondition| condition.type_ == "Ready" && condition.status == "True";
            Ok(Some(Read::Present {
                provider_id: node.spec.and_then(|spec| spec.provider_id),
                ready: conditions.iter().flatten().any(is_ready),
            }))
        }
        Err(error) if unreachable(&error) => Ok(None),
        Err(source) => Err(failed("look for the node of", machine, source)),
    }
}

/// Deletes the node. One that is gone is fine. `false` if nobody answered.
pub(super) async fn delete(turn: &Turn, machine: &Machine, cluster: &Cluster, name: &str) -> Result<bool, Error> {
    let Some(workload) = turn.workloads.get(&workload_name(cluster)?) else { return Ok(true) };
    let api: Api<Node> = Api::all(workload.client());
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(true),
        Err(ClientError::Api(status)) if status.code == 404 => Ok(true),
        Err(error) if unreachable(&error) => Ok(false),
        Err(source) => Err(failed("delete the node of", machine, source)),
    }
}

/// Whether there was no answer at all, rather than a refusal.
fn unreachable(error: &ClientError) -> bool {
    !matches!(error, ClientError::Api(_))
}
