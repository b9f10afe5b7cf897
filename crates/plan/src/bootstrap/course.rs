//! How far a cluster of a class is: Cluster API says it of its machines, and its `ClusterBootstrap` of its packages.

use windlass_api::annotation;
use windlass_api::condition::ConditionType;
use windlass_api::kind::cluster_api::{Cluster, Progress};
use windlass_api::kind::cluster_update::WaitingFor;
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::kind::{Condition, condition};
use windlass_api::reason::TopologyReason;

use super::Blocked;
use crate::gate;
use crate::hook::{self, Known};
use crate::resolve::hold::Held;
use crate::step::Stage;
use crate::word::Word;

/// A cluster and its packages, as they are at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Course<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Its packages, if they are told of.
    pub bootstrap: Option<&'a ClusterBootstrap>,
}

impl<'a> Course<'a> {
    /// The release that it has: it is as it was asked to be when its packages are those of its release and well, Cluster API has
    /// nothing left to do, and nobody holds it.
    pub fn reached(&self) -> Option<&'a str> {
        let release = hook::release(self.cluster)?;
        let held = Held::of(self.cluster);
        let is_going = self.cluster.metadata.deletion_timestamp.is_some();
        let is_done =
            !is_going && held.hold.is_none() && !held.paused && self.packages_are(release) && self.is_rolled();
        is_done.then_some(release)
    }

    /// Whether an upgrade that was given up has left nothing behind: the packages are those of this release and well, and our hold
    /// has ended. A pause of its owner may be there.
    pub fn is_back(&self, release: &str) -> bool {
        let held = Held::of(self.cluster);
        held.hold.is_none()
            && hook::release(self.cluster) == Some(release)
            && self.packages_are(release)
            && (held.paused || self.reached().is_some())
    }

    fn packages_are(&self, release: &str) -> bool {
        if !hook::is_chosen(release, self.bootstrap) {
            // Of an older release there are none, and none are waited for.
            return !hook::has_packages(self.cluster, &Known::default());
        }
        self.condition(ConditionType::PackagesReady).is_some_and(is_true)
    }

    /// Cluster API has seen the latest wish, and all machines are there and as they should be.
    fn is_rolled(&self) -> bool {
        let Some(status) = &self.cluster.status else { return false };
        let is_of_now = |it: &Condition| it.observed_generation == self.cluster.metadata.generation;
        let topology = condition(&status.conditions, ConditionType::TopologyReconciled.as_str());
        topology.is_some_and(|it| is_true(it) && is_of_now(it))
            && [&status.control_plane, &status.workers].into_iter().flatten().all(is_whole)
    }

    /// How it is, in one word.
    pub fn word(&self) -> Word {
        let initialization = self.cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
        let is_there = initialization.is_some_and(|reached| reached.control_plane_initialized);
        match () {
            () if self.cluster.metadata.deletion_timestamp.is_some() => Word::Deleting,
            () if self.condition(ConditionType::Stalled).is_some_and(is_true) => Word::Stalled,
            () if Held::of(self.cluster).is_paused_by_owner() => Word::Paused,
            () if !is_there => Word::Creating,
            () if self.reached().is_some() => Word::Running,
            // Nobody brings packages into one that has no release.
            () if hook::release(self.cluster).is_none() && self.is_rolled() => Word::Running,
            () => Word::Updating,
        }
    }

    /// The release that its packages are of; nothing while they are not chosen.
    pub fn packages_of(&self) -> Option<&'a str> {
        self.bootstrap?.status.as_ref()?.resolved_tkr.as_deref()
    }

    /// What is said of its packages.
    fn condition(&self, type_: ConditionType) -> Option<&'a Condition> {
        condition(&self.bootstrap?.status.as_ref()?.conditions, type_.as_str())
    }

    /// What is in the way: packages, a pause of its owner, then what Cluster API says.
    pub fn waits(&self) -> Vec<WaitingFor> {
        let held = Held::of(self.cluster);
        let of_packages = self.of_packages();
        let of_order = self.of_order();
        let of_machines = match () {
            () if held.is_paused_by_owner() => Some(self.pause()),
            // Cluster API says that it is paused; that it is held for its packages is said already.
            () if held.hold.is_some() && of_packages.is_some() => None,
            () => self.of_machines().filter(|wait| !self.repeats_packages(&wait.message)),
        };
        of_order.into_iter().chain(of_packages).chain(of_machines).collect()
    }

    /// An order to give the upgrade up.
    fn of_order(&self) -> Option<WaitingFor> {
        let given_up = self.cluster.metadata.annotations.as_ref()?.get(annotation::ABORT.name)?;
        Some(WaitingFor {
            stage: Stage::Packages.to_string(),
            reason: "Aborting".to_owned(),
            object: format!("Cluster/{}", self.cluster.metadata.name.as_deref().unwrap_or_default()),
            message: format!("the upgrade to {given_up} is being given up, when everybody has let go of the cluster"),
            way_out: Some("wait".to_owned()),
            ..WaitingFor::default()
        })
    }

    fn of_packages(&self) -> Option<WaitingFor> {
        let stalled = self.condition(ConditionType::Stalled).filter(|it| is_true(it));
        let ready = self.condition(ConditionType::PackagesReady).filter(|it| !is_true(it));
        let mut wait = self.wait(Stage::Packages, "ClusterBootstrap", stalled.or(ready)?);
        let told = wait.message;
        let (message, way_out) = match Blocked::read(&told) {
            (what, _) if self.pending().is_some() => {
                let name = self.cluster.metadata.name.as_deref().unwrap_or_default();
                let way_out = format!("windlass approve {name}, or windlass abort {name}");
                (gate::Blocked::without_agreement(what), Some(way_out))
            }
            (what, way_out) => (what, way_out.map(str::to_owned)),
        };
        (wait.message, wait.way_out) = (message.to_owned(), way_out);
        // It has been waited for since before somebody found that it stalls.
        wait.since = ready.map_or(wait.since, |it| Some(it.last_transition_time.clone()));
        Some(wait)
    }

    /// What is said of an upgrade that begins when somebody approves it, with how to do that.
    pub fn pending(&self) -> Option<&'a Condition> {
        let ready = self.condition(ConditionType::PackagesReady).filter(|it| !is_true(it))?;
        gate::Blocked::asked_to_agree_to(&ready.message).map(|_| ready)
    }

    /// Whether what Cluster API says is what we have told it, when it asked.
    fn repeats_packages(&self, message: &str) -> bool {
        let told = self.condition(ConditionType::PackagesReady).filter(|it| !is_true(it)).map(|it| it.message.as_str());
        told.is_some_and(|told| !told.is_empty() && message.contains(told))
    }

    fn of_machines(&self) -> Option<WaitingFor> {
        let status = self.cluster.status.as_ref()?;
        let of = |type_: ConditionType| condition(&status.conditions, type_.as_str());
        let found = [of(ConditionType::TopologyReconciled), of(ConditionType::Available)];
        let found = found.into_iter().flatten().find(|it| !is_true(it) && !it.message.is_empty())?;
        let mut wait = self.wait(self.stage(), "Cluster", found);
        // It is said of a pause that is ours, or is over.
        let annotated = self.cluster.metadata.annotations.as_ref().is_some_and(|it| annotation::PAUSED.is_in(it));
        if wait.reason == TopologyReason::Paused.as_str() && !annotated {
            (wait.stage, wait.message) = match Held::of(self.cluster).hold {
                Some(release) if self.packages_of() != Some(release.as_str()) => (
                    Stage::Packages.to_string(),
                    format!("the packages of {release} come first, and are not chosen yet"),
                ),
                Some(release) => {
                    (wait.stage, format!("the packages of {release} are in, and the hold of its machines ends"))
                }
                None => (wait.stage, "it is paused no more, and Cluster API has not gone on yet".to_owned()),
            };
        }
        Some(wait)
    }

    /// What Cluster API is at: workers, when all machines of the control plane are as they should be.
    fn stage(&self) -> Stage {
        let control_plane = self.cluster.status.as_ref().and_then(|status| status.control_plane.as_ref());
        let wanted = self.cluster.spec.topology.as_ref().map(|topology| topology.version.as_str());
        let has_it = |part: &Progress| {
            let mut others = part.versions.iter().filter(|it| Some(it.version.as_str()) != wanted);
            !part.versions.is_empty() && others.next().is_none() && is_whole(part)
        };
        if control_plane.is_some_and(has_it) { Stage::Workers } else { Stage::ControlPlane }
    }

    fn pause(&self) -> WaitingFor {
        let meta = &self.cluster.metadata;
        let (namespace, name) =
            (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
        let patch = r#"{"spec":{"paused":false}}"#;
        WaitingFor {
            stage: Stage::ControlPlane.to_string(),
            reason: "Paused".to_owned(),
            object: format!("Cluster/{name}"),
            message: "spec.paused is true: its owner has paused it".to_owned(),
            way_out: Some(format!("kubectl -n {namespace} patch cluster {name} --type=merge -p '{patch}'")),
            ..WaitingFor::default()
        }
    }

    fn wait(&self, stage: Stage, kind: &str, it: &Condition) -> WaitingFor {
        WaitingFor {
            stage: stage.to_string(),
            reason: it.reason.clone(),
            object: format!("{kind}/{}", self.cluster.metadata.name.as_deref().unwrap_or_default()),
            message: it.message.clone(),
            since: Some(it.last_transition_time.clone()),
            ..WaitingFor::default()
        }
    }
}

fn is_true(condition: &Condition) -> bool {
    condition.status == "True"
}

/// Whether machines are as many as they should be, and as they should be.
fn is_whole(part: &Progress) -> bool {
    let counts = [part.replicas, part.up_to_date_replicas, part.available_replicas];
    counts.iter().all(|count| count.unwrap_or_default() == part.desired_replicas.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::resolve::copy;

    const NEW: &str = "v1.25.7---vmware.2-tkg.1";

    /// A cluster that is at its release, and what is different in this one.
    fn with(cluster: &Value) -> Cluster {
        let mut whole = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "wl", "namespace": "dev", "generation": 3, "labels": {"run.tanzu.vmware.com/tkr": NEW}},
            "spec": {"topology": {"classRef": {"name": "a"}, "version": "v1.25.7+vmware.2"}},
            "status": {
                "initialization": {"controlPlaneInitialized": true},
                "conditions": [{"type": "TopologyReconciled", "status": "True", "observedGeneration": 3, "reason": "", "message": "", "lastTransitionTime": ""}],
            },
        });
        merge(&mut whole, cluster);
        serde_json::from_value(whole).unwrap()
    }

    /// What such a cluster is called, and what is in the way.
    fn check(cluster: &Value, bootstrap: &Value, word: Word, waits: &[&str]) {
        let mut packages = json!({
            "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "ClusterBootstrap", "metadata": {"name": "wl"}, "spec": {},
            "status": {"resolvedTKR": NEW, "conditions": [said("PackagesReady", "True", "")]},
        });
        merge(&mut packages, bootstrap);
        let (cluster, bootstrap): (Cluster, ClusterBootstrap) =
            (with(cluster), serde_json::from_value(packages).unwrap());
        let course = Course { cluster: &cluster, bootstrap: Some(&bootstrap) };
        let told: Vec<String> =
            course.waits().iter().map(|wait| format!("{}: {}", wait.object, wait.message)).collect();
        assert_eq!((course.word(), told.iter().map(String::as_str).collect::<Vec<_>>()), (word, waits.to_vec()));
    }

    /// At which stage it waits for machines.
    fn check_stage(cluster: &Value, stage: &str) {
        let cluster = with(cluster);
        let waits = Course { cluster: &cluster, bootstrap: None }.waits();
        assert_eq!(waits.iter().map(|wait| wait.stage.as_str()).collect::<Vec<_>>(), [stage]);
    }

    fn merge(value: &mut Value, more: &Value) {
        match (value, more) {
            (Value::Object(fields), Value::Object(more)) => {
                for (key, more) in more {
                    merge(fields.entry(key.clone()).or_insert(Value::Null), more);
                }
            }
            (value, more) => *value = more.clone(),
        }
    }

    fn said(type_: &str, status: &str, message: &str) -> Value {
        json!({"type": type_, "status": status, "reason": "R", "message": message, "lastTransitionTime": ""})
    }

    #[test]
    fn a_cluster_of_a_release_without_packages_runs_without_them() {
        let release = |packages: Value| {
            let spec =
                json!({"version": "v1", "kubernetes": {"version": "v1.25.7+vmware.2"}, "bootstrapPackages": packages});
            let release = json!({
                "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "TanzuKubernetesRelease", "metadata": {"name": NEW}, "spec": spec,
            });
            let kept = copy::write(&serde_json::from_value(release).unwrap());
            with(&json!({"metadata": {"annotations": {"run.tanzu.vmware.com/tkr-spec": kept}}}))
        };
        for (packages, word) in [(Value::Null, Word::Running), (json!([]), Word::Updating)] {
            let cluster = release(packages);
            assert_eq!(Course { cluster: &cluster, bootstrap: None }.word(), word);
        }
    }

    #[test]
    fn what_somebody_can_do_is_told_by_itself() {
        let told = "antrea has failed; way out: repair it; it is tried again by itself";
        let packages = serde_json::from_value(json!({
            "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "ClusterBootstrap", "metadata": {"name": "wl"}, "spec": {},
            "status": {"resolvedTKR": NEW, "conditions": [said("PackagesReady", "False", told)]},
        }))
        .unwrap();
        // Cluster API says the same, where it has asked.
        let asked = format!("packages of b come first: {told}");
        let cluster = with(&json!({"status": {"conditions": [said("TopologyReconciled", "False", &asked)]}}));
        let waits = Course { cluster: &cluster, bootstrap: Some(&packages) }.waits();
        let told: Vec<_> = waits.iter().map(|wait| (wait.message.as_str(), wait.way_out.as_deref())).collect();
        assert_eq!(told, [("antrea has failed", Some("repair it; it is tried again by itself"))]);
    }

    #[test]
    fn a_cluster_is_told_in_one_word_with_what_is_in_the_way() {
        let well = json!({});
        check(&well, &well, Word::Running, &[]);
        let failing = json!({"status": {"conditions": [said("PackagesReady", "False", "antrea has failed")]}});
        let mut held = json!({
            "metadata": {"annotations": {"tkg.tanzu.vmware.com/paused": NEW}}, "spec": {"paused": true},
            "status": {"conditions": [said("TopologyReconciled", "False", "Cluster spec.paused is set to true")]},
        });
        held["status"]["conditions"][0]["reason"] = json!("Paused");
        let told = "ClusterBootstrap/wl: antrea has failed";
        check(&held, &failing, Word::Updating, &[told]);
        let stalled = [said("PackagesReady", "False", "antrea has failed"), said("Stalled", "True", "it lasts")];
        check(&held, &json!({"status": {"conditions": stalled}}), Word::Stalled, &["ClusterBootstrap/wl: it lasts"]);
        let pause = "Cluster/wl: spec.paused is true: its owner has paused it";
        check(&json!({"spec": {"paused": true}}), &well, Word::Paused, &[pause]);
        let mut kept = held.clone();
        kept["metadata"]["annotations"]["windlass.dev/keep-paused"] = json!("");
        check(&kept, &failing, Word::Paused, &[told, pause]);
        let asked = "packages of b come first: antrea has failed";
        let asks = json!({"status": {"conditions": [said("TopologyReconciled", "False", asked)]}});
        check(&asks, &failing, Word::Updating, &[told]);
        let ends = format!("Cluster/wl: the packages of {NEW} are in, and the hold of its machines ends");
        check(&held, &well, Word::Updating, &[&ends]);
        let not_chosen = format!("Cluster/wl: the packages of {NEW} come first, and are not chosen yet");
        let before = json!({"status": {"resolvedTKR": "v1.24.9---vmware.1-tkg.1"}});
        check(&held, &before, Word::Updating, &[&not_chosen]);
        let mut let_go = held.clone();
        (let_go["metadata"], let_go["spec"]["paused"]) = (json!({}), json!(false));
        let not_yet = "Cluster/wl: it is paused no more, and Cluster API has not gone on yet";
        check(&let_go, &well, Word::Updating, &[not_yet]);
        let rolling = json!({"status": {"conditions": [said("TopologyReconciled", "False", "MachineDeployment a")]}});
        check(&rolling, &well, Word::Updating, &["Cluster/wl: MachineDeployment a"]);
        check_stage(&rolling, "controlPlane");
        let counts = |version: &str, up_to_date: u32| {
            let progress = json!({"desiredReplicas": 3, "replicas": 3, "upToDateReplicas": up_to_date, "availableReplicas": 3,
                "versions": [{"version": version, "replicas": 3}]});
            let mut cluster = rolling.clone();
            cluster["status"]["controlPlane"] = progress;
            cluster
        };
        check_stage(&counts("v1.24.9+vmware.1", 3), "controlPlane");
        check_stage(&counts("v1.25.7+vmware.2", 2), "controlPlane");
        check_stage(&counts("v1.25.7+vmware.2", 3), "workers");
        let without_release = json!({"metadata": {"labels": null}});
        check(&without_release, &json!({"status": null}), Word::Running, &[]);
        check(&json!({"status": {"initialization": null}}), &well, Word::Creating, &[]);
        check(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), &well, Word::Deleting, &[]);
    }
}
