//! What goes wrong below: machines, nodes, etcd, the way to the workload cluster, pods. Each from the moment of a write on.

use windlass_sim::fault::{
    EtcdFault, Fault, InfrastructureFault, LoadBalancerFault, MachineFault, NodeFault, Pattern, Requests, Silence,
    Span, When, Whom,
};

use super::{Course, Kind, at};
use crate::sweep::plan::{Expect, Plan};

/// The kinds.
pub(super) const ALL: [Kind; 18] = [
    at("F19", "boots-late", "the next machine boots 20 minutes late", |course, numbers| {
        let how = MachineFault::BootsLate { by: Span::minutes(20) };
        next(course, numbers, Expect::Explained, Fault::Machine { of: Whom::default(), how })
    }),
    at("F19", "never-boots", "the next machine does not boot for half an hour", |course, numbers| {
        let fault = Fault::Machine { of: Whom::default(), how: MachineFault::NeverBoots };
        let plan = next(course, numbers, Expect::Explained, fault)?;
        Some(lasting(plan, Span::minutes(30)))
    }),
    at("F19", "vanishes", "the next machine vanishes a minute after it has booted", |course, numbers| {
        let how = MachineFault::Vanishes { after: Span::minutes(1) };
        next(course, numbers, Expect::Explained, Fault::Machine { of: Whom::default(), how })
    }),
    at("F20", "node-lost", "a node is not heard of for five minutes", |course, numbers| {
        one_for(course, numbers, 5, Fault::Node { of: Whom::default(), how: NodeFault::NotReady })
    }),
    at("F20", "node-flaps", "a node is not ready and ready again for ten minutes", |course, numbers| {
        let how = NodeFault::Flaps { every: Span::seconds(45) };
        one_for(course, numbers, 10, Fault::Node { of: Whom::default(), how })
    }),
    at("F20", "late-labels", "the next node gets its labels five minutes late", |course, numbers| {
        let how = NodeFault::LateLabels { by: Span::minutes(5) };
        next(course, numbers, Expect::Alike, Fault::Node { of: Whom::default(), how })
    }),
    at("F21", "join", "the next machine of the control plane adds a member to etcd, and fails", |course, numbers| {
        next(course, numbers, Expect::Explained, Fault::JoinFails { of: Whom::default() })
    }),
    at("F22", "member-cut-off", "a member of etcd does not reach the others for five minutes", |course, numbers| {
        one_for(course, numbers, 5, Fault::Etcd { of: Whom::default(), how: EtcdFault::CutOff })
    }),
    at("F22", "leader-flaps", "another member of etcd leads every 20 seconds, for ten minutes", |course, numbers| {
        let how = EtcdFault::LeaderFlaps { every: Span::seconds(20) };
        all_for(course, numbers, 10, Fault::Etcd { of: Whom::default(), how })
    }),
    at("F22", "no-space", "a member of etcd has no space left for five minutes", |course, numbers| {
        one_for(course, numbers, 5, Fault::Etcd { of: Whom::default(), how: EtcdFault::NoSpace })
    }),
    at("F22", "move-refused", "nobody else can be made to lead etcd for ten minutes", |course, numbers| {
        all_for(course, numbers, 10, Fault::Etcd { of: Whom::default(), how: EtcdFault::MoveRefused })
    }),
    at("F26", "unreachable", "the workload cluster is out of reach for five minutes", |course, numbers| {
        let (clusters, on) = (Pattern::default(), Requests::default());
        all_for(course, numbers, 5, Fault::Unreachable { clusters, on, how: Silence::Refused })
    }),
    at(
        "F27",
        "dead-backend",
        "the load balancer leads to a machine that is gone, for ten minutes",
        |course, numbers| {
            let how = LoadBalancerFault::DeadBackend;
            all_for(course, numbers, 10, Fault::LoadBalancer { clusters: Pattern::default(), how })
        },
    ),
    at("F28", "pods-restart", "the pods of kube-proxy are restarted", |course, numbers| {
        let fault = Fault::PodRestart { of: Whom::named("kube-system/kube-proxy*"), nodes: Pattern::default() };
        all_for(course, numbers, 5, fault)
    }),
    at(
        "F29",
        "network-crashes",
        "the pods of the network end as soon as they start, for five minutes",
        |course, numbers| {
            let has_packages = course.subject.drive.classes().is_some();
            let fault = Fault::CrashLoop { of: Whom::named("kube-system/antrea-*") };
            has_packages.then(|| all_for(course, numbers, 5, fault)).flatten()
        },
    ),
    at("F30", "finalizer-stays", "a machine is gone, and its object stays for ten minutes", |course, numbers| {
        let plan = next(course, numbers, Expect::Alike, Fault::FinalizerStays { of: Whom::default() })?;
        Some(lasting(plan, Span::minutes(10)))
    }),
    at("F36", "throttled", "the infrastructure makes no machines for ten minutes", |course, numbers| {
        let how = InfrastructureFault::Throttled;
        all_for(course, numbers, 10, Fault::Infrastructure { of: Whom::default(), how })
    }),
    at("F36", "half-made", "the next machine is made without a disk", |course, numbers| {
        let how = InfrastructureFault::Partial;
        next(course, numbers, Expect::Explained, Fault::Infrastructure { of: Whom::default(), how })
    }),
];

/// It happens to the first that comes by from the moment of this write on.
fn next(course: &Course<'_>, numbers: &[u64], expect: Expect, fault: Fault) -> Option<Plan> {
    let when = When { times: Some(1), ..When::from(course.at(*numbers.first()?)?) };
    Some(Plan::fault(expect, fault, when))
}

/// It ends so long after it has bitten.
fn lasting(mut plan: Plan, lasts: Span) -> Plan {
    for injection in &mut plan.scenario.faults {
        injection.when = injection.when.lasting(lasts);
    }
    plan
}

/// It happens to one of them, for so many minutes.
fn one_for(course: &Course<'_>, numbers: &[u64], minutes: u64, fault: Fault) -> Option<Plan> {
    let when = When { times: Some(1), ..during(course, numbers, minutes)? };
    Some(Plan::fault(Expect::Alike, fault, when))
}

/// It happens to all of them, for so many minutes.
fn all_for(course: &Course<'_>, numbers: &[u64], minutes: u64, fault: Fault) -> Option<Plan> {
    Some(Plan::fault(Expect::Alike, fault, during(course, numbers, minutes)?))
}

fn during(course: &Course<'_>, numbers: &[u64], minutes: u64) -> Option<When> {
    let begins = course.at(*numbers.first()?)?;
    Some(When::between(begins, begins.and(Span::minutes(minutes))))
}
