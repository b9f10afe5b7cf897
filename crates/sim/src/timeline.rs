//! What happens in a World, in the one order in which it happens: all API servers are observed by one [`Recorder`].

mod extremes;
mod lane;
mod picture;
mod recorder;
mod render;
#[cfg(test)]
pub(crate) mod script;
mod sentence;
mod what;
mod why;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::invariant::{Exempted, Violation};

pub use extremes::{Extremes, Held, Outage, Quorum, Skewed};
pub use picture::escaped;
pub use recorder::Recorder;
pub use what::What;

/// One thing that happened, in words: `Machine my-tkc-control-plane-0-1 is created at v1.16.7+vmware.1 (control plane)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// The write that it was, counted over all API servers of the World.
    pub write: u64,
    /// Where: `management`, or the workload cluster as `namespace/name`.
    pub place: String,
    /// The cluster that it is about, as `namespace/name`.
    pub cluster: String,
    /// What sort of thing.
    pub what: What,
    /// The object, as `Kind/name`.
    pub object: String,
    /// What the object is for, where it is a machine or belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    /// Who did it.
    pub actor: Actor,
    /// Why, if that can be told from what was true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The whole in a sentence.
    pub text: String,
}

/// Where an event stands in a picture: in the line of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lane {
    /// The machine.
    pub machine: String,
    /// The pool that it belongs to; nothing for the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// It is one of the control plane.
    pub control_plane: bool,
    /// The version of Kubernetes that is asked of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// How many machines were made and removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turnover {
    /// Machines that were asked for.
    pub created: u64,
    /// Machines that went.
    pub deleted: u64,
}

/// How many machines were made and removed, by what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Machines {
    /// Those that run the API, the controllers and etcd.
    pub control_plane: Turnover,
    /// All others.
    pub workers: Turnover,
}

/// A part of what happened in a World, to be shown or kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// When the part begins: elapsed time is counted from here.
    pub from: Timestamp,
    /// How many writes there were.
    pub writes: u64,
    /// What happened, in order.
    pub events: Vec<Event>,
    /// The machines of that part.
    pub machines: Machines,
    /// Declared exceptions that were made use of, in order.
    pub exempted: Vec<Exempted>,
    /// Invariants that did not hold, in order.
    pub violations: Vec<Violation>,
}

#[cfg(test)]
mod tests;
