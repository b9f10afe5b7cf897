//! What Cluster API asks before it goes on, answered: the server behind an `ExtensionConfig`.
//!
//! Each answer is found out anew from the management API: nothing is kept, so that any replica answers the same, and a restart is
//! not noticed. When Cluster API has come somewhere, an Event of the Cluster says so. It has to be small and always there: Cluster API goes no further with any cluster while nobody answers, and does
//! not even start.
//!
//! A question comes as bytes and a path, whichever way it came: in a World through the process, on a cluster over HTTPS.

use std::time::Duration;

use kube::api::{ListParams, PostParams};
use kube::{Api, Client, Resource as _};
use windlass_api::hook::{API_VERSION, Answer, HookName, Question, discovery_path};
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::extension::{
    ExtensionClient, ExtensionConfig, ExtensionConfigSpec, ExtensionHandler, ExtensionService, Hook,
};
use windlass_api::kind::release::{ClusterBootstrap, ClusterBootstrapTemplate, TanzuKubernetesRelease};
use windlass_api::version::KubernetesVersion;
use windlass_plan::bootstrap::SYSTEM_NAMESPACE;
use windlass_plan::bootstrap::approval::{is_begun, needs_record};
use windlass_plan::hook::{Known, Reached, answer, is_chosen, reached, release, upgrade_plan};
use windlass_runtime::clock::Clock;
use windlass_runtime::events::{Kind, Notice, Recorder};

use crate::record::class as record;
use crate::said::{is_already_exists, said};

/// How long we may take to answer, in seconds.
const TIMEOUT_SECONDS: u32 = 10;

/// Who Events say they are from.
const CONTROLLER: &str = "windlass.dev/hooks";
/// How long an Event may take: whoever asks waits for the answer meanwhile.
const EVENT_PATIENCE: Duration = Duration::from_secs(2);

/// No question is longer: a Cluster is at most as large as an object may be.
pub const BODY_MAX: usize = 4 * 1024 * 1024;

/// The name of our `ExtensionConfig`.
pub const CONFIG: &str = "windlass";
/// The Service at which we listen, and its namespace.
pub const SERVICE: [&str; 2] = ["windlass-ext", "windlass-system"];

/// Where Cluster API finds us inside of a management cluster.
pub fn address() -> String {
    let [name, namespace] = SERVICE;
    format!("https://{name}.{namespace}.svc:443")
}

/// Tells Cluster API to ask us, unless somebody has told it before: what is there is left as it is.
pub async fn register(client: &Client) -> Result<(), kube::Error> {
    let [name, namespace] = SERVICE.map(str::to_owned);
    let service = ExtensionService { namespace, name, port: None, path: None };
    let client_config = ExtensionClient { service: Some(service), ..ExtensionClient::default() };
    let config = ExtensionConfig::new(CONFIG, ExtensionConfigSpec { client_config, ..ExtensionConfigSpec::default() });
    match Api::all(client.clone()).create(&PostParams::default(), &config).await {
        Ok(_) => Ok(()),
        Err(error) if is_already_exists(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Answers what Cluster API asks.
#[derive(Clone)]
pub struct Hooks {
    client: Client,
    recorder: Recorder,
}

/// An answer on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// 200, or why it is no answer.
    pub code: u16,
    /// JSON.
    pub body: Vec<u8>,
}

impl Reply {
    pub(crate) fn refused(code: u16, why: &str) -> Self {
        Self { code, body: why.as_bytes().to_vec() }
    }
}

impl Hooks {
    /// Answers by what this management API says.
    pub fn new(client: Client, clock: Clock) -> Self {
        let recorder = Recorder::new(client.clone(), clock, CONTROLLER, "windlass");
        Self { client, recorder }
    }

    /// Answers a question that was posted to a path.
    pub async fn reply(&self, path: &str, body: &[u8]) -> Reply {
        let hook = HookName::of_path(path);
        if hook.is_none() && path != discovery_path() {
            return Reply::refused(404, &format!("{path} is no question that is answered here"));
        }
        if body.len() > BODY_MAX {
            return Reply::refused(413, "the question is too long");
        }
        let question: Question = match serde_json::from_slice(body) {
            Ok(question) => question,
            Err(error) => return Reply::refused(400, &format!("the question cannot be read: {error}")),
        };
        let answer = match hook {
            Some(hook) => self.answer(hook, &question).await,
            None => discovered(),
        };
        match serde_json::to_vec(&answer) {
            Ok(body) => Reply { code: 200, body },
            Err(error) => Reply::refused(500, &format!("the answer cannot be written: {error}")),
        }
    }

    async fn answer(&self, hook: HookName, question: &Question) -> Answer {
        let failed = |what: &str, error: &kube::Error| Answer::failure(hook, format!("read {what}: {}", said(error)));
        if hook == HookName::GenerateUpgradePlan {
            return match self.offered().await {
                Ok(offered) => upgrade_plan(question, &offered),
                Err(error) => failed("releases", &error),
            };
        }
        let Some(cluster) = &question.cluster else {
            return Answer::failure(hook, "the question is about no cluster".to_owned());
        };
        let Some(release) = release(cluster) else { return answer(hook, cluster, &Known::default()) };
        if hook == HookName::BeforeClusterCreate {
            return match self.release(release).await {
                Ok((release, has_template)) => {
                    answer(hook, cluster, &Known { release: release.as_ref(), has_template, ..Known::default() })
                }
                Err(error) => failed("the release", &error),
            };
        }
        let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let bootstraps: Api<ClusterBootstrap> = Api::namespaced(self.client.clone(), namespace);
        let bootstrap = match bootstraps.get_opt(name).await {
            Ok(bootstrap) => bootstrap,
            Err(error) => return failed("the ClusterBootstrap", &error),
        };
        let is_begun = match self.is_begun(cluster, bootstrap.as_ref()).await {
            Ok(is_begun) => is_begun,
            Err(error) => return failed("its updates", &error),
        };
        let known = Known { bootstrap: bootstrap.as_ref(), is_begun, ..Known::default() };
        let mut answer = self::answer(hook, cluster, &known);
        // Of a release without packages none will ever be chosen: nobody waits for them.
        if answer.retry_after_seconds > 0 && !is_chosen(release, bootstrap.as_ref()) {
            answer = match self.found(release).await {
                Ok(found) => self::answer(hook, cluster, &Known { release: found.as_ref(), ..known }),
                Err(error) => return failed("the release", &error),
            };
        }
        if let Some(reached) = reached(hook).filter(|_| answer.retry_after_seconds == 0) {
            self.tell(cluster, reached).await;
        }
        answer
    }

    /// Whether an upgrade that has to be approved is on record.
    async fn is_begun(&self, cluster: &Cluster, bootstrap: Option<&ClusterBootstrap>) -> Result<bool, kube::Error> {
        if !needs_record(cluster, bootstrap) {
            return Ok(false);
        }
        let latest = record::latest(&self.client, cluster).await?;
        Ok(is_begun(cluster, latest.as_ref()))
    }

    /// A release, and whether the template of its packages is there.
    async fn release(&self, name: &str) -> Result<(Option<TanzuKubernetesRelease>, bool), kube::Error> {
        let release = self.found(name).await?;
        let templates: Api<ClusterBootstrapTemplate> = Api::namespaced(self.client.clone(), SYSTEM_NAMESPACE);
        Ok((release, templates.get_opt(name).await?.is_some()))
    }

    async fn found(&self, name: &str) -> Result<Option<TanzuKubernetesRelease>, kube::Error> {
        Api::all(self.client.clone()).get_opt(name).await
    }

    /// Says in an Event how far Cluster API has come. Nothing depends on it, least of all an answer.
    async fn tell(&self, cluster: &Cluster, reached: Reached) {
        let (reason, note) = (reached.reason.to_owned(), reached.note.to_owned());
        let notice = Notice { kind: Kind::Normal, reason, action: "Machines".to_owned(), note, related: None };
        let about = cluster.object_ref(&());
        match tokio::time::timeout(EVENT_PATIENCE, self.recorder.publish(&about, &notice)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "an event could not be published"),
            Err(_) => tracing::warn!(reason = notice.reason, "an event was not published in time"),
        }
    }

    /// The versions of Kubernetes that there are releases of.
    async fn offered(&self) -> Result<Vec<KubernetesVersion>, kube::Error> {
        let releases = Api::<TanzuKubernetesRelease>::all(self.client.clone()).list(&ListParams::default()).await?;
        // A release whose version cannot be read is told of where releases are looked after.
        Ok(releases.items.iter().filter_map(|release| release.spec.kubernetes.version.parse().ok()).collect())
    }
}

/// What we can be asked.
fn discovered() -> Answer {
    let handler = |hook: HookName| ExtensionHandler {
        name: hook.handler().to_owned(),
        request_hook: Hook { api_version: API_VERSION.to_owned(), hook: hook.as_str().to_owned() },
        timeout_seconds: Some(TIMEOUT_SECONDS),
        failure_policy: Some("Fail".to_owned()),
    };
    Answer {
        api_version: API_VERSION.to_owned(),
        kind: "DiscoveryResponse".to_owned(),
        handlers: HookName::all().map(handler).collect(),
        ..Answer::default()
    }
}
