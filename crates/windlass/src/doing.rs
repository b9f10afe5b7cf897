//! How a cluster is doing, whichever sort it is: what `status` and `why` show, and what is told to whoever waits.

use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryFutureExt as _};
use serde::Serialize;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::ClusterName;

use crate::changed::class_cluster_name;
use crate::client::{self, Management};
use crate::course::{self, ClassReport};
use crate::output::{self, Document};
use crate::progress::Progress;
use crate::report::{self, Report};
use crate::standing::Updated;
use crate::watch::Watch;

/// Which sort a cluster is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Windlass replaces its machines.
    Machines,
    /// It is of a class.
    OfClass,
    /// A label names its release.
    ByLabel,
}

/// How a cluster is doing.
pub enum Doing {
    /// One whose updates are on record.
    Recorded(Box<Report>),
    /// One of a class.
    OfClass(ClassReport),
}

impl Sort {
    /// The sort of the cluster of that name. One that is rolled without Windlass is of none.
    pub async fn of(management: &Management, name: &ClusterName) -> Result<Self, client::Error> {
        match management.cluster(name).await {
            Ok(_) => Ok(Self::Machines),
            Err(client::Error::OfClass { .. }) => Ok(Self::OfClass),
            Err(client::Error::ByLabel { .. }) => Ok(Self::ByLabel),
            Err(error) => Err(error),
        }
    }

    /// The object that a cluster is asked for with, as `kubectl -o name` writes it.
    pub fn written(self, name: &ClusterName) -> String {
        match self {
            Self::Machines => TanzuKubernetesCluster::written(name),
            Self::OfClass => class_cluster_name(name),
            Self::ByLabel => Cluster::written(name),
        }
    }

    /// Reads how a cluster is doing; nothing where it is gone.
    pub async fn read(self, management: &Management, name: &ClusterName) -> Result<Option<Doing>, client::Error> {
        match self {
            Self::Machines => recorded::<TanzuKubernetesCluster>(management, name).await,
            Self::OfClass => Ok(ClassReport::read(management, name).await?.map(Doing::OfClass)),
            Self::ByLabel => recorded::<Cluster>(management, name).await,
        }
    }

    /// How it is doing now, and whenever something of it changes; nothing where it is gone. What cannot be read is told, and
    /// tried again.
    pub fn follow(
        self,
        management: &Management,
        name: &ClusterName,
    ) -> BoxStream<'static, Result<Option<Doing>, String>> {
        match self {
            Self::Machines => watched::<TanzuKubernetesCluster>(management, name),
            Self::ByLabel => watched::<Cluster>(management, name),
            Self::OfClass => {
                let (management, name) = (management.clone(), name.clone());
                let news = stream::once(async {}).chain(course::events(&management, &name));
                let look = move |()| {
                    let (management, name) = (management.clone(), name.clone());
                    async move { self.read(&management, &name).map_err(|error| error.to_string()).await }
                };
                news.then(look).boxed()
            }
        }
    }
}

async fn recorded<K: Updated>(management: &Management, name: &ClusterName) -> Result<Option<Doing>, client::Error> {
    let found = management.api::<K>().get_opt(name.as_str()).await;
    let found = found.map_err(client::Error::while_trying(&format!("read the cluster {name}")))?;
    let Some(cluster) = found else { return Ok(None) };
    Ok(Some(Doing::Recorded(Box::new(report::read(management, &cluster).await?))))
}

fn watched<K: Updated>(
    management: &Management,
    name: &ClusterName,
) -> BoxStream<'static, Result<Option<Doing>, String>> {
    let watch = Watch::<K>::new(management, name);
    let management = management.clone();
    let looks = stream::unfold((watch, management), |(mut watch, management)| async move {
        loop {
            let seen = match watch.next().await? {
                Ok(seen) if seen.gone => Ok(None),
                Ok(seen) => match seen.report(management.now()) {
                    Some(report) => Ok(Some(Doing::Recorded(Box::new(report)))),
                    None => continue,
                },
                Err(error) => Err(error.to_string()),
            };
            return Some((seen, (watch, management)));
        }
    });
    looks.boxed()
}

/// Whether what was waited for has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Stand<'a> {
    /// It is what it is asked to be.
    Reached,
    /// Its update has given up.
    Failed(&'a str),
    /// It is on its way.
    Going,
}

impl Doing {
    /// For people.
    pub fn text(&self) -> String {
        match self {
            Self::Recorded(report) => report.text(),
            Self::OfClass(report) => report.text(),
        }
    }

    /// For scripts.
    pub fn document(&self) -> Document<&Self> {
        match self {
            Self::Recorded(_) => Document::new("StatusReport", self),
            Self::OfClass(_) => Document::new("ClassStatusReport", self),
        }
    }

    /// The same as a line of JSON.
    pub fn line(&self) -> Result<String, output::Error> {
        serde_json::to_string(&self.document()).map_err(output::Error::Json)
    }

    /// Shows it to somebody who waits.
    pub fn show(&self, progress: &mut Progress) {
        match self {
            Self::Recorded(report) => progress.show(report),
            Self::OfClass(report) => {
                let first = report.waits.first();
                // Where waiting does not help, what does is told to whoever waits.
                let way_out = first.and_then(|wait| wait.way_out.as_ref()).filter(|_| report.is_stalled());
                let way_out = way_out.map(|way_out| format!("; way out: {way_out}")).unwrap_or_default();
                let message = first.map_or("machines follow", |wait| wait.message.as_str());
                progress.tell(&format!("{message}{way_out}"));
            }
        }
    }

    /// The release that it is asked to have.
    pub fn release(&self) -> Option<&str> {
        match self {
            Self::Recorded(report) => report.release.as_deref(),
            Self::OfClass(report) => report.release.as_deref(),
        }
    }

    /// Whether it is what it is asked to be.
    pub fn stand(&self) -> Stand<'_> {
        let (reached, failure) = match self {
            Self::Recorded(report) => (report.reached, report.failed_update().and_then(|it| it.failure.as_deref())),
            Self::OfClass(report) => (report.reached, None),
        };
        match failure {
            Some(why) => Stand::Failed(why),
            None if reached => Stand::Reached,
            None => Stand::Going,
        }
    }
}

impl Serialize for Doing {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Recorded(report) => report.serialize(serializer),
            Self::OfClass(report) => report.serialize(serializer),
        }
    }
}
