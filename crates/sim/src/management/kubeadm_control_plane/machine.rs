//! A new machine of a control plane: its infrastructure, its configuration, then itself, as Cluster API makes them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use serde_json::Value;
use windlass_api::kind::ContractReference;
use windlass_api::kind::bootstrap::{self, KubeadmConfig};
use windlass_api::kind::cluster_api::{Bootstrap, Machine, MachineSpec};
use windlass_api::{annotation, label};

use super::view::View;
use super::{domain, handing};
use crate::management::context::{Error, Turn};
use crate::management::machine::FINALIZER;
use crate::management::ownership::{controlled_by, owned_by};
use crate::management::part::{self, Whose};
use crate::management::write;
use crate::workload::suffix;

/// The hold by which a machine waits until its member of etcd is removed.
pub(super) const CLEANUP_HOLD: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup";

/// Makes a machine whose kubeadm is told this. Where the template of its infrastructure is not there, its watch will tell.
pub(super) async fn create(turn: &Turn, view: &View<'_>, told: &Value) -> Result<(), Error> {
    let name = free_name(turn, view)?;
    let Some(infrastructure_ref) = infrastructure(turn, view, &name).await? else { return Ok(()) };
    let config_ref = configuration(turn, view, &name, told).await?;
    let object = view.object;
    let given = object.spec.machine_template.metadata.clone().unwrap_or_default();
    let mut annotations = given.annotations;
    annotations.insert(CLEANUP_HOLD.to_owned(), String::new());
    let replaces =
        object.metadata.annotations.as_ref().and_then(|all| all.get(annotation::REMEDIATION_IN_PROGRESS.name));
    annotations.extend(replaces.map(|text| (annotation::REMEDIATION_FOR.name.to_owned(), text.clone())));
    let given = object.spec.machine_template.spec.clone();
    let machine = Machine {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: object.metadata.namespace.clone(),
            labels: Some(labels(view)),
            annotations: Some(annotations),
            owner_references: Some(vec![controlled_by(object)]),
            finalizers: Some(vec![FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: MachineSpec {
            cluster_name: view.cluster.metadata.name.clone().unwrap_or_default(),
            version: Some(object.spec.version.clone()),
            bootstrap: Bootstrap { config_ref: Some(config_ref), data_secret_name: None },
            infrastructure_ref,
            failure_domain: domain::of_next(view),
            readiness_gates: handing::gates(object),
            deletion: given.deletion,
            taints: given.taints,
            ..MachineSpec::default()
        },
        status: None,
    };
    match write::create(turn, &machine).await {
        Err(error) if error.already_exists() => Ok(()),
        result => result.map(drop),
    }
}

/// `<control plane>-` and five characters, or as people want it. The characters follow from the machines that there are, so that
/// whoever tries again after a failure finds the parts that are made.
fn free_name(turn: &Turn, view: &View<'_>) -> Result<String, Error> {
    let meta = &view.object.metadata;
    let present: Vec<&str> = view.replicas.iter().map(super::view::Replica::name).collect();
    let base = meta.name.as_deref().unwrap_or_default();
    let of = format!("machine of {} {}", meta.uid.as_deref().unwrap_or_default(), present.join(" "));
    let random = suffix(turn.seed.child("control plane").stream(&of).u64(), 5);
    let naming = view.object.spec.machine_naming.as_ref().and_then(|naming| naming.template.as_deref());
    let Some(template) = naming else { return Ok(format!("{base}-{random}")) };
    let cluster = view.cluster.metadata.name.as_deref().unwrap_or_default();
    let mut name = String::new();
    let mut rest = template;
    while let Some((text, tail)) = rest.split_once("{{") {
        let (expression, tail) = tail.split_once("}}").unwrap_or((tail, ""));
        name.push_str(text);
        name.push_str(match expression.trim() {
            ".cluster.name" => cluster,
            ".kubeadmControlPlane.name" => base,
            ".random" => &random,
            other => return Err(unknown(base, other)),
        });
        rest = tail;
    }
    name.push_str(rest);
    Ok(name)
}

fn unknown(base: &str, expression: &str) -> Error {
    let what = format!("name a machine of {base} by its machineNaming template");
    Error::Text { what, why: format!("{expression:?} is none of .cluster.name, .kubeadmControlPlane.name and .random") }
}

/// The labels of a machine and of its parts.
fn labels(view: &View<'_>) -> BTreeMap<String, String> {
    let given = view.object.spec.machine_template.metadata.clone().unwrap_or_default();
    let own = [
        (label::CLUSTER_NAME.name, view.cluster.metadata.name.clone().unwrap_or_default()),
        (label::CONTROL_PLANE.name, String::new()),
        (label::CONTROL_PLANE_NAME.name, view.object.metadata.name.clone().unwrap_or_default()),
    ];
    given.labels.into_iter().chain(own.map(|(key, value)| (key.to_owned(), value))).collect()
}

/// Clones the infrastructure from its template, and says how to refer to it. `None` if there is no template.
async fn infrastructure(turn: &Turn, view: &View<'_>, name: &str) -> Result<Option<ContractReference>, Error> {
    let reference = &view.object.spec.machine_template.spec.infrastructure_ref;
    let Some(template) = part::template(turn, &view.object.metadata, reference) else { return Ok(None) };
    part::cloned(turn, whose(view), (reference, &template), name).await.map(Some)
}

/// Makes the configuration, and says how to refer to it.
async fn configuration(turn: &Turn, view: &View<'_>, name: &str, told: &Value) -> Result<ContractReference, Error> {
    let kinds = ApiResource::erase::<KubeadmConfig>(&());
    let made = part::create(turn, &kinds, &part::of(whose(view), &kinds, name, told)).await?;
    if let Some(uid) = made.and_then(|made| made.metadata.uid) {
        turn.wire.made(&uid, told);
    }
    Ok(ContractReference { api_group: bootstrap::GROUP.to_owned(), kind: kinds.kind, name: name.to_owned() })
}

fn whose(view: &View<'_>) -> Whose {
    let namespace = view.object.metadata.namespace.clone();
    Whose { namespace, labels: labels(view), owner: owned_by(view.object) }
}
