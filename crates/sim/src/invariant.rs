//! What must be true after every write, whoever made it.
//!
//! One rule is one file. A rule looks at what is true of one cluster after a change, and at the change; it says what is
//! wrong, or which declared exception makes it right. What stays wrong is reported once, until it has been right again.
//!
//! The ids are those of the list of invariants that the project was designed with: V for versions, E for etcd, C for control
//! planes, D for order, O for ownership.

mod addons_first;
mod certificates;
mod control_plane_pace;
mod etcd_order;
mod exemption;
mod kube_proxy_skew;
mod kubelet_skew;
mod last_voter;
mod leader_stays;
mod minor_by_minor;
mod quorum;
mod replacement_ready;
mod server_skew;
mod watch;
mod workers_last;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::truth::{Cluster, Fact, Topic};

pub use exemption::{EXEMPTIONS, Exempted, Exemption};
pub(crate) use watch::Watch;

/// An invariant does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// Which: `V1`, `E1`, `D2` …
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// How many writes there had been.
    pub write: u64,
    /// The cluster, as `namespace/name`.
    pub cluster: String,
    /// What is wrong, in a sentence.
    pub message: String,
}

/// A rule that every write is checked against.
pub struct Rule {
    /// Its short name: `V1`.
    pub id: &'static str,
    /// What it demands, in a sentence.
    pub demands: &'static str,
    topics: &'static [Topic],
    check: fn(&Cluster, &Fact, &mut Findings),
}

/// All rules, in the order of their ids.
pub const RULES: [Rule; 13] = [
    control_plane_pace::RULE,
    replacement_ready::RULE,
    addons_first::RULE,
    workers_last::RULE,
    quorum::RULE,
    etcd_order::RULE,
    leader_stays::RULE,
    last_voter::RULE,
    certificates::RULE,
    kubelet_skew::RULE,
    server_skew::RULE,
    kube_proxy_skew::RULE,
    minor_by_minor::RULE,
];

/// What a rule found.
#[derive(Default)]
struct Findings {
    breaches: Vec<Finding>,
    exempted: Vec<(&'static Exemption, Finding)>,
}

struct Finding {
    /// What it is about, so that the same thing is reported once.
    subject: String,
    message: String,
}

impl Findings {
    fn breach(&mut self, subject: impl Into<String>, message: String) {
        self.breaches.push(Finding { subject: subject.into(), message });
    }

    fn exempt(&mut self, exemption: &'static Exemption, subject: impl Into<String>, message: String) {
        self.exempted.push((exemption, Finding { subject: subject.into(), message }));
    }
}

#[cfg(test)]
mod tests;
