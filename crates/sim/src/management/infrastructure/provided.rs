//! Infrastructure of providers whose kinds are not known here. What Cluster API's contract says of such objects is enough to simulate
//! them, so that they are looked at as if they were of the kinds that are known: where a machine is made from, it has the disk of its
//! version, and any amount of room.

use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_api::kind::wcp::{self, VmState, WCPCluster, WCPClusterSpec, WCPMachine, WCPMachineSpec};
use windlass_api::kind::{Condition, ContractReference, bootstrap, cluster_api, control_plane};
use windlass_apiserver::kind::{Kind, Registry};
use windlass_runtime::cache::Cache;
use windlass_runtime::key::Key;

use crate::management::context::{Caches, Turn};
use crate::management::write::{Part, Watched, Writable};

/// Groups whose kinds have simulators of their own.
const KNOWN: [&str; 4] = [wcp::GROUP, cluster_api::GROUP, bootstrap::GROUP, control_plane::GROUP];

/// The kinds of all providers that are not known here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Providers {
    /// What machines are made from.
    pub templates: Vec<ApiResource>,
    /// The machines.
    pub machines: Vec<ApiResource>,
    /// What clusters need once.
    pub clusters: Vec<ApiResource>,
}

impl Providers {
    /// Those of which an API server has definitions. By contract a template is named after its machine, and in a group with one, what
    /// ends in `Cluster` is what a cluster needs once.
    pub fn of(registry: &Registry) -> Self {
        let all: Vec<&Kind> =
            registry.resources().map(|kind| &**kind).filter(|kind| !KNOWN.contains(&kind.group.as_str())).collect();
        let machine =
            |kind: &&&Kind| kind.kind.strip_suffix("Template").map(|name| (kind.group.clone(), name.to_owned()));
        let made: Vec<(String, String)> = all
            .iter()
            .filter(|kind| kind.kind.ends_with("MachineTemplate"))
            .filter_map(|kind| machine(&kind))
            .collect();
        let chosen = |wanted: &dyn Fn(&Kind) -> bool| {
            all.iter().filter(|kind| wanted(kind)).map(|kind| resource(kind)).collect::<Vec<_>>()
        };
        Self {
            templates: chosen(&|kind| kind.kind.ends_with("MachineTemplate")),
            machines: chosen(&|kind| made.iter().any(|(group, name)| (group, name) == (&kind.group, &kind.kind))),
            clusters: chosen(&|kind| {
                kind.kind.ends_with("Cluster") && made.iter().any(|(group, _)| *group == kind.group)
            }),
        }
    }
}

fn resource(kind: &Kind) -> ApiResource {
    ApiResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        api_version: format!("{}/{}", kind.group, kind.version),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    }
}

/// A kind that is not known here, and what was seen of it.
#[derive(Clone)]
pub(in crate::management) struct Origin {
    pub resource: ApiResource,
    pub cache: Cache<DynamicObject>,
}

/// What was seen of the kinds of all providers that are not known here.
#[derive(Clone, Default)]
pub(in crate::management) struct Others {
    pub templates: Vec<Origin>,
    pub machines: Vec<Origin>,
    pub clusters: Vec<Origin>,
}

impl Others {
    /// The kind of templates that a reference is to.
    pub(in crate::management) fn templates_of(&self, reference: &ContractReference) -> Option<&Origin> {
        self.templates.iter().find(|origin| origin.is_of(reference))
    }
}

impl Origin {
    fn is_of(&self, reference: &ContractReference) -> bool {
        (&self.resource.kind, &self.resource.group) == (&reference.kind, &reference.api_group)
    }

    fn get<K: Known>(&self, key: &Key) -> Option<Provided<K>> {
        let found = self.cache.get(key)?;
        Some(Provided { view: Arc::new(K::seen_in(&found)), origin: Some(self.clone()) })
    }
}

/// An object of infrastructure, looked at as one of the known kind.
pub(in crate::management) struct Provided<K> {
    view: Arc<K>,
    /// Where it is from, if it is of another.
    origin: Option<Origin>,
}

impl<K> Provided<K> {
    /// Whether it is of a kind that is known here.
    pub(in crate::management) fn is_known(&self) -> bool {
        self.origin.is_none()
    }
}

impl<K> Deref for Provided<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.view
    }
}

/// A kind that others can be looked at as.
pub(in crate::management) trait Known: Watched {
    /// What an object of another kind says by contract.
    fn seen_in(object: &DynamicObject) -> Self;
    /// The kinds that are looked at so.
    fn others(others: &Others) -> &[Origin];
}

impl Known for WCPMachine {
    fn seen_in(object: &DynamicObject) -> Self {
        let provider_id = object.data["spec"]["providerID"].as_str().map(str::to_owned);
        let spec = WCPMachineSpec { provider_id, ..WCPMachineSpec::default() };
        let mut machine = Self { metadata: object.metadata.clone(), spec, status: status(object) };
        if let Some(status) = &mut machine.status {
            // One that somebody else has made is there.
            let made = status.initialization.as_ref().is_some_and(|initialization| initialization.provisioned);
            status.vm_state = status.vm_state.or(made.then_some(VmState::Ready));
        }
        machine
    }

    fn others(others: &Others) -> &[Origin] {
        &others.machines
    }
}

impl Known for WCPCluster {
    fn seen_in(object: &DynamicObject) -> Self {
        let control_plane_endpoint = read(&object.data["spec"]["controlPlaneEndpoint"]);
        let spec = WCPClusterSpec { control_plane_endpoint };
        Self { metadata: object.metadata.clone(), spec, status: status(object) }
    }

    fn others(others: &Others) -> &[Origin] {
        &others.clusters
    }
}

fn status<S: DeserializeOwned>(object: &DynamicObject) -> Option<S> {
    read(&object.data["status"])
}

/// What is not as the contract has it says nothing.
fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

impl Caches {
    /// The object that a reference is to, if it is infrastructure.
    pub(in crate::management) fn provided<K: Known>(
        &self,
        reference: &ContractReference,
        namespace: Option<&str>,
    ) -> Option<Provided<K>> {
        let key = Key { namespace: namespace.map(str::to_owned), name: reference.name.clone() };
        if reference.is_of::<K>() {
            return known(self, &key);
        }
        K::others(&self.others).iter().find(|origin| origin.is_of(reference))?.get(&key)
    }

    /// All of that name, of whichever kind.
    pub(in crate::management) fn all_provided<K: Known>(&self, key: &Key) -> Vec<Provided<K>> {
        let others = K::others(&self.others).iter().filter_map(|origin| origin.get(key));
        known(self, key).into_iter().chain(others).collect()
    }
}

fn known<K: Known>(caches: &Caches, key: &Key) -> Option<Provided<K>> {
    Some(Provided { view: K::cache(caches).get(key)?, origin: None })
}

impl<K: Known> Writable for Provided<K> {
    fn metadata(&self) -> &ObjectMeta {
        self.view.meta()
    }

    fn called(&self) -> String {
        self.origin.as_ref().map_or_else(|| self.view.called(), |origin| origin.resource.kind.clone())
    }

    fn said(&self) -> Option<&[Condition]> {
        self.view.conditions()
    }

    async fn merged(&self, turn: &Turn, part: Part, patch: &Value) -> Result<Self, kube::Error> {
        let Some(origin) = &self.origin else {
            let view = Arc::new(self.view.merged(turn, part, patch).await?);
            return Ok(Self { view, origin: None });
        };
        let (api, name) = (api(turn, origin, self.metadata()), self.metadata().name.clone().unwrap_or_default());
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let written = match part {
            Part::Whole => api.patch(&name, &params, &patch).await?,
            Part::Status => api.patch_status(&name, &params, &patch).await?,
        };
        turn.wrote(&origin.cache, &written);
        Ok(Self { view: Arc::new(K::seen_in(&written)), origin: Some(origin.clone()) })
    }

    async fn deleted(&self, turn: &Turn, params: &DeleteParams) -> Result<(), kube::Error> {
        let Some(origin) = &self.origin else { return self.view.deleted(turn, params).await };
        let name = self.metadata().name.clone().unwrap_or_default();
        let answer = api(turn, origin, self.metadata()).delete(&name, params).await?;
        if let Some(held_up) = answer.left() {
            turn.wrote(&origin.cache, &held_up);
        }
        Ok(())
    }
}

fn api(turn: &Turn, origin: &Origin, meta: &ObjectMeta) -> Api<DynamicObject> {
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    Api::namespaced_with(turn.client.clone(), namespace, &origin.resource)
}
