//! A `PackageInstall`: which version, and the App that it becomes. How it is, is how its App is.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::core::ObjectMeta;
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::packaging::{
    App, AppSpec, Package, PackageInstall, PackageInstallSpec, PackageInstallStatus, PackageSpec,
};
use windlass_apiserver::store::Key;

use super::selection::{Surroundings, asks_for_kapp_controller, asks_for_kubernetes, select};
use super::status::{HELD, SEE_MESSAGE, State};
use super::write::is_held;
use super::{APPS, Error, GLOBAL_NAMESPACE, INSTALLS, Kapp, NAMESPACES, Next, PACKAGES, app, constraint, later};

/// What holds up the deletion of a `PackageInstall` until its App is gone.
const FINALIZER: &str = "finalizers.packageinstall.packaging.carvel.dev/delete";
/// A namespace that sees its own packages only.
const EXCLUDE_GLOBAL: &str = "kapp-controller.carvel.dev/exclude-global-packages";
/// How soon a cluster is asked for its version again.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// Which package an App is.
const PACKAGE_REF_NAME: &str = "packaging.carvel.dev/package-ref-name";
const PACKAGE_VERSION: &str = "packaging.carvel.dev/package-version";

/// Brings a `PackageInstall` forward. It waits for little but changes: its App has the timers.
pub(super) async fn reconcile(kapp: &Kapp, key: &Key) -> Result<Next, Error> {
    let Some(install) = kapp.get::<PackageInstall>(INSTALLS, key) else { return Ok(None) };
    let app = kapp.get::<App>(APPS, key);
    if install.metadata.deletion_timestamp.is_some() {
        return leave(kapp, &install, app).await;
    }
    if !is_held(&install, FINALIZER) {
        kapp.hold(&install, FINALIZER, true).await?;
        return Ok(None);
    }
    let before = install.status.clone().unwrap_or_default();
    let mut status = PackageInstallStatus { observed_generation: install.metadata.generation, ..before.clone() };
    let chosen = chosen(kapp, &install).await;
    let again = matches!(chosen, Err(NotChosen::Unknown(_))).then(|| later(kapp.clock.now(), ASK_AGAIN));
    match chosen {
        Ok(package) => {
            status.version = Some(package.version.clone());
            if let Some(why) = lower(&install, &package.version, before.last_attempted_version.as_deref()) {
                tell(&mut status, &State::Failed(SEE_MESSAGE.to_owned()), Some(why));
            } else {
                status.last_attempted_version = Some(package.version.clone());
                mirror(&mut status, &install, app.as_ref());
                put_app(kapp, &install, app, &package).await?;
            }
        }
        Err(NotChosen::Refused(why) | NotChosen::Unknown(why)) => {
            tell(&mut status, &State::Failed(why.clone()), Some(why));
        }
    }
    kapp.put_status(&install, &before, &status).await?;
    Ok(again)
}

/// Why no package was chosen.
enum NotChosen {
    /// That depends on objects, and one hears when they change.
    Refused(String),
    /// What it depends on could not be asked for. Nobody tells when it can.
    Unknown(String),
}

fn tell(status: &mut PackageInstallStatus, state: &State, message: Option<String>) {
    status.conditions = state.conditions();
    status.friendly_description = Some(state.description());
    status.useful_error_message = message;
}

/// The package that is wanted; why there is none.
async fn chosen(kapp: &Kapp, install: &PackageInstall) -> Result<PackageSpec, NotChosen> {
    let without = install.spec.values.iter().position(|values| values.secret_ref.is_none());
    if let Some(index) = without {
        return Err(NotChosen::Refused(format!("Invalid fields: spec.values[{index}].secretRef: Required value")));
    }
    let packages = offered(kapp, install);
    let annotations = install.annotations();
    let mut fits = Surroundings::default();
    let ignored = annotation::IGNORE_KUBERNETES_SELECTION.is_in(annotations);
    if !ignored && asks_for_kubernetes(packages.iter()) {
        let draft = App { spec: base(&install.spec), metadata: install.metadata.clone(), status: None };
        let target = kapp.target(&draft).map_err(NotChosen::Unknown)?;
        fits.kubernetes = Some(target.kubernetes().await.map_err(NotChosen::Unknown)?);
    }
    if !annotation::IGNORE_KAPP_CONTROLLER_SELECTION.is_in(annotations) && asks_for_kapp_controller(packages.iter()) {
        fits.kapp_controller = kapp.version();
    }
    let wanted = install.spec.package_ref.version_selection.as_ref();
    select(&packages, wanted, &fits).cloned().map_err(|error| NotChosen::Refused(error.to_string()))
}

/// All versions of the package that the namespace sees: its own, and those of all.
fn offered(kapp: &Kapp, install: &PackageInstall) -> Vec<PackageSpec> {
    let namespace = install.namespace().unwrap_or_default();
    let own: Option<Value> = kapp.get(NAMESPACES, &Key::new("", &namespace));
    let excludes = own.is_some_and(|own| !own["metadata"]["annotations"][EXCLUDE_GLOBAL].is_null());
    let mut seen = vec![namespace.as_str()];
    seen.extend((!excludes && namespace != GLOBAL_NAMESPACE).then_some(GLOBAL_NAMESPACE));
    let mut packages: BTreeMap<String, PackageSpec> = BTreeMap::new();
    for namespace in seen {
        let all = kapp.list::<Package>(PACKAGES, Some(namespace)).into_iter().map(|package| package.spec);
        for package in all.filter(|package| package.ref_name == install.spec.package_ref.ref_name) {
            packages.entry(package.version.clone()).or_insert(package);
        }
    }
    packages.into_values().collect()
}

/// Why a version is not installed that is lower than the last one.
fn lower(install: &PackageInstall, version: &str, last: Option<&str>) -> Option<String> {
    let last = last.filter(|_| !annotation::DOWNGRADABLE.is_in(install.annotations()))?;
    (constraint::version(version)? < constraint::version(last)?).then(|| {
        format!(
            "Stopped installing matched version '{version}' since last attempted version '{last}' is higher.\n\
             hint: Add annotation packaging.carvel.dev/downgradable: \"\" to PackageInstall to proceed with downgrade"
        )
    })
}

/// How the App is.
fn mirror(status: &mut PackageInstallStatus, install: &PackageInstall, app: Option<&App>) {
    let seen = app.and_then(|app| Some((app, app.status.as_ref()?)));
    let seen = seen.filter(|(app, status)| app.metadata.generation == status.observed_generation);
    let state = seen.and_then(|(_, status)| State::of(&status.conditions));
    let message = app.and_then(|app| app.status.as_ref()?.useful_error_message.clone());
    match state {
        Some(State::Failed(_)) => tell(status, &State::Failed(SEE_MESSAGE.to_owned()), message),
        Some(State::Succeeded) => tell(status, &State::Succeeded, None),
        // What went wrong is told until it goes well.
        Some(State::Reconciling | State::Deleting | State::DeleteFailed(_)) | None => {
            tell(status, &State::Reconciling, message);
        }
    }
    let held = install.spec.paused == Some(true) || install.spec.canceled == Some(true);
    let said = seen.and_then(|(_, status)| status.friendly_description.as_deref());
    if held && said == Some(HELD) {
        status.friendly_description = Some(HELD.to_owned());
    }
}

/// Makes the App, or makes it what it should be.
///
/// What the `PackageInstall` says is how the App was before. So for a moment it tells of the new version what was true of the
/// one before; kapp-controller does that too (its issue 341), and whoever believes it is wrong there as well.
async fn put_app(kapp: &Kapp, install: &PackageInstall, app: Option<App>, package: &PackageSpec) -> Result<(), Error> {
    let spec = wanted(&install.spec, package);
    let annotations = BTreeMap::from([
        (PACKAGE_REF_NAME.to_owned(), package.ref_name.clone()),
        (PACKAGE_VERSION.to_owned(), package.version.clone()),
    ]);
    let Some(app) = app else {
        let metadata = ObjectMeta {
            name: install.metadata.name.clone(),
            namespace: install.metadata.namespace.clone(),
            annotations: Some(annotations),
            finalizers: Some(vec![app::FINALIZER.to_owned()]),
            owner_references: Some(vec![owner(install)]),
            ..ObjectMeta::default()
        };
        return kapp.create(&App { metadata, spec, status: None }).await;
    };
    let differs = app.spec != spec || annotations.iter().any(|(key, value)| app.annotations().get(key) != Some(value));
    if annotation::MANUALLY_CONTROLLED.is_in(app.annotations()) || !differs {
        return Ok(());
    }
    let mut patch = json!({"metadata": {"annotations": annotations}, "spec": spec});
    for field in ["serviceAccountName", "cluster", "paused", "canceled", "syncPeriod", "noopDelete", "defaultNamespace"]
    {
        if patch["spec"].get(field).is_none() {
            patch["spec"][field] = Value::Null;
        }
    }
    kapp.patch(&app, patch).await
}

fn owner(install: &PackageInstall) -> OwnerReference {
    OwnerReference {
        api_version: "packaging.carvel.dev/v1alpha1".to_owned(),
        kind: "PackageInstall".to_owned(),
        name: install.name_any(),
        uid: install.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// What an App has of its `PackageInstall`, whatever the package.
fn base(install: &PackageInstallSpec) -> AppSpec {
    AppSpec {
        service_account_name: install.service_account_name.clone(),
        cluster: install.cluster.clone(),
        paused: install.paused.filter(|paused| *paused),
        canceled: install.canceled.filter(|canceled| *canceled),
        sync_period: Some(install.sync_period.clone().unwrap_or_else(|| "10m0s".to_owned())),
        noop_delete: install.noop_delete.filter(|noop| *noop),
        default_namespace: install.default_namespace.clone(),
        ..AppSpec::default()
    }
}

/// The App for a package: as the package says, with the values that the `PackageInstall` has.
fn wanted(install: &PackageInstallSpec, package: &PackageSpec) -> AppSpec {
    let steps = |name: &str| package.template["spec"][name].as_array().cloned().unwrap_or_default();
    let mut template = steps("template");
    let secrets = install.values.iter().filter_map(|values| values.secret_ref.as_ref());
    let from: Vec<Value> = secrets.map(|secret| json!({"secretRef": {"name": secret.name}})).collect();
    if let Some(ytt) = template.iter_mut().find(|step| step.get("ytt").is_some()).filter(|_| !from.is_empty()) {
        let given = ytt["ytt"]["valuesFrom"].as_array().cloned().unwrap_or_default();
        ytt["ytt"]["valuesFrom"] = given.into_iter().chain(from).collect();
    }
    AppSpec { fetch: steps("fetch"), template, deploy: steps("deploy"), ..base(install) }
}

/// Lets the App go first, and then goes.
async fn leave(kapp: &Kapp, install: &PackageInstall, app: Option<App>) -> Result<Next, Error> {
    if !is_held(install, FINALIZER) {
        return Ok(None);
    }
    let Some(app) = app else {
        kapp.hold(install, FINALIZER, false).await?;
        return Ok(None);
    };
    // How it goes is said here and not there.
    let told = base(&install.spec);
    let spec = &app.spec;
    let same = spec.service_account_name == told.service_account_name
        && spec.cluster == told.cluster
        && spec.noop_delete == told.noop_delete
        && spec.paused == told.paused
        && spec.canceled == told.canceled;
    if !same {
        let patch = json!({"spec": {
            "serviceAccountName": told.service_account_name, "cluster": told.cluster,
            "noopDelete": told.noop_delete, "paused": told.paused, "canceled": told.canceled,
        }});
        kapp.patch(&app, patch).await?;
        return Ok(None);
    }
    if app.metadata.deletion_timestamp.is_none() {
        kapp.delete(&app).await?;
        return Ok(None);
    }
    let before = install.status.clone().unwrap_or_default();
    let mut status = PackageInstallStatus { observed_generation: install.metadata.generation, ..before.clone() };
    let seen = app.status.clone().unwrap_or_default();
    match State::of(&seen.conditions) {
        Some(State::DeleteFailed(_)) => {
            tell(&mut status, &State::DeleteFailed(SEE_MESSAGE.to_owned()), seen.useful_error_message);
        }
        _ => tell(&mut status, &State::Deleting, None),
    }
    kapp.put_status(install, &before, &status).await?;
    Ok(None)
}
