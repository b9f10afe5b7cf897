//! An update, run to its end in a fork of a World.
//!
//! The rehearsal has a thread, a runtime and a clock of its own: an hour in it takes milliseconds, it can be asked for from
//! inside of any other runtime, and it has no driver for sockets. Nothing of it reaches the World that it was forked from.

pub(crate) mod ask;
mod stage;
mod text;
mod wish;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::time::Instant;
use windlass_api::kind::cluster_update::{ClusterUpdate, StageRecord, WaitingFor};
use windlass_api::name::NamespacedName;
use windlass_plan::gate::{Gate, Gates};
use windlass_plan::resolve::hold::HoldBy;
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::{Virtual, run_paced, run_virtual};
use windlass_sim::actor::Caller;
use windlass_sim::fault::Scenario;
use windlass_sim::invariant::Violation;
use windlass_sim::timeline::{Event, Extremes, Timeline, What};
use windlass_sim::world::{self, World};

use crate::assembly::{Assembly, Settings};
use crate::crash::{Crashes, Write};
use crate::drive::{Drive, Manifest};
use crate::settle::{self, Bounds, Settled};
use crate::traffic::{Requests, Traffic};
use ask::{Answer, Ask};

pub use wish::{Setting, SettingError, Wish};

/// By when the controllers have noticed what happened to a cluster.
const NOTICED: Duration = Duration::from_secs(60);

/// How soon somebody asks again whom the API could not answer.
const ASKS_AGAIN: Duration = Duration::from_secs(10);

/// What to rehearse.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The cluster.
    pub cluster: NamespacedName,
    /// What is asked of it.
    pub ask: Wish,
    /// What decides everything random.
    pub seed: Seed,
    /// What time it is when the rehearsal begins.
    pub at: Timestamp,
    /// How the machines of a cluster of a class are held until its packages are in.
    pub hold_by: HoldBy,
    /// Rules that are left out, to see what they are for.
    pub without_gates: Vec<Gate>,
    /// How long the update may take, in its own time.
    pub deadline: Duration,
    /// What goes wrong in the meantime.
    pub faults: Scenario,
    /// The file that says so, as the command is told of it that rehearses the same again.
    pub faults_file: Option<String>,
    /// The folder of the snapshot that it starts from, as the same command is told of it.
    pub folder: Option<String>,
}

impl Request {
    /// An update takes tens of minutes; whoever is not done after half a day will never be.
    pub const DEADLINE: Duration = Duration::from_secs(12 * 60 * 60);

    /// Another release, with all rules and time enough.
    pub fn new(cluster: NamespacedName, to: &str, seed: Seed, at: Timestamp) -> Self {
        Self::asking(cluster, Wish::release(to), seed, at)
    }

    /// The usual: all rules, and time enough.
    pub fn asking(cluster: NamespacedName, ask: Wish, seed: Seed, at: Timestamp) -> Self {
        Self {
            cluster,
            ask,
            seed,
            at,
            hold_by: HoldBy::default(),
            without_gates: Vec::new(),
            deadline: Self::DEADLINE,
            faults: Scenario::default(),
            faults_file: None,
            folder: None,
        }
    }

    /// The command that rehearses the same again. A hop is rehearsed with the way that it is part of.
    pub fn replay(&self) -> String {
        let NamespacedName { namespace, name } = &self.cluster;
        let mut words = vec![format!("windlass rehearse {name}")];
        words.extend(self.ask.words());
        words.push(format!("--seed {}", self.seed));
        if namespace.as_str() != "default" {
            words.push(format!("--namespace {namespace}"));
        }
        if self.hold_by != HoldBy::default() {
            words.push(format!("--hold {}", self.hold_by));
        }
        words.extend(self.folder.iter().map(|folder| format!("--from {folder}")));
        words.extend(self.without_gates.iter().map(|gate| format!("--without-gate {gate}")));
        words.extend(self.faults_file.iter().map(|file| format!("--scenario {file}")));
        words.join(" ")
    }

    /// From when on nothing new comes out of the scenario, and what came last has been noticed: no end is one before.
    fn scenario_has_begun(&self) -> Duration {
        let faults = self.faults.faults.iter().map(|injection| injection.when.after);
        let actions = self.faults.actions.iter().map(|scheduled| scheduled.at);
        let last = faults.chain(actions).map(|span| span.0 + NOTICED).max();
        last.unwrap_or_default().min(self.deadline)
    }
}

/// A rehearsal that could not be held.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no thread or no runtime for it.
    #[error("begin a rehearsal")]
    Begin(#[source] std::io::Error),
    /// It ended in a panic, which is a fault in Windlass.
    #[error("the rehearsal of {0} broke down")]
    Broken(NamespacedName),
    /// The API could not be asked.
    #[error("ask the World for another {cluster}")]
    Ask {
        /// The cluster.
        cluster: NamespacedName,
        /// What the API said.
        #[source]
        source: Box<kube::Error>,
    },
}

/// How an update went, in the time of the rehearsal.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rehearsal {
    /// The cluster.
    pub cluster: NamespacedName,
    /// What was asked, as it follows the name of the cluster: `to v1.16.7`.
    pub asked: String,
    /// The release that was asked for, where one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What decided everything random.
    pub seed: u64,
    /// How it ended.
    pub verdict: Verdict,
    /// When it began.
    #[schemars(with = "String")]
    pub began: Timestamp,
    /// How long it took.
    #[schemars(with = "String")]
    pub took: SignedDuration,
    /// When each stage began and ended.
    pub stages: Vec<StageRecord>,
    /// What it said it waited for, each time that it was something else.
    pub waited: Vec<Waited>,
    /// The machines that came and went, in order.
    pub machines: Vec<MachineChange>,
    /// All that happened, in order, and the declared exceptions that were made use of. What was violated is beside it.
    #[schemars(with = "serde_json::Value")]
    pub timeline: Timeline,
    /// What must never be and was, in order.
    pub violations: Vec<Reported>,
    /// How far things went.
    #[schemars(with = "serde_json::Value")]
    pub extremes: Extremes,
    /// How much was asked of the API servers, and by whom.
    #[schemars(with = "BTreeMap<String, Requests>")]
    pub requests: BTreeMap<Caller, Requests>,
}

/// How a rehearsal ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "verdict", rename_all = "camelCase")]
pub enum Verdict {
    /// The cluster is as it was asked to be, and nothing moves any more.
    Reached {
        /// The release in full.
        distribution: String,
    },
    /// Somebody had it given up: the cluster is what it was, and nothing moves any more.
    GivenUp {
        /// The release that the cluster keeps, in full.
        distribution: String,
    },
    /// It was not allowed to begin.
    Refused {
        /// Why not.
        why: String,
    },
    /// It gave up.
    Failed {
        /// Why.
        why: String,
    },
    /// The time was up.
    Stuck {
        /// What it waited for.
        waiting_for: String,
    },
    /// The cluster is not there any more, and nothing moves.
    Gone,
}

/// What a cluster waited for from a time on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Waited {
    /// From when on.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Why, as the cluster and its update say it; nothing where it waited for nothing more.
    pub why: Vec<String>,
    /// The same for programs: each with its object and the way out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<WaitingFor>,
}

/// A machine that came or went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineChange {
    /// When.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Its name.
    pub name: String,
    /// Whether it came or went.
    pub change: Change,
}

/// Whether something came or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// It is new.
    Created,
    /// It is gone.
    Deleted,
}

/// A violation, and how to see it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reported {
    /// What is wrong.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub violation: Violation,
    /// The command that shows it again.
    pub replay: String,
}

/// A rehearsal and what is left of it.
pub struct Ended {
    /// How it went.
    pub rehearsal: Rehearsal,
    /// The World as it is at the end. Its clock has stopped.
    pub world: World,
    /// The writes of Windlass, in order.
    pub writes: Vec<Write>,
    /// What was asked of the API servers, in detail.
    pub traffic: Traffic,
}

/// Rehearses an update in a fork of a World. The thread that asks waits for it.
pub fn rehearse(start: &World, request: &Request) -> Result<Rehearsal, Error> {
    hold(start, request, Crashes::none()).map(|ended| ended.rehearsal)
}

/// Rehearses an update, perhaps with a crash in it, and keeps what is left.
pub fn hold(start: &World, request: &Request, crashes: Crashes) -> Result<Ended, Error> {
    on_its_own_thread(start, request, Ask::Change(&request.ask), crashes, Pace::Virtual)
}

/// Does the same in time that goes so many `times` as fast as ours, as in `windlass up`: to see that what is rehearsed is what
/// happens.
pub fn hold_paced(start: &World, request: &Request, times: NonZeroU32) -> Result<Ended, Error> {
    on_its_own_thread(start, request, Ask::Change(&request.ask), Crashes::none(), Pace::Times(times))
}

/// How time goes.
#[derive(Clone, Copy)]
enum Pace {
    /// As fast as everybody is ready for it.
    Virtual,
    /// So many times as fast as ours.
    Times(NonZeroU32),
}

/// Rehearses the creation of a cluster. Of the request, the release is only for the record: the cluster says which it wants.
pub fn create(start: &World, request: &Request, cluster: impl Into<Manifest>) -> Result<Ended, Error> {
    on_its_own_thread(start, request, Ask::Create(&cluster.into()), Crashes::none(), Pace::Virtual)
}

fn on_its_own_thread(
    start: &World,
    request: &Request,
    ask: Ask<'_>,
    crashes: Crashes,
    pace: Pace,
) -> Result<Ended, Error> {
    let joined = std::thread::scope(|scope| {
        let body = || {
            let body = |time: Virtual| async move {
                let settings = world::Settings {
                    clock: time.clock,
                    seed: time.seed,
                    faults: request.faults.clone(),
                    ..start.settings().clone()
                };
                run(start.fork(settings), request, ask, crashes).await
            };
            match pace {
                Pace::Virtual => run_virtual(request.seed, request.at, body),
                Pace::Times(times) => run_paced(request.seed, request.at, times, body),
            }
        };
        let thread = std::thread::Builder::new().name("rehearsal".into()).spawn_scoped(scope, body);
        thread.map(std::thread::ScopedJoinHandle::join)
    });
    let ended = joined.map_err(Error::Begin)?;
    ended.map_err(|_| Error::Broken(request.cluster.clone()))?.map_err(Error::Begin)?
}

async fn run(world: World, request: &Request, ask: Ask<'_>, crashes: Crashes) -> Result<Ended, Error> {
    let gates = Gates::without(&request.without_gates);
    let crashes = crashes.or_of(&world.settings().faults);
    let drive = ask.drive(&world, request);
    let (classes, labels) = (drive.classes(), drive.is_label());
    let settings = Settings { gates, classes, labels, crashes, ..Settings::rehearsal(&world) };
    let before = world.recorder().writes();
    let assembly = Assembly::new(world, settings);
    let Settled { verdict, at, waited } = tokio::select! {
        biased;
        ended = follow(assembly.world(), request, drive, &ask) => ended?,
        // It is never told to stop: it is dropped when the end has been seen.
        () = assembly.run(std::future::pending()) => return Err(Error::Broken(request.cluster.clone())),
    };
    let world = assembly.world().clone();
    let mut timeline = Timeline { from: request.at, ..world.recorder().timeline_since(before) };
    let replay = request.replay();
    let violations = std::mem::take(&mut timeline.violations).into_iter();
    let rehearsal = Rehearsal {
        cluster: request.cluster.clone(),
        asked: request.ask.to_string(),
        to: request.ask.to().map(str::to_owned),
        seed: request.seed.0,
        verdict,
        began: request.at,
        took: request.at.duration_until(at),
        stages: match drive {
            Drive::Machines => stages(settle::update(&world, &request.cluster), request),
            Drive::Label => stages(settle::update_by_label(&world, &request.cluster), request),
            Drive::Topology(_) => stage::of_class(&world, request, &timeline.events),
        },
        waited,
        machines: machines(&timeline.events),
        timeline,
        violations: violations.map(|violation| Reported { violation, replay: replay.clone() }).collect(),
        extremes: world.recorder().extremes(&request.cluster.to_string()),
        requests: assembly.traffic().by_caller(),
    };
    Ok(Ended { rehearsal, world, writes: assembly.crashes().writes(), traffic: assembly.traffic().clone() })
}

/// The stages of the last update. What had ended before is no part of the rehearsal.
fn stages(update: Option<ClusterUpdate>, request: &Request) -> Vec<StageRecord> {
    let update = update.and_then(|update| update.status).unwrap_or_default();
    let ended = |stage: &StageRecord| {
        let finished = stage.finished_at.as_ref().and_then(|finished| finished.parse::<Timestamp>().ok());
        finished.is_some_and(|finished| finished < request.at)
    };
    update.stages.into_iter().filter(|stage| !ended(stage)).collect()
}

/// Asks, and waits for the end.
async fn follow(world: &World, request: &Request, drive: Drive, ask: &Ask<'_>) -> Result<Settled, Error> {
    let began = Instant::now();
    match patiently(world, request, drive, ask).await? {
        Answer::Accepted => {
            let bounds = Bounds { earliest: began + request.scenario_has_begun(), latest: began + request.deadline };
            Ok(settle::settle(world, &request.cluster, drive, bounds).await)
        }
        Answer::Refused { why } => {
            let at = world.settings().clock.now();
            Ok(Settled { verdict: Verdict::Refused { why }, at, waited: Vec::new() })
        }
    }
}

/// Asks, and asks again where the API cannot answer because of a fault, as people do.
async fn patiently(world: &World, request: &Request, drive: Drive, ask: &Ask<'_>) -> Result<Answer, Error> {
    let latest = Instant::now() + request.deadline;
    loop {
        match ask::ask(world, &request.cluster, drive, ask).await {
            Err(Error::Ask { .. }) if !request.faults.is_empty() && Instant::now() < latest => {
                tokio::time::sleep(ASKS_AGAIN).await;
            }
            answered => return answered,
        }
    }
}

/// The machines that came and went.
fn machines(events: &[Event]) -> Vec<MachineChange> {
    let change = |event: &Event| {
        let change = match event.what {
            What::MachineCreated => Change::Created,
            What::MachineDeleted => Change::Deleted,
            _ => return None,
        };
        let name = event.object.rsplit('/').next().unwrap_or_default().to_owned();
        Some(MachineChange { at: event.at, name, change })
    };
    events.iter().filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cluster: &str, gates: &[Gate], file: Option<&str>, line: &str) {
        let at = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut request = Request::new(cluster.parse().unwrap(), "v1.16.7", Seed(7), at);
        request.without_gates = gates.to_vec();
        request.faults_file = file.map(str::to_owned);
        assert_eq!(request.replay(), line);
    }

    #[test]
    fn whatever_is_asked_is_in_the_line() {
        let at = "2026-01-01T00:00:00Z".parse().unwrap();
        let check = |ask: Wish, line: &str| {
            assert_eq!(Request::asking("default/my-tkc".parse().unwrap(), ask, Seed(7), at).replay(), line);
        };
        let workers = Wish::fields(None, &["topology.workers.count=5".parse().unwrap()]);
        check(workers, "windlass rehearse my-tkc --set topology.workers.count=5 --seed 7");
        check(Wish::Delete, "windlass rehearse my-tkc --delete --seed 7");
        check(Wish::Nothing, "windlass rehearse my-tkc --seed 7");
    }

    #[test]
    fn a_rehearsal_can_be_asked_for_again_in_one_line() {
        check("default/my-tkc", &[], None, "windlass rehearse my-tkc --to v1.16.7 --seed 7");
        let line = "windlass rehearse my-tkc --to v1.16.7 --seed 7 --scenario bad-day.yaml";
        check("default/my-tkc", &[], Some("bad-day.yaml"), line);
        check(
            "team-a/my-tkc",
            &[Gate::WorkerOrder, Gate::PackagesFirst],
            None,
            "windlass rehearse my-tkc --to v1.16.7 --seed 7 --namespace team-a --without-gate worker-order --without-gate packages-first",
        );
    }
}
