//! `windlass describe`: a cluster as a tree, from the object that people write down to its machines.

mod class;
pub mod tree;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams};
use kube::{Resource as _, ResourceExt as _};
use windlass_api::kind::cluster_api::{Cluster, MachineDeployment};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::{Condition, condition};
use windlass_api::label;
use windlass_api::name::{ClusterName, ClusterSecret};
use windlass_plan::render::job;

use self::tree::Branch;
use crate::changed::Changed;
use crate::client::{Connection, Error, Management};
use crate::doing::{Doing, Sort};
use crate::error::{Exit, Failure};
use crate::output;
use crate::report::{CONTROL_PLANE, MachineReport, Report, UpdateReport};

/// Show a cluster and all that it consists of, as a tree
///
/// Machines, pools, add-ons or packages, certificates (whether they are there, never what is in them) and the update that runs or ran
/// last, each with how it is.
#[derive(clap::Args)]
pub struct Describe {
    /// The cluster
    cluster: ClusterName,
    /// Write it as a document instead, for scripts, or the name of the cluster
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

impl Describe {
    /// Reads it, and shows it.
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let sort = Sort::of(&management, &self.cluster).await?;
        let gone = || Error::NoCluster { name: self.cluster.clone(), namespace: management.namespace.clone() };
        let tree = match sort.read(&management, &self.cluster).await?.ok_or_else(gone)? {
            Doing::Recorded(report) => {
                let update = report.update.as_ref().map(|update| update.id.as_str());
                tree(sort, &report, &Parts::read(&management, &self.cluster, update).await?)
            }
            Doing::OfClass(report) => class::tree(&management, &self.cluster, &report).await?,
        };
        match self.output {
            Some(format) => format.tell(&sort.written(&self.cluster), "ClusterDescription", tree)?,
            None => output::data(&tree.text())?,
        }
        Ok(Exit::Done)
    }
}

/// What a report does not have.
struct Parts {
    cluster: Option<Cluster>,
    /// Who rolls the machines of the control plane, where Windlass does not.
    control_plane: Option<KubeadmControlPlane>,
    deployments: Vec<MachineDeployment>,
    /// The Secrets that are there, by name.
    secrets: Vec<(String, bool)>,
    job: Option<Job>,
}

impl Parts {
    /// `update` is the id of the update whose Job is looked for.
    async fn read(management: &Management, name: &ClusterName, update: Option<&str>) -> Result<Self, Error> {
        let of_cluster = ListParams::default().labels(&format!("{}={name}", label::CLUSTER_NAME.name));
        let cluster = management.api::<Cluster>().get_opt(name.as_str()).await;
        let cluster = cluster.map_err(Error::while_trying("read the Cluster"))?;
        let control_plane = match cluster.as_ref().and_then(|cluster| cluster.spec.control_plane_ref.as_ref()) {
            Some(reference) if reference.kind == KubeadmControlPlane::kind(&()) => {
                let found = management.api::<KubeadmControlPlane>().get_opt(&reference.name).await;
                found.map_err(Error::while_trying(&format!("read the KubeadmControlPlane {}", reference.name)))?
            }
            Some(_) | None => None,
        };
        let deployments = management.api::<MachineDeployment>().list(&of_cluster).await;
        // Metadata is all that is asked for: what is in a Secret stays where it is.
        let secrets = management.api::<Secret>().list_metadata(&ListParams::default()).await;
        let secrets = secrets.map_err(Error::while_trying("list the names of Secrets"))?;
        let known = ClusterSecret::CERTIFICATES.into_iter().chain([ClusterSecret::Kubeconfig]);
        let known = known.map(|secret| secret.object_name(name).to_string());
        let is_there = |name: &String| secrets.items.iter().any(|secret| secret.name_any() == *name);
        let job = match update {
            Some(update) => {
                let jobs: Api<Job> = Api::namespaced(management.client.clone(), job::NAMESPACE);
                let found = jobs.get_opt(&format!("update-{update}")).await;
                found.map_err(Error::while_trying("read the Job of the update"))?
            }
            None => None,
        };
        Ok(Self {
            cluster,
            control_plane,
            deployments: deployments.map_err(Error::while_trying("list the pools"))?.items,
            secrets: known.map(|name| (is_there(&name), name)).map(|(there, name)| (name, there)).collect(),
            job,
        })
    }
}

fn tree(sort: Sort, report: &Report, parts: &Parts) -> Branch {
    let state = format!("{}  {}", report.assessment.to_uppercase(), report.releases());
    let mut root = Branch::new(report.object.as_str(), state);
    root.parts.extend(report.waiting_for.iter().map(|why| Branch::new("waiting for", why.as_str())));
    let status = parts.cluster.as_ref().map(|cluster| cluster.status.clone().unwrap_or_default().conditions);
    let own = availability(status.as_deref());
    // Where it is the object that people ask with, it is the root.
    root.parts.push(match sort {
        Sort::ByLabel => Branch::new("Cluster API says", own),
        Sort::Machines | Sort::OfClass => Branch::new(format!("Cluster/{}", report.cluster), own),
    });
    root.parts.extend(of_roles(parts, &report.machines));
    let addons = report.addons.iter().map(|addon| {
        let status = format!("{:?}", addon.status).to_lowercase();
        let error = addon.last_error_message.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        Branch::new(addon.name.as_str(), format!("{status} {}{error}", output::cell(addon.version.as_ref())))
    });
    let addons = Branch::new("add-ons", "").with(addons);
    root.parts.extend((sort != Sort::ByLabel).then_some(addons));
    root.parts.push(secrets(parts));
    root.parts.extend(report.update.as_ref().map(|update| of_update(update, parts.job.as_ref())));
    root
}

/// The control plane, and the pools.
fn of_roles(parts: &Parts, all: &[MachineReport]) -> Vec<Branch> {
    let control_plane = match &parts.control_plane {
        None => machines("control plane", CONTROL_PLANE, None, all),
        Some(found) => {
            let title = format!("KubeadmControlPlane/{}", found.name_any());
            machines(&title, CONTROL_PLANE, Some(found.spec.replicas.unwrap_or(1)), all)
        }
    };
    let pools = parts.deployments.iter().map(|deployment| {
        let name = deployment.name_any();
        machines(&format!("MachineDeployment/{name}"), &name, deployment.spec.replicas, all)
    });
    [control_plane].into_iter().chain(pools).collect()
}

fn secrets(parts: &Parts) -> Branch {
    let secrets = parts
        .secrets
        .iter()
        .map(|(name, there)| Branch::new(format!("Secret/{name}"), if *there { "✔ there" } else { "✖ missing" }));
    Branch::new("certificates and keys", "").with(secrets)
}

/// Whether Cluster API calls something available, by its conditions; nothing where it is not there.
fn availability(conditions: Option<&[Condition]>) -> String {
    match conditions.map(|conditions| condition(conditions, "Available")) {
        None => "✖ missing".to_owned(),
        Some(Some(available)) if available.status == "True" => "✔ available".to_owned(),
        Some(Some(available)) => format!("… not available: {}", first_line(&available.message)),
        Some(None) => "… nothing is said of it yet".to_owned(),
    }
}

/// The machines of a role.
fn machines(title: &str, role: &str, wanted: Option<u32>, all: &[MachineReport]) -> Branch {
    let machines = || all.iter().filter(|machine| machine.role == role);
    let ready = machines().filter(|machine| machine.ready).count();
    let of = wanted.and_then(|wanted| usize::try_from(wanted).ok()).unwrap_or_else(|| machines().count());
    let sign = if ready == of { '✔' } else { '…' };
    Branch::new(title, format!("{sign} {ready}/{of} ready")).with(machines().map(machine))
}

fn machine(machine: &MachineReport) -> Branch {
    let sign = if machine.ready { '✔' } else { '…' };
    let phase = machine.phase.as_deref().unwrap_or("Pending");
    let why = machine.message.as_deref().map(|why| format!(": {}", first_line(why))).unwrap_or_default();
    let state = format!("{sign} {phase} {}{why}", output::cell(machine.version.as_ref()));
    let node = machine.node.as_ref().map(|node| Branch::new(format!("Node/{node}"), ""));
    Branch::new(format!("Machine/{}", machine.name), state).with(node)
}

fn of_update(update: &UpdateReport, job: Option<&Job>) -> Branch {
    let state = update.state.map(|state| format!("{state:?}")).unwrap_or_default();
    let stages = update.stages.iter().map(|stage| {
        let count = stage.progress.map(|count| format!(" {}/{}", count.done, count.of)).unwrap_or_default();
        let waiting =
            stage.waiting_for.iter().map(|waiting| Branch::new(waiting.object.as_str(), waiting.message.as_str()));
        let word = format!("{} {}{count}", stage.state.sign(), stage.state.as_str());
        Branch::new(stage.stage.to_string(), word).with(waiting)
    });
    let job = job.map(|job| {
        let status = job.status.clone().unwrap_or_default();
        let count = |count: Option<i32>| count.unwrap_or_default();
        let state = format!(
            "{} active, {} failed, {} succeeded",
            count(status.active),
            count(status.failed),
            count(status.succeeded)
        );
        Branch::new(format!("Job/{}", job.name_any()), state)
    });
    let way = format!("{state}  {} -> {}", update.from, update.to);
    Branch::new(format!("ClusterUpdate/{}", update.name), way).with(stages.chain(job))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
