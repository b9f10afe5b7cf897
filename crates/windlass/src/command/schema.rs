//! `windlass schema`: what the documents of `-o json` and `-o yaml` look like, for whoever reads them by program.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};
use windlass_rehearse::replay::Replayed;
use windlass_rehearse::report::Report as RehearsalReport;
use windlass_rehearse::snapshot::SnapshotDiff;
use windlass_rehearse::sweep::Tried;

use super::{
    abort, approve, bench, describe, diff, get, gitops, packages, plan, rehearse, release, retry, snapshot, sweep,
    update, upgrade, verify, why,
};
use crate::course::ClassReport as ClassStatusReport;
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output::{self, API_VERSION};
use crate::report::Report;

/// Show the JSON schema of a document that commands write with -o json or -o yaml
///
/// Without a name, the kinds of documents there are. A field is only ever added to a kind of a version, never taken away or made to mean
/// something else.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  windlass schema PlanReport > plan-report.json")]
pub struct Schema {
    /// The kind, as the document names it
    kind: Option<String>,
}

/// A kind of documents, and what they have.
struct Row {
    kind: &'static str,
    schema: fn(SchemaGenerator) -> Value,
}

/// All that are written.
const KINDS: &[Row] = &[
    row::<abort::AbortReport<'static>>("AbortReport"),
    row::<get::AddonList>("AddonList"),
    row::<bench::report::Report>("BenchReport"),
    row::<abort::class::ClassAbortReport<'static>>("ClassAbortReport"),
    row::<plan::topology::ClassReport>("ClassPlanReport"),
    row::<ClassStatusReport>("ClassStatusReport"),
    row::<upgrade::rolled::RolledReport<'static>>("ClassUpgradeReport"),
    row::<describe::tree::Branch>("ClusterDescription"),
    row::<diff::ClusterDiff<'static>>("ClusterDiff"),
    row::<approve::DecisionReport<'static>>("DecisionReport"),
    row::<plan::deletion::DeletionReport>("DeletionReport"),
    row::<gitops::GitopsReport>("GitopsReport"),
    row::<upgrade::rolled::RolledReport<'static>>("LabelUpgradeReport"),
    row::<packages::PackageList>("PackageList"),
    row::<plan::PlanReport>("PlanReport"),
    row::<RehearsalReport>("RehearsalReport"),
    row::<rehearse::shown::ReportList<'static>>("RehearsalReportList"),
    row::<release::show::ReleaseReport>("Release"),
    row::<release::activation::Activation>("ReleaseActivation"),
    row::<release::difference::ReleaseDiff>("ReleaseDiff"),
    row::<release::ReleaseList>("ReleaseList"),
    row::<release::ReleasePath>("ReleasePath"),
    row::<release::verify::ReleaseVerification>("ReleaseVerification"),
    row::<Replayed>("ReplayReport"),
    row::<retry::RetryReport<'static>>("RetryReport"),
    row::<windlass_controller::recovery::SecretsReport>("SecretsReport"),
    row::<SnapshotDiff>("SnapshotDiff"),
    row::<snapshot::Loaded>("SnapshotSummary"),
    row::<Report>("StatusReport"),
    row::<sweep::report::Report>("SweepReport"),
    row::<Tried>("SweepTrial"),
    row::<update::UpdateReport<'static>>("UpdateReport"),
    row::<upgrade::commit::Committed>("UpgradeCommit"),
    row::<upgrade::UpgradeReport<'static>>("UpgradeReport"),
    row::<verify::Verdict>("Verdict"),
    row::<why::WhyReport>("WhyReport"),
];

const fn row<T: JsonSchema>(kind: &'static str) -> Row {
    Row { kind, schema: content::<T> }
}

/// What a document has beside its kind: a reference, and what it refers to.
fn content<T: JsonSchema>(mut generator: SchemaGenerator) -> Value {
    let content = generator.subschema_for::<T>();
    let mut schema = json!(content);
    schema["$defs"] = generator.take_definitions(true).into();
    schema
}

impl Row {
    /// The schema of the whole document: how it says what it is, and what it has.
    fn document(&self) -> Value {
        // As it is written: what is always there is required.
        let mut schema = (self.schema)(SchemaSettings::draft2020_12().for_serialize().into_generator());
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = self.kind.into();
        schema["type"] = "object".into();
        schema["required"] = json!(["apiVersion", "kind"]);
        schema["properties"] = json!({"apiVersion": {"const": API_VERSION}, "kind": {"const": self.kind}});
        schema
    }
}

impl Schema {
    /// Shows it.
    pub fn run(self) -> Result<Exit, Failure> {
        let Some(kind) = self.kind else {
            output::data(&KINDS.iter().map(|row| row.kind).collect::<Vec<_>>().join("\n"))?;
            return Ok(Exit::Done);
        };
        let row = KINDS.iter().find(|row| row.kind == kind).ok_or(Error { kind })?;
        output::document(output::Format::Json, &row.document())?;
        Ok(Exit::Done)
    }
}

/// There is no such kind.
#[derive(Debug, thiserror::Error)]
#[error("no document is of the kind {kind}")]
struct Error {
    kind: String,
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        Kind::User
    }

    fn hint(&self) -> Option<String> {
        Some("windlass schema, which names them all".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use std::{env, fs};

    use super::*;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
    }

    /// `WINDLASS_UPDATE=1 cargo test -p windlass schema` writes them.
    #[test]
    fn the_schemas_in_the_documents_are_those_of_the_types() {
        let mut written = BTreeSet::new();
        for row in KINDS {
            let text = serde_json::to_string_pretty(&row.document()).unwrap() + "\n";
            let path = folder().join(format!("{}.json", row.kind));
            if env::var_os("WINDLASS_UPDATE").is_some() {
                fs::create_dir_all(folder()).unwrap();
                fs::write(&path, &text).unwrap();
            }
            let found = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(found, text, "{}: WINDLASS_UPDATE=1 writes it", path.display());
            written.insert(format!("{}.json", row.kind));
        }
        let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        assert_eq!(files.collect::<BTreeSet<_>>(), written);
    }

    /// The kinds that the sources write, wherever they do.
    #[test]
    fn every_kind_that_is_written_has_a_schema() {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        let mut found = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    folders.push(entry);
                    continue;
                }
                let text = fs::read_to_string(&entry).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap();
                for call in ["Document::new(", ".tell(", ".tell_cluster(", ".tell_update("] {
                    let kinds = code.split(call).skip(1).filter_map(|rest| {
                        let call = rest.split(';').next()?;
                        let mut quoted = call.split('"').skip(1).step_by(2);
                        quoted.find(|text| {
                            text.starts_with(char::is_uppercase) && text.chars().all(char::is_alphanumeric)
                        })
                    });
                    found.extend(kinds.map(str::to_owned));
                }
            }
        }
        let known: BTreeSet<String> = KINDS.iter().map(|row| row.kind.to_owned()).collect();
        assert!(found.len() > 20, "{found:?}");
        assert_eq!(found, known);
    }
}
