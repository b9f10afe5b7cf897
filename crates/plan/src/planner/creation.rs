//! A cluster that is being made: what it needs once, its certificates, and machines of its control plane that are missing.

use windlass_api::name::{ClusterSecret, Uid};

use super::case::Case;
use super::{StagePlan, role, workload};
use crate::gate::{self, Blocked, Gate};
use crate::inventory::{ClusterState, JobState, Machine};
use crate::render::machine::Start;
use crate::render::{cluster, machine};
use crate::step::{Action, Place, Stage, Step};

fn create(role: String, object: serde_json::Value, why: &str) -> Step {
    Step {
        stage: Stage::ControlPlane,
        role,
        place: Place::Management,
        action: Action::Create { object },
        why: why.to_owned(),
    }
}

/// The Cluster, and the infrastructure that it needs once.
pub(super) fn cluster(case: &Case<'_>) -> StagePlan {
    if !case.held.is_empty() {
        return StagePlan::waiting(case.held.clone(), Vec::new());
    }
    let scope = case.scope();
    let steps = vec![
        create("cluster/WCPCluster".to_owned(), cluster::wcp_cluster(&scope), "the cluster needs an address"),
        create(role::CLUSTER.to_owned(), cluster::cluster(&scope), "the cluster is not there yet"),
    ];
    StagePlan::ready(steps, vec!["cluster: new".to_owned()])
}

/// The certificates that are missing. They are made only while there is no machine that could have older ones: to all that
/// such a machine signed, new ones would be worthless.
pub(super) fn certificates(case: &Case<'_>, uid: &Uid) -> Option<StagePlan> {
    let fresh = case.inventory.control_plane.machines.is_empty() && !case.is_initialized();
    let is_missing = |secret: &ClusterSecret| !case.inventory.secrets.contains(secret);
    let missing: Vec<ClusterSecret> = ClusterSecret::CERTIFICATES.into_iter().filter(is_missing).collect();
    if !fresh || missing.is_empty() {
        return None;
    }
    let scope = case.scope();
    let step = |secret: &ClusterSecret| Step {
        stage: Stage::ControlPlane,
        role: role::secret(*secret),
        place: Place::Management,
        action: Action::CreateSecret { secret: *secret, metadata: cluster::secret_metadata(&scope, *secret, uid) },
        why: "no machine starts without it".to_owned(),
    };
    let changes = missing.iter().map(|secret| format!("{}: new", role::secret(*secret))).collect();
    Some(StagePlan::ready(missing.iter().map(step).collect(), changes))
}

/// The next machine of the control plane. The first begins the cluster; each other joins when all before it are well.
pub(super) fn machine(case: &Case<'_>, uid: &Uid, ordinal: u32) -> StagePlan {
    let change = vec![format!("{}: new", role::control_plane(ordinal))];
    let first = case.inventory.control_plane.machines.is_empty();
    let blocked = refusals(case, first);
    if !blocked.is_empty() {
        return StagePlan::waiting(blocked, change);
    }
    let (start, why) =
        if first { (Start::Init, "it begins the cluster") } else { (Start::Join, "the machines before it are well") };
    let objects = machine::control_plane(&case.scope(), ordinal, start, uid);
    let step = |object: serde_json::Value| {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        create(format!("{}/{kind}", role::control_plane(ordinal)), object, why)
    };
    StagePlan::ready(objects.into_iter().map(step).collect(), change)
}

fn refusals(case: &Case<'_>, first: bool) -> Vec<Blocked> {
    let Case { target, inventory, gates, .. } = case;
    let mut blocked = Vec::new();
    blocked.extend(
        gates.ask(Gate::CertificatesPresent, || gate::certificates_present(&target.cluster.name, &inventory.secrets)),
    );
    if matches!(inventory.cluster, ClusterState::Present { infrastructure_ready: false, .. }) {
        blocked.push(Blocked::InfrastructureNotReady);
    }
    if first && case.is_initialized() {
        blocked.push(Blocked::ControlPlaneLost);
    }
    if !first {
        let machines = &inventory.control_plane.machines;
        // Here no machine is excused: also those that this update made have to be well.
        let nobody = |_: &Machine| false;
        blocked.extend(gates.ask(Gate::OneMachineAtATime, || gate::one_machine_at_a_time(machines, nobody)));
        blocked.extend(gates.ask(Gate::ControlPlaneHealthy, || gate::control_plane_healthy(machines, nobody)));
        blocked.extend(workload::join_refusals(case));
    }
    let active = inventory.control_plane.job.as_ref().filter(|job| matches!(job.state, JobState::Active { .. }));
    blocked.extend(active.map(|job| Blocked::ControlPlaneUpdateRunning { job: job.name.clone() }));
    blocked
}
