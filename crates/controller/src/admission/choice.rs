//! What a person chose: is there such a release, such a class, and may the cluster go there?

use std::collections::BTreeSet;
use std::fmt::Debug;

use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use windlass_api::kind::tanzu::{Machines, TanzuKubernetesCluster, Topology};
use windlass_api::kind::virtual_machine::{VirtualMachineClass, VirtualMachineImage};
use windlass_api::version::KubernetesVersion;
use windlass_plan::release::Release;
use windlass_plan::resolve::{self, Refusal, Versioned};
use windlass_plan::target::Target;

use super::back::Back;
use super::{lifetime, warning};
use crate::resolve::{Unresolved, distribution, kept};
use crate::said::{said, with_causes};

/// What is said to a person's choice.
pub(super) enum Verdict {
    /// It can be done.
    Accepted {
        /// The version that the hint was resolved to, where that is to be written down.
        full_version: Option<String>,
        /// What it will mean.
        warnings: Vec<String>,
    },
    /// It cannot be done, for this reason.
    Refused(String),
}

/// What would have to be known for a verdict could not be read.
#[derive(Debug, thiserror::Error)]
#[error("list {what}: {}", said(source))]
pub(super) struct Unknown {
    what: &'static str,
    #[source]
    source: Box<kube::Error>,
}

impl Unknown {
    pub(super) fn new(what: &'static str, source: kube::Error) -> Self {
        Self { what, source: Box::new(source) }
    }
}

/// An image and the version of its release.
struct Candidate {
    version: KubernetesVersion,
    image: VirtualMachineImage,
}

impl Versioned for Candidate {
    fn version(&self) -> &KubernetesVersion {
        &self.version
    }
}

pub(super) async fn judge(
    client: &Client,
    asked: &TanzuKubernetesCluster,
    before: Option<&TanzuKubernetesCluster>,
) -> Result<Verdict, Unknown> {
    let asked = &anew(asked, before);
    let mut candidates = candidates(client).await?;
    if let Some(before) = before {
        keep_own(client, before, &mut candidates).await?;
    }
    let back = Back::of(client, before).await?;
    let release = match release(asked, before, &candidates, &back) {
        Ok(release) => release,
        Err(why) => return Ok(Verdict::Refused(why)),
    };
    let mut complete = asked.clone();
    let distribution = release.distribution.to_string();
    let resolved = asked.spec.distribution.full_version.is_none().then(|| distribution.clone());
    complete.spec.distribution.full_version = Some(distribution);
    let target = match target(&complete, release) {
        Ok(target) => target,
        Err(why) => return Ok(Verdict::Refused(why)),
    };
    if let Some(why) = unknown_class(client, &complete, before).await? {
        return Ok(Verdict::Refused(why));
    }
    if let Some(before) = before
        && let Some(why) = lifetime::refused(client, before, &complete, &target).await?
    {
        return Ok(Verdict::Refused(why));
    }
    let workers_wait = target.kept_pools().next().is_some();
    // Whoever goes back to what the machines have replaces none.
    let before = before.filter(|_| !back.is_open_to(&target.release.distribution));
    let warnings = before.and_then(|before| warning::of(before, &complete, workers_wait)).into_iter().collect();
    Ok(Verdict::Accepted { full_version: resolved, warnings })
}

/// What is asked for, without the full version of another release that was only left where it was: whoever names a release in full as
/// its version means that. So do files in a repository, which are applied by tools that take nothing away.
fn anew(asked: &TanzuKubernetesCluster, before: Option<&TanzuKubernetesCluster>) -> TanzuKubernetesCluster {
    let mut asked = asked.clone();
    let Some(before) = before.map(|before| &before.spec.distribution) else { return asked };
    let distribution = &mut asked.spec.distribution;
    let is_full = |text: &str| text.parse::<KubernetesVersion>().is_ok_and(|version| version.build().is_some());
    let names = distribution.version.as_deref().is_some_and(is_full) && distribution.version != before.version;
    if names && distribution.full_version == before.full_version {
        distribution.full_version = None;
    }
    asked
}

async fn candidates(client: &Client) -> Result<Vec<Candidate>, Unknown> {
    let images: Vec<VirtualMachineImage> = all(client, "VirtualMachineImages").await?;
    let candidate = |image| Some(Candidate { version: distribution(&image)?, image });
    Ok(images.into_iter().filter_map(candidate).collect())
}

/// Puts the copy that is kept for a cluster among the candidates, where no image is left that says it: the owner of a cluster
/// whose image is gone can still change everything else.
async fn keep_own(
    client: &Client,
    before: &TanzuKubernetesCluster,
    candidates: &mut Vec<Candidate>,
) -> Result<(), Unknown> {
    let version = before.spec.distribution.full_version.as_deref();
    let Some(version) = version.and_then(|version| version.parse::<KubernetesVersion>().ok()) else { return Ok(()) };
    let is_sound = |it: &Candidate| it.version == version && Release::from_image(&it.image).is_ok();
    if candidates.iter().any(is_sound) {
        return Ok(());
    }
    let kept = kept::of_version(client, before, &version).await;
    if let Some(image) = kept.map_err(|source| Unknown::new("ConfigMaps", source))? {
        candidates.retain(|it| it.version != version);
        candidates.push(Candidate { version, image });
    }
    Ok(())
}

/// The release that is asked for, if there is one and the cluster may go there.
fn release(
    asked: &TanzuKubernetesCluster,
    before: Option<&TanzuKubernetesCluster>,
    candidates: &[Candidate],
    back: &Back,
) -> Result<Release, String> {
    let from = before.and_then(|before| before.spec.distribution.full_version.as_deref());
    // A version that is none was stored by somebody else; from there every way is open.
    let from: Option<KubernetesVersion> = from.and_then(|from| from.parse().ok());
    // What was only asked for is no step on the way.
    let from = back.start().cloned().or(from);
    let found = resolve::requested(&asked.spec.distribution, from.as_ref(), candidates);
    let found = found.map_err(|refusal| refusal.to_string())?;
    let has_it = from.as_ref() == Some(&found.version) || back.is_open_to(&found.version);
    if let Some(from) = from.filter(|_| !has_it) {
        let name = asked.metadata.name.as_deref().unwrap_or_default();
        let explained = |refusal: Refusal| back.explained(&refusal, &found.version, name);
        resolve::change(&from, &found.version).map_err(explained)?;
    }
    // A cluster that has the release stays with the image that it has.
    if !has_it {
        let same = candidates.iter().filter(|candidate| candidate.version == found.version);
        let images: Vec<&str> = same.filter_map(|candidate| candidate.image.metadata.name.as_deref()).collect();
        if images.len() > 1 {
            let ambiguous = Unresolved::Ambiguous { version: found.version.clone(), images: images.join(" and ") };
            return Err(format!("spec.distribution: {ambiguous}"));
        }
    }
    Release::from_image(&found.image).map_err(|error| with_causes(&error))
}

/// The target that is made of it, if there can be one.
pub(super) fn target(asked: &TanzuKubernetesCluster, release: Release) -> Result<Target, String> {
    let mut asked = asked.clone();
    // The server gives the uid later, and the name too where only the beginning of one was asked for.
    asked.metadata.uid.get_or_insert_with(|| "not-yet".to_owned());
    let prefix = asked.metadata.generate_name.clone().unwrap_or_default();
    asked.metadata.name.get_or_insert_with(|| format!("{prefix}00000"));
    Target::new(&asked, release).map_err(|error| error.to_string())
}

/// The complaint about a class or storage class that is not there. Only what was changed is looked at: a class that is taken
/// away later must not keep anybody from changing something else.
async fn unknown_class(
    client: &Client,
    asked: &TanzuKubernetesCluster,
    before: Option<&TanzuKubernetesCluster>,
) -> Result<Option<String>, Unknown> {
    let topology = &asked.spec.topology;
    let old = before.map(|before| &before.spec.topology);
    let class = |machines: &Machines| machines.class.clone();
    if changed(topology, old, class) {
        let known = names(all::<VirtualMachineClass>(client, "VirtualMachineClasses").await?);
        if let Some(why) = missing("class", "VirtualMachineClass", topology, old, class, &known) {
            return Ok(Some(why));
        }
    }
    let storage_class = |machines: &Machines| machines.storage_class.clone();
    if changed(topology, old, storage_class) {
        let known = names(all::<StorageClass>(client, "StorageClasses").await?);
        return Ok(missing("storageClass", "StorageClass", topology, old, storage_class, &known));
    }
    Ok(None)
}

fn changed(new: &Topology, old: Option<&Topology>, field: fn(&Machines) -> String) -> bool {
    let both = |topology: &Topology| (field(&topology.control_plane), field(&topology.workers));
    old.map(both) != Some(both(new))
}

fn missing(
    field: &str,
    kind: &str,
    new: &Topology,
    old: Option<&Topology>,
    of: fn(&Machines) -> String,
    known: &BTreeSet<String>,
) -> Option<String> {
    let parts = [
        ("controlPlane", &new.control_plane, old.map(|old| &old.control_plane)),
        ("workers", &new.workers, old.map(|old| &old.workers)),
    ];
    parts.into_iter().find_map(|(part, new, old)| {
        let name = of(new);
        if known.contains(&name) || old.map(of).as_ref() == Some(&name) {
            return None;
        }
        let known = known.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none at all" } else { &known };
        Some(format!("spec.topology.{part}.{field}: there is no {kind} {name:?}; there are {known}"))
    })
}

async fn all<K>(client: &Client, what: &'static str) -> Result<Vec<K>, Unknown>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let listed = api.list(&ListParams::default()).await;
    listed.map(|listed| listed.items).map_err(|source| Unknown::new(what, source))
}

fn names<K: Resource>(objects: Vec<K>) -> BTreeSet<String> {
    objects.into_iter().filter_map(|mut object| object.meta_mut().name.take()).collect()
}
