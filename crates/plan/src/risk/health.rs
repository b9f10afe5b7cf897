//! What is not well already: nodes, machines, members of etcd.

use std::cmp::Ordering;

use windlass_api::version::facts;

use super::evidence::{Evidence, Machine, Member, Node};
use super::{Found, Risk, RiskId, Severity, count};

pub(super) fn check(evidence: &Evidence, found: &mut Found) {
    if !evidence.rolls.any() {
        return;
    }
    let nodes = found.read(&[RiskId::NodeUnhealthy], &evidence.nodes);
    let machines = found.read(&[RiskId::NodeUnhealthy], &evidence.machines);
    for node in nodes.iter().filter(|node| !node.unwell.is_empty() || node.cordoned) {
        found.raise(unwell(node, machines, evidence));
    }
    for machine in machines.iter().filter(|machine| !machine.deleting && machine.node.is_none()) {
        found.raise(without_node(machine, evidence));
    }
    etcd(evidence, found);
}

fn unwell(node: &Node, machines: &[Machine], evidence: &Evidence) -> Risk {
    let machine = machines.iter().find(|machine| machine.node.as_ref() == Some(&node.name));
    let mut because: Vec<String> = node.unwell.clone();
    if node.cordoned {
        because.push("it is cordoned: nothing new is put on it".to_owned());
    }
    let checks = evidence.health_checks.read().into_iter().flatten();
    let check = machine.and_then(|machine| checks.clone().find(|check| check.machines.contains(&machine.name)));
    because.extend(check.map(|check| format!("MachineHealthCheck {} may replace it beside the update", check.name)));
    let what = if node.unwell.is_empty() { "it takes no pods" } else { "it is not well" };
    let (severity, message) = match (node.control_plane && !node.unwell.is_empty(), evidence.rolls.control_plane) {
        (true, true) => {
            (Severity::Blocks, format!("{what}, and a control plane is changed only while all of its nodes are well"))
        }
        (_, _) if node.unwell.is_empty() => {
            (Severity::Risky, format!("{what}: pods of nodes that are drained have one node less to go to"))
        }
        (_, _) => (Severity::Risky, format!("{what}: what is on it may not move, and its pool may not come to an end")),
    };
    Risk {
        severity,
        id: RiskId::NodeUnhealthy,
        object: format!("Node {}", node.name),
        message,
        because,
        way_out: if node.unwell.is_empty() {
            format!("kubectl uncordon {}", node.name)
        } else {
            match machine.filter(|machine| !machine.control_plane) {
                Some(machine) => {
                    format!("kubectl describe node {}; or kubectl delete machine {}", node.name, machine.name)
                }
                None => format!("kubectl describe node {}", node.name),
            }
        },
    }
}

fn without_node(machine: &Machine, evidence: &Evidence) -> Risk {
    let blocks = machine.control_plane && evidence.rolls.control_plane;
    Risk {
        severity: if blocks { Severity::Blocks } else { Severity::Risky },
        id: RiskId::NodeUnhealthy,
        object: format!("Machine {}/{}", evidence.cluster.namespace, machine.name),
        message: format!("it has no node, and Cluster API says that it is {}", machine.phase),
        because: Vec::new(),
        way_out: format!("kubectl -n {} describe machine {}", evidence.cluster.namespace, machine.name),
    }
}

fn etcd(evidence: &Evidence, found: &mut Found) {
    let members = found.read(&[RiskId::EtcdUnhealthy], &evidence.members);
    let quorum = Quorum::of(members);
    for member in members {
        let what = match member {
            Member { name, .. } if name.is_empty() => "it has never started",
            Member { healthy: false, .. } => "it does not answer",
            Member { learner: true, .. } => "it does not vote yet",
            _ => continue,
        };
        found.raise(sick(member, what, &quorum, evidence));
    }
    for member in members {
        let Some(alarms) = found.read_one(&[RiskId::EtcdUnhealthy], &member.alarms) else { continue };
        for alarm in alarms {
            found.raise(Risk {
                severity: severity(evidence),
                id: RiskId::EtcdUnhealthy,
                object: format!("Member {}", member.shown()),
                message: format!("it raises an alarm: {alarm}; nothing changes in a control plane while it does"),
                because: Vec::new(),
                way_out: "etcdctl defrag and etcdctl alarm disarm, once there is space and the data is sound"
                    .to_owned(),
            });
        }
    }
}

fn severity(evidence: &Evidence) -> Severity {
    if evidence.rolls.control_plane { Severity::Blocks } else { Severity::Risky }
}

/// How many members vote, and how many of those answer.
struct Quorum {
    voters: usize,
    answer: usize,
}

impl Quorum {
    fn of(members: &[Member]) -> Self {
        let voters = || members.iter().filter(|member| !member.learner);
        let answer = voters().filter(|member| member.healthy && !member.name.is_empty()).count();
        Self { voters: voters().count(), answer }
    }

    fn need(voters: usize) -> usize {
        voters / 2 + 1
    }

    /// What becomes of the quorum when the first machine of a control plane is replaced, and why.
    fn rolled(&self, evidence: &Evidence) -> (&'static str, String) {
        let Self { voters, answer } = self;
        let next = voters + 1;
        let need = Quorum::need(next);
        let to = evidence.to.read().map(|to| &to.kubernetes);
        // A learner does not vote before it has caught up.
        let (starts, until) = match to {
            Some(to) if facts::joins_etcd_as_learner(to) => (1, "once it has caught up"),
            Some(_) | None => (0, "until it has started"),
        };
        let answer = answer + starts;
        let effect = match answer.cmp(&need) {
            Ordering::Less => "the roll of the control plane would lose the quorum of etcd",
            Ordering::Equal => "the roll of the control plane would leave etcd no voter to spare",
            Ordering::Greater => "the control plane is not rolled before it has left etcd, or is well",
        };
        let why = format!(
            "the first new machine makes it {next} voters, of which {need} have to answer: {answer} {} {until}",
            if answer == 1 { "does" } else { "do" }
        );
        (effect, why)
    }
}

fn sick(member: &Member, what: &str, quorum: &Quorum, evidence: &Evidence) -> Risk {
    let Quorum { voters, answer } = quorum;
    let need = Quorum::need(*voters);
    let (answers, have) = (if *answer == 1 { "answers" } else { "answer" }, if need == 1 { "has" } else { "have" });
    let mut because = vec![format!("{answer} of {} {answers}, and {need} {have} to", count(*voters, "voter"))];
    let mut message = what.to_owned();
    if evidence.rolls.control_plane {
        let (effect, why) = quorum.rolled(evidence);
        message = format!("{what}: {effect}");
        because.push(why);
    }
    Risk {
        severity: severity(evidence),
        id: RiskId::EtcdUnhealthy,
        object: format!("Member {}", member.shown()),
        message,
        because,
        way_out: if member.learner || member.name.is_empty() {
            format!("wait; if it lasts, etcdctl member remove {:x}, once its machine is gone", member.id)
        } else {
            format!(
                "kubectl -n kube-system logs etcd-{0}; if it stays dead, etcdctl member remove {1:x}",
                member.name, member.id
            )
        },
    }
}
