//! Tells people what happened to an object: Kubernetes Events, in the time of our clock.
//!
//! An Event's name follows from what it is about, so that saying the same again (also after a restart, also by another
//! replica) finds the first one and makes it a series. Nothing is kept in memory. As in Kubernetes' own recorder the note
//! is not part of that: a series keeps its first note, and what must be told apart needs another reason.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::chance::fnv1a;
use crate::clock::Clock;

/// Whether an Event is good to know or needs a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Good to know.
    Normal,
    /// Needs a look.
    Warning,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// What to tell.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// How bad it is.
    pub kind: Kind,
    /// Why, in one `CamelCase` word for machines: `ControlPlaneBehind`.
    pub reason: String,
    /// What was done or attempted, in one `CamelCase` word for machines: `RaiseVersion`.
    pub action: String,
    /// A sentence for people. What is longer than 1 KiB is cut.
    pub note: String,
    /// Another object that it is about.
    pub related: Option<ObjectReference>,
}

/// Publishes Events in the name of one controller.
#[derive(Clone)]
pub struct Recorder {
    client: Client,
    clock: Clock,
    controller: String,
    instance: String,
}

/// Why an Event was not published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The server refused, or could not be reached.
    #[error("publish the event {name}")]
    Api {
        /// The Event's name.
        name: String,
        /// What the client says.
        #[source]
        source: Box<kube::Error>,
    },
    /// Others kept changing or removing the Event in between.
    #[error("publish the event {name}: it changed on each of {TRIES} tries")]
    Contended {
        /// The Event's name.
        name: String,
    },
}

/// Whether an attempt to publish came through.
enum Told {
    Yes,
    /// Somebody else changed or removed the Event in between.
    LostRace,
}

/// Create and raise can each lose a race against another replica; whoever loses three in a row gives up.
const TRIES: u32 = 3;
/// What Kubernetes takes.
const NOTE_BYTES_MAX: usize = 1024;
const NAME_BYTES_MAX: usize = 253;

impl Recorder {
    /// `controller` is a qualified name (`windlass.dev/cluster`), `instance` tells its replicas apart.
    pub fn new(client: Client, clock: Clock, controller: impl Into<String>, instance: impl Into<String>) -> Self {
        Self { client, clock, controller: controller.into(), instance: instance.into() }
    }

    /// Tells it: a new Event, or one more in the series of the one that is there.
    pub async fn publish(&self, regarding: &ObjectReference, notice: &Notice) -> Result<(), PublishError> {
        // Cluster-scoped objects have theirs in `default`, where Kubernetes wants them.
        let namespace = regarding.namespace.as_deref().unwrap_or("default");
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let event = self.event(regarding, notice, namespace, self.clock.now());
        let name = event.metadata.name.clone().unwrap_or_default();
        for _ in 0..TRIES {
            match self.create_or_raise(&events, &name, &event).await {
                Ok(Told::Yes) => return Ok(()),
                Ok(Told::LostRace) => {}
                Err(source) => return Err(PublishError::Api { name, source: Box::new(source) }),
            }
        }
        Err(PublishError::Contended { name })
    }

    async fn create_or_raise(&self, events: &Api<Event>, name: &str, event: &Event) -> kube::Result<Told> {
        match events.create(&PostParams::default(), event).await {
            Ok(_) => return Ok(Told::Yes),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            // Also when it is the namespace that is not found.
            Err(error) => return Err(error),
        }
        match self.raise(events, name).await {
            Ok(()) => Ok(Told::Yes),
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(Told::LostRace),
            Err(error) => Err(error),
        }
    }

    async fn raise(&self, events: &Api<Event>, name: &str) -> kube::Result<()> {
        let live = events.get(name).await?;
        let count = live.series.map_or(1, |series| series.count).saturating_add(1);
        let series = EventSeries { count, last_observed_time: MicroTime(self.clock.now()) };
        // The version makes two that raise at once count as two.
        let patch = json!({"metadata": {"resourceVersion": live.metadata.resource_version}, "series": series});
        events.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }

    fn event(&self, regarding: &ObjectReference, notice: &Notice, namespace: &str, now: Timestamp) -> Event {
        Event {
            metadata: ObjectMeta {
                name: Some(self.name(regarding, notice)),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(now)),
            type_: Some(notice.kind.as_str().to_owned()),
            reason: Some(notice.reason.clone()),
            action: Some(notice.action.clone()),
            note: Some(cut(&notice.note, NOTE_BYTES_MAX)),
            regarding: Some(regarding.clone()),
            related: notice.related.clone(),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }

    /// The name of what it is about, and a hash of all that makes it the same Event.
    fn name(&self, regarding: &ObjectReference, notice: &Notice) -> String {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let identity = |object: &ObjectReference| {
            [&object.api_version, &object.kind, &object.namespace, &object.name, &object.uid].map(text)
        };
        let related = notice.related.as_ref().map(identity).unwrap_or_default();
        let own = [notice.kind.as_str(), &notice.reason, &notice.action, &self.controller].map(str::to_owned);
        let parts = [identity(regarding).as_slice(), &own, &related].concat();
        let hash = fnv1a(&parts.iter().map(String::as_str).collect::<Vec<_>>());

        let suffix = format!(".{hash:016x}");
        let name = text(&regarding.name);
        // A part of a DNS name may not end with these.
        let stem = prefix(&name, NAME_BYTES_MAX - suffix.len()).trim_end_matches(['-', '.']);
        format!("{stem}{suffix}")
    }
}

/// At most so many bytes, with a sign that something is missing.
fn cut(text: &str, bytes_max: usize) -> String {
    const SIGN: &str = "…";
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    format!("{}{SIGN}", prefix(text, bytes_max - SIGN.len()))
}

/// The longest beginning of whole characters with at most so many bytes.
fn prefix(text: &str, bytes_max: usize) -> &str {
    let longest = (0..=bytes_max).rev().find_map(|end| text.get(..end));
    longest.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_cut_between_characters() {
        assert_eq!(cut("short", 1024), "short");
        let long = cut(&"ä".repeat(600), 1024);
        assert!(long.len() <= 1024 && long.ends_with("ä…"), "{} bytes", long.len());
        assert_eq!(cut(&"x".repeat(1024), 1024).len(), 1024);
    }
}
