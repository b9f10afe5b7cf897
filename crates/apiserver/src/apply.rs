//! Who owns which field: server-side apply, and the `metadata.managedFields` that every write keeps up to date.
//!
//! [`update`] is called for each write that is not an apply, after the object has its final form: what the write changed
//! now belongs to the writer, and to nobody else. [`apply`] merges a configuration into an object: what the configuration
//! has belongs to the applier (and to those who agree with it), and what it no longer has goes, unless others own it too.
//!
//! The inside follows the path of a request: `shape` reads a schema the way ownership sees it, `check` refuses what
//! cannot be merged, `owned` lists a configuration's fields, `merge` merges it, `prune` removes what it no longer has,
//! `compare` tells what changed. `set` and `element` are the arithmetic of fields, `managed` is the list of managers,
//! `conflict` the refusal, and `last_applied` the way from kubectl's older apply to this one.

mod check;
mod compare;
mod conflict;
mod element;
mod last_applied;
mod managed;
mod merge;
mod owned;
mod prune;
mod set;
mod shape;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::schema::Schema;

pub use self::conflict::{ApplyError, Conflict};
pub use self::managed::Operation;

use self::compare::{Before, Delta};
use self::element::equal;
use self::managed::{Entry, Managers, Writer, time_text};
use self::set::FieldSet;
use self::shape::Place;

/// The manager of fields that were there before anybody kept track.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// What is the same for all objects of a write: where it goes, and who it is from.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The schema of the kind in the version of the request.
    pub schema: &'a Schema,
    /// The kind: `Deployment`.
    pub kind: &'a str,
    /// The group and version of the request: `apps/v1`.
    pub api_version: &'a str,
    /// The field manager. The caller derives it from the user agent when the client names none.
    pub manager: &'a str,
    /// The subresource that is written, or empty.
    pub subresource: &'a str,
    /// The time of the write.
    pub now: Timestamp,
    /// The fields that a write to this endpoint cannot change, such as `["status"]` where it has an endpoint of its own.
    /// Nobody comes to own them this way.
    pub reset: &'a [&'a [&'a str]],
}

impl Request<'_> {
    /// The entry of a manager that writes by this request, and owns nothing yet.
    fn entry(&self, manager: &str, operation: Operation) -> Entry {
        Entry {
            manager: if manager.is_empty() { "unknown".to_owned() } else { manager.to_owned() },
            operation,
            api_version: self.api_version.to_owned(),
            subresource: self.subresource.to_owned(),
            time: None,
            fields: FieldSet::default(),
        }
    }

    /// What this request changed, of that which can have owners.
    fn compare(&self, before: Before<'_>, after: &Value) -> Result<Delta, String> {
        let mut delta = compare::objects(Place::root(self.schema), before, after)?;
        for set in [&mut delta.changed, &mut delta.removed].into_iter().filter(|set| !set.is_empty()) {
            self.drop_reset(set);
            set.subtract(&UNOWNED);
        }
        Ok(delta)
    }

    fn drop_reset(&self, set: &mut FieldSet) {
        if !self.reset.is_empty() {
            set.subtract_below(&FieldSet::of(self.reset));
        }
    }
}

/// The fields that the server decides about, or that say what the object is: nobody owns them.
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// Keeps track of a create (`before` is `None`), an update or a patch that is not an apply.
///
/// `after` is the object as it will be stored. Its `metadata.managedFields` is what the client sent there, which counts
/// unless it is absent or malformed: clients may edit it, and `[{}]` (for built-in kinds `[]`, too) makes the server forget
/// all owners.
/// A write that changes nothing leaves the managers as they are, times included.
pub fn update(req: &Request<'_>, before: Option<&Value>, after: &mut Value) {
    let sent = take_managed_fields(after);
    let source = Source::choose(req, before.and_then(managed_fields), sent);
    // An object that nobody is tracked on stays so until it is applied; only a new one starts to be tracked here.
    if source.is_empty() && before.is_some() {
        return;
    }
    let former = before.map_or_else(|| Before::creation(Place::root(req.schema)), Before::Present);
    // An object whose fields cannot be told apart has no owners.
    let Ok(delta) = req.compare(former, after) else { return };
    let mut managers = match source {
        Source::Stored(list) if delta.is_empty() => {
            put_managed_fields(after, Some(list).filter(|list| !list.is_empty()).map(Value::Array));
            return;
        }
        Source::Stored(list) => Managers::read(list, Writer::Server).unwrap_or_default(),
        Source::Edited(managers) => managers,
    };
    reconcile(req, &mut managers);
    take_from_all(&mut managers, &delta);
    record_update(req, req.manager, delta, &mut managers);
    managers.cap();
    put_managed_fields(after, managers.into_value());
}

/// The managers that a write starts from.
enum Source {
    /// Those that are stored with the object.
    Stored(Vec<Value>),
    /// Those that the client sent.
    Edited(Managers),
}

impl Source {
    fn choose(req: &Request<'_>, stored: Option<&[Value]>, sent: Option<Vec<Value>>) -> Self {
        // The metadata of a custom resource loses empty lists before anybody looks at them.
        let absent = |sent: &Vec<Value>| sent.is_empty() && !Place::root(req.schema).is_builtin();
        // Nobody edits managers through a subresource; most send there what they have read.
        if !req.subresource.is_empty() {
            let same = sent.filter(|sent| stored == Some(&sent[..]));
            return Self::Stored(same.unwrap_or_else(|| stored.unwrap_or_default().to_vec()));
        }
        if let Some(sent) = sent.filter(|sent| !absent(sent)) {
            if managed::is_reset(&sent) {
                return Self::Edited(Managers::default());
            }
            if stored == Some(&sent[..]) {
                return Self::Stored(sent);
            }
            if let Ok(managers) = Managers::read(sent, Writer::Client) {
                return Self::Edited(managers);
            }
        }
        Self::Stored(stored.unwrap_or_default().to_vec())
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Stored(list) => list.is_empty(),
            Self::Edited(managers) => managers.0.is_empty(),
        }
    }
}

/// Adapts what is stored to a schema that may have changed since.
fn reconcile(req: &Request<'_>, managers: &mut Managers) {
    for entry in &mut managers.0 {
        owned::reconcile(Place::root(req.schema), entry.fields.nodes_mut());
    }
}

/// Nobody owns what was changed or removed; a manager that is left with nothing goes.
fn take_from_all(managers: &mut Managers, delta: &Delta) {
    for entry in &mut managers.0 {
        entry.fields.subtract(&delta.changed);
        entry.fields.subtract(&delta.removed);
    }
    managers.0.retain(|entry| !entry.fields.is_empty());
}

/// The writer owns what was changed, besides what it owned before.
fn record_update(req: &Request<'_>, manager: &str, delta: Delta, managers: &mut Managers) {
    if delta.changed.is_empty() {
        return;
    }
    let mut entry = req.entry(manager, Operation::Update);
    entry.fields = managers.take(&entry).map(|entry| entry.fields).unwrap_or_default();
    entry.fields.union(delta.changed);
    entry.time = Some(time_text(req.now));
    managers.0.push(entry);
}

/// Applies a configuration to an object, or creates the object from it (`live` is `None`).
///
/// Fails when others own fields that the configuration changes, unless `force` takes them. The result is the merged object
/// before defaulting, with its managers; when nothing changed, it is the live object with the times it had.
pub fn apply(req: &Request<'_>, live: Option<&Value>, applied: Value, force: bool) -> Result<Value, ApplyError> {
    let place = Place::root(req.schema);
    let mut managers = accept(req, live, &applied)?;
    let kubectl = (req.manager == last_applied::MANAGER).then(|| last_applied::configuration(&applied));
    let mut own = req.entry(req.manager, Operation::Apply);
    own.fields = owned::fields(place, &applied);
    req.drop_reset(&mut own.fields);
    let last = managers.take(&own);

    let mut merged = live.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    take_managed_fields(&mut merged);
    merge::merge(place, &mut merged, applied)
        .map_err(|why| ApplyError::Invalid(format!("failed to merge config: {why}")))?;
    if let Some(last) = &last {
        merged = prune::prune(place, merged, &last.fields, &own.fields, &managers);
    }
    if let Some(live) = live.filter(|_| !managers.0.is_empty()) {
        let delta = req
            .compare(Before::Present(live), &merged)
            .map_err(|why| ApplyError::Invalid(format!("failed to compare objects: {why}")))?;
        if !force {
            refuse_conflicts(req, live, &managers, &delta)?;
        }
        take_from_all(&mut managers, &delta);
    }

    let changed = live.is_none_or(|live| !same_but_for_managers(live, &merged));
    own.time = if changed { Some(time_text(req.now)) } else { last.and_then(|last| last.time) };
    own.fields.subtract(&UNOWNED);
    if !own.fields.is_empty() {
        managers.0.push(own);
    }
    if let Some(configuration) = kubectl {
        last_applied::refresh(&mut merged, configuration);
    }
    put_managed_fields(&mut merged, managers.into_value());
    Ok(merged)
}

/// Checks that a configuration can be applied here, and reads the managers that it meets.
fn accept(req: &Request<'_>, live: Option<&Value>, applied: &Value) -> Result<Managers, ApplyError> {
    let text = |pointer: &str| applied.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    let slash = if api_version.contains('/') { "" } else { "/" };
    let typed = format!("{slash}{api_version}, Kind={kind}");
    if api_version != req.api_version || kind != req.kind {
        return Err(ApplyError::BadRequest(format!("invalid object type: {typed}")));
    }
    let stored = live.and_then(managed_fields).unwrap_or_default().to_vec();
    let mut managers = Managers::read(stored, Writer::Server)
        .map_err(|why| ApplyError::Invalid(format!("failed to decode managed fields: {why}")))?;
    if let Some(live) = live.filter(|_| managers.0.is_empty()) {
        let delta = req
            .compare(Before::creation(Place::root(req.schema)), live)
            .map_err(|why| ApplyError::Invalid(format!("failed to create manager for existing fields: {why}")))?;
        record_update(req, BEFORE_FIRST_APPLY, delta, &mut managers);
    }
    if managed_fields(applied).is_some() {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".into()));
    }
    check::check(Place::root(req.schema), applied).map_err(|misfits| {
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        ApplyError::Invalid(format!("failed to create typed patch object ({namespace}/{name}; {typed}): {misfits}"))
    })?;
    reconcile(req, &mut managers);
    Ok(managers)
}

/// Fails when others own what an apply changed.
fn refuse_conflicts(req: &Request<'_>, live: &Value, managers: &Managers, delta: &Delta) -> Result<(), ApplyError> {
    let mut owners: Vec<(&Entry, FieldSet)> = managers
        .0
        .iter()
        .map(|entry| (entry, entry.fields.intersection(&delta.changed)))
        .filter(|(_, taken)| !taken.is_empty())
        .collect();
    if owners.is_empty() {
        return Ok(());
    }
    // What kubectl's older apply put there, kubectl may change: that is how one moves from one to the other.
    let allowed = if req.manager == last_applied::MANAGER { last_applied::fields(req, live) } else { None };
    if let Some(allowed) = &allowed {
        for (_, taken) in &mut owners {
            taken.subtract(allowed);
        }
    }
    owners.sort_by_cached_key(|(entry, _)| entry.identity());
    let conflicts = owners.iter().flat_map(|(entry, taken)| {
        taken.paths().into_iter().map(|path| Conflict {
            manager: entry.manager.clone(),
            operation: entry.operation,
            api_version: entry.api_version.clone(),
            subresource: entry.subresource.clone(),
            path: path.iter().map(ToString::to_string).collect(),
        })
    });
    let conflicts: Vec<Conflict> = conflicts.collect();
    if conflicts.is_empty() { Ok(()) } else { Err(ApplyError::Conflicts(conflicts)) }
}

/// Gives the managers of `new` the times of `old` when the times are all that differs between the objects: a write that
/// turns out to change nothing (after defaulting, for one) is then no write at all.
pub fn keep_times(old: &Value, new: &mut Value) {
    let (Some(was), Some(is)) = (managed_fields(old), managed_fields(new)) else { return };
    let same_entries = was.len() == is.len() && was.iter().zip(is).all(|(was, is)| same_but_for(was, is, "time"));
    if same_entries && was != is && same_but_for_managers(old, new) {
        let was = Value::Array(was.to_vec());
        put_managed_fields(new, Some(was));
    }
}

fn same_but_for_managers(a: &Value, b: &Value) -> bool {
    same_but_for(a, b, "metadata")
        && match (a.get("metadata"), b.get("metadata")) {
            (Some(a), Some(b)) => same_but_for(a, b, "managedFields"),
            (a, b) => a == b,
        }
}

/// Whether two objects are equal when one field of both is ignored.
fn same_but_for(a: &Value, b: &Value, ignored: &str) -> bool {
    let (Value::Object(a), Value::Object(b)) = (a, b) else { return equal(a, b) };
    let mut left = a.iter().filter(|(key, _)| *key != ignored);
    let mut right = b.iter().filter(|(key, _)| *key != ignored);
    loop {
        match (left.next(), right.next()) {
            (None, None) => return true,
            (Some((k, a)), Some((l, b))) if k == l && equal(a, b) => {}
            _ => return false,
        }
    }
}

fn managed_fields(object: &Value) -> Option<&[Value]> {
    object.get("metadata")?.get("managedFields")?.as_array().map(Vec::as_slice)
}

fn take_managed_fields(object: &mut Value) -> Option<Vec<Value>> {
    match object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")? {
        Value::Array(list) => Some(list),
        _ => None,
    }
}

fn put_managed_fields(object: &mut Value, managers: Option<Value>) {
    let (Some(object), Some(managers)) = (object.as_object_mut(), managers) else { return };
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields".to_owned(), managers);
    }
}
