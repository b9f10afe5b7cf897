//! Which part of a topology may have which version now: the control plane first, then the pools in their order, a few at a time.

use std::collections::{BTreeMap, BTreeSet};

use windlass_api::hook::HookName;

use super::upgrade_plan;
use crate::management::contract::ControlPlaneState;
use crate::management::extension::Reply;

/// What the decision goes by.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// The version that the topology asks for.
    pub target: String,
    /// Nothing where none is there yet.
    pub control_plane: Option<ControlPlane>,
    /// The pools in the order of the topology.
    pub pools: Vec<Pool>,
    /// How many pools may be on their way at a time.
    pub concurrency: usize,
    /// The annotations that hold an upgrade before it begins.
    pub holds: Vec<String>,
    /// The questions that are still to be asked about an upgrade that has begun.
    pub pending: BTreeSet<String>,
    /// A step of an upgrade is under way.
    pub stepping: bool,
    /// What was answered so far.
    pub replies: BTreeMap<HookName, Reply>,
    /// The versions of the class.
    pub offered: Vec<String>,
}

impl State {
    /// An upgrade has begun and is not over.
    fn begun(&self) -> bool {
        self.is_pending(HookName::AfterClusterUpgrade) && self.stepping
    }

    pub(super) fn is_pending(&self, hook: HookName) -> bool {
        self.pending.contains(hook.as_str())
    }

    /// Whether a question was answered with: go on.
    pub(super) fn is_open(&self, hook: HookName) -> bool {
        matches!(self.replies.get(&hook), Some(Reply::Open(_)))
    }

    /// Whether a question lets the upgrade pass. One that was not asked yet is to be asked now.
    fn passes(&self, hook: HookName, decision: &mut Decision) -> bool {
        match self.replies.get(&hook) {
            Some(Reply::Open(_)) => true,
            Some(Reply::Held { message, .. }) => {
                decision.blocked.get_or_insert_with(|| format!("{hook}: {message}"));
                false
            }
            None => {
                decision.asks.get_or_insert(hook);
                false
            }
        }
    }

    fn is_pending_and_not_open(&self, hook: HookName) -> bool {
        self.is_pending(hook) && !self.is_open(hook)
    }

    /// The same for a question that is asked only where it is pending.
    fn passes_if_pending(&self, hook: HookName, decision: &mut Decision) -> bool {
        !self.is_pending(hook) || self.passes(hook, decision)
    }
}

/// A control plane that is there.
#[derive(Debug, Clone)]
pub(super) struct ControlPlane {
    pub version: String,
    pub state: ControlPlaneState,
}

/// A pool.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    /// The name in the topology.
    pub name: String,
    /// The version that it was asked for; nothing where it is not there yet.
    pub version: Option<String>,
    /// Some of its machines have another version.
    pub upgrading: bool,
    /// Whether somebody holds it back.
    pub hold: Hold,
}

/// Whether somebody holds a pool back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    None,
    /// This pool alone.
    Defer,
    /// This pool and all after it.
    Sequence,
}

/// What becomes of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Move {
    /// It is made, or brought in line, at this version.
    To(String),
    /// Nothing of it is changed, not even what has nothing to do with versions.
    Wait,
}

/// What becomes of all parts, and what is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub control_plane: Move,
    /// In the order of the topology.
    pub pools: Vec<Move>,
    /// The control plane takes another version now, or is on its way to it.
    pub control_plane_upgrading: bool,
    /// The versions that are ahead of the control plane.
    pub control_plane_plan: Vec<String>,
    /// The versions that are ahead of the pools.
    pub workers_plan: Vec<String>,
    /// The pools, by what is told of them.
    pub upgrading: Vec<String>,
    pub pending: Vec<String>,
    pub deferred: Vec<String>,
    pub pending_create: Vec<String>,
    /// What holds the upgrade before it begins.
    pub blocked: Option<String>,
    /// The control plane takes another version now.
    pub begins: Option<String>,
    /// What has to be asked before it can be decided to the end.
    pub asks: Option<HookName>,
}

impl Decision {
    /// Whether anything of the topology is not at its version, or not there for that reason.
    pub(super) fn is_upgrading(&self) -> bool {
        self.control_plane_upgrading
            || !self.control_plane_plan.is_empty()
            || [&self.upgrading, &self.pending, &self.deferred, &self.pending_create]
                .iter()
                .any(|pools| !pools.is_empty())
    }
}

/// Decides.
pub(super) fn decide(state: &State) -> Decision {
    let seen = state.control_plane.as_ref();
    let ahead = seen.map(|seen| upgrade_plan::control_plane(&seen.version, &state.target, &state.offered));
    let ahead = ahead.unwrap_or_default();
    let mut decision = control_plane(state, &ahead);
    pools(state, &ahead, &mut decision);
    finish(state, &mut decision);
    decision
}

/// The questions after all others: whether the workers are done with, and the whole.
fn finish(state: &State, decision: &mut Decision) {
    let stable = state.control_plane.as_ref().is_some_and(|seen| seen.state == ControlPlaneState::Stable);
    let waits = [&decision.upgrading, &decision.pending, &decision.deferred].iter().any(|pools| !pools.is_empty());
    if !stable
        || waits
        || decision.begins.is_some()
        || state.is_pending_and_not_open(HookName::AfterControlPlaneUpgrade)
    {
        return;
    }
    let workers = state.passes_if_pending(HookName::AfterWorkersUpgrade, decision);
    if workers && !decision.is_upgrading() {
        state.passes_if_pending(HookName::AfterClusterUpgrade, decision);
    }
}

/// What becomes of the control plane. `ahead` are the versions between the one that it has and the one that is asked for.
fn control_plane(state: &State, ahead: &[String]) -> Decision {
    let mut decision = Decision {
        control_plane: Move::To(state.target.clone()),
        pools: Vec::new(),
        control_plane_upgrading: false,
        control_plane_plan: Vec::new(),
        workers_plan: Vec::new(),
        upgrading: Vec::new(),
        pending: Vec::new(),
        deferred: Vec::new(),
        pending_create: Vec::new(),
        blocked: None,
        begins: None,
        asks: None,
    };
    let Some(seen) = &state.control_plane else { return decision };
    decision.workers_plan = workers_plan(state, &seen.version, ahead);
    decision.control_plane_plan = ahead.to_vec();
    decision.control_plane_upgrading = seen.state == ControlPlaneState::Upgrading;
    let Some(next) = ahead.first() else {
        decision.control_plane = Move::To(seen.version.clone());
        return decision;
    };
    decision.control_plane = Move::Wait;
    let workers_first = decision.workers_plan.first() == Some(&seen.version);
    if seen.state != ControlPlaneState::Stable || workers_first || state.pools.iter().any(|pool| pool.upgrading) {
        return decision;
    }
    if !may_begin(state, &mut decision) {
        return decision;
    }
    decision.control_plane = Move::To(next.clone());
    decision.control_plane_upgrading = true;
    decision.begins = Some(next.clone());
    decision.control_plane_plan.remove(0);
    decision
}

/// Whether nobody holds the next version of the control plane: neither what is over, nor what begins.
fn may_begin(state: &State, decision: &mut Decision) -> bool {
    for hook in [HookName::AfterControlPlaneUpgrade, HookName::AfterWorkersUpgrade] {
        if !state.passes_if_pending(hook, decision) {
            return false;
        }
    }
    if !state.begun() {
        if !state.passes_if_pending(HookName::AfterClusterUpgrade, decision) {
            return false;
        }
        if !state.holds.is_empty() {
            decision.blocked = Some(hold_message(&state.holds));
            return false;
        }
        if !state.passes(HookName::BeforeClusterUpgrade, decision) {
            return false;
        }
    }
    state.passes(HookName::BeforeControlPlaneUpgrade, decision)
}

/// The versions that are ahead of the pool that is furthest behind.
fn workers_plan(state: &State, control_plane_at: &str, ahead: &[String]) -> Vec<String> {
    let versions = state.pools.iter().filter_map(|pool| pool.version.as_deref());
    let plans = versions.map(|version| upgrade_plan::workers(version, control_plane_at, ahead));
    plans.max_by_key(Vec::len).unwrap_or_default()
}

fn hold_message(holds: &[String]) -> String {
    let (what, verb) = if holds.len() == 1 { ("annotation", "is") } else { ("annotations", "are") };
    format!("BeforeClusterUpgrade: {what} {} {verb} set", holds.join(", "))
}

fn pools(state: &State, ahead: &[String], decision: &mut Decision) {
    let stable = state.control_plane.as_ref().is_none_or(|seen| seen.state == ControlPlaneState::Stable)
        && decision.begins.is_none();
    let open = stable
        && state.passes_if_pending(HookName::AfterControlPlaneUpgrade, decision)
        && state.passes_if_pending(HookName::BeforeWorkersUpgrade, decision);
    let at = state.control_plane.as_ref().map_or(state.target.as_str(), |seen| seen.version.as_str());
    let mut rolling = state.pools.iter().filter(|pool| pool.upgrading).count();
    let mut held = false;
    for pool in &state.pools {
        held |= pool.hold == Hold::Sequence;
        let name = pool.name.clone();
        let Some(version) = &pool.version else {
            let rests = stable && decision.control_plane != Move::Wait;
            if !rests {
                decision.pending_create.push(name);
            }
            decision.pools.push(if rests { Move::To(at.to_owned()) } else { Move::Wait });
            continue;
        };
        let step = upgrade_plan::workers(version, at, ahead).into_iter().next();
        let Some(step) = step else {
            if pool.upgrading {
                decision.upgrading.push(name);
            }
            decision.pools.push(Move::To(version.clone()));
            continue;
        };
        let waits = match () {
            () if held || pool.hold == Hold::Defer => Some(&mut decision.deferred),
            // It is the control plane's turn, or nobody's.
            () if !open || step != at => Some(&mut decision.pending),
            () if rolling >= state.concurrency => Some(&mut decision.pending),
            () => None,
        };
        if let Some(those) = waits {
            those.push(name);
            decision.pools.push(Move::Wait);
        } else {
            rolling += 1;
            decision.upgrading.push(name);
            decision.pools.push(Move::To(step));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_api::hook::Answer;

    use super::*;

    const OLD: &str = "v1.31.0";
    const NEW: &str = "v1.32.0";

    /// A cluster of two pools at the old version that is asked for the new one.
    fn state() -> State {
        let pool =
            |name: &str| Pool { name: name.into(), version: Some(OLD.into()), upgrading: false, hold: Hold::None };
        State {
            target: NEW.into(),
            control_plane: Some(ControlPlane { version: OLD.into(), state: ControlPlaneState::Stable }),
            pools: vec![pool("a"), pool("b")],
            concurrency: 1,
            holds: Vec::new(),
            pending: BTreeSet::new(),
            stepping: false,
            // Nobody is there who could be asked.
            replies: HookName::all().map(|hook| (hook, Reply::Open(Answer::go_on(hook)))).collect(),
            offered: Vec::new(),
        }
    }

    fn begun(state: State) -> State {
        State { pending: BTreeSet::from(["AfterClusterUpgrade".to_owned()]), stepping: true, ..state }
    }

    fn control_plane_at(version: &str, at: ControlPlaneState) -> State {
        State { control_plane: Some(ControlPlane { version: version.into(), state: at }), ..state() }
    }

    fn text(what: &Move) -> &str {
        match what {
            Move::To(version) => version,
            Move::Wait => "waits",
        }
    }

    fn check(state: &State, control_plane: &str, pools: &[&str]) -> Decision {
        let decision = decide(state);
        let found: Vec<&str> = decision.pools.iter().map(text).collect();
        assert_eq!((text(&decision.control_plane), found.as_slice()), (control_plane, pools), "{state:?}");
        decision
    }

    #[test]
    fn a_cluster_is_made_at_once_and_whole() {
        let mut new = State { control_plane: None, ..state() };
        new.pools.iter_mut().for_each(|pool| pool.version = None);
        let decision = check(&new, NEW, &[NEW, NEW]);
        assert!(!decision.is_upgrading());
    }

    #[test]
    fn the_control_plane_goes_first_and_the_pools_follow_one_by_one() {
        let begins = check(&state(), NEW, &["waits", "waits"]);
        assert_eq!(
            (begins.begins.as_deref(), begins.pending.as_slice()),
            (Some(NEW), ["a".to_owned(), "b".to_owned()].as_slice())
        );
        check(&control_plane_at(NEW, ControlPlaneState::Upgrading), NEW, &["waits", "waits"]);
        let mut done = control_plane_at(NEW, ControlPlaneState::Stable);
        check(&done, NEW, &[NEW, "waits"]);
        done.pools[0].version = Some(NEW.into());
        done.pools[0].upgrading = true;
        check(&done, NEW, &[NEW, "waits"]);
        done.pools[0].upgrading = false;
        check(&done, NEW, &[NEW, NEW]);
        done.pools[1].version = Some(NEW.into());
        let over = check(&done, NEW, &[NEW, NEW]);
        assert!(!over.is_upgrading());
        done.pools[1].upgrading = true;
        assert!(decide(&done).is_upgrading());
    }

    #[test]
    fn more_pools_go_at_a_time_if_somebody_says_so() {
        let both = State { concurrency: 2, ..control_plane_at(NEW, ControlPlaneState::Stable) };
        check(&both, NEW, &[NEW, NEW]);
    }

    #[test]
    fn a_pool_can_be_deferred_alone_or_with_all_after_it() {
        let mut deferred = control_plane_at(NEW, ControlPlaneState::Stable);
        deferred.pools[0].hold = Hold::Defer;
        let decision = check(&deferred, NEW, &["waits", NEW]);
        assert_eq!(decision.deferred, ["a"]);
        deferred.pools[0].hold = Hold::Sequence;
        let decision = check(&deferred, NEW, &["waits", "waits"]);
        assert_eq!(decision.deferred, ["a", "b"]);
    }

    #[test]
    fn an_upgrade_that_is_held_does_not_begin_and_one_that_has_begun_goes_on() {
        let holds = vec!["before-upgrade.hook.cluster.cluster.x-k8s.io/windlass".to_owned()];
        let held = State { holds: holds.clone(), ..state() };
        let decision = check(&held, "waits", &["waits", "waits"]);
        assert!(decision.blocked.unwrap().ends_with("io/windlass is set"));
        check(&begun(held), NEW, &["waits", "waits"]);
    }

    #[test]
    fn a_control_plane_that_is_being_made_takes_no_other_version() {
        check(&control_plane_at(OLD, ControlPlaneState::Provisioning), "waits", &["waits", "waits"]);
    }

    #[test]
    fn a_new_pool_waits_until_the_control_plane_rests() {
        let mut state = control_plane_at(NEW, ControlPlaneState::Upgrading);
        state.pools[1].version = None;
        let decision = check(&state, NEW, &["waits", "waits"]);
        assert_eq!(decision.pending_create, ["b"]);
        let mut state = control_plane_at(NEW, ControlPlaneState::Stable);
        state.pools[1].version = None;
        check(&state, NEW, &[NEW, NEW]);
    }

    #[test]
    fn an_upgrade_over_several_minors_takes_the_workers_along_where_it_must() {
        let offered = ["v1.31.0", "v1.32.0", "v1.33.0", "v1.34.0", "v1.35.0"].map(str::to_owned).to_vec();
        let far = |version: &str| State {
            target: "v1.35.0".into(),
            offered: offered.clone(),
            ..begun(control_plane_at(version, ControlPlaneState::Stable))
        };
        check(&far("v1.31.0"), "v1.32.0", &["waits", "waits"]);
        check(&far("v1.33.0"), "v1.34.0", &["waits", "waits"]);
        // One minor more, and workers of 1.31 would be four behind.
        check(&far("v1.34.0"), "waits", &["v1.34.0", "waits"]);
        let mut last = far("v1.34.0");
        last.pools.iter_mut().for_each(|pool| pool.version = Some("v1.34.0".into()));
        check(&last, "v1.35.0", &["waits", "waits"]);
    }

    /// The state in which one question is answered with: wait.
    fn held_by(hook: HookName, state: State) -> State {
        let mut state = state;
        state.replies.insert(hook, Reply::Held { message: "not yet".to_owned(), after: Duration::from_secs(10) });
        state
    }

    fn pending(hooks: &[HookName], state: State) -> State {
        let pending = hooks.iter().map(|hook| hook.as_str().to_owned()).collect();
        State { pending, stepping: true, ..state }
    }

    #[test]
    fn whoever_is_asked_holds_what_comes_after_the_question_and_nothing_before_it() {
        use HookName::{
            AfterClusterUpgrade, AfterControlPlaneUpgrade, AfterWorkersUpgrade, BeforeClusterUpgrade,
            BeforeControlPlaneUpgrade, BeforeWorkersUpgrade,
        };
        for hook in [BeforeClusterUpgrade, BeforeControlPlaneUpgrade] {
            let decision = check(&held_by(hook, state()), "waits", &["waits", "waits"]);
            assert_eq!(decision.blocked, Some(format!("{hook}: not yet")));
        }
        // One that has begun is not asked about its beginning again, and is about each step.
        check(&held_by(BeforeClusterUpgrade, begun(state())), NEW, &["waits", "waits"]);
        check(&held_by(BeforeControlPlaneUpgrade, begun(state())), "waits", &["waits", "waits"]);
        let done = control_plane_at(NEW, ControlPlaneState::Stable);
        let done =
            pending(&[AfterClusterUpgrade, AfterControlPlaneUpgrade, BeforeWorkersUpgrade, AfterWorkersUpgrade], done);
        check(&done, NEW, &[NEW, "waits"]);
        for hook in [AfterControlPlaneUpgrade, BeforeWorkersUpgrade] {
            let decision = check(&held_by(hook, done.clone()), NEW, &["waits", "waits"]);
            assert_eq!(decision.blocked, Some(format!("{hook}: not yet")));
        }
        let mut over = done;
        over.pools.iter_mut().for_each(|pool| pool.version = Some(NEW.into()));
        for hook in [AfterWorkersUpgrade, AfterClusterUpgrade] {
            let decision = check(&held_by(hook, over.clone()), NEW, &[NEW, NEW]);
            assert_eq!(decision.blocked, Some(format!("{hook}: not yet")));
        }
    }

    #[test]
    fn an_upgrade_that_is_over_holds_the_next_one_until_somebody_agrees() {
        let next = State { stepping: false, ..pending(&[HookName::AfterClusterUpgrade], state()) };
        check(&held_by(HookName::AfterClusterUpgrade, next.clone()), "waits", &["waits", "waits"]);
        check(&held_by(HookName::BeforeClusterUpgrade, next.clone()), "waits", &["waits", "waits"]);
        check(&next, NEW, &["waits", "waits"]);
    }

    #[test]
    fn only_what_has_to_be_known_is_asked_and_one_at_a_time() {
        let unasked = State { replies: BTreeMap::new(), ..state() };
        assert_eq!(decide(&unasked).asks, Some(HookName::BeforeClusterUpgrade));
        let at_rest = State { target: OLD.into(), ..unasked };
        assert_eq!(decide(&at_rest).asks, None);
    }
}
