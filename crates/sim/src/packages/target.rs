//! The cluster that an App is deployed to.

use kube::Client;
use serde::Deserialize;
use windlass_api::kind::packaging::App;
use windlass_api::name::NamespacedName;
use windlass_api::version::KubernetesVersion;
use windlass_apiserver::ApiServer;
use windlass_apiserver::store::Key;

use super::{Kapp, Place, SECRETS, SERVICE_ACCOUNTS, constraint};

/// A cluster, and the namespace in it.
pub(super) struct Target {
    pub client: Client,
    pub server: ApiServer,
    /// Where kapp keeps its record, and what says no namespace is put.
    pub namespace: String,
}

/// Another cluster than one's own.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Elsewhere {
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    kubeconfig_secret_ref: Option<KubeconfigSecret>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct KubeconfigSecret {
    name: String,
    #[serde(default)]
    key: Option<String>,
}

/// The names of the Secrets of kubeconfigs end so.
const KUBECONFIG: &str = "-kubeconfig";

impl Kapp {
    /// Where an App goes; why it cannot be reached, as kapp would say it.
    pub(super) fn target(&self, app: &App) -> Result<Target, String> {
        let namespace = app.metadata.namespace.as_deref().unwrap_or_default();
        let spec = &app.spec;
        if let Some(cluster) = &spec.cluster {
            return self.elsewhere(namespace, cluster, spec.default_namespace.as_deref());
        }
        let account = spec.service_account_name.as_deref().ok_or("Expected service account or cluster specified")?;
        if self.server.store().get(SERVICE_ACCOUNTS, &Key::new(namespace, account)).is_none() {
            return Err(format!("Preparing kapp: Getting service account: serviceaccounts \"{account}\" not found"));
        }
        let namespace = spec.default_namespace.as_deref().unwrap_or(namespace).to_owned();
        Ok(Target { client: self.client.clone(), server: self.server.clone(), namespace })
    }

    /// A workload cluster, by the Secret with its kubeconfig.
    fn elsewhere(
        &self,
        namespace: &str,
        cluster: &serde_json::Value,
        default_namespace: Option<&str>,
    ) -> Result<Target, String> {
        let elsewhere: Elsewhere =
            serde_json::from_value(cluster.clone()).map_err(|error| format!("Preparing kapp: {error}"))?;
        let secret = elsewhere.kubeconfig_secret_ref.ok_or("Expected kubeconfig secret to be specified")?;
        let KubeconfigSecret { name, key } = secret;
        let found: serde_json::Value = self
            .get(SECRETS, &Key::new(namespace, &name))
            .ok_or_else(|| format!("Preparing kapp: Getting kubeconfig secret: secrets \"{name}\" not found"))?;
        let key = key.unwrap_or_else(|| "value".to_owned());
        if found["data"][&key].is_null() {
            return Err(format!("Preparing kapp: Expected to find key '{key}' in secret '{name}'"));
        }
        let refused = || format!("Preparing kapp: the cluster of {name} cannot be reached: connection refused");
        let cluster: NamespacedName =
            format!("{namespace}/{}", name.strip_suffix(KUBECONFIG).unwrap_or(&name)).parse().map_err(|_| refused())?;
        let workload = match &self.place {
            Place::Management(workloads) => workloads.get(&cluster),
            // The other clusters are as far away as from any pod.
            Place::Workload(_) => None,
        };
        let workload = workload.filter(crate::workload::Workload::answers).ok_or_else(refused)?;
        let namespace = elsewhere.namespace.as_deref().or(default_namespace).unwrap_or("default").to_owned();
        Ok(Target { client: workload.client(), server: workload.server().clone(), namespace })
    }
}

impl Target {
    /// What version its API says it is; why it says nothing.
    pub(super) async fn kubernetes(&self) -> Result<KubernetesVersion, String> {
        let asked = self.client.apiserver_version().await;
        let info = asked.map_err(|error| format!("Getting Kubernetes version: {}", super::view::chain(&error)))?;
        let text = info.git_version;
        constraint::version(&text).ok_or_else(|| format!("Getting Kubernetes version: '{text}' is none"))
    }
}
