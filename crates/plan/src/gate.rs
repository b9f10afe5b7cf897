//! Safety rules, one file each, and the refusals that they give.

mod blocked;
mod certificates_present;
mod control_plane_healthy;
mod no_gaps;
mod not_paused;
mod one_control_plane_update;
mod packages_first;
mod worker_order;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

pub use blocked::Blocked;
pub use certificates_present::certificates_present;
pub use control_plane_healthy::control_plane_healthy;
pub(crate) use control_plane_healthy::not_ready;
pub use no_gaps::no_gaps;
pub use not_paused::not_paused;
pub use one_control_plane_update::one_control_plane_update;
pub use packages_first::packages_first;
pub use worker_order::worker_order;

/// A safety rule, by its name. [`Gates`] says which are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Machines of the control plane are replaced only when every package is at the target and well.
    PackagesFirst,
    /// One update of a control plane at a time, and none after one that failed.
    OneControlPlaneUpdate,
    /// The control plane is replaced only while etcd and all its machines are well.
    ControlPlaneHealthy,
    /// Workers never run ahead of the control plane.
    WorkerOrder,
    /// The four certificates are there before any machine joins.
    CertificatesPresent,
    /// What is paused is left alone.
    NotPaused,
    /// No decision is made across a gap in what was observed.
    NoGaps,
}

impl Gate {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::PackagesFirst,
        Self::OneControlPlaneUpdate,
        Self::ControlPlaneHealthy,
        Self::WorkerOrder,
        Self::CertificatesPresent,
        Self::NotPaused,
        Self::NoGaps,
    ];

    /// The name by which it can be switched off in a rehearsal: `worker-order`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PackagesFirst => "packages-first",
            Self::OneControlPlaneUpdate => "one-control-plane-update",
            Self::ControlPlaneHealthy => "control-plane-healthy",
            Self::WorkerOrder => "worker-order",
            Self::CertificatesPresent => "certificates-present",
            Self::NotPaused => "not-paused",
            Self::NoGaps => "no-gaps",
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a gate; there are {}", Gate::ALL.map(Gate::as_str).join(", "))]
pub struct UnknownGate {
    text: String,
}

impl FromStr for Gate {
    type Err = UnknownGate;

    fn from_str(text: &str) -> Result<Self, UnknownGate> {
        let known = Self::ALL.into_iter().find(|gate| gate.as_str() == text);
        known.ok_or_else(|| UnknownGate { text: text.to_owned() })
    }
}

/// The gates that are in force. On a cluster that is all of them; a rehearsal may leave some out, to show what they are for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gates(BTreeSet<Gate>);

impl Gates {
    /// Every gate there is.
    pub fn all() -> Self {
        Self(Gate::ALL.into())
    }

    /// All but these. For rehearsals only.
    pub fn without(left_out: &[Gate]) -> Self {
        Self(Gate::ALL.into_iter().filter(|gate| !left_out.contains(gate)).collect())
    }

    /// Whether a gate is in force.
    pub fn has(&self, gate: Gate) -> bool {
        self.0.contains(&gate)
    }

    /// The refusal of a gate, if it is in force and refuses.
    pub fn ask(&self, gate: Gate, refuse: impl FnOnce() -> Option<Blocked>) -> Option<Blocked> {
        if self.has(gate) { refuse() } else { None }
    }
}
