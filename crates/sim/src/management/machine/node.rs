//! The node of a Machine, in the workload cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeSystemInfo};
use kube::api::DeleteParams;
use kube::{Api, Error as ClientError};
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_runtime::key::Key;

use crate::management::context::{Error, Turn, workload_name};
use crate::management::write::failed;

/// What was seen of a node.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::management) enum Sight {
    /// There is none.
    None,
    /// It is there.
    Node(Arc<Seen>),
    /// Nobody answered.
    Unreachable,
}

/// All that matters of a node.
#[derive(Debug, PartialEq)]
pub(in crate::management) struct Seen {
    provider_id: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    /// What runs on it.
    pub(super) info: Option<NodeSystemInfo>,
    pub conditions: Vec<NodeFact>,
}

/// A condition of a node.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::management) struct NodeFact {
    pub type_: String,
    pub status: String,
    pub message: String,
    pub since: Option<Timestamp>,
}

impl Seen {
    /// The condition of that type.
    pub(in crate::management) fn condition(&self, type_: &str) -> Option<&NodeFact> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }
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

/// The node, if there is one.
type Read = Option<Arc<Seen>>;

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
pub(in crate::management) async fn look(turn: &Turn, machine: &Machine, cluster: &Cluster) -> Result<Sight, Error> {
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
    let ours = read.filter(|seen| seen.provider_id.is_some() && seen.provider_id == machine.spec.provider_id);
    Ok(ours.map_or(Sight::None, Sight::Node))
}

/// Asks the workload API. `None` if nobody answered.
async fn read(turn: &Turn, machine: &Machine, cluster: &Cluster) -> Result<Option<Read>, Error> {
    let Some(workload) = turn.workloads.get(&workload_name(cluster)?) else { return Ok(None) };
    let api: Api<Node> = Api::all(workload.client());
    match api.get_opt(machine.metadata.name.as_deref().unwrap_or_default()).await {
        Ok(node) => Ok(Some(node.map(|node| Arc::new(seen(node))))),
        Err(error) if unreachable(&error) => Ok(None),
        Err(source) => Err(failed("look for the node of", machine, source)),
    }
}

pub(in crate::management) fn seen(node: Node) -> Seen {
    let status = node.status.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let conditions = conditions.into_iter().map(|condition| NodeFact {
        type_: condition.type_,
        status: condition.status,
        message: condition.message.unwrap_or_default(),
        since: condition.last_transition_time.map(|since| since.0),
    });
    Seen {
        provider_id: node.spec.and_then(|spec| spec.provider_id),
        labels: node.metadata.labels.unwrap_or_default(),
        annotations: node.metadata.annotations.unwrap_or_default(),
        info: status.node_info,
        conditions: conditions.collect(),
    }
}

/// How long a node that cannot be deleted is tried again before it is decided whether to go without, and how often. As in
/// Cluster API, which waits inside of one turn, too.
const DELETION_TRIES: u32 = 6;
const DELETION_PAUSE: Duration = Duration::from_secs(2);

/// Deletes the node. One that is gone is fine. `false` if nobody answered for ten seconds.
pub(super) async fn delete(turn: &Turn, machine: &Machine, cluster: &Cluster, name: &str) -> Result<bool, Error> {
    let Some(workload) = turn.workloads.get(&workload_name(cluster)?) else { return Ok(true) };
    let api: Api<Node> = Api::all(workload.client());
    for tried in 1..=DELETION_TRIES {
        match api.delete(name, &DeleteParams::default()).await {
            Ok(_) => return Ok(true),
            Err(ClientError::Api(status)) if status.code == 404 => return Ok(true),
            Err(error) if unreachable(&error) => {}
            Err(source) => return Err(failed("delete the node of", machine, source)),
        }
        if tried < DELETION_TRIES {
            tokio::time::sleep(DELETION_PAUSE).await;
        }
    }
    Ok(false)
}

/// Whether there was no answer at all, rather than a refusal.
pub(super) fn unreachable(error: &ClientError) -> bool {
    !matches!(error, ClientError::Api(_))
}
