//! What must be true after every write, whoever made it.
//!
//! One rule is one file. A rule looks at what is true of one cluster after a change, and at the change; it says what is
//! wrong, or which declared exception makes it right. What stays wrong is reported once, until it has been right again.
//!
//! The ids are those of the list of invariants that the project was designed with: V for versions, E for etcd, C for control
//! planes, D for order, W for workers, O for ownership. `docs/invariants.md` has all of them, with those that no write could show.

mod addon_errors;
mod addons_first;
mod alarms;
mod attempts;
mod bound_addons;
mod budgets;
mod certificates;
mod certificates_first;
mod certificates_there;
mod control_plane_pace;
mod cordon_first;
mod deadlock_told;
mod etcd_order;
mod etcd_step;
mod eviction_only;
mod exemption;
mod failed_stays;
mod fenced;
mod garbage;
mod hand_over;
mod held;
mod images_there;
mod join_margin;
mod join_version;
mod keys_stay;
mod known_machines;
mod kube_proxy_skew;
mod kubeadm_config;
mod kubelet_age;
mod kubelet_skew;
mod last_voter;
mod leader_stays;
mod learners;
mod left_behind;
mod member_leaves_first;
mod members_are_machines;
mod minor_by_minor;
mod never_down;
mod node_of_machine;
mod odd_voters;
mod one_member_change;
mod one_update;
mod pool_bounds;
mod programs_skew;
mod quorum;
mod remediation;
mod removed_kinds;
mod replacement_name;
mod replacement_ready;
mod server_skew;
mod stored_versions;
mod two_versions;
mod volumes_first;
mod watch;
mod whole_node;
mod workers_last;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::truth::{Cluster, Fact, Topic};

pub use exemption::{EXEMPTIONS, Exempted, Exemption};
pub(crate) use quorum::quorum;
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
pub const RULES: [Rule; 54] = [
    control_plane_pace::RULE,
    whole_node::RULE,
    replacement_ready::RULE,
    one_update::RULE,
    failed_stays::RULE,
    attempts::RULE,
    two_versions::RULE,
    remediation::RULE,
    certificates_first::RULE,
    replacement_name::RULE,
    kubeadm_config::RULE,
    addons_first::RULE,
    workers_last::RULE,
    held::RULE,
    images_there::RULE,
    bound_addons::RULE,
    addon_errors::RULE,
    quorum::RULE,
    join_margin::RULE,
    one_member_change::RULE,
    learners::RULE,
    etcd_order::RULE,
    leader_stays::RULE,
    member_leaves_first::RULE,
    members_are_machines::RULE,
    fenced::RULE,
    last_voter::RULE,
    odd_voters::RULE,
    alarms::RULE,
    certificates_there::RULE,
    certificates::RULE,
    garbage::RULE,
    keys_stay::RULE,
    hand_over::RULE,
    known_machines::RULE,
    kubelet_skew::RULE,
    kubelet_age::RULE,
    server_skew::RULE,
    programs_skew::RULE,
    kube_proxy_skew::RULE,
    minor_by_minor::RULE,
    left_behind::RULE,
    never_down::RULE,
    join_version::RULE,
    etcd_step::RULE,
    removed_kinds::RULE,
    stored_versions::RULE,
    eviction_only::RULE,
    budgets::RULE,
    pool_bounds::RULE,
    cordon_first::RULE,
    volumes_first::RULE,
    deadlock_told::RULE,
    node_of_machine::RULE,
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
