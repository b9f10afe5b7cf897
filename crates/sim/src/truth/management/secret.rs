//! What changes of a cluster's Secrets say: who owns them, and whether they are still the same.

use std::hash::{DefaultHasher, Hash, Hasher};

use windlass_api::label;
use windlass_api::name::ClusterSecret;
use windlass_apiserver::store::{Change, ChangeKind, Entry};

use crate::truth::{Cluster, Fact, read};

/// Which Secret of its cluster it is.
pub(super) fn of_cluster(entry: &Entry) -> Option<ClusterSecret> {
    let cluster = entry.label(label::CLUSTER_NAME.name)?;
    let suffix = entry.key.name.strip_prefix(cluster)?.strip_prefix('-')?;
    let all = ClusterSecret::CERTIFICATES.into_iter().chain([ClusterSecret::Kubeconfig]);
    all.into_iter().find(|secret| secret.to_string() == suffix)
}

impl Cluster {
    pub(super) fn fold_secret(
        &mut self,
        secret: ClusterSecret,
        change: &Change,
    ) -> Result<Vec<Fact>, serde_json::Error> {
        let name = change.object.key.name.clone();
        if change.kind == ChangeKind::Deleted {
            self.secrets.remove(&secret);
            return Ok(vec![Fact::SecretGone { secret: name }]);
        }
        let read: read::Secret = serde_json::from_slice(&change.object.json)?;
        let mut facts = Vec::new();
        let owners: Box<[_]> = change.object.owners.iter().map(|owner| owner.uid.clone()).collect();
        let before = self.secrets.insert(secret, owners.clone());
        if before.as_ref() != Some(&owners) {
            let kept =
                before.as_ref().is_none_or(|before| before.is_empty() || before.iter().any(|o| owners.contains(o)));
            let references = read.metadata.owner_references.unwrap_or_default();
            let named = references.into_iter().map(|owner| format!("{} {}", owner.kind, owner.name)).collect();
            facts.push(Fact::SecretOwned { secret: name.clone(), owners: named });
            if !kept && !owners.is_empty() {
                facts.push(Fact::SecretHandedOver { secret: name.clone() });
            }
        }
        // A kubeconfig is renewed from time to time; the authorities behind it are not.
        if secret != ClusterSecret::Kubeconfig
            && let Some(data) = &read.data
        {
            let now = hash(data.get());
            if *self.keys.entry(secret).or_insert(now) != now {
                facts.push(Fact::SecretChanged { secret: name });
            }
        }
        Ok(facts)
    }
}

/// The same for the same bytes in every run: this one has no keys of its own.
fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
