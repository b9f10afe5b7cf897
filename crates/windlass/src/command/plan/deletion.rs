//! What would go with a cluster.

use serde::Serialize;
use windlass_api::name::{ClusterName, ClusterSecret};
use windlass_controller::reconcile::preview::Preview;

/// What would go with a cluster, in the order in which it goes.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletionReport {
    cluster: String,
    namespace: String,
    /// The Job that replaces the control plane, if one is at it: it goes first.
    job: Option<String>,
    /// How many machines each pool of workers has.
    pools: Vec<PoolLost>,
    /// The machines of the control plane, which go when the workers have gone.
    control_plane: Vec<String>,
    /// The Secrets that go with the last of them: whoever has no copy cannot read a backup of etcd any more.
    secrets: Vec<String>,
}

/// The machines of a pool.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PoolLost {
    name: String,
    machines: u32,
}

impl DeletionReport {
    pub(super) fn of(preview: &Preview, name: &ClusterName) -> Self {
        let Preview { input, .. } = preview;
        let (subject, inventory) = (&input.target.cluster, &input.inventory);
        let control_plane = &inventory.control_plane;
        Self {
            cluster: subject.name.to_string(),
            namespace: subject.namespace.to_string(),
            job: control_plane.job.as_ref().map(|job| job.name.to_string()),
            pools: inventory
                .pools
                .iter()
                .map(|(name, pool)| PoolLost { name: name.to_string(), machines: pool.replicas })
                .collect(),
            control_plane: control_plane.machines.iter().map(|machine| machine.name.to_string()).collect(),
            secrets: ClusterSecret::CERTIFICATES.map(|secret| secret.object_name(name).to_string()).to_vec(),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut lines = vec![format!("Plan {}: its end", self.cluster), "\n1 workers".to_owned()];
        lines.extend(self.job.iter().map(|job| format!("  - Job {job}, before anything else")));
        if self.pools.is_empty() {
            lines.push("  there are none".to_owned());
        }
        lines.extend(
            self.pools.iter().map(|PoolLost { name, machines }| format!("  - pool {name}, {}", counted(*machines))),
        );
        lines.push("\n2 control plane".to_owned());
        lines.extend(self.control_plane.iter().map(|machine| format!("  - Machine {machine}")));
        lines.push("\n3 what they leave".to_owned());
        lines.extend(self.secrets.iter().map(|secret| format!("  - Secret {secret}")));
        let workers: u32 = self.pools.iter().map(|pool| pool.machines).sum();
        lines.push(format!(
            "\nPlan: {} of the workers, then {} of the control plane. There is no way back.",
            counted(workers),
            self.control_plane.len()
        ));
        lines.join("\n")
    }
}

fn counted(machines: u32) -> String {
    if machines == 1 { "1 machine".to_owned() } else { format!("{machines} machines") }
}
