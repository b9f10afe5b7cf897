//! Where upgrades have to be approved, or one was reviewed: what is asked for is held until it may begin, and nobody lets it go before.
//!
//! Machines wait for packages, by a pause or by answers to Cluster API, and packages wait for the approval. What neither of them would
//! hold is refused.

use std::collections::BTreeMap;

use kube::{Api, Client};
use serde_json::Value;
use windlass_api::annotation;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::release::{ClusterBootstrap, ClusterBootstrapTemplate, TanzuKubernetesRelease};
use windlass_plan::bootstrap::approval::{is_ahead, is_begun, is_given_up, reviewed};
use windlass_plan::bootstrap::envelope::{ClassEnvelope, Enclosing};
use windlass_plan::bootstrap::{SYSTEM_NAMESPACE, Settling, Subject};
use windlass_plan::hook;
use windlass_plan::resolve::hold::{Held, HoldBy};

use crate::admission::choice::Unknown;
use crate::record::class as record;

/// A write of a cluster that is there.
pub(super) struct Asked<'a> {
    pub client: &'a Client,
    pub before: &'a Cluster,
    /// The object as it would be stored.
    pub written: &'a Value,
    pub releases: &'a [TanzuKubernetesRelease],
    pub hold_by: HoldBy,
}

/// Whether Cluster API would not ask before it goes on: it does when the version of Kubernetes is another, and releases can have the
/// same.
pub(super) fn needs_pause(before: &Cluster, written: &Value, hold_by: HoldBy) -> bool {
    let after = read(written);
    let is_other = after.as_ref().and_then(hook::release) != hook::release(before);
    hold_by == HoldBy::Hooks && is_other && after.as_ref().and_then(version) == version(before)
}

fn read(written: &Value) -> Option<Cluster> {
    serde_json::from_value(written.clone()).ok()
}

fn version(cluster: &Cluster) -> Option<&str> {
    cluster.spec.topology.as_ref().map(|topology| topology.version.as_str())
}

fn is_made(cluster: &Cluster) -> bool {
    let initialization = cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
    initialization.is_some_and(|reached| reached.control_plane_initialized)
}

impl Asked<'_> {
    /// Whether another release is asked for, of a cluster that has one already.
    pub(super) fn is_upgrade(&self) -> bool {
        let changes = |after: Cluster| {
            hook::release(&after) != hook::release(self.before) || version(&after) != version(self.before)
        };
        is_made(self.before) && read(self.written).is_some_and(changes)
    }

    /// Why it may not be written.
    pub(super) async fn refused(&self, is_required: bool) -> Result<Option<String>, Unknown> {
        let Some(after) = read(self.written) else { return Ok(None) };
        if let Some(why) = self.reviewed_otherwise(&after).await? {
            return Ok(Some(why));
        }
        if !is_required {
            return Ok(None);
        }
        if self.is_upgrade() {
            return Ok((!self.is_held(&after)).then(|| {
                let name = after.metadata.name.as_deref().unwrap_or_default();
                format!(
                    "upgrades have to be approved in the namespace of {name}, and nothing would hold this one until then: neither \
                     its packages, as it has no release that has any, nor a pause; whoever owns the namespace can set its label {} \
                     to none",
                    windlass_api::label::APPROVAL.name
                )
            }));
        }
        self.lets_go(&after).await
    }

    /// Whether something holds the machines until the packages of the release are in.
    fn is_held(&self, after: &Cluster) -> bool {
        let held = Held::of(after);
        let release = hook::release(after)
            .and_then(|name| self.releases.iter().find(|release| release.metadata.name.as_deref() == Some(name)));
        let has_packages = release.is_some_and(|release| release.spec.bootstrap_packages.is_some());
        // What its owner has paused is resolved, and then held, when the owner goes on.
        held.is_paused_by_owner()
            || (held.hold.is_some() && held.hold == held.release)
            || (has_packages && self.hold_by == HoldBy::Hooks && version(after) != version(self.before))
    }

    /// Refuses to let a cluster go whose upgrade has not begun.
    async fn lets_go(&self, after: &Cluster) -> Result<Option<String>, Unknown> {
        if Held::of(self.before).hold.is_none() || Held::of(after).hold.is_some() {
            return Ok(None);
        }
        let bootstrap = self.bootstrap(after).await?;
        if !is_ahead(after, bootstrap.as_ref(), None) {
            return Ok(None);
        }
        let latest = record::latest(self.client, after).await;
        let latest = latest.map_err(|source| Unknown::new("ClusterUpdates", source))?;
        if is_begun(after, latest.as_ref()) || is_given_up(after, latest.as_ref()) {
            return Ok(None);
        }
        let (name, release) = (after.metadata.name.as_deref().unwrap_or_default(), hook::release(after));
        Ok(Some(format!(
            "the upgrade of {name} to {} has to be approved, and is held until then: windlass approve {name}, or windlass abort \
             {name} to give it up",
            release.unwrap_or("another release")
        )))
    }

    /// Refuses to ask for what is not what was reviewed. When it begins, that is looked at again.
    async fn reviewed_otherwise(&self, after: &Cluster) -> Result<Option<String>, Unknown> {
        let said =
            |cluster: &Cluster| cluster.metadata.annotations.as_ref()?.get(annotation::REVIEWED_ENVELOPE.name).cloned();
        let Some(reviewed) = reviewed(after).filter(|_| said(after) != said(self.before)) else { return Ok(None) };
        // What cannot be read is told where it is judged.
        let Ok(Some(subject)) = Subject::of(after) else { return Ok(None) };
        let bootstrap = self.bootstrap(after).await?;
        if !is_ahead(after, bootstrap.as_ref(), None) {
            return Ok(None);
        }
        let api: Api<ClusterBootstrapTemplate> = Api::namespaced(self.client.clone(), SYSTEM_NAMESPACE);
        let mut templates = BTreeMap::new();
        for name in Settling::templates(&subject, bootstrap.as_ref()) {
            let found = api.get_opt(&name).await;
            let found = found.map_err(|source| Unknown::new("ClusterBootstrapTemplates", source))?;
            templates.extend(found.map(|template| (name, template)));
        }
        let release = subject.release.as_str();
        let enclosing = Enclosing {
            cluster: after,
            subject: &subject,
            release: self.releases.iter().find(|known| known.metadata.name.as_deref() == Some(release)),
            templates: &templates,
            bootstrap: bootstrap.as_ref(),
        };
        let found = match ClassEnvelope::of(&enclosing) {
            Ok(envelope) => envelope.digest(),
            Err(blocked) => return Ok(Some(format!("what was reviewed for {release} cannot be done: {blocked}"))),
        };
        Ok((found != reviewed).then(|| {
            let name = &subject.name;
            format!(
                "what was reviewed for {release} has the envelope {reviewed}, and what would be done has {found}; review it again: \
                 windlass plan {name} --to {release} --out FILE"
            )
        }))
    }

    async fn bootstrap(&self, cluster: &Cluster) -> Result<Option<ClusterBootstrap>, Unknown> {
        let namespace = self.before.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<ClusterBootstrap> = Api::namespaced(self.client.clone(), namespace);
        let found = api.get_opt(cluster.metadata.name.as_deref().unwrap_or_default()).await;
        found.map_err(|source| Unknown::new("ClusterBootstraps", source))
    }
}
