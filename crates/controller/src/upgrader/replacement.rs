//! The machine that takes another's place: made from the other's specification, under a name that follows from the update.

use std::collections::BTreeMap;

use json_patch::Patch;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ObjectMeta, Preconditions};
use kube::core::TypeMeta;
use kube::{Api, Resource, ResourceExt};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use windlass_api::annotation::{MACHINE_NAME_BASE, MACHINE_UPDATE_ID};
use windlass_api::key::Present;
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::wcp::WCPMachine;
use windlass_api::label;
use windlass_api::name::MachineName;
use windlass_plan::roll::{Part, PartState, Parts};

use super::attempt::Attempt;
use super::{Error, mark, wait, write};

/// A machine, and what takes its place.
pub struct Place {
    original: Machine,
    base: MachineName,
    name: MachineName,
}

impl Place {
    /// What takes the place of a machine under this name.
    pub fn new(original: &Machine, name: &MachineName) -> Result<Self, Error> {
        Ok(Self { base: mark::base(original)?, original: original.clone(), name: name.clone() })
    }

    /// The configuration and the infrastructure of the original, by name.
    fn parts(&self) -> Result<(&str, &str), Error> {
        let original = &self.original.spec;
        let unusable =
            |why: &str| Error::Unusable { kind: "Machine", name: self.original.name_any(), why: why.to_owned() };
        let configuration =
            original.bootstrap.config_ref.as_ref().filter(|reference| reference.kind == "KubeadmConfig");
        let configuration = configuration.ok_or_else(|| unusable("its configuration is no KubeadmConfig"))?;
        if original.infrastructure_ref.kind != "WCPMachine" {
            return Err(unusable("its infrastructure is no WCPMachine"));
        }
        Ok((&configuration.name, &original.infrastructure_ref.name))
    }
}

/// The kind of a part of a machine.
pub fn kind(part: Part) -> &'static str {
    match part {
        Part::Infrastructure => "WCPMachine",
        Part::Configuration => "KubeadmConfig",
        Part::Machine => "Machine",
    }
}

/// Creates the infrastructure of a replacement, and tells what there is then.
pub async fn create_infrastructure(attempt: &Attempt<'_>, place: &Place) -> Result<PartState, Error> {
    let (_, infrastructure) = place.parts()?;
    let objects = Objects::of::<WCPMachine>(attempt, Part::Infrastructure);
    let mut spec = objects.read(infrastructure).await?.spec()?;
    spec.remove("providerID");
    let spec = objects.patched(spec, "--infrastructure-patches", &attempt.arguments.infrastructure_patches)?;
    Ok(objects.create(attempt, place, spec, &[]).await?.state())
}

/// Creates the bootstrap configuration of a replacement, and tells what there is then.
pub async fn create_configuration(attempt: &Attempt<'_>, place: &Place) -> Result<PartState, Error> {
    let (configuration, _) = place.parts()?;
    let objects = Objects::of::<KubeadmConfig>(attempt, Part::Configuration);
    let spec = joining(objects.read(configuration).await?.spec()?);
    let spec = objects.patched(spec, "--bootstrap-patches", &attempt.arguments.bootstrap_patches)?;
    Ok(objects.create(attempt, place, spec, &[]).await?.state())
}

/// Creates the Machine of a replacement, which refers to its infrastructure and its configuration. Nothing where one of an
/// earlier try is still on the way out.
pub async fn create_machine(attempt: &Attempt<'_>, place: &Place) -> Result<Option<Machine>, Error> {
    let objects = Objects::of::<Machine>(attempt, Part::Machine);
    let read = objects.read(&place.original.name_any()).await?;
    let spec = machine_spec(read.spec()?, place.name.as_str(), attempt.arguments.kubernetes_version.as_str());
    let mark = MACHINE_UPDATE_ID.entry(&attempt.arguments.upgrade_id);
    let (kind, name) = (objects.kind, place.name.to_string());
    match objects.create(attempt, place, spec, &[mark]).await? {
        Created::Ours(machine) => machine.try_parse().map(Some).map_err(|error| Error::Unusable {
            kind,
            name,
            why: format!("it cannot be read: {error}"),
        }),
        Created::Leaving => Ok(None),
        Created::Foreign(why) => Err(Error::NotOurs { kind, name, why }),
    }
}

/// What there is under the name of a replacement.
pub async fn look(attempt: &Attempt<'_>, name: &MachineName) -> Result<Parts, Error> {
    let infrastructure = Objects::of::<WCPMachine>(attempt, Part::Infrastructure).find(attempt, name).await?;
    let configuration = Objects::of::<KubeadmConfig>(attempt, Part::Configuration).find(attempt, name).await?;
    Ok(Parts { infrastructure: state(infrastructure), configuration: state(configuration) })
}

fn state(found: Option<Created>) -> PartState {
    found.map_or(PartState::Absent, Created::state)
}

/// Deletes what a machine was to be made from, and tells what there is then.
pub async fn delete(attempt: &Attempt<'_>, name: &MachineName, part: Part) -> Result<PartState, Error> {
    let objects = match part {
        Part::Infrastructure => Objects::of::<WCPMachine>(attempt, part),
        Part::Configuration => Objects::of::<KubeadmConfig>(attempt, part),
        Part::Machine => return Ok(PartState::Absent),
    };
    let object = match objects.find(attempt, name).await? {
        Some(Created::Ours(object)) => object,
        other => return Ok(state(other)),
    };
    let seen = Preconditions { uid: object.uid(), resource_version: object.resource_version() };
    let params = DeleteParams { preconditions: Some(seen), ..DeleteParams::default() };
    match objects.api.delete(name.as_str(), &params).await {
        Ok(_) => Ok(PartState::Leaving),
        Err(error) if write::is_not_found(&error) => Ok(PartState::Absent),
        // Something has changed: the next look tells what.
        Err(error) if write::is_conflict(&error) => Ok(PartState::Leaving),
        Err(error) => Err(Error::api(format!("delete the {} {name}", objects.kind))(error)),
    }
}

/// Waits until a part of an earlier try is gone, or for as long as there is patience.
pub async fn gone(attempt: &Attempt<'_>, name: &MachineName, part: Part, end: Instant) {
    let objects = match part {
        Part::Infrastructure => Objects::of::<WCPMachine>(attempt, part),
        Part::Configuration => Objects::of::<KubeadmConfig>(attempt, part),
        Part::Machine => Objects::of::<Machine>(attempt, part),
    };
    wait::until(objects.api, wait::named(name.as_str()), end, BTreeMap::is_empty).await;
}

/// What there is after an attempt to create something.
enum Created {
    /// What this attempt has created, now or earlier.
    Ours(Box<DynamicObject>),
    /// What an earlier try has left, on the way out.
    Leaving,
    /// Something else, as this tells.
    Foreign(String),
}

impl Created {
    fn state(self) -> PartState {
        match self {
            Self::Ours(_) => PartState::Present,
            Self::Leaving => PartState::Leaving,
            Self::Foreign(why) => PartState::Foreign { why },
        }
    }
}

/// One of the three objects that a machine is made of. They are read and written as they are on the wire: what their owners
/// have put into them, and Windlass knows nothing of, goes on with the replacement.
struct Objects {
    kind: &'static str,
    types: TypeMeta,
    api: Api<DynamicObject>,
}

impl Objects {
    fn of<K: Resource<DynamicType = ()>>(attempt: &Attempt<'_>, part: Part) -> Self {
        let namespace = attempt.cluster.namespace.as_str();
        let api = Api::namespaced_with(attempt.client(), namespace, &ApiResource::erase::<K>(&()));
        Self { kind: kind(part), types: TypeMeta::resource::<K>(), api }
    }

    async fn read(&self, name: &str) -> Result<Found, Error> {
        let object = self.api.get(name).await.map_err(Error::api(format!("read the {} {name}", self.kind)))?;
        Ok(Found { kind: self.kind, object })
    }

    /// Only the specification can be patched: the rest is ours.
    fn patched(
        &self,
        spec: Map<String, Value>,
        flag: &'static str,
        patch: &Patch,
    ) -> Result<Map<String, Value>, Error> {
        let mut document = document(spec);
        let applied = json_patch::patch(&mut document, patch);
        let refused = |why: String| Error::Patch { flag, kind: self.kind, name: "of a new machine".to_owned(), why };
        applied.map_err(|error| refused(error.to_string()))?;
        match document["spec"].take() {
            Value::Object(spec) => Ok(spec),
            _ => Err(refused("it leaves no specification".to_owned())),
        }
    }

    /// POST, and where there is one of that name: what that is.
    async fn create(
        &self,
        attempt: &Attempt<'_>,
        place: &Place,
        spec: Map<String, Value>,
        marks: &[(String, String)],
    ) -> Result<Created, Error> {
        let types = Some(self.types.clone());
        let object = DynamicObject { types, metadata: metadata(attempt, place, marks), data: document(spec) };
        let doing = || format!("create the {} {}", self.kind, place.name);
        match self.api.create(&write::post(), &object).await {
            Ok(created) => return Ok(Created::Ours(Box::new(created))),
            Err(error) if write::is_conflict(&error) => {}
            Err(error) => return Err(Error::api(doing())(error)),
        }
        // It may be gone by now. Then it was on the way out.
        Ok(self.find(attempt, &place.name).await?.unwrap_or(Created::Leaving))
    }

    /// What has a name.
    async fn find(&self, attempt: &Attempt<'_>, name: &MachineName) -> Result<Option<Created>, Error> {
        let found = self.api.get_opt(name.as_str()).await;
        let found = found.map_err(Error::api(format!("read the {} {name}", self.kind)))?;
        Ok(found.map(|found| match foreign(attempt, &found) {
            Some(why) => Created::Foreign(why),
            None if is_leaving(self.kind, &found) => Created::Leaving,
            None => Created::Ours(Box::new(found)),
        }))
    }
}

fn document(spec: Map<String, Value>) -> Value {
    Value::Object(Map::from_iter([("spec".to_owned(), Value::Object(spec))]))
}

/// An object as it was read.
struct Found {
    kind: &'static str,
    object: DynamicObject,
}

impl Found {
    fn spec(&self) -> Result<Map<String, Value>, Error> {
        let spec = self.object.data.get("spec").and_then(Value::as_object).cloned();
        spec.ok_or_else(|| Error::Unusable {
            kind: self.kind,
            name: self.object.name_any(),
            why: "it has no specification".to_owned(),
        })
    }
}

/// Whether an object is of an earlier try that was given up: it goes, or it belongs to a Machine that went. Infrastructure with
/// a disk that was booted, and a configuration whose token was used, are no beginning for another machine.
fn is_leaving(kind: &str, object: &DynamicObject) -> bool {
    let is_machine = |owner: &OwnerReference| owner.kind == "Machine";
    object.metadata.deletion_timestamp.is_some()
        || (kind != "Machine" && object.owner_references().iter().any(is_machine))
}

/// What tells that an object is not of this attempt.
fn foreign(attempt: &Attempt<'_>, object: &DynamicObject) -> Option<String> {
    let id = label::UPDATE_ID.text(&attempt.arguments.upgrade_id);
    if object.labels().get(label::UPDATE_ID.name) != Some(&id) {
        return Some(format!("it does not carry the id {id}"));
    }
    let is_ours = object.owner_references().iter().any(|owner| owner.uid == attempt.owner.uid);
    (!is_ours).then(|| format!("it does not belong to the cluster {}", attempt.cluster))
}

fn metadata(attempt: &Attempt<'_>, place: &Place, marks: &[(String, String)]) -> ObjectMeta {
    let arguments = attempt.arguments;
    let mut labels = place.original.labels().clone();
    labels.extend([
        label::CLUSTER_NAME.entry(&arguments.cluster_name),
        label::CONTROL_PLANE.entry(&Present),
        label::UPDATE_ID.entry(&arguments.upgrade_id),
    ]);
    let base = MACHINE_NAME_BASE.entry(&place.base);
    let annotations: BTreeMap<String, String> = marks.iter().cloned().chain([base]).collect();
    ObjectMeta {
        name: Some(place.name.to_string()),
        namespace: Some(attempt.cluster.namespace.to_string()),
        labels: Some(labels),
        annotations: Some(annotations),
        owner_references: Some(vec![attempt.owner.clone()]),
        ..ObjectMeta::default()
    }
}

/// The configuration of a machine that joins, from that of one that began the cluster or joined it.
///
/// The token is left out, so that a new one is made: the old one has expired. What the cluster is like stays in: the bootstrap
/// provider looks there for where certificates are.
fn joining(mut spec: Map<String, Value>) -> Map<String, Value> {
    let init = spec.remove("initConfiguration").unwrap_or_default();
    let mut join = match spec.remove("joinConfiguration") {
        Some(Value::Object(join)) => join,
        _ => Map::new(),
    };
    if let Some(registration) = init.get("nodeRegistration") {
        join.insert("nodeRegistration".to_owned(), registration.clone());
    }
    join.entry("controlPlane").or_insert_with(|| json!({}));
    if let Some(Value::Object(discovery)) = join.get_mut("discovery") {
        discovery.remove("bootstrapToken");
        if discovery.is_empty() {
            join.remove("discovery");
        }
    }
    spec.insert("joinConfiguration".to_owned(), Value::Object(join));
    spec
}

fn machine_spec(mut spec: Map<String, Value>, name: &str, version: &str) -> Map<String, Value> {
    spec.remove("providerID");
    spec.insert("version".to_owned(), json!(version));
    if let Some(bootstrap) = spec.get_mut("bootstrap").and_then(Value::as_object_mut) {
        bootstrap.remove("dataSecretName");
        if let Some(reference) = bootstrap.get_mut("configRef") {
            reference["name"] = json!(name);
        }
    }
    if let Some(reference) = spec.get_mut("infrastructureRef") {
        reference["name"] = json!(name);
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    fn check_joining(before: Value, after: &Value) {
        assert_eq!(Value::Object(joining(object(before))), *after);
    }

    #[test]
    fn the_first_machine_is_replaced_by_one_that_joins() {
        let registration = json!({ "kubeletExtraArgs": [{ "name": "node-labels", "value": "a=b" }] });
        check_joining(
            json!({
                "clusterConfiguration": { "certificatesDir": "/pki" },
                "initConfiguration": { "nodeRegistration": registration, "skipPhases": ["addon/kube-proxy"] },
                "files": [{ "path": "/etc/motd" }],
            }),
            &json!({
                "clusterConfiguration": { "certificatesDir": "/pki" },
                "joinConfiguration": { "nodeRegistration": registration, "controlPlane": {} },
                "files": [{ "path": "/etc/motd" }],
            }),
        );
    }

    #[test]
    fn a_machine_that_joined_is_replaced_by_one_with_a_token_of_its_own() {
        check_joining(
            json!({ "joinConfiguration": {
                "nodeRegistration": {}, "controlPlane": { "localAPIEndpoint": {} },
                "discovery": { "bootstrapToken": { "token": "abcdef.0123456789abcdef" } },
            }}),
            &json!({ "joinConfiguration": { "nodeRegistration": {}, "controlPlane": { "localAPIEndpoint": {} } } }),
        );
        check_joining(
            json!({ "joinConfiguration": { "discovery": { "timeout": 5, "bootstrapToken": {} } } }),
            &json!({ "joinConfiguration": { "controlPlane": {}, "discovery": { "timeout": 5 } } }),
        );
    }

    #[test]
    fn a_new_machine_has_the_rest_of_the_old_one() {
        let before = object(json!({
            "clusterName": "my-tkc", "version": "v1.15.5", "providerID": "wcp://1", "failureDomain": "a",
            "bootstrap": { "configRef": { "kind": "KubeadmConfig", "name": "old" }, "dataSecretName": "old" },
            "infrastructureRef": { "kind": "WCPMachine", "name": "old" },
        }));
        assert_eq!(
            Value::Object(machine_spec(before, "new", "v1.16.7")),
            json!({
                "clusterName": "my-tkc", "version": "v1.16.7", "failureDomain": "a",
                "bootstrap": { "configRef": { "kind": "KubeadmConfig", "name": "new" } },
                "infrastructureRef": { "kind": "WCPMachine", "name": "new" },
            })
        );
    }
}
