//! What is written into the objects of a classic cluster: the fields that its release sets, and references to new templates. Nothing
//! else is in it, so that whatever else is in the objects stays its owner's.

use serde_json::{Value, json};
use windlass_api::kind::{ContractReference, bootstrap, control_plane};
use windlass_api::name::ObjectName;

use super::kubeadm_control_plane as kcp;
use super::workers::{PoolTemplates, templates};
use super::{Scope, cluster_api_version};
use crate::change;
use crate::inventory::{Inventory, KubeadmControlPlane, Pool};
use crate::planner::role;
use crate::profile::Profile;
use crate::release::FieldPath;
use crate::step::{Action, Revision};
use crate::target::classic::{CONTROL_PLANE, DEPLOYMENT, Reference, references};
use crate::target::{ObjectFields, PoolTarget};

/// An object as it is to be, and what it is to the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// What it is to the cluster.
    pub role: String,
    /// What is written of it.
    pub object: Value,
    /// What is there; `None` where it is new.
    pub live: Option<Value>,
}

impl Rendered {
    /// The write of it. What is there is only changed in the state that the decision was made on.
    pub(crate) fn action(&self, revision: &Revision) -> Action {
        let object = self.object.clone();
        match self.live {
            None => Action::Create { object },
            Some(_) => Action::Apply { object, expect: Some(revision.clone()) },
        }
    }
}

/// Everything that is written to bring a cluster to its release, in order; nothing where nothing differs. This is what is shown
/// before, and what is done.
pub fn all(scope: &Scope<'_>, inventory: &Inventory) -> Vec<Rendered> {
    let mut all = Vec::new();
    if let Some(observed) = &inventory.control_plane.kubeadm {
        all.extend(control_plane(scope, observed));
    }
    for wanted in &scope.target.pools {
        all.extend(inventory.pools.get(&wanted.name).into_iter().flat_map(|observed| pool(scope, wanted, observed)));
    }
    all
}

/// What is written about the control plane.
pub(crate) fn control_plane(scope: &Scope<'_>, observed: &KubeadmControlPlane) -> Vec<Rendered> {
    let Some(fields) = &scope.target.fields else { return Vec::new() };
    if change::kubeadm_control_plane::changes(scope, observed).is_empty() {
        return Vec::new();
    }
    let (found, profile) = (&observed.infrastructure_template, scope.target.control_plane_profile());
    let mut rendered = Vec::new();
    let mut template = None;
    if !change::kubeadm_control_plane::template_changes(scope, observed).is_empty() {
        let object = kcp::template(scope, found.spec.as_ref(), &scope.target.cluster.uid);
        rendered.push(Rendered { role: role::control_plane_template(&profile.template), object, live: None });
        template = Some(kcp::template_name(scope));
    }
    let header = header(scope, (&format!("{}/v1beta2", control_plane::GROUP), "KubeadmControlPlane"), &observed.name);
    let object = object(header, (CONTROL_PLANE, profile), &fields.control_plane, |_| (template.as_ref(), &found.name));
    let role = role::KUBEADM_CONTROL_PLANE.to_owned();
    rendered.push(Rendered { role, object, live: Some(observed.live.clone()) });
    rendered
}

/// What is written about a pool.
pub(crate) fn pool(scope: &Scope<'_>, wanted: &PoolTarget, observed: &Pool) -> Vec<Rendered> {
    let Some(fields) = scope.target.fields.as_ref().and_then(|fields| fields.pools.get(&wanted.name)) else {
        return Vec::new();
    };
    if change::pool(scope, wanted, observed).is_empty() {
        return Vec::new();
    }
    let names = PoolTemplates::of(scope, wanted);
    let found = [&observed.infrastructure_template, &observed.bootstrap_template];
    let before = found.map(|found| found.spec.as_ref());
    let differs = change::differing_templates(scope, wanted, observed);
    let row = role::pool(&wanted.name);
    let made = templates(scope, wanted, before, &scope.target.cluster.uid);
    let mut rendered: Vec<Rendered> = made
        .into_iter()
        .zip(differs)
        .filter(|(_, differs)| *differs)
        .map(|(object, _)| {
            let role = format!("{row}/{}", object["kind"].as_str().unwrap_or_default());
            Rendered { role, object, live: None }
        })
        .collect();
    let header = header(scope, (&cluster_api_version(), "MachineDeployment"), &wanted.name.clone().into());
    let profile = scope.target.pool_profile(&wanted.name);
    let object = object(header, (DEPLOYMENT, profile), &fields.deployment, |reference| match reference {
        Reference::Infrastructure => (differs[0].then_some(&names.infrastructure), &found[0].name),
        Reference::Bootstrap => (differs[1].then_some(&names.bootstrap), &found[1].name),
    });
    rendered.push(Rendered { role: format!("{row}/MachineDeployment"), object, live: Some(observed.live.clone()) });
    rendered
}

/// What is applied to a control plane, or to a pool, that is there, as far as it is compared with what is there: new templates are
/// compared by themselves.
pub(crate) fn compared(kind: &str, live: &Value, fields: &ObjectFields) -> Value {
    let mut desired = fields.fields.clone();
    for (reference, path) in references(kind) {
        let path = FieldPath::of(path);
        if let Some(known) = path.get(live).filter(|_| fields.references.contains(reference)) {
            path.put(&mut desired, known.clone());
        }
    }
    for key in ["apiVersion", "kind"] {
        desired[key] = live[key].clone();
    }
    desired["metadata"] = json!({"name": live["metadata"]["name"], "namespace": live["metadata"]["namespace"]});
    desired
}

fn header(scope: &Scope<'_>, (api_version, kind): (&str, &str), name: &ObjectName) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": { "name": name, "namespace": scope.target.cluster.namespace, "labels": scope.labels() },
    })
}

/// The fields of the release, and each reference that is to a new template, or that we have set before.
fn object<'n>(
    header: Value,
    (kind, profile): (&str, &Profile),
    fields: &ObjectFields,
    template: impl Fn(Reference) -> (Option<&'n ObjectName>, &'n ObjectName),
) -> Value {
    let mut object = header;
    object["spec"] = fields.fields["spec"].clone();
    for (reference, path) in references(kind) {
        let (new, found) = template(*reference);
        let known = fields.references.contains(reference).then_some(found);
        if let Some(name) = new.or(known) {
            let reference = match reference {
                Reference::Infrastructure => profile.reference(name.as_str()),
                Reference::Bootstrap => ContractReference {
                    api_group: bootstrap::GROUP.to_owned(),
                    kind: "KubeadmConfigTemplate".to_owned(),
                    name: name.to_string(),
                },
            };
            FieldPath::of(path).put(&mut object, json!(reference));
        }
    }
    object
}
