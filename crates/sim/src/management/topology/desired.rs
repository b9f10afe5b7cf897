//! What a topology should be made of: objects as they are applied.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use windlass_api::kind::cluster_api::SetDeletion;
use windlass_api::kind::topology::MachineDeploymentTopology;
use windlass_api::kind::wcp::TemplateMetadata;
use windlass_api::{annotation, label};
use windlass_runtime::key::Key;

use super::blueprint::{PoolBlueprint, Template, cache};
use super::patch::{self, Holder};
use super::upgrade::{Decision, Move};
use super::variable::Values;
use super::view::View;
use super::{Refusal, name};
use crate::management::ownership::owned_by;

/// All parts. Those that wait are not among them.
pub(super) struct Desired {
    pub infrastructure: Value,
    pub control_plane: Option<DesiredControlPlane>,
    pub pools: Vec<DesiredPool>,
}

/// The control plane, and the template of its machines.
pub(super) struct DesiredControlPlane {
    pub machines: Derived,
    pub object: Value,
}

/// A pool, and the templates of its machines.
pub(super) struct DesiredPool {
    pub bootstrap: Derived,
    pub infrastructure: Derived,
    pub object: Value,
}

/// A template of a cluster's own, made from one of its class.
pub(super) struct Derived {
    pub object: Value,
    /// It is there already, under this or another name.
    pub exists: bool,
}

impl Derived {
    fn field(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        self.field("/metadata/name")
    }

    pub(super) fn kind(&self) -> &str {
        self.field("/kind")
    }

    fn reference(&self) -> Value {
        let group = self.field("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        json!({"apiGroup": group, "kind": self.kind(), "name": self.name()})
    }
}

/// Works everything out, before anything is written.
pub(super) fn of(view: &View<'_>, decision: &Decision) -> Result<Desired, Refusal> {
    let values = Values::of(view.cluster, view.topology, &view.blueprint.class.spec)?;
    let control_plane = match &decision.control_plane {
        Move::To(version) => Some(control_plane(view, &values, version)?),
        Move::Wait => None,
    };
    let mut pools = Vec::new();
    for (pool, decided) in view.topology.workers.machine_deployments.iter().zip(&decision.pools) {
        if let Move::To(version) = decided {
            pools.push(self::pool(view, &values, pool, version)?);
        }
    }
    Ok(Desired { infrastructure: infrastructure(view, &values)?, control_plane, pools })
}

fn cluster_name<'a>(view: &View<'a>) -> &'a str {
    view.cluster.metadata.name.as_deref().unwrap_or_default()
}

/// The labels of everything that is derived.
fn labels(view: &View<'_>, pool: Option<&str>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([
        (label::CLUSTER_NAME.name.to_owned(), cluster_name(view).to_owned()),
        (label::TOPOLOGY_OWNED.name.to_owned(), String::new()),
    ]);
    labels.extend(pool.map(|pool| (label::TOPOLOGY_POOL.name.to_owned(), pool.to_owned())));
    labels
}

/// Where something was cloned from.
fn origin(template: &Template) -> BTreeMap<String, String> {
    let reference = &template.reference;
    BTreeMap::from([
        (annotation::CLONED_FROM_NAME.name.to_owned(), reference.name.clone()),
        (annotation::CLONED_FROM_GROUP_KIND.name.to_owned(), format!("{}.{}", reference.kind, template.group())),
    ])
}

/// The labels and annotations that a part has from its class and its topology, which comes second and wins.
fn metadata(class: Option<&TemplateMetadata>, topology: Option<&TemplateMetadata>) -> TemplateMetadata {
    let mut all = class.cloned().unwrap_or_default();
    let topology = topology.cloned().unwrap_or_default();
    all.labels.extend(topology.labels);
    all.annotations.extend(topology.annotations);
    all.annotations.remove(annotation::HOLD_UPGRADE_SEQUENCE.name);
    all.annotations.remove(annotation::DEFER_UPGRADE.name);
    all
}

/// The name of something that is made once: the one that it has, or one of chance.
fn lasting_name(view: &View<'_>, known: Option<&str>, base: &str, what: &str) -> String {
    let uid = view.cluster.metadata.uid.as_deref().unwrap_or_default();
    let fresh = || name::with_suffix(base, view.turn.seed.child("topology"), &format!("{what} {uid}"));
    known.map_or_else(fresh, str::to_owned)
}

/// What a cluster needs once.
fn infrastructure(view: &View<'_>, values: &Values) -> Result<Value, Refusal> {
    let template = &view.blueprint.infrastructure;
    let patched = patch::applied(&view.blueprint.class.spec.patches, template, Holder::Infrastructure, values)?;
    let given = &patched["spec"]["template"];
    let known = view.cluster.spec.infrastructure_ref.as_ref().map(|part| part.name.as_str());
    let name = lasting_name(view, known, cluster_name(view), "infrastructure");
    let metadata = object_metadata(view, &name, given, labels(view, None), origin(template));
    Ok(object(template, &metadata, &given["spec"]))
}

fn object_metadata(
    view: &View<'_>,
    name: &str,
    given: &Value,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
) -> Value {
    let texts = |of: &str| serde_json::from_value::<BTreeMap<String, String>>(given["metadata"][of].clone());
    let with = |of: &str, own: BTreeMap<String, String>| -> BTreeMap<String, String> {
        texts(of).unwrap_or_default().into_iter().chain(own).collect()
    };
    json!({
        "name": name, "namespace": view.cluster.metadata.namespace,
        "labels": with("labels", labels), "annotations": with("annotations", annotations),
    })
}

/// What is made from a template: the same kind without the word.
fn object(template: &Template, metadata: &Value, spec: &Value) -> Value {
    let kind = template.reference.kind.trim_end_matches("Template");
    let spec = if spec.is_null() { &json!({}) } else { spec };
    json!({"apiVersion": template.reference.api_version, "kind": kind, "metadata": metadata, "spec": spec})
}

fn control_plane(view: &View<'_>, values: &Values, version: &str) -> Result<DesiredControlPlane, Refusal> {
    let (blueprint, topology) = (view.blueprint, &view.topology.control_plane);
    let class = &blueprint.class.spec;
    let known = view.cluster.spec.control_plane_ref.as_ref().map(|part| part.name.as_str());
    let name = lasting_name(view, known, cluster_name(view), "control plane");
    let meta = metadata(class.control_plane.metadata.as_ref(), topology.metadata.as_ref());
    let values = values.with(topology.variables.as_ref()).with_builtin(
        "controlPlane",
        json!({"version": version, "name": name, "replicas": topology.replicas, "metadata": meta}),
    );
    let machines = {
        let seen = view.control_plane.as_ref();
        let known = seen.map(|seen| seen.spec.machine_template.spec.infrastructure_ref.name.as_str());
        let template = &blueprint.control_plane_machines;
        let patched = patch::applied(&class.patches, template, Holder::ControlPlane, &values)?;
        derived(view, template, &patched, cluster_name(view), None, known)
    };
    let template = &blueprint.control_plane;
    let patched = patch::applied(&class.patches, template, Holder::ControlPlane, &values)?;
    let given = &patched["spec"]["template"];
    let mut spec = given["spec"].clone();
    spec["version"] = json!(version);
    if let Some(replicas) = topology.replicas {
        spec["replicas"] = json!(replicas);
    }
    if let Some(after) = topology.rollout.as_ref().and_then(|rollout| rollout.after.as_ref()) {
        spec["rollout"]["after"] = json!(after);
    }
    let machine = &mut spec["machineTemplate"];
    set_texts(machine, "labels", labels(view, None).into_iter().chain(meta.labels.clone()));
    set_texts(machine, "annotations", meta.annotations.clone());
    machine["spec"]["infrastructureRef"] = machines.reference();
    if let Some(deletion) = topology.deletion.as_ref().or(class.control_plane.deletion.as_ref()) {
        machine["spec"]["deletion"] = json!(deletion);
    }
    if !topology.readiness_gates.is_empty() {
        machine["spec"]["readinessGates"] = json!(topology.readiness_gates);
    }
    if !topology.taints.is_empty() {
        machine["spec"]["taints"] = json!(topology.taints);
    }
    let own = meta.labels.into_iter().chain(labels(view, None)).collect();
    let annotations = meta.annotations.into_iter().chain(origin(template)).collect();
    let metadata = object_metadata(view, &name, given, own, annotations);
    Ok(DesiredControlPlane { machines, object: object(template, &metadata, &spec) })
}

/// Adds texts to the labels or annotations of a part.
fn set_texts(part: &mut Value, of: &str, texts: impl IntoIterator<Item = (String, String)>) {
    for (key, text) in texts {
        part["metadata"][of][key] = json!(text);
    }
}

fn pool(
    view: &View<'_>,
    values: &Values,
    topology: &MachineDeploymentTopology,
    version: &str,
) -> Result<DesiredPool, Refusal> {
    let blueprint = view.blueprint.pools.get(&topology.class).ok_or_else(|| {
        let class = &view.topology.class_ref.name;
        Refusal(format!("MachineDeployment class {} not found in ClusterClass {class}", topology.class))
    })?;
    let seen = view.deployment(&topology.name);
    let base = format!("{}-{}", cluster_name(view), topology.name);
    let known = seen.and_then(|seen| seen.metadata.name.as_deref());
    let name = lasting_name(view, known, &base, &format!("pool {}", topology.name));
    let meta = metadata(blueprint.class.metadata.as_ref(), topology.metadata.as_ref());
    let values = values.with(topology.variables.as_ref()).with_builtin(
        "machineDeployment",
        json!({
            "version": version, "class": topology.class, "name": name, "topologyName": topology.name,
            "replicas": topology.replicas, "metadata": meta,
        }),
    );
    let spec = seen.map(|seen| &seen.spec.template.spec);
    let derive = |template: &Template, known: Option<&str>| -> Result<Derived, Refusal> {
        let holder = Holder::Pool(&topology.class);
        let patched = patch::applied(&view.blueprint.class.spec.patches, template, holder, &values)?;
        Ok(derived(view, template, &patched, &base, Some(&topology.name), known))
    };
    let config = spec.and_then(|spec| spec.bootstrap.config_ref.as_ref());
    let bootstrap = derive(&blueprint.bootstrap, config.map(|config| config.name.as_str()))?;
    let infrastructure = derive(&blueprint.infrastructure, spec.map(|spec| spec.infrastructure_ref.name.as_str()))?;
    let machine = machine_spec(view, topology, blueprint, version, [&bootstrap, &infrastructure]);
    let object = deployment(view, topology, blueprint, &name, meta, &machine);
    Ok(DesiredPool { bootstrap, infrastructure, object })
}

/// What the machines of a pool are like.
fn machine_spec(
    view: &View<'_>,
    topology: &MachineDeploymentTopology,
    blueprint: &PoolBlueprint,
    version: &str,
    [bootstrap, infrastructure]: [&Derived; 2],
) -> Value {
    let class = &blueprint.class;
    let deletion = topology.deletion.as_ref().or(class.deletion.as_ref()).map(|deletion| json!(deletion.machine));
    let gates = Some(&topology.readiness_gates).filter(|gates| !gates.is_empty());
    let taints = Some(&topology.taints).filter(|taints| !taints.is_empty());
    without_nothing([
        ("clusterName", json!(cluster_name(view))),
        ("version", json!(version)),
        ("bootstrap", json!({"configRef": bootstrap.reference()})),
        ("infrastructureRef", infrastructure.reference()),
        ("failureDomain", json!(topology.failure_domain.as_ref().or(class.failure_domain.as_ref()))),
        ("minReadySeconds", json!(topology.min_ready_seconds.or(class.min_ready_seconds))),
        ("deletion", deletion.filter(|deletion| *deletion != json!({})).unwrap_or_default()),
        ("readinessGates", json!(gates)),
        ("taints", json!(taints)),
    ])
}

fn deployment(
    view: &View<'_>,
    topology: &MachineDeploymentTopology,
    blueprint: &PoolBlueprint,
    name: &str,
    meta: TemplateMetadata,
    machine: &Value,
) -> Value {
    let class = &blueprint.class;
    let selector = labels(view, Some(&topology.name));
    let own: BTreeMap<String, String> = meta.labels.into_iter().chain(selector.clone()).collect();
    let order = topology.deletion.as_ref().or(class.deletion.as_ref()).and_then(|deletion| deletion.order.clone());
    let spec = without_nothing([
        ("clusterName", json!(cluster_name(view))),
        ("replicas", json!(topology.replicas)),
        ("rollout", json!(topology.rollout.as_ref().or(class.rollout.as_ref()))),
        ("deletion", json!(order.map(|order| SetDeletion { order: Some(order) }))),
        ("selector", json!({"matchLabels": selector})),
        ("template", json!({"metadata": {"labels": own, "annotations": meta.annotations}, "spec": machine})),
    ]);
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
        "metadata": {
            "name": name, "namespace": view.cluster.metadata.namespace, "labels": own, "annotations": meta.annotations,
        },
        "spec": spec,
    })
}

/// An object without the fields that say nothing.
fn without_nothing<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

/// A template of the cluster's own: the one that is in use if it says the same, or else another.
fn derived(
    view: &View<'_>,
    template: &Template,
    patched: &Value,
    base: &str,
    pool: Option<&str>,
    known: Option<&str>,
) -> Derived {
    let spec = &patched["spec"];
    let uid = view.cluster.metadata.uid.as_deref().unwrap_or_default();
    let seed = view.turn.seed.child("topology").child(uid);
    // Named by what it says, so that a second try finds the first.
    let fresh = name::with_suffix(base, seed, &format!("{} {spec}", template.reference.kind));
    let stored = known.and_then(|known| {
        let key = Key { namespace: view.cluster.metadata.namespace.clone(), name: known.to_owned() };
        cache(&view.turn.caches, &template.reference.kind)?.get(&key)
    });
    let same = stored.as_ref().is_some_and(|stored| stored.data["spec"] == *spec) || known == Some(fresh.as_str());
    let name = known.filter(|_| same).unwrap_or(&fresh);
    let object = json!({
        "apiVersion": template.reference.api_version, "kind": template.reference.kind,
        "metadata": {
            "name": name, "namespace": view.cluster.metadata.namespace, "labels": labels(view, pool),
            "annotations": origin(template), "ownerReferences": [owned_by(view.cluster)],
        },
        "spec": spec,
    });
    Derived { object, exists: stored.is_some() && same }
}
