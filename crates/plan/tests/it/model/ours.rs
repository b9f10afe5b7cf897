//! What we do to a cluster: the steps of the real planner, and those of the real roll, done to a state.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;
use windlass_plan::check::{Severity, check};
use windlass_plan::gate::{Blocked, Gates};
use windlass_plan::planner::{self, Planned, Record as Recorded};
use windlass_plan::report::Assessment;
use windlass_plan::step::{Action, Step};

use super::era::Era;
use super::memory::Memory;
use super::moves::What;
use super::seen;
use super::state::{
    Asked, Awaits, Dns, Job, Life, Machine, Member, Package, Parts, Record, RecordState, Slot, State, Version,
};

/// What a plan comes to.
#[derive(Debug, Clone)]
pub struct View {
    /// What it puts on record.
    pub record: Option<What>,
    /// Its steps.
    pub steps: Vec<What>,
    /// The cluster is as it was asked to be, and well.
    pub at_rest: bool,
    /// Why not more, in one word each.
    pub reasons: Vec<&'static str>,
    /// What the second opinion would stop it for.
    pub findings: Vec<String>,
}

/// What was planned for a state, of which a slot may be hidden.
type Views = Memory<(State, Option<usize>), Rc<View>>;

/// The real planner, asked once about states that look the same to it.
pub struct Planner<'e> {
    era: &'e Era,
    gates: Gates,
    views: RefCell<Views>,
}

impl<'e> Planner<'e> {
    pub fn new(era: &'e Era, gates: Gates) -> Self {
        Self { era, gates, views: RefCell::default() }
    }

    /// How many different questions it was asked.
    pub fn asked(&self) -> usize {
        self.views.borrow().len()
    }

    /// What it plans for a state, of which a slot of the control plane could not be read if it is `hidden`.
    pub fn view(&self, state: &State, hidden: Option<usize>) -> Rc<View> {
        let visible = visible(state);
        if let Some(view) = self.views.borrow().get(&(visible, hidden)) {
            return Rc::clone(view);
        }
        let input = seen::planning_input(self.era, &visible, &self.gates, hidden);
        let planned = planner::plan(&input);
        let fatal = check(&input, &planned).into_iter().filter(|finding| finding.severity == Severity::Fatal);
        let findings = fatal.map(|finding| finding.to_string()).collect();
        let view = Rc::new(view(self.era, &visible, &planned, findings));
        self.views.borrow_mut().insert((visible, hidden), Rc::clone(&view));
        view
    }
}

/// A state with what no inventory shows left out.
fn visible(state: &State) -> State {
    let mut visible = *state;
    visible.asked = state.target();
    visible.prepared = false;
    visible.stale_endpoint = false;
    if let Job::Active { .. } = state.job {
        visible.job = Job::Active { failed_attempts: 0 };
    }
    for slot in &mut visible.slots {
        slot.parts = Parts::None;
        for machine in [&mut slot.old, &mut slot.new].into_iter().flatten() {
            (machine.leads, machine.overdue) = (false, false);
        }
    }
    let first = visible.machines().find(|(_, machine)| machine.member == Member::Voter).map(|(seat, _)| seat);
    if let Some(seat) = first {
        visible.machine(seat).leads = true;
    }
    visible
}

fn view(era: &Era, state: &State, planned: &Planned, findings: Vec<String>) -> View {
    let record = planned.record.as_ref().map(|record| match record {
        Recorded::Begin { to, from, envelope_digest, .. } => {
            let to = Asked {
                version: era.find(&to.distribution),
                control_plane: to.control_plane.count.try_into().unwrap(),
            };
            assert_eq!(*from, era.end(from_of(state)), "a state knows what an update was begun from");
            assert_eq!(envelope_digest, era.digest(from_of(state), to), "a state knows the envelope of an update");
            What::Begins { to }
        }
        Recorded::Resumed => What::Resumes,
        Recorded::Aborted => panic!("nobody gives up"),
        Recorded::Succeeded => What::Succeeds,
        Recorded::Failed { .. } => What::Fails,
    });
    let stages = &planned.report.stages;
    let reasons: Vec<&'static str> = stages.iter().flat_map(|stage| &stage.blocked).map(Blocked::reason).collect();
    let is_over = planned.record.is_none() && planned.steps.is_empty();
    View {
        at_rest: is_over && planned.report.assessment == Assessment::Running && planned.report.current().is_none(),
        steps: planned.steps.iter().filter_map(|step| name(era, state, step)).collect(),
        record,
        reasons,
        findings,
    }
}

/// What a cluster is when an update begins: its oldest version, and its size.
fn from_of(state: &State) -> Asked {
    let nodes = state.machines().filter(|(_, machine)| machine.is_node()).map(|(_, machine)| machine.version);
    let version = nodes.chain(state.workers().map(|worker| worker.version)).min().unwrap_or_default();
    let rows = state.slots.iter().filter(|slot| slot.old.is_some() || slot.new.is_some()).count();
    Asked { version, control_plane: rows.try_into().unwrap() }
}

/// What a step does to a state. What only others refer to (templates, configurations, infrastructure) comes and goes with
/// what refers to it.
fn name(era: &Era, state: &State, step: &Step) -> Option<What> {
    let text =
        |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let release = |name: &str, prefix: &str| {
        let is = |release: &&windlass_plan::release::Release| {
            name.strip_prefix(prefix).is_some_and(|rest| rest == release.distribution.label().to_string())
        };
        let found = era.releases.iter().find(is).unwrap_or_else(|| panic!("{name} is of no release"));
        era.find(found.distribution.as_str())
    };
    let kind = step.action.kind().to_owned();
    match (&step.action, kind.as_str()) {
        (Action::Apply { object, .. }, "Deployment") => {
            let image = text(object, "/spec/template/spec/containers/0/image");
            let is =
                |release: &windlass_plan::release::Release| image.ends_with(&release.coredns.as_ref().unwrap().tag);
            Some(What::AppliesDns(era.releases.iter().position(is).unwrap().try_into().unwrap()))
        }
        (Action::Apply { .. }, "DaemonSet") => Some(What::AppliesProxy(release(step.action.name(), "kube-proxy-"))),
        (Action::Delete { .. }, "DaemonSet") => Some(What::DeletesProxy(release(step.action.name(), "kube-proxy-"))),
        (Action::Create { .. }, "Job") => Some(What::CreatesJob),
        (Action::Create { .. }, "Machine") => {
            let slot = step.role.split('/').nth(1).unwrap().parse().unwrap();
            Some(What::CreatesMachine { slot })
        }
        (Action::Create { .. }, "MachineDeployment") => Some(What::CreatesPool),
        (Action::Apply { object, .. }, "MachineDeployment") => {
            let to = state.target().version;
            let [template, _] = era.templates(to, true);
            assert_eq!(text(object, "/spec/template/spec/version"), era.kubernetes(to).as_str());
            assert_eq!(text(object, "/spec/template/spec/infrastructureRef/name"), template.name.as_str());
            Some(What::SwitchesPool(to))
        }
        (_, "WCPMachineTemplate" | "KubeadmConfigTemplate" | "KubeadmConfig" | "WCPMachine") => None,
        _ => panic!("a step that no model knows: {step:?}"),
    }
}

/// The state after a step of a plan; `None` where its expectation does not hold any more. `planned_on` is what it was planned on.
pub fn execute(planned_on: &State, state: &State, what: What) -> Option<State> {
    let mut after = *state;
    let target = planned_on.target();
    match what {
        What::Begins { to } => begin(&mut after, to),
        What::Resumes => after.record.as_mut()?.state = RecordState::Running,
        What::Fails => after.record.as_mut()?.state = RecordState::Failed,
        What::Succeeds => after.record.as_mut()?.state = RecordState::Succeeded,
        What::AppliesDns(_) | What::AppliesProxy(_) | What::DeletesProxy(_) if !state.answers => return None,
        What::AppliesDns(version) if state.dns.version == version && state.dns.is != Package::Absent => {}
        What::AppliesDns(version) => after.dns = Dns { version, is: Package::Unseen },
        What::AppliesProxy(version) => {
            let proxy = &mut after.proxies[usize::from(version)];
            if *proxy == Package::Absent {
                *proxy = Package::Unseen;
            }
        }
        What::DeletesProxy(version) => {
            let version = usize::from(version);
            if state.proxies[version] != planned_on.proxies[version] {
                return None;
            }
            after.proxies[version] = Package::Absent;
        }
        What::CreatesJob if state.job == Job::None => after.job = Job::Active { failed_attempts: 0 },
        What::CreatesMachine { slot } => {
            let is_of_record = state.record.is_some();
            let place = if is_of_record { &mut after.slots[slot].new } else { &mut after.slots[slot].old };
            if place.is_some() {
                return None;
            }
            *place = Some(new_machine(target.version));
        }
        What::CreatesPool if !state.pool.exists => {
            (after.pool.exists, after.pool.observed) = (true, false);
            (after.pool.version, after.pool.is_of_record) = (target.version, state.record.is_some());
        }
        What::SwitchesPool(version) if state.pool == planned_on.pool => {
            (after.pool.version, after.pool.is_of_record, after.pool.observed) = (version, true, false);
        }
        _ => return None,
    }
    Some(after)
}

/// A machine as it is created.
pub fn new_machine(version: Version) -> Machine {
    Machine {
        version,
        life: Life::Joining(Awaits::Node),
        member: Member::None,
        leads: false,
        marked: false,
        overdue: false,
    }
}

/// Another update is on record: what the last one made is from now on what there was.
fn begin(state: &mut State, to: Asked) {
    let from = from_of(state);
    state.record = Some(Record { from, to, state: RecordState::Running });
    (state.job, state.prepared) = (Job::None, false);
    state.pool.is_of_record = false;
    for slot in &mut state.slots {
        assert!(slot.old.is_none() || slot.new.is_none(), "no update begins while another has a machine half replaced");
        *slot = Slot { old: slot.old.or(slot.new), new: None, parts: Parts::None };
    }
}
