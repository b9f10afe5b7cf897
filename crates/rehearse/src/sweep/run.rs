//! One run: a wish, what goes wrong meanwhile, the end, and a while in which nothing may happen any more.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;
use windlass_api::name::ClusterSecret;
use windlass_plan::gate::Gates;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::actor::Caller;
use windlass_sim::fault::{Action, Scenario};
use windlass_sim::timeline::{Timeline, Turnover, What};
use windlass_sim::world::{self, World};

use super::plan::{At, Edit, Plan};
use super::subject::Subject;
use crate::assembly::{Assembly, Settings};
use crate::crash::{Crashes, Write};
use crate::rehearsal::ask::{self, Answer, Ask};
use crate::rehearsal::{Error, Verdict};
use crate::settle::{self, Bounds};

/// By when the controllers have noticed what happened.
const NOTICED: Duration = Duration::from_secs(60);
/// How long nothing is written in a World in which nothing moves any more.
const STILL: Duration = Duration::from_secs(5 * 60);
/// How often that is waited for: machines may boot long after nobody waits for them any more.
const STILL_TRIES: u32 = 12;
/// Controllers look at a cluster again after five minutes at the latest: long enough for three looks.
const THREE_RESYNCS: Duration = Duration::from_secs(16 * 60);

/// How a run went.
pub(super) struct Run {
    pub(super) verdict: Verdict,
    pub(super) took: SignedDuration,
    pub(super) timeline: Timeline,
    /// The writes of Windlass until the end.
    pub(super) writes: Vec<Write>,
    /// Those after the end, when there should be none.
    pub(super) restless: Vec<Write>,
    /// How often each object came and went.
    pub(super) objects: BTreeMap<String, Turnover>,
    /// How many certificates and keys were made.
    pub(super) keys_made: u64,
    /// All that was to go wrong did.
    pub(super) bit: bool,
    /// What came of what somebody did.
    pub(super) edited: Option<Result<String, String>>,
    pub(super) world: World,
}

impl Run {
    /// The machines that were made, in order.
    pub(super) fn machines(&self) -> Vec<String> {
        let made = self.timeline.events.iter().filter(|event| event.what == What::MachineCreated);
        made.map(|event| event.object.rsplit('/').next().unwrap_or_default().to_owned()).collect()
    }

    /// How many Secrets with a certificate or a key were made.
    pub(super) fn certificates(&self) -> u64 {
        let ends = ClusterSecret::CERTIFICATES.map(|secret| format!("-{secret}"));
        let is_one = |name: &str| name.starts_with("management secrets ") && ends.iter().any(|end| name.ends_with(end));
        self.objects.iter().filter(|(name, _)| is_one(name)).map(|(_, turnover)| turnover.created).sum()
    }
}

/// Runs a plan from the start of a subject to its end, on this thread.
pub(super) fn run(subject: &Subject, plan: &Plan) -> Result<Run, Error> {
    let request = &subject.request;
    let faults = joined(&request.faults, &plan.scenario);
    let seed = plan.seed.unwrap_or(request.seed);
    let ran = run_virtual(seed, request.at, |time| async move {
        let settings =
            world::Settings { clock: time.clock, seed: time.seed, faults, ..subject.start.settings().clone() };
        run_in(subject.start.fork(settings), subject, plan).await
    });
    ran.map_err(Error::Begin)?
}

/// What goes wrong anyway, and what goes wrong in this trial.
fn joined(always: &Scenario, now: &Scenario) -> Scenario {
    let mut joined = always.clone();
    joined.faults.extend(now.faults.iter().cloned());
    joined.actions.extend(now.actions.iter().cloned());
    joined
}

async fn run_in(world: World, subject: &Subject, plan: &Plan) -> Result<Run, Error> {
    let (before, began) = (world.recorder().writes(), world.settings().clock.now());
    world.recorder().count_objects();
    let crashes = Crashes::at(plan.crashes.clone());
    let at_write = match &plan.edit {
        Some(Edit { at: At::Write(number), action }) => Some((crashes.interrupt(*number), action)),
        _ => None,
    };
    let left_out = plan.old.iter().filter_map(|old| old.left_out());
    let gates = Gates::without(&subject.request.without_gates.iter().copied().chain(left_out).collect::<Vec<_>>());
    let old = plan.old.clone();
    let (crashing, classes, labels) = (crashes.clone(), subject.drive.classes(), subject.drive.is_label());
    let settings = Settings { gates, crashes: crashing, classes, labels, old, ..Settings::rehearsal(&world) };
    let assembly = Assembly::new(world.clone(), settings);
    let mut edited = None;
    let edits = async {
        if let Some((interruption, action)) = at_write {
            interruption.reached().await;
            edited = Some(act(&world, action).await);
            interruption.end();
        }
        std::future::pending::<()>().await;
    };
    let mut edited_in_time = None;
    let follows = follow(&assembly, subject, plan.edit.as_ref(), &mut edited_in_time);
    let (ended, writes, restless) = tokio::select! {
        biased;
        ended = follows => ended?,
        () = edits => return Err(Error::Broken(subject.request.cluster.clone())),
        () = assembly.run(std::future::pending()) => return Err(Error::Broken(subject.request.cluster.clone())),
    };
    let bites = world.faults().bites();
    let of_this_trial = &bites[subject.request.faults.faults.len().min(bites.len())..];
    let bit = match of_this_trial {
        // Of several faults some need not find anybody.
        [_, _, ..] => crashes.left() < plan.crashes.len() || of_this_trial.iter().any(|bites| *bites > 0),
        _ => crashes.left() == 0 && of_this_trial.iter().all(|bites| *bites > 0),
    };
    Ok(Run {
        verdict: ended.verdict,
        took: began.duration_until(ended.at),
        timeline: Timeline { from: began, ..world.recorder().timeline_since(before) },
        writes,
        restless,
        objects: world.recorder().objects(),
        keys_made: assembly.keys_made(),
        bit,
        edited: edited.or(edited_in_time),
        world,
    })
}

/// Asks, waits for the end, and then for a while in which nothing should happen.
async fn follow(
    assembly: &Assembly,
    subject: &Subject,
    edit: Option<&Edit>,
    edited: &mut Option<Result<String, String>>,
) -> Result<(settle::Settled, Vec<Write>, Vec<Write>), Error> {
    let (world, request) = (assembly.world(), &subject.request);
    let began = Instant::now();
    let asks = subject.create.as_ref().map_or(Ask::Change(&request.ask), Ask::Create);
    if let Answer::Refused { why } = ask::ask(world, &request.cluster, subject.drive, &asks).await? {
        let at = world.settings().clock.now();
        return Ok((settle::Settled { verdict: Verdict::Refused { why }, at, waited: Vec::new() }, vec![], vec![]));
    }
    if let Some(Edit { at: At::Once, action }) = edit {
        *edited = Some(act(world, action).await);
    }
    let latest = began + request.deadline;
    let earliest = (began + begun(&world.settings().faults)).min(latest);
    let mut settled = settle::settle(world, &request.cluster, subject.drive, Bounds { earliest, latest }).await;
    if let Some(Edit { at: At::End, action }) = edit {
        *edited = Some(act(world, action).await);
        let (earliest, latest) = (Instant::now() + NOTICED, Instant::now() + request.deadline);
        settled = settle::settle(world, &request.cluster, subject.drive, Bounds { earliest, latest }).await;
    }
    if matches!(settled.verdict, Verdict::Failed { .. }) {
        calm_down(world).await;
    }
    let mut writes = assembly.crashes().writes();
    if !matches!(settled.verdict, Verdict::Stuck { .. }) {
        tokio::time::sleep(THREE_RESYNCS).await;
    }
    let mut all = assembly.crashes().writes();
    let restless = all.split_off(writes.len());
    writes.truncate(all.len());
    Ok((settled, writes, restless))
}

/// Who gave up has done with it; machines and nodes may not have.
async fn calm_down(world: &World) {
    for _ in 0..STILL_TRIES {
        let before = world.recorder().writes();
        tokio::time::sleep(STILL).await;
        if world.recorder().writes() == before {
            return;
        }
    }
}

/// From when on nothing new comes out of a scenario, and what came last has been noticed: no end is one before.
fn begun(scenario: &Scenario) -> Duration {
    let faults = scenario.faults.iter().flat_map(|fault| [Some(fault.when.after), fault.when.until]);
    let actions = scenario.actions.iter().map(|scheduled| Some(scheduled.at));
    let last = faults.chain(actions).flatten().map(|span| span.0 + NOTICED).max();
    last.unwrap_or_default()
}

/// Somebody does something, and the timeline says so.
async fn act(world: &World, action: &Action) -> Result<String, String> {
    let (place, client) = match action.cluster() {
        None => ("management".to_owned(), Some(world.client_of(Caller::User))),
        Some(cluster) => (cluster.to_string(), world.workload(cluster).map(|workload| workload.client())),
    };
    let done = match client {
        None => Err(format!("there is no cluster {place}")),
        Some(client) => action.perform(client).await.map_err(|error| error.to_string()),
    };
    let text = match &done {
        Ok(object) => format!("a user {action}: {object}"),
        Err(why) => format!("a user {action}, which is refused: {why}"),
    };
    world.recorder().mark(world.settings().clock.now(), &place, "", done.as_deref().unwrap_or_default(), &text);
    done
}
