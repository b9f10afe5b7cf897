//! Objects that values of packages are made of: each becomes a Secret, and says which.
//!
//! On a management cluster every one of these kinds has a controller of its own. What they render is what people wrote; what
//! they look up elsewhere (credentials, networks) is nothing that a package of a World has a use for.

use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_apiserver::store::Key;

use super::{Error, Kapp, Next, SECRETS};

/// A kind that values are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Antrea,
    Calico,
    VSphereCpi,
    VSphereCsi,
    KappController,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::Antrea, Self::Calico, Self::VSphereCpi, Self::VSphereCsi, Self::KappController];

    /// Where the store has it.
    pub(super) fn resource(self) -> &'static str {
        match self {
            Self::Antrea => "antreaconfigs.cni.tanzu.vmware.com",
            Self::Calico => "calicoconfigs.cni.tanzu.vmware.com",
            Self::VSphereCpi => "vspherecpiconfigs.cpi.tanzu.vmware.com",
            Self::VSphereCsi => "vspherecsiconfigs.csi.tanzu.vmware.com",
            Self::KappController => "kappcontrollerconfigs.run.tanzu.vmware.com",
        }
    }

    /// The package that it is for, as it is called in names.
    fn package(self) -> &'static str {
        match self {
            Self::Antrea => "antrea",
            Self::Calico => "calico",
            Self::VSphereCpi => "vsphere-cpi",
            Self::VSphereCsi => "vsphere-csi",
            Self::KappController => "kapp-controller",
        }
    }
}

/// Makes the Secret of an object. A template, or one that belongs to no cluster, has none.
pub(super) async fn reconcile(kapp: &Kapp, kind: Kind, key: &Key) -> Result<Next, Error> {
    let Some(object) = kapp.get::<Value>(kind.resource(), key) else { return Ok(None) };
    let metadata = &object["metadata"];
    let template = !metadata["annotations"][annotation::TEMPLATE_CONFIG.name].is_null();
    let (false, true, Some(cluster)) = (template, metadata["deletionTimestamp"].is_null(), cluster(metadata)) else {
        return Ok(None);
    };
    let name = format!("{cluster}-{}-data-values", kind.package());
    let text = serde_saphyr::to_string(&object["spec"]).unwrap_or_default();
    let Some(served) = kapp.server.registry().stored(kind.resource()).cloned() else { return Ok(None) };
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": name, "namespace": &*key.namespace,
            "ownerReferences": [{
                "apiVersion": served.api_version, "kind": served.kind, "name": &*key.name, "uid": metadata["uid"],
            }],
        },
        "stringData": {"values.yaml": text},
    });
    if !is_there(kapp, &Key::new(&key.namespace, &name), &text) {
        let api: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(kapp.client.clone(), &key.namespace);
        let params = PatchParams::apply(kind.package()).force();
        let written = api.patch(&name, &params, &Patch::Apply(&secret)).await;
        written.map_err(|source| failed("render", "Secret", key, source))?;
    }
    if object["status"]["secretRef"] != *name {
        let path =
            format!("/apis/{}/namespaces/{}/{}/{}/status", served.api_version, key.namespace, served.plural, key.name);
        let body = json!({"status": {"secretRef": name}}).to_string().into_bytes();
        let request = http::Request::patch(path).header("content-type", "application/merge-patch+json").body(body);
        if let Ok(request) = request {
            let written = kapp.client.request::<Value>(request).await;
            written.map_err(|source| failed("change the status of", &served.kind, key, source))?;
        }
    }
    Ok(None)
}

/// The cluster that owns the object.
fn cluster(metadata: &Value) -> Option<&str> {
    let mut owners = metadata["ownerReferences"].as_array()?.iter();
    owners.find(|owner| owner["kind"] == "Cluster")?["name"].as_str()
}

/// Whether the Secret says just this.
fn is_there(kapp: &Kapp, key: &Key, text: &str) -> bool {
    use base64::Engine as _;
    let wanted = base64::prelude::BASE64_STANDARD.encode(text);
    kapp.get::<Value>(SECRETS, key).is_some_and(|secret| secret["data"]["values.yaml"] == *wanted)
}

fn failed(verb: &'static str, kind: &str, key: &Key, source: kube::Error) -> Error {
    Error { verb, object: format!("{kind} {key}"), source: Box::new(source) }
}
