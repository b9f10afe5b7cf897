//! A `PackageRepository`: a file of packages somewhere, and the packages in its namespace that it becomes.

use std::cmp::Ordering;

use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use windlass_api::annotation;
use windlass_api::kind::packaging::{AppStage, Package, PackageMetadata, PackageRepository, PackageRepositoryStatus};
use windlass_apiserver::store::Key;

use super::status::{HELD, SEE_MESSAGE, State, retry_at, sync_period};
use super::write::is_held;
use super::{Error, Kapp, Next, PACKAGES, REPOSITORIES, later, moment, registry, ytt};

/// What holds up the deletion of a repository until its packages are gone.
const FINALIZER: &str = "finalizers.packagerepository.packaging.carvel.dev/delete";
/// Which of two packages of the same name wins.
const REVISION: &str = "packaging.carvel.dev/revision";
const METADATAS: &str = "packagemetadatas.data.packaging.carvel.dev";

/// The two kinds that a repository has, and where the store has them.
const KINDS: [(&str, &str); 2] = [("Package", PACKAGES), ("PackageMetadata", METADATAS)];

/// Brings a repository forward.
pub(super) async fn reconcile(kapp: &Kapp, key: &Key) -> Result<Next, Error> {
    let Some(repository) = kapp.get::<PackageRepository>(REPOSITORIES, key) else { return Ok(None) };
    let status = repository.status.clone().unwrap_or_default();
    if repository.metadata.deletion_timestamp.is_some() {
        return leave(kapp, &repository).await;
    }
    if repository.spec.paused == Some(true) {
        let held = PackageRepositoryStatus {
            observed_generation: repository.metadata.generation,
            friendly_description: Some(HELD.to_owned()),
            ..status.clone()
        };
        kapp.put_status(&repository, &status, &held).await?;
        return Ok(None);
    }
    if !is_held(&repository, FINALIZER) {
        kapp.hold(&repository, FINALIZER, true).await?;
        return Ok(None);
    }
    let now = kapp.clock.now();
    let period = sync_period(repository.spec.sync_period.as_deref());
    let stage = status.fetch.clone().unwrap_or_default();
    let updated = moment(stage.updated_at.as_deref()).unwrap_or_default();
    let changed = repository.metadata.generation != status.observed_generation
        || status.friendly_description.as_deref() == Some(HELD);
    let due = match State::of(&status.conditions).filter(|_| !changed) {
        Some(State::Reconciling) => {
            let began = moment(stage.started_at.as_deref()).unwrap_or_default();
            let due = later(began, kapp.takes(&format!("repository {key} {began}")));
            if due <= now {
                return finish(kapp, &repository, status).await;
            }
            Some(due)
        }
        Some(State::Succeeded) => Some(later(updated, period)),
        Some(State::Failed(_)) => Some(retry_at(updated, status.consecutive_reconcile_failures, period)),
        Some(State::Deleting | State::DeleteFailed(_)) | None => None,
    };
    match due.filter(|due| *due > now) {
        Some(due) => Ok(Some(due)),
        // What has not changed since is found to be so at once.
        None if status.conditions == State::Succeeded.conditions() && !changed => {
            finish(kapp, &repository, status).await
        }
        None => begin(kapp, &repository, status).await,
    }
}

async fn begin(kapp: &Kapp, repository: &PackageRepository, status: PackageRepositoryStatus) -> Result<Next, Error> {
    let now = kapp.clock.now();
    let begun = PackageRepositoryStatus {
        observed_generation: repository.metadata.generation,
        friendly_description: Some(State::Reconciling.description()),
        conditions: State::Reconciling.conditions(),
        fetch: Some(AppStage { started_at: Some(kapp.stamp()), ..AppStage::default() }),
        ..status.clone()
    };
    kapp.put_status(repository, &status, &begun).await?;
    Ok(Some(now))
}

async fn finish(kapp: &Kapp, repository: &PackageRepository, status: PackageRepositoryStatus) -> Result<Next, Error> {
    let period = sync_period(repository.spec.sync_period.as_deref());
    let outcome = match contents(repository) {
        Ok(offered) => offer(kapp, repository, &offered).await?,
        Err(why) => Err(why),
    };
    let fetch = AppStage { updated_at: Some(kapp.stamp()), ..status.fetch.clone().unwrap_or_default() };
    let (now, next) = match outcome {
        Ok(()) => {
            let well = PackageRepositoryStatus {
                observed_generation: repository.metadata.generation,
                friendly_description: Some(State::Succeeded.description()),
                useful_error_message: None,
                consecutive_reconcile_successes: status.consecutive_reconcile_successes.saturating_add(1),
                consecutive_reconcile_failures: 0,
                fetch: Some(AppStage { exit_code: 0, stderr: None, ..fetch }),
                conditions: State::Succeeded.conditions(),
            };
            (well, Some(later(kapp.clock.now(), period)))
        }
        Err(why) => {
            let state = State::Failed(format!("Fetching resources: {SEE_MESSAGE}"));
            let failures = status.consecutive_reconcile_failures.saturating_add(1);
            let badly = PackageRepositoryStatus {
                observed_generation: repository.metadata.generation,
                friendly_description: Some(state.description()),
                useful_error_message: Some(why.clone()),
                consecutive_reconcile_successes: 0,
                consecutive_reconcile_failures: failures,
                fetch: Some(AppStage { exit_code: 1, stderr: Some(why), ..fetch }),
                conditions: state.conditions(),
            };
            (badly, Some(retry_at(kapp.clock.now(), failures, period)))
        }
    };
    kapp.put_status(repository, &status, &now).await?;
    Ok(next)
}

/// The packages in a repository, as they will be: in its namespace, and saying whose they are. Whatever is no package stays there.
fn contents(repository: &PackageRepository) -> Result<Vec<DynamicObject>, String> {
    let mut files = registry::fetch(&repository.spec.fetch)?;
    files.retain(|(path, _)| registry::is_yaml(path));
    let objects = ytt::render(&files, &[]).map_err(|error| error.to_string())?;
    let packages = objects.into_iter().filter(|object| KINDS.iter().any(|(kind, _)| object["kind"] == *kind));
    packages
        .map(|object| {
            let mut object: DynamicObject =
                serde_json::from_value(object).map_err(|error| format!("Reading a package: {error}"))?;
            object.metadata.namespace.clone_from(&repository.metadata.namespace);
            let annotations = object.metadata.annotations.get_or_insert_default();
            annotations.insert(annotation::PACKAGE_REPOSITORY.name.to_owned(), path(repository));
            Ok(object)
        })
        .collect()
}

fn path(repository: &PackageRepository) -> String {
    format!("{}/{}", repository.namespace().unwrap_or_default(), repository.name_any())
}

/// Writes what is new, and removes what is no longer there; why not, where a package is somebody else's.
async fn offer(
    kapp: &Kapp,
    repository: &PackageRepository,
    offered: &[DynamicObject],
) -> Result<Result<(), String>, Error> {
    for object in offered {
        let resource = resource(object);
        let key = Key::new(&object.namespace().unwrap_or_default(), &object.name_any());
        let live: Option<DynamicObject> = kapp.get(resource, &key);
        match live.map_or(Claim::Ours, |live| claim(repository, object, &live)) {
            Claim::Ours => apply(kapp, resource, object).await?,
            Claim::Same => {}
            Claim::Theirs(owner) => {
                return Ok(Err(format!("Conflict: {} is also defined by repository {owner}", object.name_any())));
            }
        }
    }
    remove_others(kapp, repository, offered).await?;
    Ok(Ok(()))
}

/// Whose a package is that two repositories may have.
enum Claim {
    /// This one's, and it is to be written.
    Ours,
    /// It is as it should be, whoever wrote it.
    Same,
    /// That one's, and it is another package.
    Theirs(String),
}

fn claim(repository: &PackageRepository, object: &DynamicObject, live: &DynamicObject) -> Claim {
    let owner = live.annotations().get(annotation::PACKAGE_REPOSITORY.name);
    let ours = owner == Some(&path(repository));
    match revision(live).cmp(&revision(object)) {
        _ if live.data["spec"] == object.data["spec"] => Claim::Same,
        _ if ours => Claim::Ours,
        Ordering::Less => Claim::Ours,
        Ordering::Greater => Claim::Same,
        Ordering::Equal => Claim::Theirs(owner.map_or_else(|| "nobody".to_owned(), Clone::clone)),
    }
}

async fn apply(kapp: &Kapp, resource: &str, object: &DynamicObject) -> Result<(), Error> {
    let name = object.name_any();
    let params = PatchParams::apply("kapp-controller").force();
    let written = api(kapp, resource, object).patch(&name, &params, &Patch::Apply(object)).await;
    written.map(drop).map_err(|source| failed("offer", resource, &name, source))
}

async fn remove_others(kapp: &Kapp, repository: &PackageRepository, offered: &[DynamicObject]) -> Result<(), Error> {
    for (kind, resource) in KINDS {
        let all = kapp.list::<DynamicObject>(resource, repository.metadata.namespace.as_deref());
        let owner = |live: &DynamicObject| live.annotations().get(annotation::PACKAGE_REPOSITORY.name).cloned();
        for live in all.iter().filter(|live| owner(live) == Some(path(repository))) {
            let name = live.name_any();
            let is_it = |object: &DynamicObject| {
                object.name_any() == name && object.types.as_ref().is_some_and(|types| types.kind == kind)
            };
            if offered.iter().any(is_it) {
                continue;
            }
            match api(kapp, resource, live).delete(&name, &DeleteParams::background()).await {
                Err(kube::Error::Api(status)) if status.reason == "NotFound" => {}
                deleted => drop(deleted.map_err(|source| failed("withdraw", resource, &name, source))?),
            }
        }
    }
    Ok(())
}

fn resource(object: &DynamicObject) -> &'static str {
    let kind = object.types.as_ref().map(|types| types.kind.as_str());
    KINDS.iter().find(|(known, _)| Some(*known) == kind).map_or(PACKAGES, |(_, resource)| *resource)
}

fn api(kapp: &Kapp, resource: &str, object: &DynamicObject) -> Api<DynamicObject> {
    let kind = match resource {
        METADATAS => ApiResource::erase::<PackageMetadata>(&()),
        _ => ApiResource::erase::<Package>(&()),
    };
    Api::namespaced_with(kapp.client.clone(), &object.namespace().unwrap_or_default(), &kind)
}

fn failed(verb: &'static str, resource: &str, name: &str, source: kube::Error) -> Error {
    Error { verb, object: format!("{resource} {name}"), source: Box::new(source) }
}

/// Numbers with dots between them; what has none is the lowest.
fn revision(object: &DynamicObject) -> Vec<u64> {
    let text = object.annotations().get(REVISION).map_or("", String::as_str);
    text.split('.').filter_map(|number| number.parse().ok()).collect()
}

/// Takes its packages along.
async fn leave(kapp: &Kapp, repository: &PackageRepository) -> Result<Next, Error> {
    if is_held(repository, FINALIZER) {
        remove_others(kapp, repository, &[]).await?;
        kapp.hold(repository, FINALIZER, false).await?;
    }
    Ok(None)
}
