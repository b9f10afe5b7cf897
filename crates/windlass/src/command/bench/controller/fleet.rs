//! The clusters of a measurement: all alike, made and upgraded at once.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::try_join_all;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::{annotation, label};
use windlass_reference::Error;
use windlass_rehearse::sweep::Size;

/// One of them, and the name that it has there.
const EXAMPLE: &str = include_str!("../../../../../../deploy/examples/release-by-label.yaml");
const EXAMPLE_NAME: &str = "shop";
const OLD: &str = "35.2.0";
const NEW: &str = "36.1.0";

/// How often it is looked how far they are.
const POLL: Duration = Duration::from_secs(2);
/// How long nothing may come forward before something is wrong.
const PATIENCE: Duration = Duration::from_secs(600);
/// How many are created at a time.
const AT_ONCE: usize = 10;

/// The clusters, with the release that they were made with.
pub struct Fleet {
    client: Client,
    clusters: u32,
    size: Size,
}

fn name(number: u32) -> String {
    format!("fleet-{number:03}")
}

impl Fleet {
    /// Creates so many, and waits until all of their machines are there.
    pub async fn create(client: Client, clusters: u32, size: Size) -> Result<Self, Error> {
        let fleet = Self { client, clusters, size };
        let numbers: Vec<u32> = (0..clusters).collect();
        for some in numbers.chunks(AT_ONCE) {
            try_join_all(some.iter().map(|number| fleet.create_one(*number))).await?;
        }
        fleet.until(OLD, clusters).await?;
        Ok(fleet)
    }

    async fn create_one(&self, number: u32) -> Result<(), Error> {
        let objects: Vec<Value> = serde_saphyr::from_multiple(&EXAMPLE.replace(EXAMPLE_NAME, &name(number)))?;
        for mut object in objects {
            match object["kind"].as_str() {
                Some("KubeadmControlPlane") => object["spec"]["replicas"] = json!(self.size.control_plane),
                Some("MachineDeployment") => object["spec"]["replicas"] = json!(self.size.workers),
                _ => {}
            }
            let object: DynamicObject = serde_json::from_value(object)?;
            let kind = GroupVersionKind::try_from(object.types.as_ref().ok_or("an object without a kind")?)?;
            let api: Api<DynamicObject> =
                Api::default_namespaced_with(self.client.clone(), &ApiResource::from_gvk(&kind));
            api.create(&PostParams::default(), &object).await?;
        }
        Ok(())
    }

    /// Labels so many with the newer release, waits until they have it, and says how many machines were made for that.
    pub async fn upgrade(&self, count: u32) -> Result<u32, Error> {
        let before = self.machines().await?;
        let clusters: Api<Cluster> = Api::default_namespaced(self.client.clone());
        let patch = Patch::Merge(json!({"metadata": {"labels": {label::RELEASE_VERSION.name: NEW}}}));
        for number in 0..count {
            clusters.patch(&name(number), &PatchParams::default(), &patch).await?;
        }
        self.until(NEW, count).await?;
        Ok(u32::try_from(self.machines().await?.difference(&before).count())?)
    }

    /// The machines that there are, by what tells each from all others.
    async fn machines(&self) -> Result<BTreeSet<String>, Error> {
        let machines: Api<Machine> = Api::default_namespaced(self.client.clone());
        let listed = machines.list_metadata(&ListParams::default()).await?;
        Ok(listed.items.into_iter().filter_map(|machine| machine.uid()).collect())
    }

    /// Waits until so many clusters have a release, and the machines of all are neither more nor fewer than they should be.
    async fn until(&self, release: &str, count: u32) -> Result<(), Error> {
        let clusters: Api<Cluster> = Api::default_namespaced(self.client.clone());
        let wanted = self.clusters * (self.size.control_plane + self.size.workers);
        let (mut furthest, mut since) = ((0, 0), tokio::time::Instant::now());
        loop {
            let all = clusters.list(&ListParams::default()).await?.items;
            let there = all.iter().filter(|cluster| has(cluster, release)).count();
            let machines = self.machines().await?.len();
            if there == count as usize && machines == wanted as usize {
                return Ok(());
            }
            if furthest != (there, machines) {
                (furthest, since) = ((there, machines), tokio::time::Instant::now());
            }
            if since.elapsed() > PATIENCE {
                let found = all.iter().find(|cluster| !has(cluster, release)).map(said).unwrap_or_default();
                return Err(format!(
                    "{there} of {count} clusters have the release {release}, and there are {machines} of {wanted} machines; \
                     nothing has changed for {} minutes. {found}",
                    PATIENCE.as_secs() / 60,
                )
                .into());
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// Whether a cluster was brought to a release, with all of its machines.
fn has(cluster: &Cluster, release: &str) -> bool {
    let deployed = cluster.annotations().get(annotation::LAST_DEPLOYED_VERSION.name).map(String::as_str);
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let applied = ConditionType::ReleaseApplied.among(conditions);
    deployed == Some(release) && applied.is_some_and(|it| it.status == "True" && it.message == release)
}

/// What a cluster says of itself.
fn said(cluster: &Cluster) -> String {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let lines = conditions.iter().map(|it| format!("{}={} {}", it.type_, it.status, it.message));
    format!("{}: {}", cluster.name_any(), lines.collect::<Vec<_>>().join("; "))
}
