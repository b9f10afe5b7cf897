//! What a run sees: as much as the next decision needs, read when it is needed, and read again when it may have changed.
//!
//! ```text
//! after a wait     the Cluster, the machines, the one in flight with its node and programs, etcd
//! after a step     what the step changed
//! once in a run    who owns the certificates, and what the workload cluster is prepared for: nobody else changes them
//! ```
//!
//! Machines are listed without a resource version, which is a quorum read: no decision is made on what a watch has told, only
//! on what was read after it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::Machine as LiveMachine;
use windlass_api::kind::condition;
use windlass_api::name::{ClusterSecret, MachineName, NodeName};
use windlass_plan::inventory::{EtcdMember, Machine, MachineState};
use windlass_plan::roll::{self, HandsOff, Observed, Ownership, Part, PartState, Parts, Preparation};

use super::attempt::Attempt;
use super::health::Joined;
use super::prepare::{certificates, kubeadm, kubelet};
use super::{Errand, Error, health, replacement};
use crate::observe::{Gaps, management, workload};

/// What a run has seen. What is `None` has to be read.
pub struct Sight<'a> {
    attempt: &'a Attempt<'a>,
    touch: Option<Touch>,
    machines: Option<Machines>,
    etcd: Option<Result<Vec<EtcdMember>, String>>,
    certificates: Option<BTreeMap<ClusterSecret, Ownership>>,
    prepared: Option<Prepared>,
    /// What creations have told, and for whoever gives up all that there is.
    parts: BTreeMap<MachineName, Parts>,
    /// It was looked at what there is.
    parts_seen: bool,
}

/// Whether the cluster may be touched.
#[derive(Debug, Clone)]
enum Touch {
    Allowed,
    Refused(HandsOff),
}

impl Touch {
    fn of(hands_off: Option<HandsOff>) -> Self {
        hands_off.map_or(Self::Allowed, Self::Refused)
    }

    fn hands_off(self) -> Option<HandsOff> {
        match self {
            Self::Allowed => None,
            Self::Refused(hands_off) => Some(hands_off),
        }
    }
}

/// The machines of the control plane.
pub struct Machines {
    /// As they are on the wire, by name.
    pub live: BTreeMap<MachineName, LiveMachine>,
    /// Which state of all of them was listed.
    pub as_of: String,
    judged: Vec<Machine>,
}

impl Machines {
    /// What those wait for that are being deleted: pods that do not leave, a budget that keeps them.
    fn leaving(&self) -> BTreeMap<MachineName, String> {
        let said = |machine: &LiveMachine| {
            let conditions = machine.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
            let deleting = condition(conditions, ConditionType::Deleting.as_str())?;
            let lines: Vec<&str> = deleting.message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            (!lines.is_empty()).then(|| lines.join(" "))
        };
        let leaving = self.live.iter().filter(|(_, machine)| machine.metadata.deletion_timestamp.is_some());
        leaving.filter_map(|(name, machine)| Some((name.clone(), said(machine)?))).collect()
    }
}

/// What the workload cluster is prepared for.
#[derive(Clone, Default)]
struct Prepared {
    unprepared: BTreeSet<Preparation>,
    endpoints: BTreeSet<NodeName>,
}

impl<'a> Sight<'a> {
    /// The sight of a run that has just begun, and has read whether it may touch the cluster.
    pub fn new(attempt: &'a Attempt<'a>, hands_off: Option<HandsOff>) -> Self {
        Self {
            attempt,
            touch: Some(Touch::of(hands_off)),
            machines: None,
            etcd: None,
            certificates: None,
            prepared: None,
            parts: BTreeMap::new(),
            parts_seen: false,
        }
    }

    /// Reads what has to be read. Where the attempt has ended, or nobody may touch the cluster, nothing more than the machines.
    pub async fn look(&mut self) -> Result<Observed, Error> {
        let attempt = self.attempt;
        let touch = match self.touch.clone() {
            Some(touch) => touch,
            None => Touch::of(attempt.hands_off().await?),
        };
        self.touch = Some(touch.clone());
        let hands_off = touch.hands_off();
        if self.machines.is_none() {
            self.machines = Some(attempt.patience().retry(|| list(attempt)).await?);
        }
        let machines = self.machines.as_ref().map(|machines| machines.judged.clone()).unwrap_or_default();
        if hands_off.is_none() && !roll::has_ended(&machines, attempt.arguments.upgrade_id) {
            self.look_further().await?;
        }
        let Prepared { unprepared, endpoints } = self.prepared.clone().unwrap_or_default();
        Ok(Observed {
            hands_off,
            machines,
            leaving: self.machines.as_ref().map(Machines::leaving).unwrap_or_default(),
            parts: self.parts.clone(),
            etcd: self.etcd.clone().unwrap_or_else(|| Err("nobody has asked".to_owned())),
            certificates: self.certificates.clone().unwrap_or_default(),
            unprepared,
            endpoints,
        })
    }

    async fn look_further(&mut self) -> Result<(), Error> {
        let attempt = self.attempt;
        if self.certificates.is_none() {
            self.certificates = Some(attempt.patience().retry(|| owners(attempt)).await?);
        }
        if self.prepared.is_none() {
            let mut unprepared = kubelet::unprepared(attempt).await?;
            let record = kubeadm::read(attempt).await?;
            if !record.is_configured {
                unprepared.insert(Preparation::KubeadmConfig);
            }
            self.prepared = Some(Prepared { unprepared, endpoints: record.endpoints });
        }
        if attempt.errand == Errand::Abort && !self.parts_seen {
            let machines = self.machines.as_ref().map(|machines| machines.judged.as_slice()).unwrap_or_default();
            for name in roll::replacement_names(machines, attempt.arguments.upgrade_id) {
                let parts = attempt.patience().retry(|| replacement::look(attempt, &name)).await?;
                self.parts.insert(name, parts);
            }
            self.parts_seen = true;
        }
        if self.etcd.is_none() {
            let members = attempt.workload.etcd.members().await;
            let members = members.map(|members| members.into_iter().map(workload::member).collect());
            self.etcd = Some(members.map_err(|error| error.to_string()));
        }
        Ok(())
    }

    /// The machines, as they were last seen.
    pub fn machines(&self) -> Option<&Machines> {
        self.machines.as_ref()
    }

    /// One machine, as it was last seen.
    pub fn machine(&self, name: &MachineName) -> Result<&LiveMachine, Error> {
        let found = self.machines.as_ref().and_then(|machines| machines.live.get(name));
        found.ok_or_else(|| Error::Missing {
            kind: "Machine",
            name: name.to_string(),
            why: "which was there a moment ago",
        })
    }

    /// The member of etcd with this id, as people know it.
    pub fn member(&self, id: u64) -> String {
        let members = self.etcd.as_ref().and_then(|etcd| etcd.as_ref().ok()).map(Vec::as_slice).unwrap_or_default();
        members.iter().find(|member| member.id == id).map_or_else(|| format!("{id:x}"), EtcdMember::shown)
    }

    /// The node of the replacement in flight, if its Machine says that all is well.
    pub fn joined(&self) -> Option<Joined> {
        let machines = self.machines.as_ref()?;
        let in_flight = roll::in_flight(&machines.judged, self.attempt.arguments.upgrade_id)?;
        health::joined(machines.live.get(&in_flight.name)?)
    }

    /// Time has gone by: everything that others change has to be read again.
    pub fn lapse(&mut self) {
        self.touch = None;
        self.machines = None;
        self.etcd = None;
        self.parts_seen = false;
        // What was on the way out may be gone: creating tells.
        self.parts
            .retain(|_, parts| parts.infrastructure != PartState::Leaving && parts.configuration != PartState::Leaving);
    }

    /// The machines have to be read again.
    pub fn machines_changed(&mut self) {
        self.machines = None;
    }

    /// Another member of etcd leads.
    pub fn leader_changed(&mut self) {
        self.etcd = None;
    }

    /// A member of etcd was removed. Before its machine is, the one that stays is looked at again.
    pub fn member_removed(&mut self) {
        self.etcd = None;
        self.machines = None;
    }

    /// A machine is on the way out. If it came in this attempt, kubeadm may have put its node on record since that was read.
    pub fn leaves(&mut self, live: LiveMachine) -> Result<(), Error> {
        if judge(&live)?.is_made_by(self.attempt.arguments.upgrade_id) {
            self.prepared = None;
        }
        self.wrote_machine(live)
    }

    /// A machine is gone.
    pub fn gone(&mut self) {
        self.machines = None;
        self.parts_seen = false;
        self.prepared = None;
    }

    /// A machine was written.
    pub fn wrote_machine(&mut self, live: LiveMachine) -> Result<(), Error> {
        let Some(machines) = &mut self.machines else { return Ok(()) };
        let machine = judge(&live)?;
        machines.judged.retain(|other| other.name != machine.name);
        machines.live.insert(machine.name.clone(), live);
        machines.judged.push(machine);
        Ok(())
    }

    /// The Cluster owns a certificate.
    pub fn owned(&mut self, secret: ClusterSecret) {
        self.certificates.get_or_insert_default().insert(secret, Ownership::Cluster);
    }

    /// Something is as it should be in the workload cluster.
    pub fn did_prepare(&mut self, preparation: Preparation) {
        if let Some(prepared) = &mut self.prepared {
            prepared.unprepared.remove(&preparation);
        }
    }

    /// A node is no endpoint any more.
    pub fn forgot(&mut self, node: &NodeName) {
        if let Some(prepared) = &mut self.prepared {
            prepared.endpoints.remove(node);
        }
    }

    /// What there is under the name of a replacement.
    pub fn parts(&mut self, name: &MachineName) -> &mut Parts {
        self.parts.entry(name.clone()).or_insert(Parts::NONE)
    }

    /// Something that a machine was to be made from is like this after it was deleted.
    pub fn deleted(&mut self, name: &MachineName, part: Part, state: PartState) {
        let parts = self.parts(name);
        match part {
            Part::Infrastructure => parts.infrastructure = state,
            Part::Configuration => parts.configuration = state,
            // The parts of a machine are what it is made from.
            Part::Machine => {}
        }
    }

    /// A replacement has its Machine: what it is made from is no longer of interest.
    pub fn made(&mut self, name: &MachineName) {
        self.parts.remove(name);
    }
}

async fn list(attempt: &Attempt<'_>) -> Result<Machines, Error> {
    let doing = format!("list the control-plane machines of {}", attempt.cluster);
    let listed = attempt.machines().list(&ListParams::default().labels(&attempt.selector())).await;
    let listed = listed.map_err(Error::api(doing))?;
    let as_of = listed.metadata.resource_version.clone().unwrap_or_default();
    let mut judged = listed.items.iter().map(judge).collect::<Result<Vec<Machine>, Error>>()?;
    let live = judged.iter().map(|machine| machine.name.clone()).zip(listed.items).collect();
    look_closely(attempt, &mut judged, &live).await;
    Ok(Machines { live, as_of, judged })
}

fn judge(live: &LiveMachine) -> Result<Machine, Error> {
    let mut gaps = Gaps::default();
    let unusable = |why| Error::Unusable { kind: "Machine", name: live.name_any(), why };
    management::machine(live, None, &mut gaps).ok_or_else(|| unusable(gaps.told()))
}

/// The replacement in flight is ready only if its node and its programs are, whatever its Machine says.
async fn look_closely(attempt: &Attempt<'_>, judged: &mut [Machine], live: &BTreeMap<MachineName, LiveMachine>) {
    let in_flight = roll::in_flight(judged, attempt.arguments.upgrade_id).map(|machine| machine.name.clone());
    let Some(machine) = judged.iter_mut().find(|machine| Some(&machine.name) == in_flight.as_ref()) else { return };
    let Some(joined) = live.get(&machine.name).and_then(health::joined) else { return };
    let Err(why) = health::look(attempt, &joined).await else { return };
    if let MachineState::Ready { node } = &machine.state {
        machine.state = MachineState::Unhealthy { node: node.clone(), why };
    }
}

async fn owners(attempt: &Attempt<'_>) -> Result<BTreeMap<ClusterSecret, Ownership>, Error> {
    let api: Api<Secret> = attempt.management();
    let mut owners = BTreeMap::new();
    for secret in ClusterSecret::CERTIFICATES {
        let name = secret.object_name(&attempt.arguments.cluster_name);
        // The metadata alone: the keys in it are nobody's business here.
        let found = api.get_metadata_opt(name.as_str()).await;
        let found = found.map_err(Error::api(format!("read the owners of the Secret {name}")))?;
        let owner = found.map(|found| certificates::ownership(&found, attempt));
        owners.extend(owner.map(|owner| (secret, owner)));
    }
    Ok(owners)
}
