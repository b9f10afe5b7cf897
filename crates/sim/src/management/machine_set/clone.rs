//! A machine of a set, with its parts cloned from templates.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::kind::ContractReference;
use windlass_api::kind::cluster_api::{Machine, MachineSet};
use windlass_api::label;

use crate::management::context::{Error, Turn};
use crate::management::machine::FINALIZER;
use crate::management::ownership::{controlled_by, owned_by};
use crate::management::part::{self, Whose};
use crate::management::write;

/// Makes a machine: its configuration, its infrastructure, then itself, as Cluster API does. `false` if a template is missing.
pub(super) async fn machine(turn: &Turn, set: &MachineSet, name: &str) -> Result<bool, Error> {
    let mut spec = set.spec.template.spec.clone();
    if let Some(template) = &spec.bootstrap.config_ref {
        let Some(part) = cloned(turn, set, template, name).await? else { return Ok(false) };
        spec.bootstrap.config_ref = Some(part);
    }
    let Some(part) = cloned(turn, set, &spec.infrastructure_ref, name).await? else { return Ok(false) };
    spec.infrastructure_ref = part;

    let metadata = set.spec.template.metadata.clone().unwrap_or_default();
    let machine = Machine {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: set.metadata.namespace.clone(),
            labels: Some(labels(set)),
            annotations: (!metadata.annotations.is_empty()).then_some(metadata.annotations),
            owner_references: Some(vec![controlled_by(set)]),
            finalizers: Some(vec![FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        },
        spec,
        status: None,
    };
    write::create(turn, &machine).await?;
    Ok(true)
}

/// The labels of a machine and of its parts.
fn labels(set: &MachineSet) -> BTreeMap<String, String> {
    let template = set.spec.template.metadata.clone().unwrap_or_default();
    let own = [
        (label::CLUSTER_NAME.name, set.spec.cluster_name.clone()),
        (label::SET_NAME.name, set.metadata.name.clone().unwrap_or_default()),
    ];
    template.labels.into_iter().chain(own.map(|(key, value)| (key.to_owned(), value))).collect()
}

/// Clones a part from its template, and says how to refer to it. `None` if there is no template.
async fn cloned(
    turn: &Turn,
    set: &MachineSet,
    reference: &ContractReference,
    name: &str,
) -> Result<Option<ContractReference>, Error> {
    let Some(template) = part::template(turn, &set.metadata, reference) else { return Ok(None) };
    let whose = Whose { namespace: set.metadata.namespace.clone(), labels: labels(set), owner: owned_by(set) };
    part::cloned(turn, whose, (reference, &template), name).await.map(Some)
}
