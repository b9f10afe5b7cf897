//! Q15 to Q17: what the controllers cost that look after many clusters, as a process of their own and a client of an API server
//! like any other.

mod bed;
mod fleet;
mod process;

use std::time::Duration;

use tokio::time::Instant;
use windlass_reference::Error as Cause;
use windlass_rehearse::sweep::Size;

use super::measure::{resident, resident_own, resident_peak};
use super::report::{Aim, Figure, Report, Section, Server, Unit};
use super::{Error, Interruption};
use crate::error::{Exit, Failure};
use crate::output::{self, Document, Format};
use bed::Bed;
use fleet::Fleet;
use process::{Controllers, Sent};

/// How long the controllers may go on with what they were at before they are called at rest: they look again ten seconds after
/// something that they waited for.
const SETTLES: Duration = Duration::from_secs(20);

/// Measure the controllers that look after many clusters: memory, CPU at rest, requests for each machine that is replaced
///
/// The clusters, of the sort whose release is a label, are made in a simulated world that lives in real time; its simulators are
/// clients of the API server, as the controllers are, which run as windlass controller does: in a process of their own, so that
/// memory and CPU are theirs alone. With KUBEBUILDER_ASSETS naming a folder that has kube-apiserver, etcd and
/// kube-controller-manager, the same is measured on these after the embedded API server. Everything listens on this machine only,
/// and ends with the command. It needs a quiet machine and, with a hundred clusters, half an hour.
#[allow(clippy::doc_markdown, reason = "markup would show in the help")]
#[derive(clap::Args)]
#[command(after_help = "Example:\n  KUBEBUILDER_ASSETS=bin windlass bench controller --clusters 100 --upgrades 10")]
pub struct Controller {
    /// Only on this API server; on both otherwise
    #[arg(long, value_name = "SERVER")]
    on: Option<On>,
    /// How many clusters there are
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    clusters: u32,
    /// How many machines each has: those of the control plane, and workers
    #[arg(long, value_name = "N+N", default_value = "3+3")]
    size: Size,
    /// How many of the clusters are upgraded, all at once
    #[arg(long, value_name = "N", default_value_t = 10)]
    upgrades: u32,
    // In five minutes each cluster is looked at once though nothing has changed.
    /// For how many seconds nothing is done, and the controllers are watched
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    rest: u64,
    /// Two clusters of 1+1, of which one is upgraded, and five seconds of rest: to see that it works. Its figures mean nothing
    #[arg(long, conflicts_with_all = ["clusters", "size", "upgrades", "rest"])]
    quick: bool,
    /// Write the figures as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

/// Whose API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum On {
    /// Ours
    Embedded,
    /// kube-apiserver and etcd, where there are such
    Kube,
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct Extent {
    clusters: u32,
    size: Size,
    upgrades: u32,
    rest: Duration,
}

/// What was seen on one API server.
struct Seen {
    server: Server,
    /// Resident memory before there was a cluster, and at rest: all of it, and without the pages of the program.
    empty: [f64; 2],
    rested: [f64; 2],
    /// The most that it ever was.
    peak: f64,
    /// Seconds of CPU in each second of rest.
    cpu_at_rest: f64,
    /// Requests in a minute of rest.
    sent_at_rest: f64,
    upgrade: Upgrade,
}

/// What the upgrades took.
struct Upgrade {
    machines: f64,
    sent: Sent,
    by_simulators: f64,
    cpu: f64,
    wall: f64,
}

impl Controller {
    /// Measures, and prints the figures.
    pub fn run(self) -> Result<Exit, Failure> {
        let extent = self.extent();
        // The World is on one thread, and so is whatever listens for it.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
        let mut report = Report::new(self.quick);
        let measured = runtime.block_on(async {
            let mut interruption = Interruption::listen()?;
            tokio::select! {
                biased;
                // What was started ends with what is dropped here.
                () = interruption.once() => Ok(None),
                measured = self.measure(extent) => measured.map(Some),
            }
        });
        let Some(section) = measured? else { return Ok(Exit::Interrupted) };
        report.add(section);
        report.end();
        match self.output {
            Some(format) => output::document(format, &Document::new("BenchReport", &report))?,
            None => output::data(&report.text())?,
        }
        Ok(Exit::Done)
    }

    fn extent(&self) -> Extent {
        if self.quick {
            let size = Size { control_plane: 1, workers: 1 };
            return Extent { clusters: 2, size, upgrades: 1, rest: Duration::from_secs(5) };
        }
        let Self { clusters, size, upgrades, rest, .. } = *self;
        Extent { clusters, size, upgrades: upgrades.clamp(1, clusters), rest: Duration::from_secs(rest) }
    }

    async fn measure(&self, extent: Extent) -> Result<Section, Failure> {
        let failed = |name: &str| {
            let name = name.to_owned();
            move |source: Cause| Failure::from(Error::Controllers { name, source })
        };
        let mut seen = Vec::new();
        let mut missing = None;
        if self.on != Some(On::Kube) {
            let bed = Bed::embedded().await.map_err(failed("embedded"))?;
            seen.push(on(bed, extent).await.map_err(failed("embedded"))?);
        }
        if self.on != Some(On::Embedded) {
            match bed::programs() {
                Ok(assets) => {
                    let bed = Bed::kube(&assets).await.map_err(failed("kube"))?;
                    seen.push(on(bed, extent).await.map_err(failed("kube"))?);
                }
                // Whoever asked for nothing else is not served by a table without it.
                Err(why) if self.on == Some(On::Kube) => return Err(failed("kube")(why)),
                Err(why) => missing = Some(format!("Not measured on kube-apiserver: {why}.")),
            }
        }
        Ok(section(extent, &seen, missing))
    }
}

/// Everything that is measured on one API server.
async fn on(bed: Bed, extent: Extent) -> Result<Seen, Cause> {
    let server = bed.server();
    output::note(&format!("on {}: {} clusters of {} …", server.shown(), extent.clusters, extent.size));
    let (client, traffic) = (bed.client().clone(), bed.traffic().clone());
    let mut lives = std::pin::pin!(bed.run());
    let controllers = tokio::select! {
        biased;
        started = Controllers::start(bed.kubeconfig(), bed.path("controllers.log")) => started?,
        ended = &mut lives => return Err(ended),
    };
    let work = async {
        tokio::time::sleep(SETTLES).await;
        let memory = || Ok::<_, Cause>([resident(&controllers.pid())?, resident_own(&controllers.pid())?]);
        let empty = memory()?;
        let fleet = Fleet::create(client, extent.clusters, extent.size).await?;
        output::note("all clusters are there; nothing is done for a while …");
        tokio::time::sleep(SETTLES).await;
        let (before, cpu, began) = (controllers.sent().await?, controllers.cpu()?, Instant::now());
        tokio::time::sleep(extent.rest).await;
        let (cpu, seconds) = (controllers.cpu()? - cpu, began.elapsed().as_secs_f64());
        let rested = memory()?;
        let sent = controllers.sent().await?.since(&before);
        output::note(&format!("{} clusters are upgraded …", extent.upgrades));
        let simulated = || traffic.by_caller().values().map(|requests| requests.all).sum::<u64>();
        let simulated_before = simulated();
        let (before, cpu_before, began) = (controllers.sent().await?, controllers.cpu()?, Instant::now());
        let machines = fleet.upgrade(extent.upgrades).await?;
        let upgrade = Upgrade {
            machines: f64::from(machines),
            wall: began.elapsed().as_secs_f64(),
            cpu: controllers.cpu()? - cpu_before,
            sent: controllers.sent().await?.since(&before),
            by_simulators: (simulated() - simulated_before) as f64,
        };
        Ok(Seen {
            server,
            empty,
            rested,
            peak: resident_peak(&controllers.pid())?,
            cpu_at_rest: cpu / seconds,
            sent_at_rest: sent.all() * 60.0 / seconds,
            upgrade,
        })
    };
    tokio::select! {
        biased;
        seen = work => seen,
        ended = lives => Err(ended),
        ended = controllers.ended() => Err(ended),
    }
}

/// The figures, each on every API server.
fn section(extent: Extent, seen: &[Seen], missing: Option<String>) -> Section {
    let Extent { clusters, size, upgrades, rest } = extent;
    let figure = |number, measure: String, unit, of: &dyn Fn(&Seen) -> f64| {
        let mut figure = Figure::new(number, measure, unit).alone();
        for seen in seen {
            figure.push(seen.server, of(seen));
        }
        figure
    };
    let [memory, cpu, requests] = [Some("Q15"), Some("Q16"), Some("Q17")];
    let for_each = |of: &dyn Fn(&Upgrade) -> f64, seen: &Seen| of(&seen.upgrade) / seen.upgrade.machines;
    let share = |measure: &str, of: &dyn Fn(&Upgrade) -> f64| {
        figure(requests, format!("{measure}, for each machine that is replaced"), Unit::Requests, &|seen| {
            for_each(of, seen)
        })
    };
    let figures = vec![
        figure(memory, format!("resident with {clusters} clusters of {size} at rest"), Unit::Bytes, &|it| it.rested[0])
            .aim(Aim::AtMost(150e6)),
        figure(memory, "of this, without the pages of the program".to_owned(), Unit::Bytes, &|it| it.rested[1]),
        figure(memory, "resident before the first cluster".to_owned(), Unit::Bytes, &|it| it.empty[0]),
        figure(memory, "of this, without the pages of the program".to_owned(), Unit::Bytes, &|it| it.empty[1]),
        figure(memory, format!("the most that it was, with {upgrades} upgrades at once"), Unit::Bytes, &|it| it.peak),
        figure(cpu, format!("CPU at rest, over {} s, of one core", rest.as_secs()), Unit::Share, &|it| it.cpu_at_rest)
            .aim(Aim::AtMost(0.02)),
        figure(cpu, "requests in a minute of rest".to_owned(), Unit::Requests, &|it| it.sent_at_rest),
        share("requests of the controllers", &|it| it.sent.all()),
        share("of these, those that write", &|it| it.sent.writes()),
        share("of these, those to workload clusters", &|it| it.sent.to_workloads()),
        share("requests of all programs", &|it| it.sent.all() + it.by_simulators).aim(Aim::AtMost(100.0)),
        figure(None, "CPU of the controllers, for each machine that is replaced".to_owned(), Unit::Seconds, &|it| {
            for_each(&|upgrade| upgrade.cpu, it)
        }),
        figure(None, format!("{upgrades} upgrades at once, wall time"), Unit::Seconds, &|it| it.upgrade.wall),
    ];
    let section = Section::new("The controllers beside many clusters", figures, &[]).note(
        "Aims of Q15 and Q16 are for 1,000 clusters of 3+10. Clusters are of the sort whose release is a label, machines take \
         less than half a second for each thing that they do, and the controllers are one process of windlass controller that \
         leads; whoever answers reviews of admission is another, and not counted. Requests are those that it sent, its lease \
         included; of the simulators, those to the management API.",
    );
    match missing {
        Some(missing) => section.note(missing),
        None => section,
    }
}
