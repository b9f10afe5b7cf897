//! What an update may do: the thing that is reviewed and approved.
//!
//! It is a function of both ends of the update and of the release, and of nothing that changes while the update runs. So each
//! plan of an update has the same envelope, its digest names it, and a step outside of it is noticed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};
use windlass_api::kind::cluster_update::UpdateEnd;
use windlass_api::kind::tanzu::Machines;
use windlass_api::label;
use windlass_api::name::{ClusterSecret, UpdateId};

use crate::digest;
use crate::planner::role;
use crate::release::addon_role;
use crate::render::machine::Start;
use crate::render::workers::PoolTemplates;
use crate::render::{Scope, cluster, job, machine, workers};
use crate::step::Step;
use crate::target::Target;

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
}

/// A write that is allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Allowed {
    /// `create`, `apply` or `delete`.
    pub verb: String,
    /// The kind of the object.
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
        };
        // The id of the creation stands for that of any update: it is the same for all of them.
        let scope = Scope { target, update: UpdateId::new(&target.cluster.uid, 0) };
        let to = target.end();
        let other_release = from.is_some_and(|from| from.distribution != to.distribution);
        let other = |from: &Machines, to: &Machines| {
            other_release || from.class != to.class || from.storage_class != to.storage_class
        };
        envelope.add_packages(target);
        envelope.add_cluster(&scope);
        envelope.add_control_plane(&scope, from.is_some_and(|from| other(&from.control_plane, &to.control_plane)));
        envelope.add_workers(&scope, from.is_none_or(|from| other(&from.workers, &to.workers)), from.is_some());
        envelope
    }

    /// What the envelope is named by: `sha256:…`.
    pub fn digest(&self) -> String {
        digest::of(&json!(self))
    }

    /// Whether a step lies inside.
    pub fn allows(&self, step: &Step) -> bool {
        self.allowed.contains(&Allowed {
            verb: step.action.verb().to_owned(),
            kind: step.action.kind().to_owned(),
            role: step.role.clone(),
        })
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

    fn add_packages(&mut self, target: &Target) {
        for (addon, release) in &target.release.addons {
            for object in &release.objects {
                self.add("apply", &addon_role(addon, object), object.clone());
            }
        }
        self.allow("delete", "DaemonSet", role::STALE);
    }

    fn add_cluster(&mut self, scope: &Scope<'_>) {
        self.add("create", "cluster/WCPCluster", cluster::wcp_cluster(scope));
        self.add("create", "cluster/Cluster", cluster::cluster(scope));
        for secret in ClusterSecret::CERTIFICATES {
            self.allow("create", "Secret", &role::secret(secret));
        }
    }

    fn add_control_plane(&mut self, scope: &Scope<'_>, replaced: bool) {
        for ordinal in 0..scope.target.control_plane.count {
            let row = role::control_plane(ordinal);
            for object in machine::control_plane(scope, ordinal, Start::Join, &scope.target.cluster.uid) {
                let role = format!("{row}/{}", object["kind"].as_str().unwrap_or_default());
                self.add("create", &role, object);
            }
            if replaced {
                self.replaced.insert(row);
            }
        }
        if replaced {
            self.add("create", role::JOB, job::job(scope));
        }
    }

    /// A pool may always be scaled; it gets new templates where it is replaced or has never been.
    fn add_workers(&mut self, scope: &Scope<'_>, templates: bool, exists: bool) {
        let uid = &scope.target.cluster.uid;
        for pool in &scope.target.pools {
            let row = role::pool(&pool.name);
            for object in workers::templates(scope, pool, uid).into_iter().filter(|_| templates) {
                let role = format!("{row}/{}", object["kind"].as_str().unwrap_or_default());
                self.add("create", &role, object);
            }
            let object = workers::deployment(scope, pool, &PoolTemplates::of(scope, pool), uid);
            let deployment = format!("{row}/MachineDeployment");
            self.add("apply", &deployment, object);
            if templates {
                self.allow("create", "MachineDeployment", &deployment);
            }
            if templates && exists {
                self.replaced.insert(row);
            }
        }
    }
}
