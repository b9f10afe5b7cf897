//! `windlass status`: one word first, then what waits for what.

use std::pin::pin;

use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use kube::api::ListParams;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde::Serialize;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::{ClusterUpdate, StageRecord, UpdateState, WaitingFor};
use windlass_api::kind::tanzu::{AddonStatus, Phase, TanzuKubernetesCluster};
use windlass_api::kind::{condition, is_true};
use windlass_api::label;
use windlass_api::name::ClusterName;
use windlass_plan::step::Stage;

use crate::client::{self, Connection, Management};
use crate::error::{Exit, Failure};
use crate::output::{self, Document, Format};

/// Show how a cluster is doing, and what it waits for
#[derive(clap::Args)]
pub struct Status {
    /// The cluster
    cluster: ClusterName,
    /// Show it again whenever it changes
    #[arg(short, long)]
    watch: bool,
    /// Write it as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

impl Status {
    /// Shows it, once or until Ctrl-C.
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let cluster = management.cluster(&self.cluster).await?;
        if !self.watch {
            self.show(&management, &cluster).await?;
            return Ok(Exit::Done);
        }
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
            ended = self.follow(&management) => ended.map(|()| Exit::Done),
        }
    }

    async fn follow(&self, management: &Management) -> Result<(), Failure> {
        let changes = watcher::watch_object(management.api::<TanzuKubernetesCluster>(), self.cluster.as_str());
        let mut changes = pin!(changes.default_backoff());
        let mut last = None;
        while let Some(change) = changes.next().await {
            match change {
                Ok(Some(cluster)) => {
                    let report = report(management, &cluster).await?;
                    let shown = self.text(&report)?;
                    if last.as_ref() != Some(&shown) {
                        output::data(&shown)?;
                        last = Some(shown);
                    }
                }
                Ok(None) => {
                    output::say(&format!("{} is gone.", self.cluster));
                    return Ok(());
                }
                Err(error) => output::say(&format!("not watched: {error}")),
            }
        }
        Ok(())
    }

    async fn show(&self, management: &Management, cluster: &TanzuKubernetesCluster) -> Result<(), Failure> {
        let report = report(management, cluster).await?;
        match self.output {
            Some(format) => output::document(format, &Document::new("StatusReport", report))?,
            None => output::data(&report.text())?,
        }
        Ok(())
    }

    /// While watching, JSON has one line for each state.
    fn text(&self, report: &Report) -> Result<String, output::Error> {
        match self.output {
            None => Ok(format!("{}\n", report.text())),
            Some(Format::Json) => {
                serde_json::to_string(&Document::new("StatusReport", report)).map_err(output::Error::Json)
            }
            Some(Format::Yaml) => {
                let yaml = serde_saphyr::to_string(&Document::new("StatusReport", report));
                Ok(format!("---\n{}", yaml.map_err(|source| output::Error::Yaml(Box::new(source)))?))
            }
        }
    }
}

/// How a cluster is doing.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    cluster: String,
    namespace: String,
    /// The whole in one word.
    assessment: &'static str,
    /// What it is asked to be.
    release: Option<String>,
    /// What all of its machines are.
    running: Option<String>,
    waiting_for: Option<String>,
    update: Option<UpdateReport>,
    machines: Vec<MachineReport>,
    addons: Vec<AddonStatus>,
}

/// The update that runs, or ran last.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdateReport {
    name: String,
    state: Option<UpdateState>,
    from: String,
    to: String,
    envelope_digest: String,
    stages: Vec<StageReport>,
    failure: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StageReport {
    stage: Stage,
    state: &'static str,
    seconds: Option<i64>,
    waiting_for: Vec<WaitingFor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MachineReport {
    name: String,
    /// `control-plane`, or the deployment that it belongs to.
    role: String,
    version: Option<String>,
    phase: Option<String>,
    ready: bool,
    node: Option<String>,
    message: Option<String>,
}

async fn report(management: &Management, cluster: &TanzuKubernetesCluster) -> Result<Report, client::Error> {
    let name = cluster.name_any();
    let status = cluster.status.clone().unwrap_or_default();
    let update = match &status.update {
        Some(update) => {
            let found = management.api::<ClusterUpdate>().get_opt(update).await;
            found.map_err(client::Error::while_trying(&format!("read the update {update}")))?
        }
        None => None,
    };
    let of_cluster = ListParams::default().labels(&format!("{}={name}", label::CLUSTER_NAME.name));
    let machines = management.api::<Machine>().list(&of_cluster).await;
    let machines = machines.map_err(client::Error::while_trying("list the machines"))?;
    let mut machines: Vec<MachineReport> = machines.items.iter().map(MachineReport::of).collect();
    machines
        .sort_by(|a, b| (a.role != CONTROL_PLANE, &a.role, &a.name).cmp(&(b.role != CONTROL_PLANE, &b.role, &b.name)));
    Ok(Report {
        namespace: management.namespace.to_string(),
        assessment: status.phase.map_or("unknown", Phase::as_str),
        release: cluster.spec.distribution.full_version.clone(),
        running: status.version,
        waiting_for: status.waiting_for.filter(|text| !text.is_empty()),
        update: update.as_ref().map(UpdateReport::of),
        machines,
        addons: status.addons.into_values().collect(),
        cluster: name,
    })
}

const CONTROL_PLANE: &str = "control-plane";

impl MachineReport {
    fn of(machine: &Machine) -> Self {
        let status = machine.status.clone().unwrap_or_default();
        let role = if label::CONTROL_PLANE.is_in(machine.labels()) {
            CONTROL_PLANE.to_owned()
        } else {
            machine.labels().get(label::DEPLOYMENT_NAME.name).cloned().unwrap_or_default()
        };
        let ready = is_true(&status.conditions, "Ready");
        let why = condition(&status.conditions, "Ready").filter(|_| !ready).map(|ready| ready.message.clone());
        Self {
            name: machine.name_any(),
            role,
            version: machine.spec.version.clone(),
            phase: status.phase,
            ready,
            node: status.node_ref.map(|node| node.name),
            message: why.filter(|text| !text.is_empty()),
        }
    }

    /// Whether it is ready, and if not, why not.
    fn readiness(&self) -> String {
        match (self.ready, &self.message) {
            (true, _) => "yes".to_owned(),
            (false, None) => "no".to_owned(),
            (false, Some(why)) => format!("no: {why}"),
        }
    }
}

impl UpdateReport {
    fn of(update: &ClusterUpdate) -> Self {
        let status = update.status.clone().unwrap_or_default();
        let stages = Stage::ALL.map(|stage| {
            let record = status.stages.iter().find(|record| record.stage == stage.as_str());
            let waiting = status.waiting_for.iter().filter(|waiting| waiting.stage == stage.as_str()).cloned();
            StageReport::of(stage, record, waiting.collect(), status.state)
        });
        Self {
            name: update.name_any(),
            state: status.state,
            from: update.spec.from.distribution.clone(),
            to: update.spec.to.distribution.clone(),
            envelope_digest: update.spec.envelope_digest.clone(),
            stages: stages.into(),
            failure: status.failure,
        }
    }
}

impl StageReport {
    fn of(
        which: Stage,
        record: Option<&StageRecord>,
        waiting_for: Vec<WaitingFor>,
        update: Option<UpdateState>,
    ) -> Self {
        let started = record.and_then(|record| time(record.started_at.as_deref()));
        let finished = record.and_then(|record| time(record.finished_at.as_deref()));
        let state = match (started, finished, update) {
            (_, Some(_), _) | (_, _, Some(UpdateState::Succeeded)) => "done",
            (Some(_), None, Some(UpdateState::Failed)) => "failed",
            (None, None, Some(UpdateState::Failed)) => "not begun",
            _ if !waiting_for.is_empty() => "waiting",
            (Some(_), None, _) => "running",
            (None, None, _) => "not begun",
        };
        let seconds = started.zip(finished).map(|(started, finished)| finished.duration_since(started).as_secs());
        Self { stage: which, state, seconds, waiting_for }
    }
}

fn time(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

impl Report {
    fn text(&self) -> String {
        let mut sections = vec![self.head()];
        if let Some(update) = &self.update {
            sections.push(update.text());
        }
        if !self.machines.is_empty() {
            let rows = self.machines.iter().map(|machine| {
                vec![
                    machine.name.clone(),
                    machine.role.clone(),
                    output::cell(machine.version.as_ref()),
                    output::cell(machine.phase.as_ref()),
                    machine.readiness(),
                ]
            });
            sections.push(output::table(&["MACHINE", "ROLE", "VERSION", "PHASE", "READY"], rows));
        }
        if !self.addons.is_empty() {
            let rows = self.addons.iter().map(|addon| {
                let status = format!("{:?}", addon.status).to_lowercase();
                let error = addon.last_error_message.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
                vec![addon.name.clone(), output::cell(addon.version.as_ref()), format!("{status}{error}")]
            });
            sections.push(output::table(&["ADD-ON", "VERSION", "STATUS"], rows));
        }
        sections.join("\n\n")
    }

    /// The word, the release, and what is waited for.
    fn head(&self) -> String {
        let word = self.assessment.to_uppercase();
        let release = output::cell(self.release.as_ref());
        let release = match self.running.as_ref().filter(|running| Some(*running) != self.release.as_ref()) {
            Some(running) => format!("{running} -> {release}"),
            None => release,
        };
        let mut text = format!("{}  {word}  {release}", self.cluster);
        if let Some(waiting_for) = &self.waiting_for {
            text.push_str("\n  waiting for: ");
            text.push_str(waiting_for);
        }
        text
    }
}

impl UpdateReport {
    fn text(&self) -> String {
        let rows = self.stages.iter().flat_map(|stage| {
            let took = stage.seconds.map(|seconds| output::took(SignedDuration::from_secs(seconds)));
            let lines = stage.waiting_for.iter().flat_map(|waiting| {
                let since = waiting.since.as_ref().map(|since| format!(" (since {since})")).unwrap_or_default();
                let why = format!("{}: {}{since}", waiting.object, waiting.message);
                [Some(why), waiting.way_out.as_ref().map(|way_out| format!("  way out: {way_out}"))]
            });
            let mut waiting = lines.flatten();
            let first = vec![
                stage.stage.to_string(),
                stage.state.to_owned(),
                output::cell(took),
                waiting.next().unwrap_or_default(),
            ];
            let more = waiting.map(|waiting| vec![String::new(), String::new(), String::new(), waiting]);
            [first].into_iter().chain(more.collect::<Vec<_>>())
        });
        let table = output::table(&["STAGE", "STATE", "TOOK", "WAITING FOR"], rows);
        let failure = self.failure.as_ref().map(|why| format!("\nfailed: {why}")).unwrap_or_default();
        format!("update {}: {} -> {}\n{table}{failure}", self.name, self.from, self.to)
    }
}
