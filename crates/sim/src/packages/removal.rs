//! How an App goes: what it deployed first, unless it says that it should stay.

use std::time::Duration;

use windlass_api::kind::packaging::{App, AppStage, AppStatus};

use super::app::FINALIZER;
use super::deploy::{Deployment, title};
use super::status::{State, retry_at, sync_period};
use super::write::is_held;
use super::{Error, Kapp, Next, later, moment};

/// How long kapp waits for what it has deleted, and how often it looks.
const WAIT: Duration = Duration::from_secs(15 * 60);
const WAIT_LOOK: Duration = Duration::from_secs(1);

/// Removes what an App deployed, and then lets the App go.
pub(super) async fn go_on(kapp: &Kapp, app: &App, status: AppStatus) -> Result<Next, Error> {
    if !is_held(app, FINALIZER) {
        return Ok(None);
    }
    if app.spec.noop_delete == Some(true) {
        kapp.hold(app, FINALIZER, false).await?;
        return Ok(None);
    }
    let period = sync_period(app.spec.sync_period.as_deref());
    let changed = app.metadata.generation != status.observed_generation;
    let began = status.deploy.as_ref().and_then(|deploy| moment(deploy.started_at.as_deref()));
    match State::of(&status.conditions) {
        Some(State::Deleting) => {}
        Some(State::DeleteFailed(_)) if !changed => {
            let since = status.deploy.as_ref().and_then(|deploy| moment(deploy.updated_at.as_deref()));
            let retry = retry_at(since.unwrap_or_default(), status.consecutive_reconcile_failures, period);
            if retry > kapp.clock.now() {
                return Ok(Some(retry));
            }
            return begin(kapp, app, status).await;
        }
        _ => return begin(kapp, app, status).await,
    }
    match removed(kapp, app).await {
        Ok(None) => {
            kapp.hold(app, FINALIZER, false).await?;
            Ok(None)
        }
        Ok(Some(left)) if later(began.unwrap_or_default(), WAIT) <= kapp.clock.now() => {
            let why = format!("kapp: Error: Timed out waiting after {}s for resources: {left}", WAIT.as_secs());
            fail(kapp, app, status, why).await
        }
        Ok(Some(_)) => Ok(Some(later(kapp.clock.now(), WAIT_LOOK))),
        Err(why) => fail(kapp, app, status, why).await,
    }
}

/// Says that it goes.
async fn begin(kapp: &Kapp, app: &App, status: AppStatus) -> Result<Next, Error> {
    let deploy = AppStage { started_at: Some(kapp.stamp()), ..AppStage::default() };
    // What failed before was something else.
    let failures = match State::of(&status.conditions) {
        Some(State::DeleteFailed(_)) => status.consecutive_reconcile_failures,
        _ => 0,
    };
    let begun = AppStatus {
        observed_generation: app.metadata.generation,
        friendly_description: Some(State::Deleting.description()),
        conditions: State::Deleting.conditions(),
        consecutive_reconcile_failures: failures,
        deploy: Some(deploy),
        ..status.clone()
    };
    kapp.put_status(app, &status, &begun).await?;
    Ok(None)
}

async fn fail(kapp: &Kapp, app: &App, status: AppStatus, why: String) -> Result<Next, Error> {
    let state = State::DeleteFailed(format!("Deleting: {}", super::status::SEE_MESSAGE));
    let failures = status.consecutive_reconcile_failures.saturating_add(1);
    let reached = status.deploy.clone().unwrap_or_default();
    let deploy = AppStage { exit_code: 1, stderr: Some(why.clone()), updated_at: Some(kapp.stamp()), ..reached };
    let badly = AppStatus {
        friendly_description: Some(state.description()),
        useful_error_message: Some(why),
        conditions: state.conditions(),
        consecutive_reconcile_failures: failures,
        deploy: Some(deploy),
        ..status.clone()
    };
    kapp.put_status(app, &status, &badly).await?;
    Ok(Some(retry_at(kapp.clock.now(), failures, sync_period(app.spec.sync_period.as_deref()))))
}

/// Deletes what is left; the first of it that is still there.
async fn removed(kapp: &Kapp, app: &App) -> Result<Option<String>, String> {
    let target = kapp.target(app)?;
    let deployment = Deployment::new(&target, app, kapp.seed);
    let owned = deployment.owned();
    for object in owned.iter().filter(|object| object.body["metadata"]["deletionTimestamp"].is_null()) {
        deployment.delete(object).await?;
    }
    match deployment.owned().first() {
        Some(left) => Ok(Some(title(left))),
        None => deployment.delete_record().await.map(|()| None),
    }
}
