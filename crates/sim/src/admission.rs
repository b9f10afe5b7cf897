//! What the webhooks of Cluster API refuse, and those of whoever provides the infrastructure.
//!
//! They are validating webhooks of the management API of every World and of every fork of it, by the names and in the words of
//! the originals. They read what they need from the store: nothing that goes wrong on the wire goes wrong here, as the originals
//! read from their caches.
//!
//! The webhooks that fill in defaults are not there: an object that relies on them is not refused for what they would have added.

mod control_plane;
mod pool;
mod template;
mod topology;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::StatusCode;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{Cluster, MachineDeployment, MachineSet};
use windlass_api::kind::control_plane::{KubeadmControlPlane, KubeadmControlPlaneTemplate};
use windlass_api::kind::wcp::WCPMachineTemplate;
use windlass_api::version::KubernetesVersion;
use windlass_apiserver::ApiServer;
use windlass_apiserver::admission::{FailurePolicy, Handler, Rule, Scope, Webhook};
use windlass_apiserver::field::FieldError;
use windlass_apiserver::selector::label::LabelSelector;
use windlass_apiserver::status::ApiError;
use windlass_apiserver::store::{Entry, Store};

/// The group that Cluster API names in its refusals, also in those of control planes.
const CORE_GROUP: &str = "cluster.x-k8s.io";

/// What a webhook is asked about.
struct Asked<'a> {
    /// What else there is.
    store: &'a Store,
    /// What it was before; nothing when it is made.
    before: Option<&'a Value>,
    /// What it is to be.
    object: &'a Value,
    /// It is only tried.
    dry_run: bool,
}

/// What a webhook has to say.
#[derive(Debug, Default, PartialEq)]
struct Verdict {
    /// What is wrong with which field; nothing if it may be.
    errors: Vec<FieldError>,
    /// What is wrong, where that is not about the object itself.
    denied: Option<&'static str>,
    warnings: Vec<String>,
}

impl From<Vec<FieldError>> for Verdict {
    fn from(errors: Vec<FieldError>) -> Self {
        Self { errors, ..Self::default() }
    }
}

type Judge = fn(&Asked<'_>) -> Verdict;

/// One webhook.
struct Judging {
    store: Store,
    kind: String,
    /// The group that refusals name.
    group: String,
    judge: Judge,
}

/// Adds the webhooks to the management API of a World.
pub(crate) fn add(server: &ApiServer) {
    let core = |kind: &str| format!("validation.{kind}.{CORE_GROUP}");
    let control_plane = |kind: &str| format!("validation.{kind}.{}", KubeadmControlPlane::group(&()));
    put::<Cluster>(server, &core("cluster"), "", CORE_GROUP, topology::judge);
    put::<MachineDeployment>(server, &core("machinedeployment"), "", CORE_GROUP, pool::judge_deployment);
    put::<MachineSet>(server, &core("machineset"), "", CORE_GROUP, pool::judge_set);
    let judge = control_plane::judge;
    put::<KubeadmControlPlane>(server, &control_plane("kubeadmcontrolplane"), "", CORE_GROUP, judge);
    let (name, judge) = (control_plane("kubeadmcontrolplane").replacen('.', "-scale.", 1), control_plane::judge_scale);
    put::<KubeadmControlPlane>(server, &name, "/scale", CORE_GROUP, judge);
    let (name, judge) = (control_plane("kubeadmcontrolplanetemplate"), template::judge_control_plane);
    put::<KubeadmControlPlaneTemplate>(server, &name, "", CORE_GROUP, judge);
    let group = WCPMachineTemplate::group(&());
    let name = format!("validation.wcpmachinetemplate.{group}");
    put::<WCPMachineTemplate>(server, &name, "", &group, template::judge_machine);
}

fn put<K: Resource<DynamicType = ()>>(server: &ApiServer, name: &str, subresource: &str, group: &str, judge: Judge) {
    let rule = Rule {
        operations: vec!["CREATE".to_owned(), "UPDATE".to_owned()],
        groups: vec![K::group(&()).into_owned()],
        versions: vec![K::version(&()).into_owned()],
        resources: vec![format!("{}{subresource}", K::plural(&()))],
        scope: Scope::Namespaced,
    };
    let (store, kind) = (server.store().clone(), K::kind(&()).into_owned());
    server.admission().add_validating(Webhook {
        name: name.to_owned(),
        rules: vec![rule],
        namespace_selector: LabelSelector::everything(),
        object_selector: LabelSelector::everything(),
        failure: FailurePolicy::Fail,
        reinvoke: false,
        side_effects: false,
        equivalent: false,
        conditions: None,
        handler: Arc::new(Judging { store, kind, group: group.to_owned(), judge }),
    });
}

impl Handler for Judging {
    fn review(&self, review: Value) -> BoxFuture<'_, Result<Value, String>> {
        let request = &review["request"];
        let before = Some(&request["oldObject"]).filter(|before| !before.is_null());
        let (object, dry_run) = (&request["object"], request["dryRun"] == true);
        // What was let in once is not judged again because of its labels or finalizers.
        let verdict = if before.is_some_and(|before| before["spec"] == object["spec"]) {
            Verdict::default()
        } else {
            (self.judge)(&Asked { store: &self.store, before, object, dry_run })
        };
        let allowed = verdict.errors.is_empty() && verdict.denied.is_none();
        let mut response = json!({"uid": request["uid"], "allowed": allowed});
        if !verdict.warnings.is_empty() {
            response["warnings"] = json!(verdict.warnings);
        }
        if !verdict.errors.is_empty() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            response["status"] = ApiError::invalid(&self.kind, &self.group, name, &verdict.errors).to_value();
        } else if let Some(why) = verdict.denied {
            response["status"] = ApiError::new(StatusCode::FORBIDDEN, "Forbidden", why).to_value();
        }
        let answer = json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response});
        std::future::ready(Ok(answer)).boxed()
    }
}

/// What is wrong with a version as such, in these words if it is none.
fn readable(path: &str, version: &str, why: &str) -> Vec<FieldError> {
    let refuse = |why: &str| FieldError::invalid(path, version, why);
    let bare = (!version.starts_with('v')).then(|| refuse("must start with v"));
    let none = version.parse::<KubernetesVersion>().is_err().then(|| refuse(why));
    bare.into_iter().chain(none).collect()
}

/// The text of a field, which may not be there.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Under which name the store has a kind.
fn resource<K: Resource<DynamicType = ()>>() -> String {
    format!("{}.{}", K::plural(&()), K::group(&()))
}

/// An object as it is stored.
fn read<K: DeserializeOwned>(entry: &Entry) -> Option<K> {
    serde_json::from_slice(&entry.json).ok()
}
