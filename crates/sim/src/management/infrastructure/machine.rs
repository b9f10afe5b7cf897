//! `WCPMachine`: a virtual machine, from the wish for it until it is gone.
//!
//! ```text
//! (bootstrap data is there) ─▶ created ─ machine_create ─▶ poweredOn ─ machine_boot ─▶ ready ─ deletion, machine_delete ─▶ gone
//! ```
//! When the machine was made is told by a condition, so that whoever goes on with the object waits for what is left.

mod disk;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::wcp::{Address, Initialization, VmState, WCPMachine, WCPMachineStatus};
use windlass_api::kind::{condition, is_true};
use windlass_api::label;
use windlass_api::name::NodeName;
use windlass_runtime::key::Key;
use windlass_runtime::runner::Outcome;

use crate::fault::{Booting, Held, Making};
use crate::management::conditions::{self, Fact};
use crate::management::context::{Error, Turn, after, beside, cluster_name, deleting, path, workload_name};
use crate::management::ownership::{controller, is_held, with_finalizer};
use crate::management::{pause, write};
use crate::workload::{Boot, Capacity, Workload};

use super::placement::{self, Place};
use super::provided::Provided;

type Part = Provided<WCPMachine>;

const FINALIZER: &str = "wcpmachine.infrastructure.cluster.vmware.com";

/// The condition that tells since when there is a virtual machine.
const CREATED: &str = "VirtualMachineCreated";

/// How soon the infrastructure is asked again after it has refused.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);

pub(in crate::management) async fn reconcile(turn: &Turn, infrastructure: &Part) -> Result<Outcome, Error> {
    let meta = &infrastructure.metadata;
    let cluster = turn.cluster_of(meta);
    if let Some(outcome) = pause::held(turn, infrastructure, cluster.as_deref()).await? {
        return Ok(outcome);
    }
    if deleting(meta) {
        return remove(turn, infrastructure).await;
    }
    let (Some(machine), Some(cluster)) = (owner(turn, infrastructure), cluster) else { return Ok(Outcome::done()) };
    let state = infrastructure.status.as_ref().and_then(|status| status.vm_state);
    match state {
        None => create(turn, infrastructure, &machine).await,
        Some(VmState::Created) => switch_on(turn, infrastructure).await,
        Some(VmState::PoweredOn) => boot(turn, infrastructure, &machine, &cluster).await,
        Some(VmState::Ready) => {
            // Whoever goes on with the objects of another run has machines that have booted and nobody who runs them.
            let twice = turn.faults.was_made_twice(meta);
            if let Booted::Refused(why) = begin(turn, infrastructure, &machine, &cluster, twice)? {
                tracing::warn!(machine = path(meta), why, "a machine that has booted cannot go on");
            }
            Ok(Outcome::done())
        }
    }
}

/// The Machine that looks after it.
fn owner(turn: &Turn, infrastructure: &Part) -> Option<Arc<Machine>> {
    let name = controller::<Machine>(&infrastructure.metadata)?;
    turn.caches.machines.get(&Key { namespace: infrastructure.metadata.namespace.clone(), name: name.to_owned() })
}

/// Makes a virtual machine, if all is there that it is made from.
async fn create(turn: &Turn, infrastructure: &Part, machine: &Machine) -> Result<Outcome, Error> {
    if machine.spec.bootstrap.data_secret_name.is_none() {
        return Ok(Outcome::done());
    }
    if let Some(refusal) = missing(turn, infrastructure) {
        say(turn, infrastructure, |_| (), [refusal.clone(), refusal.named("Ready")]).await?;
        return Ok(Outcome::done());
    }
    let meta = &infrastructure.metadata;
    let _alone = placement::alone(turn, infrastructure).await;
    let refusal = match refused(turn, meta) {
        Some(refusal) => Place::None(refusal),
        None if infrastructure.is_known() => placement::find(turn, infrastructure, machine, CREATED).await?,
        None => machine.spec.failure_domain.clone().map_or(Place::Any, Place::Zone),
    };
    let zone = match refusal {
        Place::Any => None,
        Place::Zone(zone) => Some(zone),
        Place::None(refusal) => {
            say(turn, infrastructure, |_| (), [refusal.clone(), refusal.named("Ready")]).await?;
            return Ok(Outcome::requeue_after(REFUSED_PAUSE));
        }
    };
    let finalizers = with_finalizer(meta, FINALIZER);
    let moves = zone.is_some() && zone.as_deref() != placement::zone_of(meta);
    let named = if finalizers.is_some() || infrastructure.spec.provider_id.is_none() || moves {
        let finalizers = finalizers.or_else(|| meta.finalizers.clone());
        let mut change =
            json!({"metadata": {"finalizers": finalizers}, "spec": {"providerID": provider_id(turn, machine)}});
        if let Some(zone) = &zone {
            change["metadata"]["labels"] = json!({label::ZONE.name: zone});
        }
        Some(write::patch(turn, infrastructure, change).await?)
    } else {
        None
    };
    let infrastructure = named.as_ref().unwrap_or(infrastructure);
    let facts = [Fact::yes(CREATED, "Created"), Fact::no("Ready", "Creating", "")];
    let made = |status: &mut WCPMachineStatus| {
        status.vm_state = Some(VmState::Created);
        status.failure_domain = zone;
    };
    say(turn, infrastructure, made, facts).await?;
    Ok(after(Some(turn.takes(turn.durations.machine_create, "machine create", meta))))
}

/// Why the infrastructure makes no machine now, if a scenario has it so.
fn refused(turn: &Turn, meta: &ObjectMeta) -> Option<Fact> {
    match turn.faults.making(meta)?.what {
        Making::Refused { reason, message } => Some(Fact::no(CREATED, reason, message)),
        Making::Partial => None,
    }
}

/// What the machine should be made from and is not there, as a fact.
fn missing(turn: &Turn, infrastructure: &Part) -> Option<Fact> {
    if !infrastructure.is_known() {
        return None;
    }
    let (spec, caches) = (&infrastructure.spec, &turn.caches);
    let refuse = |reason, kind: &str, name: &str| Some(Fact::no(CREATED, reason, format!("there is no {kind} {name}")));
    if caches.images.get(&Key::cluster(&spec.image_name)).is_none() {
        return refuse("ImageNotFound", "VirtualMachineImage", &spec.image_name);
    }
    if caches.machine_classes.get(&Key::cluster(&spec.class_name)).is_none() {
        return refuse("ClassNotFound", "VirtualMachineClass", &spec.class_name);
    }
    if caches.storage_classes.get(&Key::cluster(&spec.storage_class)).is_none() {
        return refuse("StorageClassNotFound", "StorageClass", &spec.storage_class);
    }
    None
}

/// When the virtual machine was made.
fn created_at(turn: &Turn, infrastructure: &Part) -> Timestamp {
    let conditions = infrastructure.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let since = condition(conditions, CREATED).and_then(|created| created.last_transition_time.parse().ok());
    since.unwrap_or_else(|| turn.clock.now())
}

async fn switch_on(turn: &Turn, infrastructure: &Part) -> Result<Outcome, Error> {
    let meta = &infrastructure.metadata;
    let takes = turn.takes(turn.durations.machine_create, "machine create", meta);
    let remaining = turn.remaining(created_at(turn, infrastructure), takes);
    if remaining.is_some() {
        return Ok(after(remaining));
    }
    if let Some(Held { what: Making::Partial, left }) = turn.faults.making(meta) {
        let diskless = Fact::no("Ready", "DiskNotAttached", "the virtual machine has no disk");
        say(turn, infrastructure, |_| (), [diskless]).await?;
        return Ok(left.map_or_else(Outcome::done, Outcome::requeue_after));
    }
    let booting = Fact::no("Ready", "Booting", "");
    say(turn, infrastructure, |status| status.vm_state = Some(VmState::PoweredOn), [booting]).await?;
    Ok(after(Some(turn.takes(turn.durations.machine_boot, "machine boot", meta))))
}

/// What came of booting.
enum Booted {
    /// It has, and goes its way in the workload cluster.
    Yes,
    /// Not yet: what it boots from has not been seen.
    NotYet,
    /// It cannot, for this reason.
    Refused(String),
}

async fn boot(turn: &Turn, infrastructure: &Part, machine: &Machine, cluster: &Cluster) -> Result<Outcome, Error> {
    let meta = &infrastructure.metadata;
    let takes = turn.takes(turn.durations.machine_create, "machine create", meta)
        + turn.takes(turn.durations.machine_boot, "machine boot", meta);
    let (late, twice) = match turn.faults.booting(meta) {
        Some(Held { what: Booting::Never, left }) => {
            return Ok(left.map_or_else(Outcome::done, Outcome::requeue_after));
        }
        Some(Held { what: Booting::Late(by), .. }) => (by, false),
        Some(Held { what: Booting::Twice, .. }) => (Duration::ZERO, true),
        None => (Duration::ZERO, false),
    };
    let remaining = turn.remaining(created_at(turn, infrastructure), takes + late);
    if remaining.is_some() {
        return Ok(after(remaining));
    }
    match begin(turn, infrastructure, machine, cluster, twice)? {
        Booted::NotYet => {}
        Booted::Refused(why) => {
            let refusal = Fact::no("Ready", "BootFailed", why);
            say(turn, infrastructure, |_| (), [refusal]).await?;
        }
        Booted::Yes => {
            let address = Address { type_: "InternalIP".into(), address: address(turn, machine) };
            let ready = |status: &mut WCPMachineStatus| {
                status.vm_state = Some(VmState::Ready);
                status.initialization = Some(Initialization { provisioned: true });
                status.addresses = vec![address];
            };
            say(turn, infrastructure, ready, [Fact::yes("Ready", "Booted")]).await?;
        }
    }
    Ok(Outcome::done())
}

/// Hands the machine over to its workload cluster, which knows what to do with one that it already has. One that was made `twice`
/// is known by the second.
fn begin(
    turn: &Turn,
    infrastructure: &Part,
    machine: &Machine,
    cluster: &Cluster,
    twice: bool,
) -> Result<Booted, Error> {
    let Some(user_data) = user_data(turn, machine) else { return Ok(Booted::NotYet) };
    let Some(provider_id) = infrastructure.spec.provider_id.clone() else { return Ok(Booted::NotYet) };
    let disk = if infrastructure.is_known() {
        disk::read(turn, &infrastructure.spec.image_name)
    } else {
        disk::of_version(machine.spec.version.as_deref().unwrap_or_default())
    };
    let disk = match disk {
        Ok(disk) => disk,
        Err(why) => return Ok(Booted::Refused(why)),
    };
    let node = node(&machine.metadata, machine.metadata.name.as_deref().unwrap_or_default())?;
    let name = workload_name(cluster)?;
    let provider_id = if twice { format!("{provider_id}-2") } else { provider_id };
    turn.faults.booted(&name, &node, &path(&infrastructure.metadata));
    let boot = Boot {
        node,
        provider_id,
        address: address(turn, machine),
        kubelet: disk.kubelet,
        images: disk.images,
        capacity: capacity(turn, infrastructure),
        zone: infrastructure.status.as_ref().and_then(|status| status.failure_domain.clone()),
        user_data,
    };
    match turn.workloads.ensure(&name).boot(&boot) {
        Ok(_) => Ok(Booted::Yes),
        Err(refusal) => Ok(Booted::Refused(refusal.to_string())),
    }
}

/// How large the machine is, as its class says.
fn capacity(turn: &Turn, infrastructure: &Part) -> Capacity {
    let class = turn.caches.machine_classes.get(&Key::cluster(&infrastructure.spec.class_name));
    let hardware = class.and_then(|class| class.spec.hardware.clone());
    hardware.map(|hardware| Capacity { cpus: hardware.cpus, memory: hardware.memory }).unwrap_or_default()
}

fn user_data(turn: &Turn, machine: &Machine) -> Option<String> {
    let name = machine.spec.bootstrap.data_secret_name.clone()?;
    let secret = turn.caches.secrets.get(&Key { namespace: machine.metadata.namespace.clone(), name })?;
    let bytes = secret.data.as_ref()?.get("value")?;
    Some(String::from_utf8_lossy(&bytes.0).into_owned())
}

/// The node has the name of the Machine.
fn node(meta: &ObjectMeta, machine: &str) -> Result<NodeName, Error> {
    NodeName::new(machine).map_err(|source| Error::Name { object: path(meta), source })
}

fn provider_id(turn: &Turn, machine: &Machine) -> String {
    let uid = machine.metadata.uid.as_deref().unwrap_or_default();
    format!("vsphere://{}", turn.seed.stream(&format!("provider id {uid}")).uuid())
}

/// An address in 10.0.0.0/8, by the name of the machine. None ends in 0 or 255, which mean networks to people.
fn address(turn: &Turn, machine: &Machine) -> String {
    let mut chance = turn.seed.stream(&format!("address {}", path(&machine.metadata)));
    format!("10.{}.{}.{}", chance.below(256), chance.below(256), chance.range(1..255))
}

/// Changes the status, if that changes anything.
async fn say<const N: usize>(
    turn: &Turn,
    infrastructure: &Part,
    change: impl FnOnce(&mut WCPMachineStatus),
    facts: [Fact; N],
) -> Result<(), Error> {
    let mut status = infrastructure.status.clone().unwrap_or_default();
    change(&mut status);
    for fact in facts {
        conditions::set(&mut status.conditions, fact, infrastructure.metadata.generation, &turn.now());
    }
    if infrastructure.status.as_ref() != Some(&status) {
        write::status(turn, infrastructure, &status).await?;
    }
    Ok(())
}

/// Switches the machine off, and lets it go when it is gone.
async fn remove(turn: &Turn, infrastructure: &Part) -> Result<Outcome, Error> {
    let meta = &infrastructure.metadata;
    if !is_held(meta, FINALIZER) {
        return Ok(Outcome::done());
    }
    let conditions = infrastructure.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let place = place(turn, meta)?;
    if let Some(began) = meta.deletion_timestamp.as_ref().filter(|_| is_true(conditions, CREATED)) {
        if let Some((workload, node)) = &place {
            workload.power_off(node);
        }
        let remaining = turn.remaining(began.0, turn.takes(turn.durations.machine_delete, "machine delete", meta));
        if remaining.is_some() {
            return Ok(after(remaining));
        }
    }
    if let Some(Held { left, .. }) = turn.faults.finalizer_stays(meta) {
        return Ok(left.map_or_else(Outcome::done, Outcome::requeue_after));
    }
    if let (Some((workload, node)), Some(provider_id)) = (&place, &infrastructure.spec.provider_id) {
        workload.machine_gone(node, provider_id);
    }
    write::release(turn, infrastructure, FINALIZER).await?;
    Ok(Outcome::done())
}

/// The workload cluster and the node of a machine, by what it says itself: its Machine and its Cluster may be gone.
fn place(turn: &Turn, meta: &ObjectMeta) -> Result<Option<(Workload, NodeName)>, Error> {
    let (Some(machine), Some(cluster)) = (controller::<Machine>(meta), cluster_name(meta)) else { return Ok(None) };
    let Some(workload) = turn.workloads.get(&beside(meta, cluster)?) else { return Ok(None) };
    Ok(Some((workload, node(meta, machine)?)))
}
