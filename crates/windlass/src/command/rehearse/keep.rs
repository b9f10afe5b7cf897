//! Runs that broke, written down so that `windlass replay` repeats them: the run, its scenario, and the snapshot that it starts from.

use std::path::{Path, PathBuf};

use windlass_rehearse::matrix::FaultMatrix;
use windlass_rehearse::rehearsal::{self, Request, rehearse};
use windlass_rehearse::replay::Run;
use windlass_rehearse::report::{Report, at_pace};
use windlass_runtime::chance::Seed;

use super::{Error, Place};
use crate::output;

/// What the snapshot is called that all runs of a folder start from.
pub const SNAPSHOT: &str = "snapshot";

/// Writes down the run that a report tells of, where it is a bad one, and each run of its matrix that broke. What a later hop
/// starts from is another snapshot, so it has a folder of its own.
pub fn broken(folder: &Path, at: &Place<'_>, request: &Request, report: &Report) -> Result<(), Error> {
    if report.is_good() {
        return Ok(());
    }
    let name = &request.cluster.name;
    let folder = if at.hop == 1 { folder.to_owned() } else { folder.join(format!("{name}-hop-{}", at.hop)) };
    std::fs::create_dir_all(&folder).map_err(|source| Error::Keep { path: folder.clone(), source })?;
    at.snapshot.save(&folder.join(SNAPSHOT)).map_err(Error::Save)?;
    let percent = report.estimate.percent();
    if report.verdicts.iter().any(|tally| tally.runs > 0) && !is_sound(report) {
        let request = Request { seed: Seed(report.reference.seed), ..request.clone() };
        let run = Run::of(&request, percent, &report.reference);
        write(&folder, &format!("{name}-seed-{}", report.reference.seed), &run)?;
    }
    let paced = percent.map(|percent| at_pace(&at.world, percent));
    for (row, cell) in report.faults.iter().flat_map(FaultMatrix::broken) {
        let request = Request { faults: cell.scenario.clone(), ..request.clone() };
        let name = format!("{name}-{}-{}", row.fault, cell.step);
        match rehearse(paced.as_ref().unwrap_or(&at.world), &request) {
            Ok(held) => write(&folder, &name, &Run::of(&request, percent, &held))?,
            // There is no end to compare with: what goes wrong in it is all that can be kept.
            Err(rehearsal::Error::Broken(_) | rehearsal::Error::Ask { .. }) => {
                let path = keep(folder.join(format!("{name}.scenario.yaml")), &cell.scenario.to_yaml())?;
                output::note(&format!("Kept: windlass rehearse --scenario {}", path.display()));
            }
            Err(error) => return Err(Error::Rehearse(error)),
        }
    }
    Ok(())
}

/// Without its faults, the report would be a good one.
fn is_sound(report: &Report) -> bool {
    Report { faults: None, ..report.clone() }.is_good()
}

fn write(folder: &Path, name: &str, run: &Run) -> Result<(), Error> {
    if !run.scenario.is_empty() {
        keep(folder.join(format!("{name}.scenario.yaml")), &run.scenario.to_yaml())?;
    }
    let text = serde_json::to_string_pretty(run).map_err(Error::Encode)?;
    let path = keep(folder.join(format!("{name}.run.json")), &text)?;
    output::note(&format!("Kept: windlass replay {}", path.display()));
    Ok(())
}

fn keep(path: PathBuf, text: &str) -> Result<PathBuf, Error> {
    std::fs::write(&path, text).map_err(|source| Error::Keep { path: path.clone(), source })?;
    Ok(path)
}
