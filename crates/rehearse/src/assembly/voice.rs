//! What the upgrader says, into the log of its pod: on a cluster its standard output is that log.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber, dispatcher};
use windlass_sim::log::Log;

/// Where the upgrader's own words come from; the libraries below it have nothing to say to people.
const UPGRADER: &str = "windlass_controller::upgrader";

/// Hears what the upgrader says, and passes everything on to whoever would have heard it otherwise.
pub(super) struct Voice {
    log: Log,
    next: Dispatch,
}

impl Voice {
    /// Between whoever listens now and a log.
    pub(super) fn new(log: Log) -> Self {
        Self { log, next: dispatcher::get_default(Clone::clone) }
    }

    fn is_said(metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::INFO && metadata.target().starts_with(UPGRADER)
    }
}

impl Subscriber for Voice {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        Self::is_said(metadata) || self.next.enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // Whoever listens besides has said itself how much it wants to hear.
        Some(LevelFilter::INFO)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.next.new_span(span)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.next.record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.next.record_follows_from(span, follows);
    }

    fn event(&self, event: &Event<'_>) {
        if Self::is_said(event.metadata()) {
            let mut said = Said::default();
            event.record(&mut said);
            self.log.write(&format!("{}{}", said.message, said.fields));
        }
        if self.next.enabled(event.metadata()) {
            self.next.event(event);
        }
    }

    fn enter(&self, span: &Id) {
        self.next.enter(span);
    }

    fn exit(&self, span: &Id) {
        self.next.exit(span);
    }
}

/// The words of an event: its message, and its fields after it.
#[derive(Default)]
struct Said {
    message: String,
    fields: String,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.fields = format!("{} {}={value:?}", self.fields, field.name());
        }
    }
}
