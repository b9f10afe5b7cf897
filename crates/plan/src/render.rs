//! The objects that a cluster is made of, as they should be.
//!
//! Everything is built fresh from the target and the id of the update: nothing that was read is ever written back, so fields
//! of others stay theirs. Names are functions of the same two, so a write whose outcome is unknown can be repeated.

pub mod classic;
pub mod cluster;
mod cover;
mod defaults;
mod elements;
pub mod job;
pub mod kubeadm;
pub mod kubeadm_control_plane;
pub mod machine;
pub mod release;
pub mod topology;
pub mod workers;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::key::Present;
use windlass_api::kind::bootstrap::{Argument, NodeRegistration};
use windlass_api::kind::wcp::WCPMachineSpec;
use windlass_api::kind::{bootstrap, cluster_api};
use windlass_api::label;
use windlass_api::name::{Child, MachineName, NameLimit, Role, Uid, UpdateId};

pub use cover::{covers, differences};
pub use defaults::Defaults;

use crate::profile::Profile;
use crate::target::{MachinesTarget, Target};

/// The name under which all that is rendered here is applied.
pub const FIELD_MANAGER: &str = "windlass";

/// What objects are rendered for.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// What the cluster is to be.
    pub target: &'a Target,
    /// The update that makes them.
    pub update: UpdateId,
}

/// The version of Cluster API's kinds, with their group.
fn cluster_api_version() -> String {
    format!("{}/v1beta2", cluster_api::GROUP)
}

/// The version of the bootstrap provider's kinds, with their group.
fn bootstrap_api_version() -> String {
    format!("{}/v1beta2", bootstrap::GROUP)
}

/// The version of the infrastructure provider's kinds, with their group.
fn infrastructure_api_version() -> String {
    Profile::built_in().api_version()
}

impl Scope<'_> {
    /// The labels of everything that is made for a cluster.
    fn labels(&self) -> BTreeMap<String, String> {
        BTreeMap::from([label::CLUSTER_NAME.entry(&self.target.cluster.name), label::UPDATE_ID.entry(&self.update)])
    }

    /// The metadata of what belongs to the Cluster for as long as that lives.
    fn metadata(&self, name: &str, labels: &BTreeMap<String, String>, cluster: &Uid) -> Value {
        json!({
            "name": name,
            "namespace": self.target.cluster.namespace,
            "labels": labels,
            "ownerReferences": [{
                "apiVersion": cluster_api_version(),
                "kind": "Cluster",
                "name": self.target.cluster.name,
                "uid": cluster,
            }],
        })
    }

    /// What this update makes for a role.
    fn child<'r>(&'r self, role: &'r Role, ordinal: u32) -> Child<'r> {
        Child { cluster: &self.target.cluster.name, update: self.update, role, ordinal }
    }

    /// The base of the names of the control-plane machine with this number.
    pub fn control_plane_base(&self, ordinal: u32) -> MachineName {
        self.child(&Role::ControlPlane, ordinal).base()
    }

    /// The name that this update gives to the control-plane machine with this number.
    pub fn control_plane_name(&self, ordinal: u32) -> MachineName {
        self.child(&Role::ControlPlane, ordinal).name(NameLimit::LabelValue)
    }

    fn control_plane_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.labels();
        labels.extend([label::CONTROL_PLANE.entry(&Present)]);
        labels
    }

    /// How nodes of the target's distribution register: with the label that add-ons select on.
    fn node_registration(&self) -> NodeRegistration {
        let value = self.node_labels();
        NodeRegistration {
            kubelet_extra_args: vec![Argument { name: NodeRegistration::NODE_LABELS.to_owned(), value }],
            rest: self
                .target
                .defaults
                .node_registration
                .iter()
                .map(|(field, value)| (field.clone(), json!(value)))
                .collect(),
        }
    }

    fn node_labels(&self) -> String {
        let (key, value) = label::DISTRIBUTION_VERSION.entry(&self.target.release.distribution);
        format!("{key}={value}")
    }

    /// The image that machines are made from. A target whose machines we make ourselves has exactly one.
    pub(crate) fn image_name(&self) -> &str {
        self.target.release.image().map(AsRef::as_ref).unwrap_or_default()
    }

    /// What machines are made from.
    pub(crate) fn infrastructure(&self, machines: &MachinesTarget) -> WCPMachineSpec {
        WCPMachineSpec {
            image_name: self.image_name().to_owned(),
            class_name: machines.class().to_owned(),
            storage_class: machines.storage_class().to_owned(),
            provider_id: None,
        }
    }
}
