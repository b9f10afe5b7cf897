//! What an update may do: the thing that is reviewed and approved.
//!
//! It is a function of both ends of the update and of the release, and of nothing that changes while the update runs. So each
//! plan of an update has the same envelope, its digest names it, and a step outside of it is noticed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::kind::cluster_update::{PoolEnd, UpdateEnd};
use windlass_api::kind::tanzu::Machines;
use windlass_api::label;
use windlass_api::name::{ClusterSecret, UpdateId};

use crate::digest::{self, Field};
use crate::planner::role;
use crate::release::{FieldOwner, FieldPath, KindDefaults, addon_role};
use crate::render::machine::Start;
use crate::render::workers::PoolTemplates;
use crate::render::{Scope, cluster, job, kubeadm_control_plane, machine, topology, workers};
use crate::step::{Action, Step};
use crate::target::{Drive, PoolTarget, PoolVersion, Target, classic};

/// Stands for every kind: what earlier releases have left behind can be of any.
const ANY_KIND: &str = "*";

/// What an update may do. Its digest covers this, and neither update ids nor resource versions nor the order of steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Envelope {
    /// The digest of the release.
    pub release_digest: String,
    /// What the cluster is to be.
    pub target: Value,
    /// The final objects by role, rendered with roles in the place of names.
    pub objects: BTreeMap<String, Value>,
    /// The machines that may be replaced, by role.
    pub replaced: BTreeSet<String>,
    /// The writes that are allowed.
    pub allowed: BTreeSet<Allowed>,
    /// By role, what may be in what is written, where the object is its owner's. It is among the objects, too.
    #[serde(skip)]
    bounds: BTreeMap<String, Bounds>,
}

/// A write that is allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Allowed {
    /// `create`, `apply` or `delete`.
    pub verb: String,
    /// The kind of the object; `*` for any.
    pub kind: String,
    /// What it is to the cluster.
    pub role: String,
}

impl Envelope {
    /// What may be done on the way from one end to the target; `from` is `None` while the cluster is being created.
    pub fn of(target: &Target, from: Option<&UpdateEnd>) -> Self {
        let mut envelope = Self {
            release_digest: target.release.digest().to_owned(),
            target: json!({
                "cluster": target.cluster,
                "distribution": target.release.distribution,
                "controlPlane": target.control_plane,
                "pools": target.pools,
                "network": target.network,
            }),
            objects: BTreeMap::new(),
            replaced: BTreeSet::new(),
            allowed: BTreeSet::new(),
            bounds: BTreeMap::new(),
        };
        if target.fields.is_some() {
            // How many machines there are, and of which sort, is their owner's, who may change it at any time.
            let pools: Vec<_> = target.pools.iter().map(|pool| &pool.name).collect();
            let distribution = &target.release.distribution;
            envelope.target = json!({"cluster": target.cluster, "distribution": distribution, "pools": pools});
        }
        if target.drive != Drive::Machines {
            envelope.target["drive"] = json!(target.drive);
        }
        // The id of the creation stands for that of any update: it is the same for all of them.
        let scope = Scope { target, update: UpdateId::new(&target.cluster.uid, 0) };
        let ends = Ends { from, to: target.end(), exact: target.fields.is_some() };
        envelope.add_packages(target);
        match target.drive {
            Drive::Machines => {
                envelope.allow("create", "ConfigMap", role::RELEASE);
                envelope.allow("delete", "ConfigMap", role::EARLIER_RELEASE);
                envelope.allow_to_tidy(&["WCPMachineTemplate"].into());
                envelope.add_cluster(&scope);
                envelope.add_machines(&scope, &ends);
                envelope.add_pools(&scope, &ends);
            }
            Drive::KubeadmControlPlane if target.fields.is_some() => envelope.add_classic(target, &ends),
            Drive::KubeadmControlPlane => {
                envelope.add_kubeadm_control_plane(&scope, &ends);
                envelope.add_pools(&scope, &ends);
            }
            Drive::Topology => envelope.add_topology(&scope, &ends),
        }
        envelope
    }

    /// What the envelope is named by: `sha256:…`.
    pub fn digest(&self) -> String {
        // Every look at a cluster that is updated asks for it, so that nothing large is copied.
        // What bounds the writes is among the objects.
        let Self { release_digest, target, objects, replaced, allowed, bounds: _ } = self;
        let (release_digest, replaced, allowed) = (json!(release_digest), json!(replaced), json!(allowed));
        let fields = [
            ("release_digest", Field::Value(&release_digest)),
            ("target", Field::Value(target)),
            ("objects", Field::Object(objects)),
            ("replaced", Field::Value(&replaced)),
            ("allowed", Field::Value(&allowed)),
        ];
        digest::of_fields(&fields.into())
    }

    /// Whether machines of the control plane may be replaced.
    pub fn replaces_control_plane(&self) -> bool {
        self.replaced.iter().any(|role| role.starts_with(role::CONTROL_PLANE))
    }

    /// Whether a step lies inside.
    pub fn allows(&self, step: &Step) -> bool {
        let allowed = |kind: &str| {
            let (verb, role) = (step.action.verb().to_owned(), step.role.clone());
            self.allowed.contains(&Allowed { verb, kind: kind.to_owned(), role })
        };
        let is_within = |bounds: &Bounds| written(step).is_none_or(|object| bounds.hold(object));
        (allowed(step.action.kind()) || allowed(ANY_KIND)) && self.bounds.get(&step.role).is_none_or(is_within)
    }

    fn allow(&mut self, verb: &str, kind: &str, role: &str) {
        self.allowed.insert(Allowed { verb: verb.to_owned(), kind: kind.to_owned(), role: role.to_owned() });
    }

    /// An object that will be there, and the write that brings it.
    fn add(&mut self, verb: &str, role: &str, mut object: Value) {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        self.allow(verb, &kind, role);
        let metadata = &mut object["metadata"];
        metadata["name"] = role.into();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("ownerReferences");
        }
        if let Some(labels) = metadata["labels"].as_object_mut() {
            labels.remove(label::UPDATE_ID.name);
        }
        self.objects.insert(role.to_owned(), object);
    }

    /// What earlier updates have made, and nobody refers to.
    fn allow_to_tidy(&mut self, machine_templates: &BTreeSet<&str>) {
        for template in machine_templates.iter().chain(&["KubeadmConfigTemplate"]) {
            self.allow("delete", template, role::EARLIER_TEMPLATE);
        }
    }

    /// Objects of the cluster's owner: only what the release sets is written, and references to new templates.
    fn add_classic(&mut self, target: &Target, ends: &Ends<'_>) {
        let of_pools = target.pools.iter().map(|pool| target.pool_profile(&pool.name).template.as_str());
        self.allow_to_tidy(&of_pools.chain([target.control_plane_profile().template.as_str()]).collect());
        let mut bound = |role: String, (verb, kind): (&str, &str)| {
            self.allow(verb, kind, &role);
            let bounds = Bounds::of(target, verb, kind);
            self.objects.insert(role.clone(), json!(bounds));
            self.bounds.insert(role, bounds);
        };
        bound(role::KUBEADM_CONTROL_PLANE.to_owned(), ("apply", "KubeadmControlPlane"));
        if ends.replace_control_plane() {
            let kind = &target.control_plane_profile().template;
            bound(role::control_plane_template(kind), ("create", kind));
        }
        for pool in &target.pools {
            let row = role::pool(&pool.name);
            bound(format!("{row}/MachineDeployment"), ("apply", "MachineDeployment"));
            if ends.replace_pool(pool) {
                for kind in [target.pool_profile(&pool.name).template.as_str(), "KubeadmConfigTemplate"] {
                    bound(format!("{row}/{kind}"), ("create", kind));
                }
            }
        }
        if ends.replace_control_plane() {
            self.replaced.insert(role::CONTROL_PLANE.to_owned());
        }
        let replaced = target.pools.iter().filter(|pool| ends.replace_pool(pool));
        self.replaced.extend(replaced.map(|pool| role::pool(&pool.name)));
    }

    fn add_packages(&mut self, target: &Target) {
        for (addon, release) in &target.release.addons {
            for object in &release.objects {
                self.add("apply", &addon_role(addon, object), object.clone());
            }
        }
        if !target.release.addons.is_empty() {
            self.allow("apply", "ConfigMap", role::APPLIED);
        }
        self.allow("delete", ANY_KIND, role::STALE);
    }

    fn add_cluster(&mut self, scope: &Scope<'_>) {
        self.add("create", "cluster/WCPCluster", cluster::wcp_cluster(scope));
        self.add("create", role::CLUSTER, cluster::cluster(scope));
        for secret in ClusterSecret::CERTIFICATES {
            self.allow("create", "Secret", &role::secret(secret));
        }
    }

    fn add_machines(&mut self, scope: &Scope<'_>, ends: &Ends<'_>) {
        for ordinal in 0..scope.target.control_plane.count {
            let row = role::control_plane(ordinal);
            for object in machine::control_plane(scope, ordinal, Start::Join, &scope.target.cluster.uid) {
                let role = format!("{row}/{}", object["kind"].as_str().unwrap_or_default());
                self.add("create", &role, object);
            }
        }
        if ends.replace_control_plane() {
            self.replace_control_plane(scope.target);
            self.add("create", role::JOB, job::job(scope));
            // Until something is replaced, it can be given up; what that leads to is what there was.
            self.allow("delete", "Job", role::JOB);
            self.allow("create", "Job", role::ABORT_JOB);
            self.allow("delete", "Job", role::EARLIER_JOB);
        }
    }

    fn replace_control_plane(&mut self, target: &Target) {
        self.replaced.extend((0..target.control_plane.count).map(role::control_plane));
    }

    /// A control plane may always be scaled; it gets a new template where it is replaced or has never been.
    fn add_kubeadm_control_plane(&mut self, scope: &Scope<'_>, ends: &Ends<'_>) {
        let uid = &scope.target.cluster.uid;
        let created = kubeadm_control_plane::created(scope, uid);
        self.add("apply", role::KUBEADM_CONTROL_PLANE, created);
        if ends.from.is_none() {
            self.add("apply", role::CLUSTER, kubeadm_control_plane::reference(scope));
            self.allow("create", "KubeadmControlPlane", role::KUBEADM_CONTROL_PLANE);
        }
        if ends.from.is_none() || ends.replace_control_plane() {
            let template = kubeadm_control_plane::template(scope, None, uid);
            self.add("create", &role::control_plane_template(&scope.target.control_plane_profile().template), template);
        }
        if ends.replace_control_plane() {
            self.replace_control_plane(scope.target);
        }
    }

    /// Everything is one write.
    fn add_topology(&mut self, scope: &Scope<'_>, ends: &Ends<'_>) {
        self.add("apply", role::CLUSTER, topology::change(scope, None));
        if ends.replace_control_plane() {
            self.replace_control_plane(scope.target);
        }
        let replaced = scope.target.pools.iter().filter(|pool| ends.from.is_some() && ends.replace_pool(pool));
        self.replaced.extend(replaced.map(|pool| role::pool(&pool.name)));
    }

    /// A pool may always be scaled; it gets new templates where it is replaced or has never been.
    fn add_pools(&mut self, scope: &Scope<'_>, ends: &Ends<'_>) {
        let uid = &scope.target.cluster.uid;
        for pool in &scope.target.pools {
            let row = role::pool(&pool.name);
            // A pool that is there and keeps its version stays what it is, but for the number of its machines.
            if ends.from.is_some() && pool.version == PoolVersion::Kept {
                self.allow("apply", "MachineDeployment", &format!("{row}/MachineDeployment"));
                continue;
            }
            let templates = ends.replace_pool(pool);
            for object in workers::templates(scope, pool, [None, None], uid).into_iter().filter(|_| templates) {
                let role = format!("{row}/{}", object["kind"].as_str().unwrap_or_default());
                self.add("create", &role, object);
            }
            let object = workers::deployment(scope, pool, &PoolTemplates::of(scope, pool), uid);
            let deployment = format!("{row}/MachineDeployment");
            self.add("apply", &deployment, object);
            if templates {
                self.allow("create", "MachineDeployment", &deployment);
            }
            if templates && ends.from.is_some() {
                self.replaced.insert(row);
            }
        }
    }
}

/// What may be in what is written of an object that is its owner's.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Bounds {
    kind: String,
    /// What the release says about such objects.
    fields: KindDefaults,
    /// Where it may refer to new templates.
    references: Vec<FieldPath>,
    /// A whole object, in which there is what its owner has put into the one before it.
    #[serde(skip)]
    whole: bool,
}

impl Bounds {
    fn of(target: &Target, verb: &str, kind: &str) -> Self {
        let references = classic::references(&kind.to_ascii_lowercase()).iter();
        Self {
            kind: kind.to_owned(),
            fields: target.release.defaults_of(kind).cloned().unwrap_or_default(),
            references: references.map(|(_, path)| FieldPath::of(path)).collect(),
            whole: verb == "create",
        }
    }

    /// Whether an object has what the release owns, and, unless it is a whole one, nothing that the release does not speak of.
    fn hold(&self, object: &Value) -> bool {
        let mut fields = self.fields.fields.iter();
        let has_its_own =
            fields.all(|(path, field)| field.owner != FieldOwner::Release || path.get(object) == Some(&field.value));
        let mut leaves = Vec::new();
        leaves_of(&object["spec"], &mut vec!["spec".to_owned()], &mut leaves);
        let known = |leaf: &FieldPath| {
            let mut known = self.fields.fields.keys().chain(&self.references);
            known.any(|path| path.contains(leaf))
        };
        has_its_own && (self.whole || leaves.iter().all(known))
    }
}

/// The fields at the ends of a tree. A list is one.
fn leaves_of(value: &Value, path: &mut Vec<String>, leaves: &mut Vec<FieldPath>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                path.push(name.clone());
                leaves_of(value, path, leaves);
                path.pop();
            }
        }
        Value::Null => {}
        _ => leaves.push(FieldPath::of(&path.iter().map(String::as_str).collect::<Vec<_>>())),
    }
}

fn written(step: &Step) -> Option<&Value> {
    match &step.action {
        Action::Create { object } | Action::Apply { object, .. } => Some(object),
        Action::CreateSecret { .. } | Action::Delete { .. } => None,
    }
}

/// Both ends of an update.
struct Ends<'e> {
    from: Option<&'e UpdateEnd>,
    to: UpdateEnd,
    /// What is replaced is on record when it begins, and nothing else is.
    exact: bool,
}

impl Ends<'_> {
    fn is_other(&self, from: &Machines, to: &Machines) -> bool {
        if self.exact {
            return false;
        }
        let other_release = self.from.is_some_and(|from| from.distribution != self.to.distribution);
        other_release || from.class != to.class || from.storage_class != to.storage_class
    }

    fn replace_control_plane(&self) -> bool {
        let is_one = |role: &String| role.starts_with(role::CONTROL_PLANE);
        self.from.is_some_and(|from| {
            self.is_other(&from.control_plane, &self.to.control_plane) || from.outdated.iter().any(is_one)
        })
    }

    /// Whether a pool gets other machines, or its first.
    fn replace_pool(&self, pool: &PoolTarget) -> bool {
        let Some(from) = self.from else { return !self.exact };
        if self.exact {
            return from.outdated.contains(&role::pool(&pool.name));
        }
        let same = |end: &&PoolEnd| end.name == pool.name.as_str();
        let found = |end: &UpdateEnd| match end.pools.iter().find(same) {
            Some(pool) => Some(pool.machines.clone()),
            // The one pool of a cluster that has no more.
            None => end.pools.is_empty().then(|| end.workers.clone()),
        };
        match (pool.version, found(from), found(&self.to)) {
            (PoolVersion::Release, Some(machines), Some(to)) => {
                self.is_other(&machines, &to) || from.outdated.contains(&role::pool(&pool.name))
            }
            (PoolVersion::Release | PoolVersion::Kept, None, _) => true,
            (PoolVersion::Release, Some(_), None) | (PoolVersion::Kept, Some(_), _) => false,
        }
    }
}
