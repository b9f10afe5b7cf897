//! `windlass rehearse`: the whole upgrade, before it is begun, in a world of its own.

use std::path::{Path, PathBuf};

use serde::Serialize;
use windlass_api::name::{ClusterName, NamespacedName};
use windlass_plan::gate::Gate;
use windlass_plan::resolve::Refusal;
use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{self, Rehearsal, Request, Verdict, hold, rehearse};
use windlass_rehearse::snapshot::{RestoreError, Snapshot};
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::durations::Durations;
use windlass_sim::fault::Scenario;
use windlass_sim::world::{Settings, World};

use crate::changed::Changed;
use crate::client::Connection;
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::release;
use crate::scenario;
use crate::snapshot;
use crate::wanted::Wanted;
use crate::way::{self, Way};

use super::block_on;

/// Rehearse an upgrade or another change: see what would happen, and when, before it is begun
///
/// The clusters are read once; the rehearsal then runs in this process, by the controllers that would do it, on simulated
/// machines and in virtual time. Nothing real is changed. The same seed gives the same rehearsal.
#[derive(clap::Args)]
pub struct Rehearse {
    /// The cluster
    cluster: ClusterName,
    #[command(flatten)]
    wanted: Wanted,
    /// Decides everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Leave a safety rule out, to see what it is for
    #[arg(long, value_name = "GATE")]
    without_gate: Vec<Gate>,
    /// What goes wrong meanwhile: a file of faults, of what people do, and of how much there is to make machines of
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Also draw it, machine by machine, as an SVG file; where it takes several updates, one file for each
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Write it as a document instead, for scripts, or the name of the cluster
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

impl Rehearse {
    /// Reads the clusters, then rehearses without them: one update, or one after the other where it takes several.
    pub fn run(self) -> Result<Exit, Failure> {
        // Before anything is read: what is wrong here is wrong everywhere.
        let faults = scenario::read(self.scenario.as_deref())?;
        let (snapshot, namespace, way) = block_on(async {
            let management = self.connection.open().await?;
            let found = management.cluster(&self.cluster).await?;
            let releases = release::all(&management).await?;
            let from = way::current(&found).ok();
            let way = from.zip(self.wanted.to.as_ref()).map(|(from, to)| Way::find(&found, &from, to, &releases));
            // What else is refused is refused by the API that is asked, in its words.
            let way = match way {
                Some(Err(refusal)) if matches!(*refusal, Refusal::NoPath { .. }) => {
                    return Err(release::Error::from(refusal).into());
                }
                Some(Ok(way)) => Some(way).filter(Way::is_long),
                Some(Err(_)) | None => None,
            };
            Ok((snapshot::read(&management).await?, management.namespace, way))
        })?;
        self.wanted.fits(way.as_ref())?;
        let seed = Seed(self.seed);
        let world = restore(&snapshot, seed)?;
        let cluster = NamespacedName { namespace, name: self.cluster.clone().into() };
        let mut request = Request::asking(cluster, self.wanted.wish(), seed, snapshot.taken_at);
        request.without_gates = self.without_gate;
        request.faults = faults;
        request.faults_file = self.scenario.as_ref().map(|path| path.display().to_string());
        let rehearsals = match way {
            Some(way) => along(&way, world, &request)?,
            None => vec![rehearse(&world, &request).map_err(Error::Rehearse)?],
        };
        if let Some(path) = &self.picture {
            draw(&rehearsals, path)?;
        }
        let exit = rehearsals.iter().map(exit).find(|exit| *exit != Exit::Done).unwrap_or(Exit::Done);
        if let Some(format) = self.output {
            match rehearsals.as_slice() {
                [one] => format.tell_cluster(&self.cluster, "RehearsalReport", one)?,
                items => format.tell_cluster(&self.cluster, "RehearsalReportList", RehearsalList { items })?,
            }
            return Ok(exit);
        }
        let texts: Vec<String> = rehearsals.iter().map(Rehearsal::text).collect();
        output::data(&texts.join("\n"))?;
        if let Some(to) = self.wanted.release().filter(|_| exit == Exit::Done) {
            output::note(&format!("Next: windlass upgrade {} --to {to}", self.cluster));
        }
        Ok(exit)
    }
}

/// What `rehearse -o` writes of a way that takes several updates.
#[derive(Serialize)]
struct RehearsalList<'a> {
    items: &'a [Rehearsal],
}

/// Rehearses one update after the other, each in the World that the one before it left; no further than all goes well.
fn along(way: &Way, mut world: World, request: &Request) -> Result<Vec<Rehearsal>, Error> {
    let mut rehearsals: Vec<Rehearsal> = Vec::new();
    let mut request = request.clone();
    for hop in &way.hops {
        request.ask = way.wish(hop);
        let ended = hold(&world, &request, Crashes::none()).map_err(Error::Rehearse)?;
        world = ended.world;
        request.at = world.settings().clock.now();
        let reached = exit(&ended.rehearsal) == Exit::Done;
        rehearsals.push(ended.rehearsal);
        if !reached {
            break;
        }
    }
    Ok(rehearsals)
}

/// Draws each of them. The second one of several has a `-2` in the name of its file.
fn draw(rehearsals: &[Rehearsal], path: &Path) -> Result<(), Error> {
    for (index, rehearsal) in rehearsals.iter().enumerate() {
        let path = if index == 0 { path.to_owned() } else { numbered(path, index + 1) };
        std::fs::write(&path, rehearsal.timeline.svg()).map_err(|source| Error::Picture { path, source })?;
    }
    Ok(())
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A World with what was read in it. Nothing runs there.
pub fn restore(snapshot: &Snapshot, seed: Seed) -> Result<World, Error> {
    let restored = run_virtual(seed, snapshot.taken_at, |time| async move {
        let settings = Settings {
            clock: time.clock,
            seed: time.seed,
            durations: Durations::default(),
            faults: Scenario::default(),
        };
        snapshot.world(settings).await
    });
    restored.map_err(Error::Runtime)?.map_err(Error::Restore)
}

/// Reached, and nothing happened on the way that must never be.
fn exit(rehearsal: &Rehearsal) -> Exit {
    match rehearsal.verdict {
        Verdict::Reached { .. } | Verdict::Gone if rehearsal.violations.is_empty() => Exit::Done,
        _ => Exit::OperationFailed,
    }
}

/// There was no rehearsal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start the runtime of a simulated world")]
    Runtime(#[source] std::io::Error),
    #[error("cannot make a simulated world of what was read")]
    Restore(#[source] RestoreError),
    #[error("cannot rehearse")]
    Rehearse(#[source] rehearsal::Error),
    #[error("cannot write --picture {path:?}")]
    Picture { path: PathBuf, source: std::io::Error },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Runtime(_) => Kind::Environment,
            Self::Picture { .. } => Kind::User,
            Self::Restore(_) | Self::Rehearse(_) => Kind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Runtime(_) => "the same again, when this machine has threads to spare".to_owned(),
            Self::Picture { .. } => "--picture with the path of a file in a folder that can be written to".to_owned(),
            Self::Restore(_) | Self::Rehearse(_) => {
                "the same again with another --seed, and a report of this".to_owned()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_of_several_updates_have_names_of_their_own() {
        let check = |path: &str, expected: &str| assert_eq!(numbered(Path::new(path), 2), Path::new(expected));
        check("a/b.svg", "a/b-2.svg");
        check("b", "b-2");
        check("b.1.svg", "b.1-2.svg");
    }
}
