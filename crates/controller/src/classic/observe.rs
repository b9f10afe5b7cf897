//! What can be observed of a classic cluster: its own objects, the machines of its control plane, and its workload cluster.

use std::collections::BTreeMap;

use kube::Api;
use kube::api::ListParams;
use windlass_api::condition::ConditionStatus;
use windlass_api::kind::cluster_api::{Cluster, Machine as LiveMachine, MachineDeployment};
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::control_plane::KubeadmControlPlane as LiveControlPlane;
use windlass_api::kind::{Condition, condition};
use windlass_api::name::{ObjectName, PoolName};
use windlass_api::{annotation, label};
use windlass_plan::inventory::{
    ClusterState, ControlPlane, Inventory, KubeadmControlPlane, Machine, Orders, Pool, PoolProgress, Releases,
    Template, UpdateRecord, Workload,
};
use windlass_plan::target::{ClassicParts, ClassicPool, Target};
use windlass_runtime::trimmed;

use crate::access::WorkloadCluster;
use crate::observe::management::pool::{machines as pool_machines, moved_at, template};
use crate::observe::management::{machine, network, paused, revision, uid, update_record};
use crate::observe::orders::{approval, consent};
use crate::observe::{Gaps, Which, earlier, know_by_machines, secrets, workload};
use crate::reconcile::context::Reach;
use crate::said::said;

/// What was observed, and the way to the workload cluster that it was observed through.
pub(crate) struct Observed {
    pub inventory: Inventory,
    pub workload: Option<WorkloadCluster>,
}

/// What says that a control plane is not well: it has something to say about these.
const HEALTH: [&str; 2] = ["EtcdClusterHealthy", "ControlPlaneComponentsHealthy"];

/// All of it.
pub(crate) async fn inventory(
    reach: &Reach,
    parts: &ClassicParts,
    target: &Target,
    latest: Option<&ClusterUpdate>,
) -> Observed {
    let which = Which::of(target);
    let mut gaps = Gaps::default();
    let update = latest.and_then(|live| update_record(live, &mut gaps));
    let mut inventory = of_parts(parts, &mut gaps, reach.access.clock.now());
    inventory.control_plane.machines = machines(reach, &which, &mut gaps).await;
    for (name, pool) in &mut inventory.pools {
        if !pool.is_at_rest() {
            pool.machines = pool_machines(reach, &which, name.as_str(), &mut gaps).await;
            pool.moved_at = moved_at(name, pool, update.as_ref(), reach.access.clock.now());
        }
    }
    let found = match &inventory.cluster {
        ClusterState::Absent => secrets::Found::default(),
        ClusterState::Present { uid, .. } => {
            // Cluster API's control plane makes them, and is the owner.
            let control_plane = parts.control_plane["metadata"]["uid"].as_str().unwrap_or_default();
            let owners = [uid.to_string(), control_plane.to_owned()].into();
            secrets::find(reach, &which, &owners, &mut gaps).await
        }
    };
    let mut connection = None;
    if matches!(inventory.cluster, ClusterState::Present { initialized: true, .. }) {
        (inventory.workload, connection) =
            workload::observe(reach, &which, target, found.kubeconfig.as_deref(), &mut gaps).await;
    }
    know_by_machines(&mut inventory.workload, &inventory.control_plane.machines);
    // Before the first update there is none, and while one is under way what it makes may not be referred to yet.
    let is_over = update.as_ref().is_some_and(|update| update.state.is_over());
    if let ClusterState::Present { uid, .. } = &inventory.cluster
        && is_over
        && inventory.pools.values().all(Pool::is_at_rest)
    {
        inventory.earlier_templates = earlier::templates_of_classic(&reach.access.client, &which, uid).await;
    }
    inventory.secrets = found.present;
    inventory.update = update;
    inventory.gaps = gaps.0;
    Observed { inventory, workload: connection }
}

/// What the objects of a cluster say by themselves: enough to tell what its release would change, and not to change it.
pub(crate) fn said_by(parts: &ClassicParts, update: Option<UpdateRecord>, now: jiff::Timestamp) -> Inventory {
    let mut gaps = Gaps::default();
    let inventory = of_parts(parts, &mut gaps, now);
    Inventory { update, gaps: gaps.0, ..inventory }
}

fn of_parts(parts: &ClassicParts, gaps: &mut Gaps, now: jiff::Timestamp) -> Inventory {
    let mut pools = BTreeMap::new();
    for found in &parts.pools {
        let name = found.deployment["metadata"]["name"].as_str().unwrap_or_default();
        let object = format!("MachineDeployment/{name}");
        if let (Some(name), Some(pool)) = (gaps.take::<PoolName, _>(&object, name.parse()), pool(found, &object, gaps))
        {
            pools.insert(name, pool);
        }
    }
    Inventory {
        as_of: now,
        cluster: cluster(&parts.cluster, gaps),
        secrets: std::collections::BTreeSet::new(),
        control_plane: ControlPlane { kubeadm: control_plane(parts, gaps), ..ControlPlane::default() },
        pools,
        topology: None,
        workload: Workload::NotYet,
        update: None,
        orders: Orders { approval: approval(&parts.cluster.metadata), ..Orders::default() },
        gaps: Vec::new(),
        consent: consent(&parts.cluster.metadata),
        releases: Releases::default(),
        earlier_templates: Vec::new(),
        deployed: deployed(&parts.cluster),
    }
}

/// The release that a cluster says it was last brought to. What cannot be read says nothing.
pub(crate) fn deployed(cluster: &Cluster) -> Option<windlass_api::version::KubernetesVersion> {
    let annotations = cluster.metadata.annotations.as_ref()?;
    annotation::LAST_DEPLOYED_VERSION.get(annotations).ok().flatten()
}

fn cluster(live: &Cluster, gaps: &mut Gaps) -> ClusterState {
    let object = format!("Cluster/{}", live.metadata.name.as_deref().unwrap_or_default());
    if live.metadata.deletion_timestamp.is_some() {
        gaps.note(object.as_str(), "it is being deleted");
    }
    let Some(uid) = gaps.take(&object, uid(&live.metadata)) else { return ClusterState::Absent };
    let reached = live.status.as_ref().and_then(|status| status.initialization.clone()).unwrap_or_default();
    ClusterState::Present {
        uid,
        infrastructure_ready: reached.infrastructure_provisioned,
        initialized: reached.control_plane_initialized,
        paused: paused(live, None),
        network: network(live),
    }
}

fn control_plane(parts: &ClassicParts, gaps: &mut Gaps) -> Option<KubeadmControlPlane> {
    let live: LiveControlPlane =
        gaps.take("KubeadmControlPlane", serde_json::from_value(parts.control_plane.clone()))?;
    let name = live.metadata.name.as_deref().unwrap_or_default();
    let object = format!("KubeadmControlPlane/{name}");
    let status = live.status.clone().unwrap_or_default();
    let annotations = live.metadata.annotations.clone().unwrap_or_default();
    let versions = status.versions.iter().filter_map(|known| known.version.parse().ok());
    // Controllers before 1.14 of Cluster API say the oldest only.
    let oldest = status.version.as_deref().filter(|_| status.versions.is_empty()).and_then(|text| text.parse().ok());
    Some(KubeadmControlPlane {
        name: gaps.take(&object, ObjectName::new(name))?,
        revision: gaps.take(&object, revision(&live.metadata))?,
        replicas: live.spec.replicas.unwrap_or(1),
        version: gaps.take(&object, live.spec.version.parse())?,
        infrastructure_template: Template {
            name: gaps.take(&object, ObjectName::new(&live.spec.machine_template.spec.infrastructure_ref.name))?,
            spec: parts.template.machine().cloned(),
        },
        configuration: parts.control_plane["spec"]["kubeadmConfigSpec"].clone(),
        progress: PoolProgress {
            observed: live.metadata.generation.is_some() && status.observed_generation == live.metadata.generation,
            replicas: status.replicas,
            up_to_date: status.up_to_date_replicas,
            available: status.available_replicas,
        },
        versions: versions.chain(oldest).collect(),
        unwell: unwell(&status.conditions),
        owns_addons: !annotation::SKIP_KUBE_PROXY.is_in(&annotations),
        live: parts.control_plane.clone(),
    })
}

/// What its conditions say is wrong with a control plane.
fn unwell(conditions: &[Condition]) -> Option<String> {
    let is_wrong = |found: &&Condition| found.status == ConditionStatus::False.as_str();
    let found = HEALTH.iter().find_map(|health| condition(conditions, health).filter(is_wrong))?;
    Some(format!("{}: {}", found.type_, found.message.trim_start_matches("* ")))
}

fn pool(found: &ClassicPool, object: &str, gaps: &mut Gaps) -> Option<Pool> {
    let live: MachineDeployment = gaps.take(object, serde_json::from_value(found.deployment.clone()))?;
    let machine = &live.spec.template.spec;
    let status = live.status.clone().unwrap_or_default();
    let bootstrap_spec = found.bootstrap.pointer("/spec/template/spec").cloned().map(Ok);
    let bootstrap = machine.bootstrap.config_ref.as_ref().map(|config| config.name.as_str()).unwrap_or_default();
    Some(Pool {
        revision: gaps.take(object, revision(&live.metadata))?,
        replicas: live.spec.replicas.unwrap_or(1),
        version: gaps.take(object, machine.version.as_deref().unwrap_or_default().parse())?,
        infrastructure_template: template(
            &machine.infrastructure_ref.name,
            found.infrastructure.machine().cloned().map(Ok),
            gaps,
        )?,
        bootstrap_template: template(bootstrap, bootstrap_spec, gaps)?,
        progress: PoolProgress {
            observed: live.metadata.generation.is_some() && status.observed_generation == live.metadata.generation,
            replicas: status.replicas,
            up_to_date: status.up_to_date_replicas,
            available: status.available_replicas,
        },
        machines: Vec::new(),
        moved_at: None,
        live: found.deployment.clone(),
    })
}

/// The machines of the control plane, by name.
async fn machines(reach: &Reach, which: &Which<'_>, gaps: &mut Gaps) -> Vec<Machine> {
    let api: Api<LiveMachine> = Api::namespaced(reach.access.client.clone(), which.namespace.as_str());
    let (cluster, control_plane) = (label::CLUSTER_NAME.name, label::CONTROL_PLANE.name);
    let chosen = ListParams::default().labels(&format!("{cluster}={},{control_plane}", which.name));
    let listed = trimmed::list(&api, &chosen).await.map_err(|error| format!("list its Machines: {}", said(&error)));
    let listed = gaps.take("Machines of the control plane", listed);
    let mut machines: Vec<Machine> =
        listed.into_iter().flatten().filter_map(|live| machine(&live, None, gaps)).collect();
    machines.sort_by(|one, other| one.name.cmp(&other.name));
    machines
}
