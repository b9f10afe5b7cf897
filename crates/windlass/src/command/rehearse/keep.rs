//! Runs that broke, written down so that `windlass replay` repeats them: the run, its scenario, and the snapshot that it starts from.

use std::path::{Path, PathBuf};

use windlass_rehearse::matrix::FaultMatrix;
use windlass_rehearse::rehearsal::{Request, rehearse};
use windlass_rehearse::replay::Run;
use windlass_rehearse::report::Report;
use windlass_rehearse::snapshot::Snapshot;
use windlass_runtime::chance::Seed;
use windlass_sim::world::World;

use super::Error;
use crate::output;

/// What the snapshot is called that all runs of a folder start from.
pub const SNAPSHOT: &str = "snapshot";

/// Writes down the run that a report tells of, where it is a bad one, and each run of its matrix that broke.
pub fn broken(
    folder: &Path,
    snapshot: &Snapshot,
    world: &World,
    request: &Request,
    report: &Report,
) -> Result<(), Error> {
    // A later update of several does not start from the snapshot.
    if report.is_good() || request.at != snapshot.taken_at {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|source| Error::Keep { path: folder.to_owned(), source })?;
    snapshot.save(&folder.join(SNAPSHOT)).map_err(Error::Save)?;
    let name = &request.cluster.name;
    if report.verdicts.iter().any(|tally| tally.runs > 0) && !is_sound(report) {
        let request = Request { seed: Seed(report.reference.seed), ..request.clone() };
        let run = Run::of(&request, report.estimate.percent(), &report.reference);
        write(folder, &format!("{name}-seed-{}", report.reference.seed), &run)?;
    }
    for (row, cell) in report.faults.iter().flat_map(FaultMatrix::broken) {
        let request = Request { faults: cell.scenario.clone(), ..request.clone() };
        let held = rehearse(world, &request).map_err(Error::Rehearse)?;
        write(folder, &format!("{name}-{}-{}", row.fault, cell.step), &Run::of(&request, None, &held))?;
    }
    Ok(())
}

/// Without its faults, the report would be a good one.
fn is_sound(report: &Report) -> bool {
    Report { faults: None, ..report.clone() }.is_good()
}

fn write(folder: &Path, name: &str, run: &Run) -> Result<(), Error> {
    let keep = |path: PathBuf, text: String| {
        std::fs::write(&path, text).map_err(|source| Error::Keep { path: path.clone(), source })?;
        Ok::<PathBuf, Error>(path)
    };
    if !run.scenario.is_empty() {
        keep(folder.join(format!("{name}.scenario.yaml")), run.scenario.to_yaml())?;
    }
    let text = serde_json::to_string_pretty(run).map_err(Error::Encode)?;
    let path = keep(folder.join(format!("{name}.run.json")), text)?;
    output::note(&format!("Kept: windlass replay {}", path.display()));
    Ok(())
}
