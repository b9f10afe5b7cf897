//! `windlass update`: the one write by which other machines, other disks or another network setting are asked for.

use std::io;

use kube::api::{Patch, PatchParams};
use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::ClusterName;
use windlass_rehearse::rehearsal::{Setting, SettingError, Wish};

use crate::ask::{Answer, ask};
use crate::changed::Changed;
use crate::client::{self, Connection, FIELD_MANAGER, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::wait::Patience;

/// Change a cluster: the number of its machines, their class and storage class, its settings
///
/// The change is tried on the server first, which says what would be replaced. Without --yes a person is asked. Another release
/// is asked for with `windlass upgrade`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  windlass update my-tkc --set topology.workers.count=5\n  windlass update my-tkc --set topology.controlPlane.class=best-effort-large --dry-run\n  windlass plan my-tkc --set topology.workers.class=best-effort-large    what would be done, machine by machine"
)]
pub struct Update {
    /// The cluster
    cluster: ClusterName,
    /// Another value of a field under topology or settings: topology.workers.count=5. May be given several times
    #[arg(long, value_name = "FIELD=VALUE", required = true, value_parser = setting)]
    set: Vec<Setting>,
    /// Show what would be changed, and change nothing
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Write it as a document instead, for scripts, or the name of the cluster
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    connection: Connection,
}

/// A setting; whoever names a release is told the command for it.
fn setting(text: &str) -> Result<Setting, String> {
    text.parse().map_err(|error| match error {
        SettingError::Release(field) => format!("{field:?} names a release: use windlass upgrade CLUSTER --to RELEASE"),
        other => other.to_string(),
    })
}

/// What `update -o` writes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdateReport<'a> {
    cluster: &'a ClusterName,
    /// What the server said would come of it.
    warnings: &'a [String],
    changes: &'a [FieldChange],
    outcome: Outcome,
}

/// A field that is another now.
#[derive(Debug, PartialEq, Serialize)]
struct FieldChange {
    field: String,
    from: Value,
    to: Value,
}

/// How it went.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    NothingToDo,
    DryRun,
    Begun,
    Succeeded,
}

impl Update {
    /// Tries it, asks, and writes it.
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let cluster = management.cluster(&self.cluster).await?;
        let Wish::Patch(patch) = Wish::fields(None, &self.set) else { return Err(Error::Nothing.into()) };
        let tried = self.patch(&management, &patch, true).await?;
        let warnings = management.warnings();
        for warning in &warnings {
            output::warning(warning);
        }
        let changes = differences(&json!(cluster.spec), &json!(tried.spec));
        if changes.is_empty() {
            return self.tell(&warnings, &changes, Outcome::NothingToDo);
        }
        if self.dry_run {
            return self.tell(&warnings, &changes, Outcome::DryRun);
        }
        if !self.yes {
            self.ask(&changes)?;
        }
        let begun = self.patch(&management, &patch, false).await?;
        management.warnings().iter().for_each(|warning| output::warning(warning));
        let generation = begun.metadata.generation.unwrap_or_default();
        if self.patience.wait(&management, &self.cluster, generation).await?.is_some() {
            return self.tell(&warnings, &changes, Outcome::Succeeded);
        }
        output::note(&format!("Next: windlass status {} --watch", self.cluster));
        self.tell(&warnings, &changes, Outcome::Begun)
    }

    async fn patch(
        &self,
        management: &Management,
        patch: &Value,
        dry_run: bool,
    ) -> Result<TanzuKubernetesCluster, client::Error> {
        let field_manager = Some(FIELD_MANAGER.to_owned());
        let parameters = PatchParams { dry_run, field_manager, ..PatchParams::default() };
        let api = management.api::<TanzuKubernetesCluster>();
        let patched = api.patch(self.cluster.as_str(), &parameters, &Patch::Merge(patch)).await;
        patched.map_err(client::Error::while_trying(&format!("update {}", self.cluster)))
    }

    fn ask(&self, changes: &[FieldChange]) -> Result<(), Error> {
        let refused = |asked| Error::NotConfirmed { cluster: self.cluster.clone(), asked };
        let question = format!("Update {}: {}?", self.cluster, shown(changes));
        match ask(&question).map_err(Error::Terminal)? {
            Answer::Yes => Ok(()),
            Answer::No => Err(refused(true)),
            Answer::NobodyThere => Err(refused(false)),
        }
    }

    fn tell(&self, warnings: &[String], changes: &[FieldChange], outcome: Outcome) -> Result<Exit, Failure> {
        let cluster = &self.cluster;
        if let Some(format) = self.output {
            let report = UpdateReport { cluster, warnings, changes, outcome };
            format.tell(&format!("tanzukubernetescluster.run.tanzu.vmware.com/{cluster}"), "UpdateReport", report)?;
            return Ok(Exit::Done);
        }
        let changes = shown(changes);
        output::data(&match outcome {
            Outcome::NothingToDo => format!("cluster {cluster} is asked to be so already"),
            Outcome::DryRun => format!("cluster {cluster} updated (dry run): {changes}"),
            Outcome::Begun => format!("cluster {cluster} is being updated: {changes}"),
            Outcome::Succeeded => format!("cluster {cluster} is updated: {changes}"),
        })?;
        Ok(Exit::Done)
    }
}

fn shown(changes: &[FieldChange]) -> String {
    let text = |value: &Value| match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let one = |change: &FieldChange| format!("{} {} -> {}", change.field, text(&change.from), text(&change.to));
    changes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The fields that are others, by the paths that people set them with.
fn differences(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    compare("", before, after, &mut changes);
    changes
}

fn compare(path: &str, before: &Value, after: &Value, changes: &mut Vec<FieldChange>) {
    if before == after {
        return;
    }
    let (Some(was), Some(is)) = (before.as_object(), after.as_object()) else {
        changes.push(FieldChange { field: path.to_owned(), from: before.clone(), to: after.clone() });
        return;
    };
    let added = is.keys().filter(|field| !was.contains_key(*field));
    for field in was.keys().chain(added) {
        let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
        compare(&path, &before[field.as_str()], &after[field.as_str()], changes);
    }
}

/// Nobody said yes.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("nothing is asked for")]
    Nothing,
    #[error("{cluster} is not updated: {}", if *asked { "the answer was no" } else { "nobody is there to ask, and --yes was not given" })]
    NotConfirmed { cluster: ClusterName, asked: bool },
    #[error("cannot ask on this terminal")]
    Terminal(#[source] io::Error),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Nothing | Self::NotConfirmed { .. } => Kind::User,
            Self::Terminal(_) => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Nothing => "--set FIELD=VALUE".to_owned(),
            Self::NotConfirmed { .. } => "windlass plan with the same --set, then the same with --yes".to_owned(),
            Self::Terminal(_) => "--yes".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_for_another_command() {
        let refused = setting("distribution.version=v1.17").unwrap_err();
        assert_eq!(refused, "\"distribution.version\" names a release: use windlass upgrade CLUSTER --to RELEASE");
        assert!(setting("topology.workers.count=5").is_ok());
        assert!(setting("metadata.name=x").is_err());
    }

    #[test]
    fn what_is_another_is_told_field_by_field() {
        let before = json!({"topology": {"workers": {"count": 1, "class": "small"}}});
        let after = json!({"topology": {"workers": {"count": 5, "class": "small"}}, "settings": {"network": null}});
        let changes = differences(&before, &after);
        assert_eq!(shown(&changes), "topology.workers.count 1 -> 5, settings nothing -> {\"network\":null}");
        assert!(differences(&before, &before).is_empty());
    }
}
