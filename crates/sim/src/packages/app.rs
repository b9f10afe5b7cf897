//! An App: fetched, rendered, applied, waited for; again when something changes, when it failed, and every now and then.
//!
//! ```text
//! Reconciling ──▶ fetch.startedAt ──(seconds)──▶ applied ──▶ all is well ──▶ ReconcileSucceeded
//!                                                   └──▶ deploy.startedAt ──(until ready, or 15 min)──┘──▶ ReconcileFailed
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::kind::packaging::{App, AppStage, AppStatus};
use windlass_apiserver::store::{Expect, Key, Resource};

use super::deploy::Deployment;
use super::progress::{self, Progress};
use super::status::{HELD, SEE_MESSAGE, State, duration, retry_at, sync_period};
use super::write::is_held;
use super::{APPS, Error, Kapp, Next, SECRETS, later, moment, registry, removal, ytt};

/// What holds up the deletion of an App until what it deployed is gone.
pub(super) const FINALIZER: &str = "finalizers.kapp-ctrl.k14s.io/delete";
/// Which values Apps were rendered with: kapp-controller has it in memory.
const INPUTS: &str = "inputs.packages.sim.windlass.dev";
/// How long kapp waits for what it has applied, and how often it looks.
const WAIT: Duration = Duration::from_secs(15 * 60);
const WAIT_LOOK: Duration = Duration::from_secs(3);

/// What went wrong, and where.
pub(super) struct Failure {
    stage: Stage,
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Fetch,
    Template,
    Deploy,
}

/// The Secrets in the namespace of an App that it is rendered with.
pub(super) fn secrets(app: &App) -> Vec<String> {
    let from = app.spec.template.iter().flat_map(|step| step["ytt"]["valuesFrom"].as_array().into_iter().flatten());
    from.filter_map(|from| from["secretRef"]["name"].as_str().map(str::to_owned)).collect()
}

/// Brings an App forward.
pub(super) async fn reconcile(kapp: &Kapp, key: &Key) -> Result<Next, Error> {
    let Some(app) = kapp.get::<App>(APPS, key) else {
        kapp.forget_inputs(key);
        return Ok(None);
    };
    let status = app.status.clone().unwrap_or_default();
    if app.spec.paused == Some(true) || app.spec.canceled == Some(true) {
        let held = AppStatus {
            observed_generation: app.metadata.generation,
            friendly_description: Some(HELD.to_owned()),
            ..status.clone()
        };
        kapp.put_status(&app, &status, &held).await?;
        return Ok(None);
    }
    if app.metadata.deletion_timestamp.is_some() {
        return removal::go_on(kapp, &app, status).await;
    }
    if !is_held(&app, FINALIZER) {
        kapp.hold(&app, FINALIZER, true).await?;
        return Ok(None);
    }
    let inputs = kapp.inputs(&app);
    let changed = app.metadata.generation != status.observed_generation
        || kapp.recorded_inputs(key).is_some_and(|recorded| recorded != inputs);
    match State::of(&status.conditions) {
        Some(State::Reconciling) if !changed => go_on(kapp, &app, status).await,
        Some(State::Succeeded) if !changed => rest(kapp, &app, status, key, &inputs).await,
        Some(State::Failed(_)) if !changed && !is_held_up(&status) => {
            let since = moment(updated_at(&status)).unwrap_or(Timestamp::MIN);
            let period = sync_period(app.spec.sync_period.as_deref());
            let retry = retry_at(since, status.consecutive_reconcile_failures, period);
            if retry > kapp.clock.now() { Ok(Some(retry)) } else { begin(kapp, &app, status, key, &inputs).await }
        }
        _ => begin(kapp, &app, status, key, &inputs).await,
    }
}

/// Whether it was paused when it was looked at last.
fn is_held_up(status: &AppStatus) -> bool {
    status.friendly_description.as_deref() == Some(HELD)
}

/// When anything of it was written last.
fn updated_at(status: &AppStatus) -> Option<&str> {
    let stages = [&status.fetch, &status.template, &status.deploy];
    stages.into_iter().flatten().filter_map(|stage| stage.updated_at.as_deref()).max()
}

/// Begins to fetch it.
async fn begin(kapp: &Kapp, app: &App, status: AppStatus, key: &Key, inputs: &Inputs) -> Result<Next, Error> {
    kapp.record_inputs(key, inputs);
    let fetch = AppStage { started_at: Some(kapp.stamp()), ..AppStage::default() };
    let begun = AppStatus {
        observed_generation: app.metadata.generation,
        friendly_description: Some(State::Reconciling.description()),
        conditions: State::Reconciling.conditions(),
        fetch: Some(fetch),
        template: None,
        deploy: None,
        ..status.clone()
    };
    kapp.put_status(app, &status, &begun).await?;
    Ok(Some(fetched_at(kapp, app, &begun)))
}

/// When it has been fetched and rendered.
fn fetched_at(kapp: &Kapp, app: &App, status: &AppStatus) -> Timestamp {
    let started = status.fetch.as_ref().and_then(|fetch| moment(fetch.started_at.as_deref()));
    let started = started.unwrap_or(Timestamp::MIN);
    let [namespace, name] =
        [&app.metadata.namespace, &app.metadata.name].map(|text| text.as_deref().unwrap_or_default());
    later(started, kapp.takes(&format!("fetch {namespace}/{name} {started}")))
}

/// Applies what has been fetched, or sees how far what was applied is.
async fn go_on(kapp: &Kapp, app: &App, status: AppStatus) -> Result<Next, Error> {
    let began = status.deploy.as_ref().and_then(|deploy| moment(deploy.started_at.as_deref()));
    let Some(began) = began else {
        let due = fetched_at(kapp, app, &status);
        if due > kapp.clock.now() {
            return Ok(Some(due));
        }
        let progress = deploy(kapp, app).await;
        return record(kapp, app, status, progress, kapp.clock.now()).await;
    };
    let progress = look(kapp, app).map(|progress| match progress {
        Progress::Waiting(waiting) if later(began, wait(app)) <= kapp.clock.now() => Progress::Failed(format!(
            "Timed out waiting after {}s for resources:\n- {}",
            wait(app).as_secs(),
            waiting.join("\n- ")
        )),
        progress => progress,
    });
    record(kapp, app, status, progress, began).await
}

/// Writes down how far it is.
async fn record(
    kapp: &Kapp,
    app: &App,
    status: AppStatus,
    progress: Result<Progress, Failure>,
    deploying_since: Timestamp,
) -> Result<Next, Error> {
    let failure = match progress {
        Ok(Progress::Done) => return succeed(kapp, app, status, deploying_since).await,
        Ok(Progress::Waiting(_)) if status.deploy.is_some() => return Ok(Some(later(kapp.clock.now(), WAIT_LOOK))),
        Ok(Progress::Waiting(waiting)) => {
            let stages = Stages::of(kapp, &status, deploying_since);
            let deploy = AppStage { stdout: Some(waiting.join("\n")), finished: false, ..stages.deploy };
            let waits = AppStatus {
                fetch: Some(stages.fetch),
                template: Some(stages.template),
                deploy: Some(deploy),
                ..status.clone()
            };
            kapp.put_status(app, &status, &waits).await?;
            return Ok(Some(later(kapp.clock.now(), WAIT_LOOK)));
        }
        Ok(Progress::Failed(why)) => Failure { stage: Stage::Deploy, message: format!("kapp: Error: {why}") },
        Err(failure) => failure,
    };
    fail(kapp, app, status, failure, deploying_since).await
}

/// What the programs did, all of them with success.
struct Stages {
    fetch: AppStage,
    template: AppStage,
    deploy: AppStage,
}

impl Stages {
    fn of(kapp: &Kapp, status: &AppStatus, deploying_since: Timestamp) -> Self {
        let now = Some(kapp.stamp());
        let fetch = AppStage { updated_at: now.clone(), ..status.fetch.clone().unwrap_or_default() };
        let template = AppStage { updated_at: now.clone(), ..AppStage::default() };
        let started_at = Some(windlass_apiserver::time::format(deploying_since));
        let deploy = AppStage { started_at, updated_at: now, finished: true, ..AppStage::default() };
        Self { fetch, template, deploy }
    }
}

async fn succeed(kapp: &Kapp, app: &App, status: AppStatus, deploying_since: Timestamp) -> Result<Next, Error> {
    let Stages { fetch, template, deploy } = Stages::of(kapp, &status, deploying_since);
    let well = AppStatus {
        observed_generation: app.metadata.generation,
        friendly_description: Some(State::Succeeded.description()),
        useful_error_message: None,
        conditions: State::Succeeded.conditions(),
        consecutive_reconcile_successes: status.consecutive_reconcile_successes.saturating_add(1),
        consecutive_reconcile_failures: 0,
        fetch: Some(fetch),
        template: Some(template),
        deploy: Some(deploy),
    };
    kapp.put_status(app, &status, &well).await?;
    Ok(Some(synced_at(kapp, app, &well)))
}

async fn fail(
    kapp: &Kapp,
    app: &App,
    status: AppStatus,
    failure: Failure,
    deploying_since: Timestamp,
) -> Result<Next, Error> {
    let Failure { stage, message } = failure;
    let failed = |reached: AppStage| AppStage { exit_code: 1, stderr: Some(message.clone()), ..reached };
    let Stages { fetch, template, deploy } = Stages::of(kapp, &status, deploying_since);
    let (what, fetch, template, deploy) = match stage {
        Stage::Fetch => ("Fetching resources", failed(fetch), None, None),
        Stage::Template => ("Templating", fetch, Some(failed(template)), None),
        Stage::Deploy => ("Deploying", fetch, Some(template), Some(failed(deploy))),
    };
    let state = State::Failed(format!("{what}: {SEE_MESSAGE}"));
    let failures = status.consecutive_reconcile_failures.saturating_add(1);
    let badly = AppStatus {
        observed_generation: app.metadata.generation,
        friendly_description: Some(state.description()),
        useful_error_message: Some(message.clone()),
        conditions: state.conditions(),
        consecutive_reconcile_successes: 0,
        consecutive_reconcile_failures: failures,
        fetch: Some(fetch),
        template,
        deploy,
    };
    kapp.put_status(app, &status, &badly).await?;
    Ok(Some(retry_at(kapp.clock.now(), failures, sync_period(app.spec.sync_period.as_deref()))))
}

/// Sees every now and then whether all is as it was applied. While it is, nobody is told but by the time.
async fn rest(kapp: &Kapp, app: &App, status: AppStatus, key: &Key, inputs: &Inputs) -> Result<Next, Error> {
    let due = synced_at(kapp, app, &status);
    if due > kapp.clock.now() && !is_held_up(&status) {
        return Ok(Some(due));
    }
    let differs = rendered(kapp, app).and_then(|bodies| {
        let target = kapp.target(app).map_err(deploying)?;
        Deployment::new(&target, app, kapp.seed).differs(&bodies).map_err(deploying)
    });
    match differs {
        Ok(false) => succeed(kapp, app, status, kapp.clock.now()).await,
        Ok(true) | Err(_) => begin(kapp, app, status, key, inputs).await,
    }
}

/// When it is done anew: five seconds earlier or later, so that not all are done at once.
fn synced_at(kapp: &Kapp, app: &App, status: &AppStatus) -> Timestamp {
    let at = moment(updated_at(status)).unwrap_or(Timestamp::MIN);
    let jitter = kapp.seed.child("sync").stream(&format!("{:?} {at}", app.metadata.uid)).range(0..10_001);
    let earlier = sync_period(app.spec.sync_period.as_deref()).saturating_sub(Duration::from_secs(5));
    later(at, earlier.saturating_add(Duration::from_millis(jitter)))
}

async fn deploy(kapp: &Kapp, app: &App) -> Result<Progress, Failure> {
    let bodies = rendered(kapp, app)?;
    let target = kapp.target(app).map_err(deploying)?;
    let deployment = Deployment::new(&target, app, kapp.seed);
    deployment.apply(&bodies).await.map_err(deploying)?;
    Ok(progress::of(&deployment.owned()))
}

/// How far what was applied is.
fn look(kapp: &Kapp, app: &App) -> Result<Progress, Failure> {
    let target = kapp.target(app).map_err(deploying)?;
    Ok(progress::of(&Deployment::new(&target, app, kapp.seed).owned()))
}

fn deploying(message: String) -> Failure {
    Failure { stage: Stage::Deploy, message }
}

/// The objects of an App.
fn rendered(kapp: &Kapp, app: &App) -> Result<Vec<Value>, Failure> {
    let fetching = |message: String| Failure { stage: Stage::Fetch, message };
    let templating = |message: String| Failure { stage: Stage::Template, message };
    let mut files = Vec::new();
    for fetch in &app.spec.fetch {
        files.extend(registry::fetch(fetch).map_err(fetching)?);
    }
    for step in &app.spec.template {
        let known = step.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        if let Some(other) = known.into_iter().find(|name| !["ytt", "kbld"].contains(name)) {
            return Err(templating(format!("{other}: Error: not known to a World: it has ytt and kbld")));
        }
    }
    let values = kapp.values(app).map_err(templating)?;
    files.retain(|(path, _)| registry::is_yaml(path));
    ytt::render(&files, &values).map_err(|error| templating(error.to_string()))
}

/// How long kapp waits, if it is told.
fn wait(app: &App) -> Duration {
    let options = app.spec.deploy.iter().flat_map(|step| step["kapp"]["rawOptions"].as_array().into_iter().flatten());
    let mut given = options.filter_map(|option| option.as_str()?.strip_prefix("--wait-timeout=").and_then(duration));
    given.next_back().unwrap_or(WAIT)
}

/// The Secrets that an App is rendered with, and at which revision.
type Inputs = BTreeMap<String, String>;

impl Kapp {
    fn inputs(&self, app: &App) -> Inputs {
        let namespace = app.metadata.namespace.as_deref().unwrap_or_default();
        let revision = |name: &str| {
            let entry = self.server.store().get(SECRETS, &Key::new(namespace, name));
            entry.map_or_else(String::new, |entry| entry.revision.to_string())
        };
        secrets(app).into_iter().map(|name| (name.clone(), revision(&name))).collect()
    }

    fn recorded_inputs(&self, key: &Key) -> Option<Inputs> {
        let record: Value = self.get(INPUTS, key)?;
        serde_json::from_value(record["record"].clone()).ok()
    }

    fn record_inputs(&self, key: &Key, inputs: &Inputs) {
        let store = self.server.store();
        let expect = store.get(INPUTS, key).map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
        if inputs.is_empty() || self.recorded_inputs(key).as_ref() == Some(inputs) {
            return;
        }
        let Key { namespace, name } = key;
        let record = json!({"metadata": {"namespace": namespace, "name": name}, "record": inputs});
        // Nobody else writes it.
        drop(store.put(&Resource::from(INPUTS), key, expect, record, self.clock.now()));
    }

    fn forget_inputs(&self, key: &Key) {
        let store = self.server.store();
        let Some(entry) = store.get(INPUTS, key) else { return };
        let last = entry.to_value("", "");
        drop(store.remove(&Resource::from(INPUTS), key, entry.revision, last, self.clock.now()));
    }

    /// The values that an App is rendered with, later ones over earlier ones.
    fn values(&self, app: &App) -> Result<Vec<Value>, String> {
        let namespace = app.metadata.namespace.as_deref().unwrap_or_default();
        let mut values = Vec::new();
        for name in secrets(app) {
            let secret: Value = self
                .get(SECRETS, &Key::new(namespace, &name))
                .ok_or_else(|| format!("Templating dir: secrets \"{name}\" not found"))?;
            for (key, data) in secret["data"].as_object().into_iter().flatten() {
                let text = BASE64_STANDARD.decode(data.as_str().unwrap_or_default()).ok();
                let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
                let text = text.ok_or_else(|| format!("ytt: Error: {key} in secret {name} is no text"))?;
                let read = serde_saphyr::from_str(&text);
                values.push(read.map_err(|_| format!("ytt: Error: Unmarshaling {key} in secret {name}"))?);
            }
        }
        Ok(values)
    }
}
