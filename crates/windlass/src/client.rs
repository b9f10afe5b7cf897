//! The way to a management cluster, and what can go wrong on it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use http::Response;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use kube::api::{Api, ListParams};
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::BoxError;
use tower::util::MapResponseLayer;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::label;
use windlass_api::name::{ClusterName, NameError, Namespace};

use crate::error::{Exit, Explained, Kind};
use crate::state;

/// Who wrote a field, when it was this program.
pub const FIELD_MANAGER: &str = "windlass-cli";

/// Which management cluster, and where in it.
#[derive(clap::Args)]
#[command(next_help_heading = "Management cluster")]
pub struct Connection {
    // In `help`, because markup that clippy wants in a doc comment would show.
    #[arg(long, value_name = "PATH", help = "The kubeconfig [default: $KUBECONFIG, or else the one that `up` wrote]")]
    kubeconfig: Option<PathBuf>,
    /// The context in it
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The namespace
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<Namespace>,
}

/// A management cluster that can be talked to.
#[derive(Clone)]
pub struct Management {
    /// Its API.
    pub client: Client,
    /// Where to look for objects, and to put them.
    pub namespace: Namespace,
    server: Server,
}

/// A cluster that can be planned and rehearsed.
pub enum AnyCluster {
    /// Windlass replaces its machines.
    Machines(Box<TanzuKubernetesCluster>),
    /// It is a Cluster of a class: Windlass brings its packages, and Cluster API its machines.
    OfClass,
    /// Its objects are its owner's, and a label names its release: Windlass brings them to that, and Cluster API its machines.
    ByLabel(Box<Cluster>),
}

impl AnyCluster {
    /// The one whose machines Windlass replaces.
    pub fn machines(&self) -> Option<&TanzuKubernetesCluster> {
        match self {
            Self::Machines(cluster) => Some(cluster),
            Self::OfClass | Self::ByLabel(_) => None,
        }
    }
}

/// What the server says beside its answers: warnings, and what time it is there.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Heard {
    /// When it last answered, by its own clock.
    date: Option<Timestamp>,
    /// Each text once.
    texts: Vec<String>,
    /// How many of them were told.
    told: usize,
}

impl Connection {
    /// Reads the kubeconfig. Nothing is sent yet.
    pub async fn open(&self) -> Result<Management, Error> {
        let kubeconfig = self.read()?;
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(Error::Kubeconfig)?;
        let namespace = match &self.namespace {
            Some(namespace) => namespace.clone(),
            None => config.default_namespace.parse().map_err(Error::Namespace)?,
        };
        let service = ClientBuilder::try_from(config).map_err(|source| Error::Client(Box::new(source)))?;
        let server = Server::default();
        let heard = server.clone();
        let listening = MapResponseLayer::new(move |response: Response<_>| {
            heard.hear(&response);
            response
        });
        Ok(Management { client: service.with_layer(&listening).build(), namespace, server })
    }

    /// The same, in a namespace that something else has named. One that a person has named counts for more.
    #[must_use]
    pub fn within(mut self, namespace: &Namespace) -> Self {
        self.namespace.get_or_insert_with(|| namespace.clone());
        self
    }

    /// The namespace where no kubeconfig is asked.
    pub fn namespace_or_default(&self) -> Result<Namespace, Error> {
        self.namespace.clone().map_or_else(|| "default".parse().map_err(Error::Namespace), Ok)
    }

    fn read(&self) -> Result<Kubeconfig, Error> {
        if let Some(path) = &self.kubeconfig {
            return Kubeconfig::read_from(path).map_err(Error::Kubeconfig);
        }
        if let Some(kubeconfig) = Kubeconfig::from_env().map_err(Error::Kubeconfig)? {
            return Ok(kubeconfig);
        }
        let path = state::kubeconfig().filter(|path| path.exists()).ok_or(Error::NoKubeconfig)?;
        Kubeconfig::read_from(path).map_err(Error::Kubeconfig)
    }
}

impl Management {
    /// One that is reached by this client.
    pub fn of(client: Client, namespace: Namespace) -> Self {
        Self { client, namespace, server: Server::default() }
    }

    /// The objects of a kind in the namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), self.namespace.as_str())
    }

    /// The cluster of that name, of any sort that can be planned and rehearsed.
    pub async fn any_cluster(&self, name: &ClusterName) -> Result<AnyCluster, Error> {
        let found = self.cluster(name).await;
        match found {
            Err(Error::OfClass { .. }) => Ok(AnyCluster::OfClass),
            Err(Error::NotOurs { .. } | Error::ByLabel { .. }) => {
                let cluster = self.api::<Cluster>().get_opt(name.as_str()).await;
                let cluster = cluster.map_err(Error::while_trying(&format!("read the cluster {name}")))?;
                match cluster {
                    Some(cluster) => Ok(AnyCluster::ByLabel(Box::new(cluster))),
                    None => found.map(|found| AnyCluster::Machines(Box::new(found))),
                }
            }
            found => found.map(|found| AnyCluster::Machines(Box::new(found))),
        }
    }

    /// The cluster of that name.
    pub async fn cluster(&self, name: &ClusterName) -> Result<TanzuKubernetesCluster, Error> {
        let found = self.api::<TanzuKubernetesCluster>().get_opt(name.as_str()).await;
        let found = found.map_err(Error::while_trying(&format!("read the cluster {name}")))?;
        if let Some(found) = found {
            return Ok(found);
        }
        let (name, namespace) = (name.clone(), self.namespace.clone());
        // It is only asked to say more: whoever cannot read Clusters is told what is known without.
        Err(match self.api::<Cluster>().get_opt(name.as_str()).await {
            Ok(Some(cluster)) if cluster.spec.topology.is_some() => Error::OfClass { name, namespace },
            Ok(Some(cluster))
                if cluster.metadata.labels.as_ref().is_some_and(|it| label::RELEASE_VERSION.is_in(it)) =>
            {
                Error::ByLabel { name, namespace }
            }
            Ok(Some(_)) => Error::NotOurs { name, namespace },
            Ok(None) | Err(_) => Error::NoCluster { name, namespace },
        })
    }

    /// All objects of a kind that has no namespaces.
    pub async fn all<K>(&self, what: &str) -> Result<Vec<K>, Error>
    where
        K: kube::Resource<Scope = kube::core::ClusterResourceScope> + Clone + std::fmt::Debug,
        K: serde::de::DeserializeOwned,
        K::DynamicType: Default,
    {
        let listed = Api::<K>::all(self.client.clone()).list(&ListParams::default()).await;
        Ok(listed.map_err(Error::while_trying(&format!("list the {what}")))?.items)
    }

    /// What the server warned of since the last time, each text once.
    pub fn warnings(&self) -> Vec<String> {
        self.server.news()
    }

    /// The time where the objects are: an embedded cluster may live faster than we do.
    pub fn now(&self) -> Timestamp {
        self.server.date().unwrap_or_else(wall_now)
    }
}

/// The wall clock.
#[allow(clippy::disallowed_methods, reason = "the binary is where real time is injected")]
pub fn wall_now() -> Timestamp {
    Timestamp::now()
}

impl Server {
    fn date(&self) -> Option<Timestamp> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).date
    }

    fn hear<B>(&self, response: &Response<B>) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let date = response.headers().get(http::header::DATE).and_then(|date| date.to_str().ok());
        if let Some(date) = date.and_then(|date| rfc2822::parse(date).ok()) {
            heard.date = Some(date.timestamp());
        }
        for value in response.headers().get_all(http::header::WARNING) {
            let text = value.to_str().ok().and_then(warning_text);
            if let Some(text) = text.filter(|text| !heard.texts.contains(text)) {
                heard.texts.push(text);
            }
        }
    }

    fn news(&self) -> Vec<String> {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let news = heard.texts[heard.told..].to_vec();
        heard.told = heard.texts.len();
        news
    }
}

/// The text of a `Warning` header: `299 - "text"`, with backslashes before quotes and backslashes.
fn warning_text(value: &str) -> Option<String> {
    let quoted = value.strip_prefix("299 ")?.split_once('"')?.1;
    let mut text = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => text.push(characters.next()?),
            other => text.push(other),
        }
    }
}

/// A request did not do what it was for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "there is no management cluster to talk to: neither --kubeconfig nor KUBECONFIG names one, and none was started here"
    )]
    NoKubeconfig,
    #[error("cannot use the kubeconfig")]
    Kubeconfig(#[source] KubeconfigError),
    #[error("the namespace of the context cannot be used")]
    Namespace(#[source] NameError),
    #[error("cannot make a client")]
    Client(#[source] Box<kube::Error>),
    #[error("there is no cluster {name} in the namespace {namespace}")]
    NoCluster { name: ClusterName, namespace: Namespace },
    #[error(
        "the cluster {name} in the namespace {namespace} is a Cluster of Cluster API that is rolled without Windlass: there is no TanzuKubernetesCluster {name}"
    )]
    NotOurs { name: ClusterName, namespace: Namespace },
    #[error(
        "the cluster {name} in the namespace {namespace} is a Cluster of a class, and this is for TanzuKubernetesClusters: Cluster API looks after its machines"
    )]
    OfClass { name: ClusterName, namespace: Namespace },
    #[error(
        "the cluster {name} in the namespace {namespace} is a Cluster whose release is a label, and this is for other clusters: Cluster API looks after its machines"
    )]
    ByLabel { name: ClusterName, namespace: Namespace },
    #[error("{why}")]
    Unread { why: String },
    #[error("cannot {attempt}: the server refuses: {message}")]
    Refused { attempt: String, message: String, code: u16 },
    #[error("cannot {attempt}: the server does not know this kind of object")]
    UnknownKind { attempt: String },
    #[error("cannot {attempt}: the server is not reached")]
    Unreachable { attempt: String, source: BoxError },
    #[error("cannot {attempt}")]
    Request { attempt: String, source: Box<kube::Error> },
}

impl Error {
    /// What a failed request means to somebody who was trying to do something: `list the machines`.
    pub fn while_trying(attempt: &str) -> impl FnOnce(kube::Error) -> Self {
        let attempt = attempt.to_owned();
        move |error| match error {
            // A path that nobody serves is answered without details: the kind is not installed.
            kube::Error::Api(status) if status.code == 404 && status.details.is_none() => Self::UnknownKind { attempt },
            kube::Error::Api(status) => Self::Refused { attempt, message: status.message.clone(), code: status.code },
            kube::Error::Service(source) => Self::Unreachable { attempt, source },
            other => Self::Request { attempt, source: Box::new(other) },
        }
    }
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::NoKubeconfig
            | Self::Kubeconfig(_)
            | Self::Namespace(_)
            | Self::NoCluster { .. }
            | Self::NotOurs { .. }
            | Self::OfClass { .. }
            | Self::ByLabel { .. }
            | Self::Refused { .. } => Kind::User,
            Self::UnknownKind { .. } | Self::Unreachable { .. } | Self::Unread { .. } => Kind::Environment,
            Self::Client(_) | Self::Request { .. } => Kind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoKubeconfig => "windlass up, in another terminal".to_owned(),
            Self::Kubeconfig(_) | Self::Client(_) => {
                "--kubeconfig PATH and --context NAME, of a kubeconfig that kubectl can use".to_owned()
            }
            Self::Namespace(_) => "--namespace NAME".to_owned(),
            Self::NoCluster { namespace, .. } => format!("windlass get clusters -n {namespace}"),
            Self::NotOurs { name, namespace } => {
                format!("kubectl get machines -n {namespace} -l {}={name}", label::CLUSTER_NAME.name)
            }
            Self::OfClass { name, namespace } => {
                format!("windlass status {name} -n {namespace}, windlass why {name} -n {namespace}")
            }
            Self::ByLabel { name, namespace } => {
                format!("windlass status {name} -n {namespace}, windlass diff {name} -n {namespace}")
            }
            Self::Unread { .. } | Self::Refused { code: 401 | 403, .. } => "kubectl auth whoami".to_owned(),
            Self::Refused { code: 404 | 409, .. } => "windlass get clusters".to_owned(),
            Self::Refused { .. } => "windlass release list, and --help for what else is accepted".to_owned(),
            Self::UnknownKind { .. } => {
                "--kubeconfig PATH, of a management cluster of Windlass: windlass up starts one".to_owned()
            }
            Self::Unreachable { .. } => "windlass up, or --kubeconfig PATH of a cluster that runs".to_owned(),
            Self::Request { .. } => "kubectl version, which shows whether the server answers".to_owned(),
        };
        Some(hint)
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Refused { code: 403 | 422, .. } => Exit::Refused,
            _ => Exit::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_read_as_it_was_meant() {
        let check =
            |value: &str, expected: Option<&str>| assert_eq!(warning_text(value).as_deref(), expected, "{value}");
        check(r#"299 - "all machines will be replaced""#, Some("all machines will be replaced"));
        check(r#"299 - "the field \"x\" \\ y" "a date""#, Some(r#"the field "x" \ y"#));
        check(r#"299 - "without an end"#, None);
        check("199 - \"something else\"", None);
    }
}
