//! How a cluster of a class is doing, from the objects that say so: what `status` and `why` show of it.

use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all};
use kube::ResourceExt as _;
use kube::api::ListParams;
use kube::runtime::watcher;
use serde::Serialize;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::kind::cluster_update::WaitingFor;
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::label;
use windlass_api::name::ClusterName;
use windlass_plan::bootstrap::course::Course;
use windlass_plan::hook;
use windlass_plan::word::Word;

use crate::client::{Error, Management};
use crate::output;
use crate::report::MachineReport;
use crate::watch::changes;

/// How a cluster of a class is doing.
#[derive(Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassReport {
    pub cluster: String,
    pub namespace: String,
    /// The whole in one word.
    pub assessment: &'static str,
    /// The release that it is asked to have.
    pub release: Option<String>,
    /// The release that its packages are of.
    pub packages_of: Option<String>,
    /// What is waited for, in the order in which a person would have to deal with it.
    pub waits: Vec<WaitingFor>,
    pub machines: Vec<MachineReport>,
    /// What would be done if somebody agreed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
    /// It is what it is asked to be.
    #[serde(skip)]
    pub reached: bool,
}

impl ClassReport {
    /// Reads what belongs to a cluster; nothing where it is gone.
    pub async fn read(management: &Management, name: &ClusterName) -> Result<Option<Self>, Error> {
        let cluster = management.api::<Cluster>().get_opt(name.as_str()).await;
        let cluster = cluster.map_err(Error::while_trying(&format!("read the cluster {name}")))?;
        let Some(cluster) = cluster else { return Ok(None) };
        let bootstrap = management.api::<ClusterBootstrap>().get_opt(name.as_str()).await;
        let bootstrap = bootstrap.map_err(Error::while_trying(&format!("read the packages of {name}")))?;
        let machines = management.api::<Machine>().list(&ListParams::default().labels(&of(name))).await;
        let machines = machines.map_err(Error::while_trying("list the machines"))?;
        Ok(Some(Self::of(&cluster, bootstrap.as_ref(), &machines.items)))
    }

    fn of(cluster: &Cluster, bootstrap: Option<&ClusterBootstrap>, machines: &[Machine]) -> Self {
        let course = Course { cluster, bootstrap };
        let mut machines: Vec<MachineReport> = machines.iter().map(MachineReport::of).collect();
        machines.sort_by(|a, b| a.place().cmp(&b.place()));
        Self {
            cluster: cluster.name_any(),
            namespace: cluster.namespace().unwrap_or_default(),
            assessment: course.word().as_str(),
            release: hook::release(cluster).map(str::to_owned),
            packages_of: course.packages_of().map(str::to_owned),
            waits: course.waits(),
            pending: course.pending().map(|pending| pending.message.clone()),
            reached: course.reached().is_some(),
            machines,
        }
    }

    /// Whether waiting alone does not help any more.
    pub fn is_stalled(&self) -> bool {
        self.assessment == Word::Stalled.as_str()
    }

    /// What people see.
    pub fn text(&self) -> String {
        let release = output::cell(self.release.as_ref());
        let mut head = vec![format!("{}  {}  {release}", self.cluster, self.assessment.to_uppercase())];
        if let Some(of) = self.packages_of.as_ref().filter(|of| Some(*of) != self.release.as_ref()) {
            head.push(format!("  packages: still those of {of}"));
        }
        for wait in &self.waits {
            head.push(format!("  waiting for: {}: {}", wait.object, wait.message));
            head.extend(wait.way_out.iter().map(|way_out| format!("    way out: {way_out}")));
        }
        head.extend(self.pending.iter().map(|pending| format!("  pending: {pending}")));
        let head = head.join("\n");
        let rows = self.machines.iter().map(MachineReport::row);
        let machines = output::table(&MachineReport::HEAD, rows);
        if self.machines.is_empty() { head } else { format!("{head}\n\n{machines}") }
    }
}

/// Whenever something of a cluster changes.
pub fn events(management: &Management, name: &ClusterName) -> BoxStream<'static, ()> {
    let named = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let labelled = watcher::Config::default().labels(&of(name));
    select_all([
        changes(management.api::<Cluster>(), named.clone()).boxed(),
        changes(management.api::<ClusterBootstrap>(), named).boxed(),
        changes(management.api::<Machine>(), labelled).boxed(),
    ])
    .boxed()
}

fn of(name: &ClusterName) -> String {
    format!("{}={name}", label::CLUSTER_NAME.name)
}
