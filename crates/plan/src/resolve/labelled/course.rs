//! How far a classic cluster is: a condition says whether it has the release that its label names, and its update how far that is.

use std::fmt;

use windlass_api::condition::{ConditionStatus, ConditionType};
use windlass_api::kind::Condition;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState, WaitingFor};
use windlass_api::version::KubernetesVersion;
use windlass_api::{annotation, label};

use crate::gate::Blocked;
use crate::word::Word;

/// The reasons in the condition of a cluster that is on its way, and of one that is not as its release says.
pub const UPDATING: &str = "Updating";
/// Cluster API is being told to replace machines: from here on there is only forward.
pub const REPLACING: &str = "Replacing";
/// Its update has given up.
pub const UPDATE_FAILED: &str = "UpdateFailed";
/// It waits, and no update of it is on record.
pub const WAITING: &str = "Waiting";
/// Somebody has changed what its release owns; that is undone.
pub const DRIFTED: &str = "Drifted";
/// It has no control plane yet.
pub const NO_CONTROL_PLANE: &str = "NoControlPlane";

/// What stands between what is the matter and what can be done about it.
const WAY_OUT: &str = "; way out: ";

/// What is the matter, and what a person can do about it: one message of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said<'a> {
    /// What is the matter.
    pub what: &'a str,
    /// What can be done, where something can.
    pub way_out: Option<&'a str>,
}

impl<'a> Said<'a> {
    /// Out of the message that it was written into.
    pub fn read(message: &'a str) -> Self {
        match message.split_once(WAY_OUT) {
            Some((what, way_out)) => Self { what, way_out: Some(way_out) },
            None => Self { what: message, way_out: None },
        }
    }
}

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        self.way_out.map_or(Ok(()), |way_out| write!(f, "{WAY_OUT}{way_out}"))
    }
}

/// A cluster and the last of its updates, as they are at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Course<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Its last update, if it had one.
    pub update: Option<&'a ClusterUpdate>,
}

impl<'a> Course<'a> {
    /// The last update of this very cluster, among those of its name.
    pub fn latest<'u>(
        cluster: &Cluster,
        updates: impl IntoIterator<Item = &'u ClusterUpdate>,
    ) -> Option<&'u ClusterUpdate> {
        let uid = cluster.metadata.uid.as_deref().unwrap_or_default();
        let is_its_own =
            |update: &&ClusterUpdate| update.metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid);
        updates.into_iter().filter(is_its_own).max_by_key(|update| update.spec.ordinal)
    }

    /// The release that its label names, as the label has it.
    pub fn asked(&self) -> Option<&'a str> {
        self.cluster.metadata.labels.as_ref()?.get(label::RELEASE_VERSION.name).map(String::as_str)
    }

    /// The release that it was last brought to.
    pub fn deployed(&self) -> Option<&'a str> {
        self.cluster.metadata.annotations.as_ref()?.get(annotation::LAST_DEPLOYED_VERSION.name).map(String::as_str)
    }

    /// The release that it has: the one that its label names, brought to its end.
    pub fn reached(&self) -> Option<KubernetesVersion> {
        let asked: KubernetesVersion = self.asked()?.parse().ok()?;
        // The condition names the release that it is about.
        let is_said = self.applied().is_some_and(|it| is_true(it) && it.message == asked.bare().to_string());
        (is_said && self.is_deployed(&asked)).then_some(asked)
    }

    fn is_deployed(&self, release: &KubernetesVersion) -> bool {
        self.deployed().and_then(|text| text.parse().ok()).as_ref() == Some(release)
    }

    /// What is said of it while it is not as its release says.
    pub fn short_of(&self) -> Option<&'a Condition> {
        self.applied().filter(|it| !is_true(it))
    }

    /// Why its update has failed, if it has.
    pub fn failure(&self) -> Option<&'a str> {
        let status = self.update?.status.as_ref()?;
        let failed = status.state == Some(UpdateState::Failed);
        failed.then(|| status.failure.as_deref().unwrap_or("no reason is given"))
    }

    /// How it is, in one word.
    pub fn word(&self) -> Word {
        let initialization = self.cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
        let is_there = initialization.is_some_and(|reached| reached.control_plane_initialized);
        let is_settled = self.asked().and_then(|text| text.parse().ok()).is_some_and(|asked| self.is_deployed(&asked));
        let reason = self.applied().map(|applied| applied.reason.as_str()).unwrap_or_default();
        match reason {
            _ if self.cluster.metadata.deletion_timestamp.is_some() => Word::Deleting,
            _ if self.cluster.spec.paused == Some(true) => Word::Paused,
            _ if self.failure().is_some() => Word::UpdateFailed,
            NO_CONTROL_PLANE => Word::Creating,
            _ if self.is_stalled() => Word::Stalled,
            _ if !is_there => Word::Creating,
            _ if self.is_updated() || [UPDATING, REPLACING].contains(&reason) => Word::Updating,
            DRIFTED => Word::Drifted,
            _ if self.reached().is_some() => Word::Running,
            _ if is_settled => Word::Unhealthy,
            _ => Word::Updating,
        }
    }

    /// What is in the way: of its update, or of the cluster itself where no update says it.
    pub fn waits(&self) -> Vec<WaitingFor> {
        let of_update = self.update.filter(|_| self.is_updated()).and_then(|update| update.status.as_ref());
        let of_update = of_update.map(|status| status.waiting_for.clone()).unwrap_or_default();
        let known = |what: &str| of_update.iter().any(|wait| wait.message == what);
        let own = self.short_of().filter(|it| !matches!(it.reason.as_str(), UPDATING | REPLACING | UPDATE_FAILED));
        let own = own.map(|it| (it, Said::read(&it.message))).filter(|(_, said)| !known(said.what));
        let own = own.map(|(it, said)| WaitingFor {
            reason: it.reason.clone(),
            object: format!("Cluster/{}", self.cluster.metadata.name.as_deref().unwrap_or_default()),
            message: Blocked::without_agreement(said.what).to_owned(),
            since: Some(it.last_transition_time.clone()),
            way_out: said.way_out.map(str::to_owned),
            ..WaitingFor::default()
        });
        own.into_iter().chain(of_update).collect()
    }

    /// Whether an update is still to come to its end.
    pub fn is_updated(&self) -> bool {
        self.update.is_some_and(goes_on)
    }

    /// Whether a person has to act: its release, its objects or a review are not as they have to be. One who is asked to agree to an
    /// update keeps nothing from going on but that.
    fn is_stalled(&self) -> bool {
        // A write that failed, or an API that does not answer, is tried again.
        const MOVES: [&str; 7] =
            [UPDATING, REPLACING, UPDATE_FAILED, WAITING, DRIFTED, "WriteFailed", "WorkloadUnreachable"];
        let asks = |it: &Condition| Blocked::asked_to_agree_to(&it.message).is_some();
        self.short_of().is_some_and(|it| !MOVES.contains(&it.reason.as_str()) && !asks(it))
    }

    fn applied(&self) -> Option<&'a Condition> {
        ConditionType::ReleaseApplied.among(&self.cluster.status.as_ref()?.conditions)
    }
}

/// Whether an update is still to come to its end.
pub fn goes_on(update: &ClusterUpdate) -> bool {
    let state = update.status.as_ref().and_then(|status| status.state);
    matches!(state, None | Some(UpdateState::Running | UpdateState::Failed))
}

fn is_true(condition: &Condition) -> bool {
    condition.status == ConditionStatus::True.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A cluster at 35.2.0 whose condition and update say this.
    fn check(asked: &str, applied: (&str, &str), update: Option<&Value>, change: &Value, word: Word, waits: &[&str]) {
        let (reason, message) = applied;
        let status = if reason == "Applied" { "True" } else { "False" };
        let mut cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "shop", "uid": "u", "labels": {label::RELEASE_VERSION.name: asked},
                "annotations": {annotation::LAST_DEPLOYED_VERSION.name: "35.2.0"}},
            "spec": {},
            "status": {"initialization": {"controlPlaneInitialized": true}, "conditions": [{"type": "ReleaseApplied",
                "status": status, "reason": reason, "message": message, "lastTransitionTime": ""}]},
        });
        for (place, value) in change.as_object().into_iter().flatten() {
            cluster[place.as_str()] = value.clone();
        }
        let update = update.map(|status| -> ClusterUpdate {
            let machines = json!({"count": 1, "class": "small", "storageClass": "fast"});
            let end = json!({"distribution": "", "kubernetes": "", "controlPlane": machines, "workers": machines});
            serde_json::from_value(json!({
                "apiVersion": "windlass.dev/v1alpha1", "kind": "ClusterUpdate",
                "metadata": {"name": "shop-1", "ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": "u"}]},
                "spec": {"cluster": "shop", "ordinal": 1, "id": "7", "from": end, "to": end, "envelopeDigest": ""},
                "status": status,
            }))
            .unwrap()
        });
        let cluster: Cluster = serde_json::from_value(cluster).unwrap();
        let course = Course { cluster: &cluster, update: Course::latest(&cluster, &update) };
        assert_eq!(course.update, update.as_ref());
        let told: Vec<String> = course.waits().iter().map(|it| format!("{}: {}", it.object, it.message)).collect();
        assert_eq!((course.word(), told.iter().map(String::as_str).collect::<Vec<_>>()), (word, waits.to_vec()));
        assert_eq!(course.reached().is_some(), word == Word::Running, "{reason}");
    }

    #[test]
    fn a_cluster_is_told_in_one_word_with_what_is_in_the_way() {
        let as_it_is = json!({});
        let without = |applied, word, waits: &[&str]| check("35.2.0", applied, None, &as_it_is, word, waits);
        without(("Applied", "35.2.0"), Word::Running, &[]);
        without(("Drifted", "version a -> b"), Word::Drifted, &["Cluster/shop: version a -> b"]);
        without(
            ("Waiting", "to 35.2.0; m is unwell; way out: wait"),
            Word::Unhealthy,
            &["Cluster/shop: to 35.2.0; m is unwell"],
        );
        without(("ReleaseNotFound", "there is none"), Word::Stalled, &["Cluster/shop: there is none"]);
        without(("NoControlPlane", "none yet"), Word::Creating, &["Cluster/shop: none yet"]);
        // It is announced, and not on record yet.
        without(("Updating", "to 35.2.0; shop-1 begins"), Word::Updating, &[]);
        // Nobody has looked at the new label yet.
        check("36.1.0", ("Applied", "35.2.0"), None, &as_it_is, Word::Updating, &[]);

        let wait = |message: &str| json!([{"stage": "workers", "reason": "R", "object": "Pool/a", "message": message}]);
        let running = json!({"state": "Running", "waitingFor": wait("it rolls")});
        let of_update = |applied, update, word, waits: &[&str]| {
            check("36.1.0", applied, Some(update), &as_it_is, word, waits);
        };
        of_update(("Updating", "to 36.1.0; it rolls; way out: wait"), &running, Word::Updating, &["Pool/a: it rolls"]);
        let failed = json!({"state": "Failed", "failure": "it stands", "waitingFor": wait("it stands")});
        of_update(
            ("UpdateFailed", "ClusterUpdate/shop-1 has failed"),
            &failed,
            Word::UpdateFailed,
            &["Pool/a: it stands"],
        );
        // What the update says, too, is told once.
        let gone = json!({"state": "Running", "waitingFor": wait("no release 36.1.0")});
        of_update(
            ("ReleaseNotFound", "no release 36.1.0; way out: publish it"),
            &gone,
            Word::Stalled,
            &["Pool/a: no release 36.1.0"],
        );

        let spec = json!({"spec": {"paused": true}});
        let paused = ("Waiting", "to 36.1.0; it is paused");
        check("36.1.0", paused, None, &spec, Word::Paused, &["Cluster/shop: to 36.1.0; it is paused"]);
    }

    #[test]
    fn an_update_of_another_cluster_of_that_name_is_not_its_own() {
        let cluster: Cluster =
            serde_json::from_value(json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "shop", "uid": "new"}, "spec": {}}))
            .unwrap();
        let mut update = ClusterUpdate::default();
        update.metadata.owner_references = Some(vec![k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
            uid: "old".to_owned(),
            ..Default::default()
        }]);
        assert_eq!(Course::latest(&cluster, [&update]), None);
    }

    #[test]
    fn what_can_be_done_is_read_out_of_what_was_said() {
        for said in
            [Said { what: "it waits: long", way_out: Some("wait; or not") }, Said { what: "it waits", way_out: None }]
        {
            assert_eq!(Said::read(&said.to_string()), said);
        }
    }
}
