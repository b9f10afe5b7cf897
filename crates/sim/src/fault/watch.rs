//! Watches that go wrong: they end, stall, tell late, or leave out what came in between.
//!
//! The frames of a watch are whole lines: in this process nobody cuts them.

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http_body_util::BodyExt;
use serde::Deserialize;
use tokio::time::Instant;
use windlass_apiserver::Body;

use super::kind::{Fault, WatchEnd};
use super::layer::Client;
use super::request::{Asked, Place};
use super::{Bite, Faults};

/// How long nothing comes until the connection of a stalled watch is closed: what the network gives up after.
const STALL: Duration = Duration::from_secs(300);

/// What a watch that ends is told when it is too old.
const EXPIRED: &[u8] = b"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\
    \"status\":\"Failure\",\"message\":\"too old resource version\",\"reason\":\"Expired\",\"code\":410}}\n";

/// What is done to a watch.
pub(super) struct Spoiled {
    faults: Faults,
    client: Client,
    asked: Asked,
    ends: Option<(Instant, WatchEnd)>,
    no_bookmarks: bool,
}

impl Faults {
    /// What is done to a watch that begins now; `None` if nothing ever is.
    pub(super) fn spoiled(&self, client: &Client, asked: &Asked) -> Option<Spoiled> {
        let live = self.live().filter(|_| asked.verb == "watch")?;
        let mut ends: Vec<(Instant, WatchEnd)> = Vec::new();
        let (mut no_bookmarks, mut later) = (false, false);
        for (index, injection) in live.scenario.faults.iter().enumerate() {
            let when = &injection.when;
            let bites = || live.is_open(index) && live.strikes(index, when);
            let say = |text: &str| {
                let (place, object) = (&*client.name, &asked.to_string());
                live.say(index, &Bite { place, cluster: client.cluster(), object, text });
            };
            match &injection.fault {
                Fault::WatchEnds { on, how, after } if on.matches(client.caller, asked) && bites() => {
                    let how_in_words = match how {
                        WatchEnd::Dropped => "is dropped",
                        WatchEnd::Expired => "expires",
                        WatchEnd::Stalled => "stalls",
                    };
                    say(&format!("{asked} of the {} {how_in_words} after {after}", client.caller));
                    ends.push((Instant::now() + after.0, *how));
                }
                Fault::BookmarksLost { on } if on.matches(client.caller, asked) && bites() => {
                    say(&format!("{asked} of the {} is told no bookmarks", client.caller));
                    no_bookmarks = true;
                }
                Fault::Lag { on, .. } | Fault::Coalescing { on, .. } => later |= on.matches(client.caller, asked),
                // Whoever is connected to another replica has to watch again.
                Fault::StaleReplica { caller, asked_after } if *caller == client.caller => {
                    let asked_from = when.after.and(*asked_after);
                    // What is in the future of a replica is not waited for: the client lists again.
                    let how = if asked_after.is_zero() { WatchEnd::Dropped } else { WatchEnd::Expired };
                    let moments = [(Some(asked_from), how), (when.until, WatchEnd::Dropped)];
                    let coming = moments.into_iter().filter_map(|(span, how)| Some((live.until(span?), how)));
                    let next = coming.filter(|(left, _)| !left.is_zero()).min_by_key(|(left, _)| *left);
                    let next = next.filter(|_| client.place == Place::Management);
                    ends.extend(next.map(|(left, how)| (Instant::now() + left, how)));
                }
                _ => {}
            }
        }
        let ends = ends.into_iter().min_by_key(|(at, _)| *at);
        let (faults, client, asked_of) = (self.clone(), client.clone(), asked.clone());
        let spoiled = Spoiled { faults, client, asked: asked_of, ends, no_bookmarks };
        Some(spoiled).filter(|_| ends.is_some() || no_bookmarks || later)
    }
}

impl Spoiled {
    /// By how much an event is told late now, and whether the next one of its object takes its place meanwhile.
    fn delay(&self) -> (Duration, bool) {
        let Some(live) = self.faults.live() else { return (Duration::ZERO, false) };
        let (mut by, mut coalesces) = (Duration::ZERO, false);
        for (index, injection) in live.open() {
            let (on, adds, text) = match &injection.fault {
                Fault::Lag { on, by } => (on, by, "tells late"),
                Fault::Coalescing { on, within } => (on, within, "leaves out what comes in between"),
                _ => continue,
            };
            if on.matches(self.client.caller, &self.asked) && live.strikes(index, &injection.when) {
                by += adds.0;
                coalesces |= matches!(injection.fault, Fault::Coalescing { .. });
                let (place, object) = (&*self.client.name, &self.asked.to_string());
                let text = &format!("{} of the {} {text}: {adds}", self.asked, self.client.caller);
                live.say_once(index, &Bite { place, cluster: self.client.cluster(), object, text });
            }
        }
        (by, coalesces)
    }
}

/// The frames of a watch, spoiled.
pub(super) fn spoil<B>(body: B, spoiled: Spoiled) -> Body
where
    B: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    // What breaks on the way is what the end of a connection looks like.
    let frames = body.into_data_stream().map(Result::ok).take_while(|frame| std::future::ready(frame.is_some()));
    let frames = frames.filter_map(std::future::ready).boxed();
    let stream = Stream { frames: Some(frames), spoiled, waiting: VecDeque::new(), silent: false };
    Body::frames(stream::unfold(stream, |mut stream| async { stream.next().await.map(|frame| (frame, stream)) }))
}

struct Stream {
    frames: Option<BoxStream<'static, Bytes>>,
    spoiled: Spoiled,
    /// What is told later, in order.
    waiting: VecDeque<Waiting>,
    silent: bool,
}

struct Waiting {
    due: Instant,
    frame: Bytes,
    /// What it says, where another may take its place.
    event: Option<Event>,
}

/// What matters of an event.
struct Event {
    type_: String,
    object: String,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    type_: std::borrow::Cow<'a, str>,
    object: Named,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
}

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let now = Instant::now();
            if let Some((_, how)) = self.spoiled.ends.filter(|(at, _)| *at <= now) {
                match how {
                    WatchEnd::Dropped => return None,
                    WatchEnd::Expired => {
                        self.spoiled.ends = Some((now, WatchEnd::Dropped));
                        return Some(Bytes::from_static(EXPIRED));
                    }
                    WatchEnd::Stalled => {
                        self.silent = true;
                        self.spoiled.ends = Some((now + STALL, WatchEnd::Dropped));
                    }
                }
            }
            if self.waiting.front().is_some_and(|waiting| waiting.due <= now) {
                return self.waiting.pop_front().map(|waiting| waiting.frame);
            }
            let ends = self.spoiled.ends.map(|(at, _)| at);
            let due = self.waiting.front().map(|waiting| waiting.due);
            let wakes = [ends, due].into_iter().flatten().min();
            let frame = match (&mut self.frames, wakes) {
                (Some(frames), Some(at)) => match tokio::time::timeout_at(at, frames.next()).await {
                    Ok(frame) => frame,
                    Err(_) => continue,
                },
                (Some(frames), None) => frames.next().await,
                (None, Some(at)) => {
                    tokio::time::sleep_until(at).await;
                    continue;
                }
                (None, None) => return None,
            };
            // What came while nobody asked may be later than the end.
            let is_over = ends.is_some_and(|at| at <= Instant::now());
            match frame {
                Some(frame) if !self.silent && !is_over => self.take(frame),
                Some(_) => {}
                None => self.frames = None,
            }
        }
    }

    /// Keeps an event until it is told.
    fn take(&mut self, frame: Bytes) {
        let (delay, coalesces) = self.spoiled.delay();
        let read = (coalesces || self.spoiled.no_bookmarks).then(|| serde_json::from_slice::<Line<'_>>(&frame).ok());
        let event = read.flatten().map(|line| Event {
            type_: line.type_.into_owned(),
            object: format!("{}/{}", line.object.metadata.namespace, line.object.metadata.name),
        });
        let is_bookmark = event.as_ref().is_some_and(|event| event.type_ == "BOOKMARK");
        // The one that ends the first list is part of the list.
        let ends_list = || frame.windows(22).any(|part| part == b"k8s.io/initial-events-");
        if is_bookmark && self.spoiled.no_bookmarks && !ends_list() {
            return;
        }
        let after = self.waiting.back().map(|waiting| waiting.due);
        let due = (Instant::now() + delay).max(after.unwrap_or_else(Instant::now));
        let waiting = Waiting { due, frame, event: event.filter(|_| coalesces && !is_bookmark) };
        let before = waiting.event.as_ref().and_then(|event| self.position(&event.object));
        let before = before.and_then(|position| self.waiting.remove(position));
        self.waiting.extend(merged(before, waiting));
    }

    fn position(&self, object: &str) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.event.as_ref().is_some_and(|event| event.object == object))
    }
}

/// What is left of two events of an object: the later one, as it looks to somebody who has not seen the first.
fn merged(before: Option<Waiting>, mut waiting: Waiting) -> Option<Waiting> {
    let both = (before.and_then(|before| before.event), waiting.event.as_mut());
    let (Some(before), Some(event)) = both else { return Some(waiting) };
    let looks = match (&*before.type_, &*event.type_) {
        ("ADDED", "DELETED") => return None,
        ("ADDED", _) => "ADDED",
        ("DELETED", "ADDED") => "MODIFIED",
        _ => return Some(waiting),
    };
    let (from, to) = (format!("{{\"type\":\"{}\"", event.type_), format!("{{\"type\":\"{looks}\""));
    if let Some(rest) = waiting.frame.strip_prefix(from.as_bytes()) {
        waiting.frame = [to.as_bytes(), rest].concat().into();
    }
    looks.clone_into(&mut event.type_);
    Some(waiting)
}
