//! The controller of `StatefulSet`s: pods with names of their own, which come in order and go in the opposite one.
//!
//! A revision of the template is a `ControllerRevision`: while an update runs, a pod that is lost below it comes back as it was.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use windlass_apiserver::store::Key;

use super::seen::{Pod, StatefulSet, StatefulSetStatus, Template};
use super::view::View;
use super::write::{CLAIMS, PODS, REVISIONS, STATEFUL_SETS, controlled_by};
use super::{Workload, pod};

const REVISION: &str = "controller-revision-hash";

/// A set with its pods, by number.
struct Sets<'a> {
    key: &'a Key,
    set: &'a StatefulSet,
    pods: BTreeMap<i64, (&'a Key, &'a Pod)>,
    /// The revision that all pods have when no update runs.
    current: String,
    /// The one that they are to have.
    update: String,
}

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Create { ordinal: i64, updated: bool },
    Delete { ordinal: i64 },
}

/// Brings a set one step closer to what it should be.
pub(super) fn sync(workload: &Workload, view: &mut View, key: &Key) {
    let Some(set) = view.stateful_sets.get(key).filter(|set| !set.metadata.deleting()) else { return };
    let update = format!("{}-{}", key.name, set.spec.template.hash());
    let known = &set.status.current_revision;
    let current = if known.is_empty() { update.clone() } else { known.to_string() };
    let ordinal = |pod: &Key| pod.name.strip_prefix(&*key.name)?.strip_prefix('-')?.parse().ok();
    let pods = view.pods_of(&set.metadata.uid).filter_map(|(pod, seen)| Some((ordinal(pod)?, (pod, seen)))).collect();
    let sets = Sets { key, set, pods, current, update };
    sets.remember_revision(workload);
    let mut created = 0;
    let mut unbound = Vec::new();
    for step in sets.steps() {
        match step {
            Step::Create { ordinal, updated } => {
                sets.create(workload, ordinal, updated);
                created += 1;
            }
            Step::Delete { ordinal } => match sets.pods.get(&ordinal) {
                Some((pod, seen)) if seen.spec.node_name.is_some() && !seen.ended() => workload.delete_pod(pod),
                Some((pod, _)) => unbound.push((*pod).clone()),
                None => {}
            },
        }
    }
    let status = sets.status();
    // What was made just now comes back as a change, with which it is counted.
    if created == 0 && status != set.status {
        workload.change(STATEFUL_SETS, key, |object| object["status"] = json!(status));
    }
    view.ended.extend(unbound);
}

impl Sets<'_> {
    fn ordered(&self) -> bool {
        &*self.set.spec.pod_management_policy != "Parallel"
    }

    fn revision_of(pod: &Pod) -> &str {
        pod.metadata.labels.get(REVISION).map(|revision| &**revision).unwrap_or_default()
    }

    fn healthy(pod: &Pod) -> bool {
        pod.ready() && !pod.deleting()
    }

    /// Whether a pod of this number is to be made as the update has it.
    fn is_updated(&self, ordinal: i64) -> bool {
        self.current == self.update || ordinal >= self.set.spec.update_strategy.rolling_update.partition
    }

    /// What is to be done now. In order, that is one thing at a time, and each pod waits for those before it.
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for ordinal in 0..self.set.spec.replicas {
            let step = match self.pods.get(&ordinal) {
                None => Some(Step::Create { ordinal, updated: self.is_updated(ordinal) }),
                Some((_, pod)) if pod.ended() && !pod.deleting() => Some(Step::Delete { ordinal }),
                Some((_, pod)) if Self::healthy(pod) => continue,
                Some(_) => None,
            };
            steps.extend(step);
            if self.ordered() {
                return steps;
            }
        }
        for (ordinal, (_, pod)) in self.pods.iter().rev().filter(|(ordinal, _)| **ordinal >= self.set.spec.replicas) {
            if !pod.deleting() {
                steps.push(Step::Delete { ordinal: *ordinal });
            }
            if self.ordered() {
                return steps;
            }
        }
        if steps.is_empty() && &*self.set.spec.update_strategy.type_ != "OnDelete" {
            steps.extend(self.next_outdated());
        }
        steps
    }

    /// The last pod that is not as the update has it, if all after it are well.
    fn next_outdated(&self) -> Option<Step> {
        let partition = self.set.spec.update_strategy.rolling_update.partition;
        for (ordinal, (_, pod)) in self.pods.iter().rev().filter(|(ordinal, _)| **ordinal >= partition) {
            if Self::revision_of(pod) != self.update && !pod.deleting() {
                return Some(Step::Delete { ordinal: *ordinal });
            }
            if !Self::healthy(pod) {
                return None;
            }
        }
        None
    }

    fn remember_revision(&self, workload: &Workload) {
        let key = Key::new(&self.key.namespace, &self.update);
        let store = workload.server().store();
        if store.get(REVISIONS, &key).is_some() {
            return;
        }
        // The template is a part of an object in the store, which is JSON.
        let template: Value = serde_json::from_str(self.set.spec.template.0.get()).unwrap_or_default();
        let revision = json!({
            "metadata": {"labels": template["metadata"]["labels"], "ownerReferences": self.owner()},
            "data": {"spec": {"template": template}},
            "revision": self.set.metadata.generation,
        });
        workload.create(REVISIONS, &key, revision);
    }

    fn owner(&self) -> Value {
        controlled_by("apps/v1", "StatefulSet", &self.key.name, &self.set.metadata.uid)
    }

    /// The template as it was before the update; as it is where nobody knows any more.
    fn template_before(&self, workload: &Workload) -> Option<Template> {
        let entry = workload.server().store().get(REVISIONS, &Key::new(&self.key.namespace, &self.current))?;
        let revision = entry.look();
        RawValue::from_string(revision["data"]["spec"]["template"].to_string()).ok().map(Template)
    }

    fn create(&self, workload: &Workload, ordinal: i64, updated: bool) {
        let name = format!("{}-{ordinal}", self.key.name);
        let before = if updated { None } else { self.template_before(workload) };
        let revision = if before.is_some() { &self.current } else { &self.update };
        let mut object = pod::from_template(before.as_ref().unwrap_or(&self.set.spec.template), self.owner());
        pod::label(&mut object, REVISION, revision);
        pod::label(&mut object, "statefulset.kubernetes.io/pod-name", &name);
        pod::label(&mut object, "apps.kubernetes.io/pod-index", &ordinal.to_string());
        object["spec"]["hostname"] = name.as_str().into();
        if !self.set.spec.service_name.is_empty() {
            object["spec"]["subdomain"] = (*self.set.spec.service_name).into();
        }
        for claim in &self.set.spec.volume_claim_templates {
            self.claim(workload, claim, &name, &mut object);
        }
        workload.create(PODS, &Key::new(&self.key.namespace, &name), object);
    }

    /// The claim of a pod, which outlives it.
    fn claim(&self, workload: &Workload, template: &RawValue, pod: &str, object: &mut Value) {
        let template: Value = serde_json::from_str(template.get()).unwrap_or_default();
        let volume = template["metadata"]["name"].as_str().unwrap_or_default();
        let claim = format!("{volume}-{pod}");
        let key = Key::new(&self.key.namespace, &claim);
        if workload.server().store().get(CLAIMS, &key).is_none() {
            let metadata = json!({"labels": template["metadata"]["labels"]});
            let fresh = json!({"metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}});
            workload.create(CLAIMS, &key, fresh);
        }
        if !object["spec"]["volumes"].is_array() {
            object["spec"]["volumes"] = json!([]);
        }
        if let Value::Array(volumes) = &mut object["spec"]["volumes"] {
            volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
        }
    }

    fn status(&self) -> StatefulSetStatus {
        let count = |is_so: &dyn Fn(&Pod) -> bool| {
            i64::try_from(self.pods.values().filter(|(_, pod)| is_so(pod)).count()).unwrap_or(i64::MAX)
        };
        let ready = count(&Pod::ready);
        let of = |revision: &str| count(&|pod| Self::revision_of(pod) == revision && !pod.deleting());
        let (mut current, mut current_replicas) = (&self.current, of(&self.current));
        let updated_replicas = of(&self.update);
        let wish = self.set.spec.replicas;
        let rolls = &*self.set.spec.update_strategy.type_ != "OnDelete";
        if rolls && updated_replicas == wish && ready == wish && count(&|_| true) == wish {
            (current, current_replicas) = (&self.update, updated_replicas);
        }
        StatefulSetStatus {
            available_replicas: ready,
            collision_count: 0,
            current_replicas,
            current_revision: current.as_str().into(),
            observed_generation: self.set.metadata.generation,
            ready_replicas: ready,
            replicas: count(&|_| true),
            update_revision: self.update.as_str().into(),
            updated_replicas,
        }
    }
}
