//! Why something is waited for: from what a stage says down to the object that everything hangs on, and the way out.
//!
//! A gate names the nearest reason, which is often that something else is still at work. Here the reasons are followed: workers
//! wait for the control plane, the control plane for its Job, the Job for a machine, the machine for its node. Nothing is looked
//! up for it; what was observed for the plan is all that is known.

use jiff::{SignedDuration, Timestamp};
use windlass_api::kind::cluster_update::AttemptRecord;

use crate::gate::{Blocked, not_ready};
use crate::inventory::{ClusterState, Inventory, JobState, Machine, MachineState, Milestone, Node};
use crate::report::{Report, StageState};
use crate::step::Stage;

/// How long the Job waits for a machine that it made, counted from when it was made.
pub const MACHINE_TIMEOUT: SignedDuration = SignedDuration::from_mins(15);
/// How often a Job tries.
const ATTEMPTS_MAX: u32 = 4;
/// A chain is followed no further: reasons that lead back to themselves end somewhere.
const LINKS_MAX: usize = 6;

/// How long the first machine of a cluster may take to answer: twice as long as any other is given. One that comes later is
/// still welcome.
pub const CREATION_TIMEOUT: SignedDuration = SignedDuration::from_mins(30);

/// Why a cluster cannot be made: its first machine has had its time, and its API has never answered.
pub fn creation_failed(inventory: &Inventory, now: Timestamp) -> Option<Blocked> {
    let ClusterState::Present { initialized: false, .. } = inventory.cluster else { return None };
    let late = |machine: &&Machine| now.duration_since(machine.created) >= CREATION_TIMEOUT;
    let machine = inventory.control_plane.machines.iter().find(late)?;
    let minutes = CREATION_TIMEOUT.as_mins();
    let why = format!("{}, and the cluster has had no API for {minutes} minutes", lacking(machine));
    Some(Blocked::ControlPlaneMachineNotReady { machine: machine.name.clone(), why })
}

/// All that is known, to follow a reason through.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// What is going on.
    pub report: &'a Report,
    /// What was observed.
    pub inventory: &'a Inventory,
    /// The attempts to replace the control plane, as far as they are on record.
    pub attempts: &'a [AttemptRecord],
}

/// What a reason comes down to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Because {
    /// The reasons, each because of the next. The last is the cause, with what a person can do about it.
    pub links: Vec<String>,
    /// What a person can do about the cause; nothing where waiting is all there is to do.
    pub way_out: Option<String>,
    /// Until when it is waited for, where somebody gives up then.
    pub deadline: Option<Timestamp>,
}

/// A reason on the way down.
struct Link {
    says: String,
    way_out: String,
    deadline: Option<Timestamp>,
}

impl Link {
    fn of(blocked: &Blocked) -> Self {
        Self { says: blocked.to_string(), way_out: blocked.way_out(), deadline: None }
    }

    fn wait(says: String) -> Self {
        Self { says, way_out: WAIT.to_owned(), deadline: None }
    }
}

const WAIT: &str = "wait";

/// What kubeadm does last.
const NO_ROLE: &str = "its node has not been labelled as one of the control plane";

impl Known<'_> {
    /// What a reason comes down to. Where nothing more is known, that is the reason itself.
    pub fn because(&self, blocked: &Blocked) -> Because {
        let mut links = vec![Link::of(blocked)];
        for link in self.behind(blocked) {
            if links.len() < LINKS_MAX && links.iter().all(|known| known.says != link.says) {
                links.push(link);
            }
        }
        let deadline = links.iter().rev().find_map(|link| link.deadline);
        // Who stands further out knows a way too, if the cause itself has none.
        let way_out = links.iter().rev().map(|link| &link.way_out).find(|way_out| *way_out != WAIT).cloned();
        let mut says: Vec<String> = links.into_iter().map(|link| link.says).collect();
        if let Some(cause) = says.last_mut() {
            cause.push_str("; ");
            cause.push_str(way_out.as_deref().unwrap_or(WAIT));
        }
        Because { links: says, way_out, deadline }
    }

    /// What is behind a reason, nearest first.
    fn behind(&self, blocked: &Blocked) -> Vec<Link> {
        match blocked {
            Blocked::ControlPlaneBehind { .. } | Blocked::JoinsOtherMinor { .. } => {
                let first = self.first_of(Stage::ControlPlane, blocked);
                first.map_or_else(Vec::new, |next| self.with_behind(next))
            }
            Blocked::ControlPlaneUpdateRunning { .. } => self.attempt().into_iter().chain(self.moving()).collect(),
            Blocked::NoWorkloadApi => self.no_api().into_iter().chain(self.moving()).collect(),
            Blocked::WorkloadUnreachable { .. } | Blocked::EtcdUnhealthy { .. } => self.moving().into_iter().collect(),
            Blocked::PackageNotReady { .. } => self.unready_node().into_iter().chain(self.moving()).collect(),
            // A pool rolls until something about one of its machines is said beside that.
            Blocked::PoolRolling { .. } => {
                let first = self.first_of(Stage::Workers, blocked);
                first.map_or_else(|| self.unready_node().into_iter().collect(), |next| vec![Link::of(next)])
            }
            _ => Vec::new(),
        }
    }

    fn with_behind(&self, blocked: &Blocked) -> Vec<Link> {
        let mut links = vec![Link::of(blocked)];
        // The stage of the control plane does not wait for itself.
        if !matches!(blocked, Blocked::ControlPlaneBehind { .. } | Blocked::JoinsOtherMinor { .. }) {
            links.extend(self.behind(blocked));
        }
        links
    }

    /// What a stage waits for, other than for the same sort of thing.
    fn first_of(&self, stage: Stage, other_than: &Blocked) -> Option<&Blocked> {
        let stage = self.report.stages.iter().find(|report| report.stage == stage)?;
        let waits = (stage.state != StageState::Done).then_some(&stage.blocked)?;
        waits.iter().find(|blocked| blocked.reason() != other_than.reason())
    }

    /// How the attempts of the Job go, if one of them has failed.
    fn attempt(&self) -> Option<Link> {
        let job = self.inventory.control_plane.job.as_ref()?;
        let failed = match job.state {
            JobState::Active { failed_attempts } if failed_attempts > 0 => failed_attempts,
            JobState::Active { .. } | JobState::Complete | JobState::Failed { .. } => return None,
        };
        let ended = self.attempts.iter().rev().find(|attempt| attempt.exit_code.is_some_and(|code| code != 0));
        let said = ended.and_then(|attempt| attempt.message.as_deref()).map(|words| format!(": {words}"));
        let says = format!("{failed} of {ATTEMPTS_MAX} attempts have failed{}", said.unwrap_or_default());
        Some(Link {
            says,
            way_out: format!("kubectl -n vmware-system-tkg logs -l job-name={}", job.name),
            deadline: None,
        })
    }

    /// The machine of the control plane that is on its way, in or out, or is not well.
    fn moving(&self) -> Option<Link> {
        let machines = &self.inventory.control_plane.machines;
        // One that comes is what is waited for; one that goes is waited for when none comes.
        let coming = machines.iter().find(|machine| matches!(machine.state, MachineState::Joining { .. }));
        let unwell = || machines.iter().find(|machine| matches!(machine.state, MachineState::Unhealthy { .. }));
        let going = || machines.iter().find(|machine| matches!(machine.state, MachineState::Deleting { .. }));
        coming.or_else(unwell).and_then(moved).or_else(|| self.without_role()).or_else(|| going().and_then(moved))
    }

    /// The machine of the control plane that Cluster API is content with, and whose node is not one of the control plane yet:
    /// the Job waits for that label, and deletes nothing before.
    fn without_role(&self) -> Option<Link> {
        let nodes = self.inventory.reachable()?.nodes;
        let waits = |machine: &Machine| {
            let MachineState::Ready { node: name } = &machine.state else { return None };
            nodes.iter().find(|node| node.name == *name && !node.labelled)
        };
        let (machine, node) = self.inventory.control_plane.machines.iter().find_map(|it| Some((it, waits(it)?)))?;
        let (name, node) = (&machine.name, &node.name);
        Some(Link {
            says: format!("Machine {name} is on its way in: {NO_ROLE}"),
            way_out: format!("wait; if it lasts, look at the labels of the node {node} in the workload cluster"),
            deadline: machine.created.checked_add(MACHINE_TIMEOUT).ok(),
        })
    }

    /// What a cluster without an API does not have yet.
    fn no_api(&self) -> Option<Link> {
        match &self.inventory.cluster {
            ClusterState::Absent => Some(Link::wait("there is no Cluster yet".to_owned())),
            ClusterState::Present { infrastructure_ready: false, .. } => {
                Some(Link::of(&Blocked::InfrastructureNotReady))
            }
            ClusterState::Present { .. } if self.inventory.control_plane.machines.is_empty() => {
                Some(Link::wait("it has no machine in its control plane yet".to_owned()))
            }
            ClusterState::Present { .. } => None,
        }
    }

    fn unready_node(&self) -> Option<Link> {
        let workload = self.inventory.reachable()?;
        let node: &Node = workload.nodes.iter().find(|node| !node.ready)?;
        let says = format!("Node {} is not ready", node.name);
        let way_out =
            format!("wait; if it lasts, look at it in the workload cluster: kubectl describe node {}", node.name);
        Some(Link { says, way_out, deadline: None })
    }
}

/// A machine that is not ready, and by when it has to be.
fn moved(machine: &Machine) -> Option<Link> {
    let mut link = not_ready(machine).as_ref().map(Link::of)?;
    link.says = shown(machine);
    if matches!(machine.state, MachineState::Joining { .. }) {
        link.deadline = machine.created.checked_add(MACHINE_TIMEOUT).ok();
    }
    Some(link)
}

/// What a machine is in the middle of.
fn shown(machine: &Machine) -> String {
    let name = &machine.name;
    match &machine.state {
        MachineState::Joining { .. } => format!("Machine {name} is on its way in: {}", lacking(machine)),
        MachineState::Unhealthy { why, .. } => format!("Machine {name} is not well: {why}"),
        MachineState::Deleting { .. } => format!("Machine {name} is on its way out"),
        MachineState::Ready { .. } => format!("Machine {name} is ready"),
    }
}

/// What a machine does not have yet.
fn lacking(machine: &Machine) -> String {
    let lacks = match &machine.state {
        MachineState::Joining { awaits: Milestone::ProviderId } => {
            "it has no providerID yet, so nobody has made its machine"
        }
        MachineState::Joining { awaits: Milestone::Node } => "it has booted, and no node of it has come",
        MachineState::Joining { awaits: Milestone::Components } => "its node has come without all of its programs",
        MachineState::Joining { awaits: Milestone::RoleLabel } => NO_ROLE,
        MachineState::Unhealthy { why, .. } => why,
        MachineState::Deleting { .. } => "it is on its way out",
        MachineState::Ready { .. } => "it is ready",
    };
    lacks.to_owned()
}
