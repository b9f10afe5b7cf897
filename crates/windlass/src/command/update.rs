//! `windlass update`: the one write by which other machines, other disks or another network setting are asked for, or new
//! defaults of Windlass agreed to.

use std::io;

use kube::api::{Patch, PatchParams};
use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::ClusterName;
use windlass_rehearse::rehearsal::{Setting, SettingError, Wish};

use crate::ask::{Answer, ask};
use crate::changed::Changed;
use crate::client::{self, Connection, FIELD_MANAGER, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::pending::{self, Pending};
use crate::wait::Patience;

/// Change a cluster: the number of its machines, their class and storage class, its settings
///
/// The change is tried on the server first, which says what would be replaced. Without --yes a person is asked. Another release
/// is asked for with `windlass upgrade`.
///
/// Where a newer Windlass would make machines otherwise, it replaces none before somebody agrees, with --accept-defaults.
/// Without any of these it is said whether something waits for that.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  windlass update my-tkc --set topology.workers.count=5\n  windlass update my-tkc --set topology.controlPlane.class=best-effort-large --dry-run\n  windlass plan my-tkc --set topology.workers.class=best-effort-large    what would be done, machine by machine\n  windlass update my-tkc --accept-defaults    agree to what a newer Windlass replaces machines for"
)]
pub struct Update {
    /// The cluster
    cluster: ClusterName,
    /// Another value of a field under topology or settings: topology.workers.count=5. May be given several times
    #[arg(long, value_name = "FIELD=VALUE", value_parser = setting)]
    set: Vec<Setting>,
    /// Agree to what this Windlass decides otherwise than the one before it, and replaces machines for
    #[arg(long)]
    accept_defaults: bool,
    /// Show what would be changed, and change nothing
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Write it as a document instead, for scripts, or the name of the cluster. With --wait, JSON is a line for each change, and one
    /// for the end
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
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateReport<'a> {
    cluster: &'a ClusterName,
    /// What the server said would come of it.
    warnings: &'a [String],
    /// What waits for somebody to agree, or did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<&'a str>,
    changes: &'a [FieldChange],
    outcome: Outcome,
}

/// A field that is another now.
#[derive(Debug, PartialEq, Serialize, schemars::JsonSchema)]
struct FieldChange {
    field: String,
    from: Value,
    to: Value,
}

/// How it went.
#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    NothingToDo,
    Waiting,
    DryRun,
    Begun,
    Succeeded,
}

impl Update {
    /// Tries it, asks, and writes it.
    pub async fn run(mut self) -> Result<Exit, Failure> {
        self.patience = self.patience.in_lines_of(self.output);
        let management = self.connection.open().await?;
        let cluster = management.cluster(&self.cluster).await?;
        let pending = Pending::of(&cluster).filter(|pending| !pending.is_agreed(&cluster));
        if self.set.is_empty() && !self.accept_defaults {
            let pending = pending.ok_or(Error::Nothing)?;
            return self.tell(&Told { pending: Some(&pending), ..Told::default() }, Outcome::Waiting);
        }
        let agreed = pending.as_ref().filter(|_| self.accept_defaults);
        let patch = self.asked(&cluster, agreed);
        let tried = self.patch(&management, &patch, true).await?;
        let warnings = management.warnings();
        // To the server it is only worth a warning; whoever set it meant something by it.
        if let Some(unknown) = warnings.iter().find(|warning| warning.starts_with("unknown field ")) {
            return Err(Error::Unknown { cluster: self.cluster.clone(), unknown: unknown.clone() }.into());
        }
        for warning in &warnings {
            output::warning(warning);
        }
        let mut changes = differences(&json!(cluster.spec), &json!(tried.spec));
        changes.extend(agreed.map(|agreed| FieldChange::agreement(&cluster, agreed)));
        let told = Told { warnings: &warnings, pending: agreed, changes: &changes };
        if changes.is_empty() {
            let generation = cluster.metadata.generation.unwrap_or_default();
            self.patience.wait(&management, &self.cluster, generation).await?;
            return self.tell(&told, Outcome::NothingToDo);
        }
        if let Some(agreed) = agreed {
            output::say(agreed.what());
        }
        if self.dry_run {
            return self.tell(&told, Outcome::DryRun);
        }
        if !self.yes {
            self.ask(&changes)?;
        }
        let begun = self.patch(&management, &patch, false).await?;
        management.warnings().iter().for_each(|warning| output::warning(warning));
        let generation = begun.metadata.generation.unwrap_or_default();
        if self.patience.wait(&management, &self.cluster, generation).await?.is_some() {
            return self.tell(&told, Outcome::Succeeded);
        }
        // What is replaced is warned of.
        if pending::needs_approval(&begun) && !warnings.is_empty() {
            return self.tell(&told, Outcome::Waiting);
        }
        output::note(&format!("Next: windlass status {} --watch", self.cluster));
        self.tell(&told, Outcome::Begun)
    }

    /// The one write. Who agrees to something agrees to it as it was read.
    fn asked(&self, cluster: &TanzuKubernetesCluster, agreed: Option<&Pending>) -> Value {
        let mut patch = match Wish::fields(None, &self.set) {
            Wish::Patch(patch) => patch,
            Wish::Release { .. } | Wish::Delete | Wish::Nothing => json!({}),
        };
        if let Some(agreed) = agreed {
            patch["metadata"] = json!({
                "resourceVersion": cluster.metadata.resource_version,
                "annotations": {annotation::APPROVED.name: agreed.digest},
            });
        }
        patch
    }

    async fn patch(
        &self,
        management: &Management,
        patch: &Value,
        dry_run: bool,
    ) -> Result<TanzuKubernetesCluster, Failure> {
        let field_manager = Some(FIELD_MANAGER.to_owned());
        let parameters = PatchParams { dry_run, field_manager, ..PatchParams::default() };
        let api = management.api::<TanzuKubernetesCluster>();
        match api.patch(self.cluster.as_str(), &parameters, &Patch::Merge(patch)).await {
            Ok(patched) => Ok(patched),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                Err(Error::Changed { cluster: self.cluster.clone() }.into())
            }
            Err(error) => Err(client::Error::while_trying(&format!("update {}", self.cluster))(error).into()),
        }
    }

    fn ask(&self, changes: &[FieldChange]) -> Result<(), Error> {
        let next = if self.set.is_empty() { "the same" } else { "windlass plan with the same --set, then the same" };
        let refused = |asked| Error::NotConfirmed { cluster: self.cluster.clone(), asked, next };
        let question = if self.set.is_empty() {
            // What would be replaced was just told.
            format!("Agree to that for {}?", self.cluster)
        } else {
            format!("Update {}: {}?", self.cluster, shown(changes))
        };
        match ask(&question).map_err(Error::Terminal)? {
            Answer::Yes => Ok(()),
            Answer::No => Err(refused(true)),
            Answer::NobodyThere => Err(refused(false)),
        }
    }

    fn tell(&self, told: &Told<'_>, outcome: Outcome) -> Result<Exit, Failure> {
        let (cluster, pending) = (&self.cluster, told.pending.map(|pending| pending.message.as_str()));
        let exit = if matches!(outcome, Outcome::Waiting) { Exit::Waiting } else { Exit::Done };
        if let Some(format) = self.output {
            let report = UpdateReport { cluster, warnings: told.warnings, pending, changes: told.changes, outcome };
            if self.patience.is_in_lines() {
                output::data(&output::line("UpdateReport", &report)?)?;
            } else {
                format.tell_cluster(cluster, "UpdateReport", report)?;
            }
            return Ok(exit);
        }
        let changes = shown(told.changes);
        output::data(&match outcome {
            Outcome::NothingToDo if self.set.is_empty() => format!("cluster {cluster} has nothing to agree to"),
            Outcome::NothingToDo => format!("cluster {cluster} is asked to be so already"),
            Outcome::Waiting => match pending {
                Some(pending) => format!("cluster {cluster} is not updated: {pending}"),
                None => format!("cluster {cluster} waits for somebody to approve it: {changes}"),
            },
            Outcome::DryRun => format!("cluster {cluster} updated (dry run): {changes}"),
            Outcome::Begun => format!("cluster {cluster} is being updated: {changes}"),
            Outcome::Succeeded => format!("cluster {cluster} is updated: {changes}"),
        })?;
        Ok(exit)
    }
}

/// What there is to tell.
#[derive(Default)]
struct Told<'a> {
    warnings: &'a [String],
    pending: Option<&'a Pending>,
    changes: &'a [FieldChange],
}

impl FieldChange {
    fn agreement(cluster: &TanzuKubernetesCluster, agreed: &Pending) -> Self {
        Self {
            field: format!("metadata.annotations[{}]", annotation::APPROVED),
            from: json!(pending::agreed(cluster)),
            to: json!(agreed.digest),
        }
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
    NotConfirmed { cluster: ClusterName, asked: bool, next: &'static str },
    #[error("cannot ask on this terminal")]
    Terminal(#[source] io::Error),
    #[error("{cluster} is not updated: it was changed by somebody else after it was read")]
    Changed { cluster: ClusterName },
    #[error("{cluster} is not updated: {unknown}")]
    Unknown { cluster: ClusterName, unknown: String },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Nothing | Self::NotConfirmed { .. } | Self::Unknown { .. } => Kind::User,
            Self::Terminal(_) | Self::Changed { .. } => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Nothing => "--set FIELD=VALUE; nothing waits for --accept-defaults".to_owned(),
            Self::NotConfirmed { next, .. } => format!("{next} with --yes"),
            Self::Terminal(_) => "--yes".to_owned(),
            Self::Changed { cluster } => format!("windlass status {cluster}, then the same again"),
            Self::Unknown { .. } => {
                "a field of topology or settings: kubectl explain tanzukubernetescluster.spec --recursive".to_owned()
            }
        })
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Changed { .. } => Exit::Stale,
            Self::Unknown { .. } => Exit::Refused,
            Self::Nothing | Self::NotConfirmed { .. } | Self::Terminal(_) => Exit::Failed,
        }
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
