//! The objects of a snapshot by kind, and why there are none.

use serde_json::Value;
use windlass_api::name::NamespacedName;
use windlass_plan::risk::Known;
use windlass_plan::risk::evidence::Gap;

use super::object::text;
use crate::snapshot::{self, Snapshot};

/// The objects of one cluster of a snapshot.
pub(super) struct Lists<'s> {
    objects: &'s [Value],
    gaps: &'s [snapshot::Gap],
    /// Whose they are, as gaps name it.
    of: String,
    /// The name in paths of a kind that snapshots have; `None` for one that they do not have.
    plural: fn(&str) -> Option<String>,
    /// The whole of it could not be read.
    missing: Option<Gap>,
}

impl<'s> Lists<'s> {
    /// Those of the management cluster.
    pub(super) fn management(snapshot: &'s Snapshot) -> Self {
        let of = "the management cluster".to_owned();
        let plural = snapshot::management_plural;
        Self { objects: &snapshot.management, gaps: &snapshot.gaps, of, plural, missing: None }
    }

    /// Those of a workload cluster.
    pub(super) fn workload(snapshot: &'s Snapshot, cluster: &NamespacedName) -> Self {
        let found = snapshot.workloads.get(cluster);
        let what = format!("the workload cluster {cluster}");
        let gap = snapshot.gaps.iter().find(|gap| gap.what == what);
        let missing =
            found.is_none().then(|| gap.map_or_else(|| Gap::new(&what, "the snapshot does not have it"), taken_over));
        let objects = found.map_or(&[][..], |found| &found.objects);
        let plural = snapshot::workload_plural;
        Self { objects, gaps: &snapshot.gaps, of: cluster.to_string(), plural, missing }
    }

    /// The whole of the cluster, if it could not be read.
    pub(super) fn missing(&self) -> Option<&Gap> {
        self.missing.as_ref()
    }

    /// The objects of a kind that there are, whether all could be read or not.
    pub(super) fn of(&self, kind: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
        let kind = kind.to_owned();
        self.objects.iter().filter(move |object| text(object, "/kind") == kind)
    }

    /// Every object.
    pub(super) fn all(&self) -> &'s [Value] {
        self.objects
    }

    /// The objects of a kind, or why they are not known.
    pub(super) fn kind(&self, kind: &str) -> Known<Vec<&'s Value>> {
        if let Some(gap) = self.missing() {
            return Known::Unread(gap.clone());
        }
        let plural = (self.plural)(kind);
        let gap = plural.as_ref().and_then(|plural| self.gap(plural));
        let found: Vec<&Value> = self.of(kind).collect();
        match (gap, plural) {
            (Some(gap), _) => Known::Unread(taken_over(gap)),
            (None, None) if found.is_empty() => Known::Unread(Gap {
                what: format!("{kind}s of {}", self.of),
                why: "snapshots do not have them".to_owned(),
                way_out: format!("kubectl get {kind} -A"),
            }),
            (None, _) => Known::Read(found),
        }
    }

    /// The objects of several kinds, or why those of one are not known.
    pub(super) fn kinds(&self, kinds: &[&str]) -> Known<Vec<&'s Value>> {
        let mut all = Vec::new();
        for kind in kinds {
            match self.kind(kind) {
                Known::Read(found) => all.extend(found),
                Known::Unread(gap) => return Known::Unread(gap),
            }
        }
        Known::Read(all)
    }

    /// What is known to be missing of a kind: `pods of …`, `machines.cluster.x-k8s.io of …`.
    fn gap(&self, plural: &str) -> Option<&'s snapshot::Gap> {
        self.gaps.iter().find(|gap| {
            let what = gap.what.strip_suffix(&self.of).and_then(|what| what.strip_suffix(" of "));
            what.is_some_and(|what| what == plural || what.split('.').next() == Some(plural))
        })
    }
}

/// A gap of the snapshot is one of the evidence.
pub(super) fn taken_over(gap: &snapshot::Gap) -> Gap {
    Gap { what: gap.what.clone(), why: gap.why.clone(), way_out: gap.way_out.clone() }
}
