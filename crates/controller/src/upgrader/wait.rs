//! Waiting: for events where there are any, always with an end, and always knowing what is still missing.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};

use super::Error;
use super::error::answer;

/// How long to leave an API alone that did not answer. A control plane of one machine does not answer while its second member
/// of etcd starts.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(2);

/// What is still missing, in words that go on after "waited for … :".
#[derive(Debug)]
pub struct Missing(pub String);

/// What was waited for, or what is still missing.
pub type Seen<T> = Result<T, Missing>;

/// Still missing, in these words.
pub fn missing<T>(what: impl Into<String>) -> Seen<T> {
    Err(Missing(what.into()))
}

/// Until when to wait, and for what.
#[derive(Debug, Clone)]
pub struct Patience {
    end: Instant,
    whole: Duration,
    wanted: String,
}

impl Patience {
    /// From now on, for so long.
    pub fn of(whole: Duration, wanted: impl Into<String>) -> Self {
        Self::rest_of(whole, Duration::ZERO, wanted)
    }

    /// From now on, for what is left of so long.
    pub fn rest_of(whole: Duration, gone: Duration, wanted: impl Into<String>) -> Self {
        Self { end: Instant::now() + whole.saturating_sub(gone), whole, wanted: wanted.into() }
    }

    fn ended(&self, missing: Missing) -> Error {
        Error::Waited { waited: self.whole, wanted: self.wanted.clone(), missing: missing.0 }
    }

    /// Whether there is none left.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Watches objects until they are as wanted. If they are so at once, this is one read, and as fresh as a read can be. An
    /// API that does not answer is asked again until the end.
    pub async fn until<K, T>(
        &self,
        api: Api<K>,
        which: watcher::Config,
        mut look: impl FnMut(&BTreeMap<String, K>) -> Seen<T>,
    ) -> Result<T, Error>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let mut lacking = Missing("nothing was seen of it".to_owned());
        let watching = async {
            let mut events = pin!(watcher::watcher(api, which));
            let mut objects = BTreeMap::new();
            let mut complete = false;
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Init) => {
                        objects.clear();
                        complete = false;
                    }
                    Ok(Event::InitDone) => complete = true,
                    Ok(Event::InitApply(object) | Event::Apply(object)) => {
                        objects.insert(object.name_any(), object);
                    }
                    Ok(Event::Delete(object)) => {
                        objects.remove(&object.name_any());
                    }
                    Err(error) => {
                        lacking = Missing(failure(&error));
                        sleep(PAUSE_AFTER_FAILURE).await;
                        continue;
                    }
                }
                if complete {
                    match look(&objects) {
                        Ok(found) => return Some(found),
                        Err(still) => lacking = still,
                    }
                }
            }
            None
        };
        let found = timeout_at(self.end, watching).await;
        found.ok().flatten().ok_or_else(|| self.ended(lacking))
    }

    /// Asks every so often, where there are no events to wait for.
    pub async fn poll<T, F>(&self, pause: Duration, mut ask: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Seen<T>, Error>>,
    {
        loop {
            let lacking = match ask().await? {
                Ok(found) => return Ok(found),
                Err(lacking) => lacking,
            };
            if Instant::now() + pause > self.end {
                return Err(self.ended(lacking));
            }
            sleep(pause).await;
        }
    }

    /// Does something to an API that may not answer for a while. It is done again from its beginning, which must be a read.
    pub async fn retry<T, F>(&self, mut attempt: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        loop {
            match attempt().await {
                Err(error) if error.is_transient() && Instant::now() + PAUSE_AFTER_FAILURE <= self.end => {
                    tracing::debug!(error = %error.report(), "asking again");
                    sleep(PAUSE_AFTER_FAILURE).await;
                }
                outcome => return outcome,
            }
        }
    }
}

/// The one object of that name.
pub fn named(name: &str) -> watcher::Config {
    watcher::Config::default().fields(&format!("metadata.name={name}"))
}

fn failure(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(source)
        | watcher::Error::WatchStartFailed(source)
        | watcher::Error::WatchFailed(source) => format!("the API does not answer: {}", answer(source)),
        other => other.to_string(),
    }
}
