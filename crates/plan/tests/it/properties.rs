//! What holds for any cluster at any time, however odd.

use std::sync::LazyLock;

use proptest::prelude::*;
use windlass_api::name::UpdateId;
use windlass_api::version::KubernetesVersion;
use windlass_plan::check::{Severity, check};
use windlass_plan::gate::{Gate, Gates};
use windlass_plan::inventory::{
    Alarm, ClusterState, EtcdMember, Gap, Job, JobState, MachineState, Milestone, UpdateRecordState, Workload,
};
use windlass_plan::planner::plan;
use windlass_plan::report::StageState;
use windlass_plan::step::Action;

use crate::fake::Fake;
use crate::sample::target;

/// Something that goes wrong, or is changed by somebody else.
#[derive(Debug, Clone)]
enum Mishap {
    MachineLost(usize),
    MachineState(usize, u8),
    MachineVersion(usize, &'static str),
    MachineForeign(usize),
    InfrastructureGone(usize),
    Job(u8, bool),
    SecretLost,
    Paused,
    Gap,
    Api(bool),
    Record(UpdateRecordState),
    PoolLost,
    PoolVersion(&'static str),
    TemplateLost,
    NodeUnlabelled(usize),
    EtcdSick(usize),
    EtcdLearner(usize),
    EtcdUnstarted(usize),
    EtcdAlarm(usize),
    EtcdVersion(usize, &'static str),
    EtcdGhost,
    KubeletOld(usize, &'static str),
    Relabelled(usize),
    ProxyUnbound,
    MachineMarked(usize, bool),
    Retarget,
    AddonMangled(usize),
    Target(&'static str),
    WorkerCount(u32),
}

const VERSIONS: [&str; 4] = ["v1.15.5", "v1.16.7", "v1.16.8", "v1.17.4"];

fn mishap() -> impl Strategy<Value = Mishap> {
    let version = || prop::sample::select(&VERSIONS[..]);
    let state = prop::sample::select(
        &[UpdateRecordState::Running, UpdateRecordState::Succeeded, UpdateRecordState::Failed][..],
    );
    let first = prop_oneof![
        (0..4usize).prop_map(Mishap::MachineLost),
        (0..4usize, 0..4u8).prop_map(|(which, state)| Mishap::MachineState(which, state)),
        (0..4usize, version()).prop_map(|(which, version)| Mishap::MachineVersion(which, version)),
        (0..4usize).prop_map(Mishap::MachineForeign),
        (0..4usize).prop_map(Mishap::InfrastructureGone),
        (0..4u8, any::<bool>()).prop_map(|(state, ours)| Mishap::Job(state, ours)),
        Just(Mishap::SecretLost),
        Just(Mishap::Paused),
        Just(Mishap::Gap),
    ];
    let second = prop_oneof![
        any::<bool>().prop_map(Mishap::Api),
        state.prop_map(Mishap::Record),
        Just(Mishap::PoolLost),
        version().prop_map(Mishap::PoolVersion),
        Just(Mishap::TemplateLost),
        (0..5usize).prop_map(Mishap::NodeUnlabelled),
        (0..3usize).prop_map(Mishap::EtcdSick),
        (0..4usize).prop_map(Mishap::AddonMangled),
        version().prop_map(Mishap::Target),
        (0..4u32).prop_map(Mishap::WorkerCount),
    ];
    let member = || 0..3usize;
    let third = prop_oneof![
        member().prop_map(Mishap::EtcdLearner),
        member().prop_map(Mishap::EtcdUnstarted),
        member().prop_map(Mishap::EtcdAlarm),
        (member(), prop::sample::select(&["v3.1.20", "v3.2.24", "v3.3.10", "v3.4.3"][..]))
            .prop_map(|(which, version)| Mishap::EtcdVersion(which, version)),
        Just(Mishap::EtcdGhost),
        (0..5usize, prop::sample::select(&["v1.12.3", "v1.13.9", "v1.14.10"][..]))
            .prop_map(|(which, version)| Mishap::KubeletOld(which, version)),
        (0..5usize).prop_map(Mishap::Relabelled),
        Just(Mishap::ProxyUnbound),
        (0..4usize, any::<bool>()).prop_map(|(which, ours)| Mishap::MachineMarked(which, ours)),
        Just(Mishap::Retarget),
    ];
    prop_oneof![first, second, third]
}

impl Mishap {
    fn befall(&self, fake: &mut Fake) {
        if let Self::Target(version) = self {
            let counts = (fake.target.control_plane.count, fake.target.pools[0].machines.count);
            fake.target = target(counts.0, counts.1, version);
            return;
        }
        self.befall_machines(fake);
        self.befall_workload(fake);
        self.befall_addons(fake);
        let inventory = &mut fake.inventory;
        match self {
            Self::Retarget => fake.target.control_plane.class = "best-effort-large".parse().ok(),
            Self::SecretLost => drop(inventory.secrets.pop_first()),
            Self::Paused => {
                if let ClusterState::Present { paused, .. } = &mut inventory.cluster {
                    *paused = Some("by hand".to_owned());
                }
            }
            Self::Gap => inventory.gaps.push(Gap { object: "Machine/x".to_owned(), why: "forbidden".to_owned() }),
            Self::Record(state) => inventory.update.iter_mut().for_each(|record| record.state = *state),
            Self::WorkerCount(count) => inventory.pools.values_mut().for_each(|pool| pool.replicas = *count),
            Self::PoolLost => inventory.pools.clear(),
            Self::PoolVersion(version) => {
                inventory.pools.values_mut().for_each(|pool| pool.version = version.parse().unwrap());
            }
            Self::TemplateLost => {
                inventory.pools.values_mut().for_each(|pool| pool.infrastructure_template.spec = None);
            }
            _ => {}
        }
    }

    fn befall_machines(&self, fake: &mut Fake) {
        let update = fake.update();
        let control_plane = &mut fake.inventory.control_plane;
        match self {
            Self::MachineLost(which) if *which < control_plane.machines.len() => {
                control_plane.machines.remove(*which);
            }
            Self::Job(state, ours) => {
                let other = UpdateId::new(&fake.target.cluster.uid, 99);
                let update = update.filter(|_| *ours).unwrap_or(other);
                let state = match state {
                    0 => None,
                    1 => Some(JobState::Active { failed_attempts: 1 }),
                    2 => Some(JobState::Complete),
                    _ => Some(JobState::Failed { message: "timed out".to_owned() }),
                };
                control_plane.job = state.map(|state| Job { name: update.job_name(), update, state });
            }
            _ => {}
        }
        let (Self::MachineState(which, _)
        | Self::MachineVersion(which, _)
        | Self::MachineForeign(which)
        | Self::MachineMarked(which, _)
        | Self::InfrastructureGone(which)) = self
        else {
            return;
        };
        let Some(machine) = control_plane.machines.get_mut(*which) else { return };
        match self {
            Self::MachineState(_, state) => {
                let node = machine.name.as_str().parse().unwrap();
                machine.state = match state {
                    0 => MachineState::Joining { awaits: Milestone::Node },
                    1 => MachineState::Deleting { node: Some(node) },
                    2 => MachineState::Unhealthy { node, why: "no heartbeat".to_owned() },
                    _ => MachineState::Ready { node },
                };
            }
            Self::MachineVersion(_, version) => machine.version = format!("{version}+vmware.1").parse().unwrap(),
            Self::MachineForeign(_) => machine.base = None,
            Self::MachineMarked(_, ours) => machine.update = update.filter(|_| *ours).or("99".parse().ok()),
            _ => (machine.image, machine.class, machine.storage_class) = (None, None, None),
        }
    }

    fn befall_workload(&self, fake: &mut Fake) {
        let workload = &mut fake.inventory.workload;
        match (self, &mut *workload) {
            (Self::Api(true), _) => *workload = Workload::Unreachable { why: "connection refused".to_owned() },
            (Self::Api(false), _) => *workload = Workload::NotYet,
            (Self::NodeUnlabelled(which), Workload::Reachable { nodes, .. }) => {
                nodes.get_mut(*which).into_iter().for_each(|node| node.distribution = None);
            }
            (Self::ProxyUnbound, Workload::Reachable { addons, .. }) => {
                let proxies = addons.iter_mut().filter(|(addon, _)| addon.as_str() == "kube-proxy");
                for found in proxies.flat_map(|(_, found)| found) {
                    if let Some(selector) = found.live.pointer_mut("/spec/template/spec/nodeSelector") {
                        *selector = serde_json::json!({});
                    }
                }
            }
            (Self::KubeletOld(which, version), Workload::Reachable { nodes, .. }) => {
                nodes.get_mut(*which).into_iter().for_each(|node| node.kubelet = version.parse().unwrap());
            }
            (Self::Relabelled(which), Workload::Reachable { nodes, .. }) => {
                let distribution = &fake.target.release.distribution;
                nodes.get_mut(*which).into_iter().for_each(|node| node.distribution = Some(distribution.clone()));
            }
            (_, Workload::Reachable { etcd, .. }) => self.befall_etcd(etcd),
            _ => {}
        }
    }

    fn befall_etcd(&self, etcd: &mut Vec<EtcdMember>) {
        let which = match self {
            Self::EtcdSick(which)
            | Self::EtcdLearner(which)
            | Self::EtcdUnstarted(which)
            | Self::EtcdAlarm(which)
            | Self::EtcdVersion(which, _) => *which,
            Self::EtcdGhost => 0,
            _ => return,
        };
        let Some(member) = etcd.get_mut(which) else { return };
        match self {
            Self::EtcdLearner(_) => member.learner = true,
            Self::EtcdUnstarted(_) => (member.name, member.healthy) = (String::new(), false),
            Self::EtcdAlarm(_) => member.alarms = [Alarm::NoSpace].into(),
            Self::EtcdVersion(_, version) => member.version = version.parse().ok(),
            Self::EtcdGhost => {
                let ghost = EtcdMember { id: 99, name: "ghost".to_owned(), leader: false, ..member.clone() };
                etcd.push(ghost);
            }
            _ => member.healthy = false,
        }
    }

    fn befall_addons(&self, fake: &mut Fake) {
        if let (Self::AddonMangled(which), Workload::Reachable { addons, .. }) = (self, &mut fake.inventory.workload)
            && let Some(found) = addons.values_mut().flatten().nth(*which)
        {
            found.live["spec"] = "nonsense".into();
        }
    }
}

/// The lives of clusters of several sizes: creation and upgrade, one state after each plan.
static LIVES: LazyLock<Vec<Vec<Fake>>> = LazyLock::new(|| {
    let sizes = [(1, 0), (1, 1), (1, 2), (3, 0), (3, 1), (3, 2)];
    sizes.map(|(control_plane, workers)| life(control_plane, workers)).into()
});

fn life(control_plane: u32, workers: u32) -> Vec<Fake> {
    let mut fake = Fake::new(target(control_plane, workers, "v1.15.5"));
    let mut states = Vec::new();
    for version in ["v1.15.5", "v1.16.7"] {
        fake.target = target(control_plane, workers, version);
        loop {
            states.push(fake.clone());
            let planned = plan(&fake.input());
            planned.record.iter().for_each(|record| fake.record(record));
            planned.steps.iter().for_each(|step| fake.execute(step));
            if fake.tick().is_none() && planned.record.is_none() && planned.steps.is_empty() {
                break;
            }
        }
    }
    states
}

/// A state of a cluster's life, and what befalls it then.
fn odd_cluster(life: usize, moment: prop::sample::Index, mishaps: &[Mishap]) -> Fake {
    let mut fake = moment.get(&LIVES[life]).clone();
    for mishap in mishaps {
        let update = fake.inventory.update.as_ref();
        let running = update.is_some_and(|record| record.state == UpdateRecordState::Running);
        // The target of an update that was begun never changes: the controller sees to it.
        if !(running && matches!(mishap, Mishap::Target(_) | Mishap::Record(_))) {
            mishap.befall(&mut fake);
        }
    }
    fake
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_is_never_worse_than_waiting(
        life in 0..6usize,
        moment in any::<prop::sample::Index>(),
        mishaps in prop::collection::vec(mishap(), 0..4),
    ) {
        let fake = odd_cluster(life, moment, &mishaps);
        let input = fake.input();
        let planned = plan(&input);

        let oldest = input.inventory.control_plane.machines.iter().map(|machine| &machine.version).min();
        for step in &planned.steps {
            let (Action::Create { object } | Action::Apply { object, .. }) = &step.action else { continue };
            let version = object["spec"]["template"]["spec"]["version"].as_str();
            if let (Some(version), Some(oldest)) = (version, oldest) {
                prop_assert!(version.parse::<KubernetesVersion>().unwrap() <= *oldest, "{step:?}");
            }
        }
        for stage in &planned.report.stages {
            prop_assert!(stage.state != StageState::Waiting || !stage.blocked.is_empty(), "{stage:?}");
        }
        let findings = check(&input, &planned);
        prop_assert!(findings.is_empty(), "{findings:#?}");
    }
}

/// Without the gate, after the mishap, the plan at some moment of the cluster's life is one that the second opinion
/// complains about.
fn check_broken(left_out: Gate, mishap: Option<&Mishap>, id: &str) {
    let found = LIVES[4].iter().cloned().find_map(|mut fake| {
        if let Some(mishap) = mishap {
            mishap.befall(&mut fake);
        }
        let mut input = fake.input();
        input.gates = Gates::without(&[left_out]);
        let planned = plan(&input);
        let warning = check(&input, &planned).into_iter().find(|finding| finding.id == id)?;
        input.gates = Gates::all();
        let fatal = check(&input, &planned).into_iter().find(|finding| finding.id == id)?;
        Some((warning.severity, fatal.severity))
    });
    assert_eq!(found, Some((Severity::Warning, Severity::Fatal)), "{left_out} is what keeps {id}");
}

#[test]
fn without_its_gate_an_order_is_broken_and_the_second_opinion_says_so() {
    check_broken(Gate::PackagesFirst, None, "D1");
    check_broken(Gate::WorkerOrder, None, "V1");
    check_broken(Gate::VersionPath, Some(&Mishap::Target("v1.17.4")), "V6");
    check_broken(Gate::KubeletsNotTooOld, Some(&Mishap::KubeletOld(3, "v1.13.9")), "V7");
    check_broken(Gate::ProxyNotAhead, Some(&Mishap::ProxyUnbound), "V5");
    check_broken(Gate::EtcdStep, Some(&Mishap::EtcdVersion(0, "v3.1.20")), "V10");
    check_broken(Gate::OneMemberChange, Some(&Mishap::EtcdLearner(0)), "E3");
    check_broken(Gate::MembersAreMachines, Some(&Mishap::EtcdGhost), "E8");
    check_broken(Gate::NoAlarms, Some(&Mishap::EtcdAlarm(0)), "E13");
    check_broken(Gate::ControlPlaneHealthy, Some(&Mishap::MachineState(0, 2)), "C2");
    check_broken(Gate::OneAttempt, Some(&Mishap::MachineMarked(0, false)), "C4");
    check_broken(Gate::NoRetarget, Some(&Mishap::Retarget), "C7");
    check_broken(Gate::OneMachineAtATime, Some(&Mishap::MachineState(0, 0)), "C1");
    check_broken(Gate::OneControlPlaneUpdate, Some(&Mishap::Job(3, false)), "C5");
    check_broken(Gate::CertificatesPresent, Some(&Mishap::SecretLost), "C9");
    check_broken(Gate::NotPaused, Some(&Mishap::Paused), "D4");
}
