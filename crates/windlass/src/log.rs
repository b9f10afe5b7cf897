//! What `windlass controller` says: a JSON object on a line of standard error for each thing. What was found out on the way, the
//! fields of the spans around it, is in the same object: one line tells all of one look at a cluster.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::client::wall_now;
use crate::output;

/// What is ours; of what the libraries say, only warnings are of interest.
const OURS: &str = "windlass";

/// From now on, what is at least as important as this is written to standard error. Once in a process: a second time changes
/// nothing.
pub fn to_standard_error(level: Level) {
    let subscriber = tracing_subscriber::registry().with(Lines { level });
    // It is refused where somebody listens already, who then goes on to.
    drop(tracing::subscriber::set_global_default(subscriber));
}

struct Lines {
    level: Level,
}

/// The fields of a span, or of an event.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        let ours = metadata.target().starts_with(OURS);
        (metadata.is_span() && ours) || *metadata.level() <= if ours { self.level } else { Level::WARN }
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut line = Fields::default();
        line.0.insert("time".to_owned(), wall_now().to_string().into());
        line.0.insert("level".to_owned(), metadata.level().as_str().to_lowercase().into());
        line.0.insert("target".to_owned(), metadata.target().into());
        for span in context.event_scope(event).into_iter().flat_map(tracing_subscriber::registry::Scope::from_root) {
            if let Some(fields) = span.extensions().get::<Fields>() {
                line.0.extend(fields.0.clone());
            }
        }
        event.record(&mut line);
        output::say(&Value::Object(line.0).to_string());
    }
}
