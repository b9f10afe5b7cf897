//! What Windlass decides where neither the owner of a cluster nor the release does.
//!
//! A later Windlass may decide otherwise. Machines that were made before are then not as they would be made now; they are
//! replaced only when their owner agrees, or asks for something that replaces them anyway.

use std::collections::BTreeMap;

use serde::Serialize;

/// What Windlass decides by itself. This Windlass leaves everything to kubeadm.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Defaults {
    /// Fields of kubeadm's `nodeRegistration` on every machine, by name: `imagePullPolicy`.
    pub node_registration: BTreeMap<String, String>,
}

impl Defaults {
    /// Whether everything is left to others.
    pub fn is_empty(&self) -> bool {
        self.node_registration.is_empty()
    }
}
