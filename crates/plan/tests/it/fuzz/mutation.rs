//! Changes to something well-formed: to its structure, and to its text.

use std::ops::Range;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

/// A change to the structure of a document.
#[derive(Debug, Clone)]
pub struct Mutation {
    /// Which value is changed.
    at: Index,
    change: Change,
}

#[derive(Debug, Clone)]
enum Change {
    /// Something else is in its place.
    Replace(Value),
    /// It is gone.
    Remove,
    /// It is there once more, beside itself.
    Repeat,
    /// Its place has another name.
    Rename(String),
    /// It is where another value was.
    Move(Index),
    /// It is deep within lists.
    Bury(usize),
    /// There is something beside it that nobody asked for.
    Add(String, Value),
}

/// Names that mean something to somebody.
const NAMES: [&str; 16] = [
    "",
    "spec",
    "metadata",
    "name",
    "kind",
    "apiVersion",
    "template",
    "labels",
    "version",
    "refName",
    "valuesFrom",
    "clusterName",
    "infrastructureRef",
    "a.b/c",
    "[",
    "\u{202e}",
];

/// Texts that somebody might trip over.
const TEXTS: [&str; 28] = [
    "",
    " ",
    "\n",
    "\0",
    "null",
    "~",
    "true",
    "v1",
    "v1.16.7",
    "v1.16.7+vmware.1-guest.1",
    "v18446744073709551616.0.0",
    "1-2-3",
    "-1",
    "../../etc/passwd",
    "{{ .Values }}",
    "${HOME}",
    "&a *a",
    "---\n---\n",
    "<<: *a",
    "!!binary AA==",
    "a\u{301}",
    "\u{feff}spec",
    "日本語",
    "\u{1f600}",
    "a[b].c",
    "inline",
    "DaemonSet",
    "apps/v1beta1",
];

pub fn nasty_text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(&TEXTS[..]).prop_map(str::to_owned),
        ".{0,40}",
        "[a-z0-9.+_-]{0,70}",
        "(a|[|]|\\.|/|-){0,12}",
        (1..5_000usize).prop_map(|length| "x".repeat(length)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([[[{}]]])),
        nasty_text().prop_map(Value::from),
        nasty_text().prop_map(|text| json!({ text: "a" })),
    ]
}

pub fn mutations(count: Range<usize>) -> impl Strategy<Value = Vec<Mutation>> {
    let name = prop_oneof![prop::sample::select(&NAMES[..]).prop_map(str::to_owned), nasty_text()];
    let change = prop_oneof![
        4 => value().prop_map(Change::Replace),
        2 => Just(Change::Remove),
        1 => Just(Change::Repeat),
        1 => name.clone().prop_map(Change::Rename),
        2 => any::<Index>().prop_map(Change::Move),
        1 => (1..200usize).prop_map(Change::Bury),
        1 => (name, value()).prop_map(|(name, value)| Change::Add(name, value)),
    ];
    prop::collection::vec((any::<Index>(), change).prop_map(|(at, change)| Mutation { at, change }), count)
}

impl Mutation {
    pub fn all(mutations: &[Self], document: &mut Value) {
        for mutation in mutations {
            mutation.apply(document);
        }
    }

    fn apply(&self, document: &mut Value) {
        let pointers = pointers(document);
        let pointer = self.at.get(&pointers).as_str();
        let moved = match &self.change {
            Change::Move(from) => document.pointer(from.get(&pointers).as_str()).cloned(),
            _ => None,
        };
        let Some(place) = document.pointer_mut(pointer) else { return };
        match &self.change {
            Change::Replace(value) => *place = value.clone(),
            Change::Move(_) => *place = moved.unwrap_or_default(),
            Change::Bury(depth) => {
                for _ in 0..*depth {
                    *place = Value::Array(vec![place.take()]);
                }
            }
            Change::Add(name, value) => match place {
                Value::Object(fields) => drop(fields.insert(name.clone(), value.clone())),
                Value::Array(elements) => elements.push(value.clone()),
                other => *other = value.clone(),
            },
            Change::Remove | Change::Repeat | Change::Rename(_) => self.apply_in_parent(document, pointer),
        }
    }

    fn apply_in_parent(&self, document: &mut Value, pointer: &str) {
        let Some((parent, key)) = pointer.rsplit_once('/') else { return };
        let key = key.replace("~1", "/").replace("~0", "~");
        match (document.pointer_mut(parent), &self.change) {
            (Some(Value::Object(fields)), Change::Remove) => drop(fields.remove(&key)),
            (Some(Value::Object(fields)), Change::Rename(name)) => {
                let value = fields.remove(&key).unwrap_or_default();
                fields.insert(name.clone(), value);
            }
            (Some(Value::Array(elements)), Change::Remove) => drop(elements.remove(key.parse().unwrap())),
            (Some(Value::Array(elements)), Change::Repeat) => {
                let again = elements[key.parse::<usize>().unwrap()].clone();
                elements.push(again);
            }
            _ => {}
        }
    }
}

/// The places of all values in a document, itself included.
fn pointers(document: &Value) -> Vec<String> {
    fn visit(value: &Value, pointer: &str, pointers: &mut Vec<String>) {
        pointers.push(pointer.to_owned());
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, field)| {
                let key = key.replace('~', "~0").replace('/', "~1");
                visit(field, &format!("{pointer}/{key}"), pointers);
            }),
            Value::Array(elements) => elements
                .iter()
                .enumerate()
                .for_each(|(position, element)| visit(element, &format!("{pointer}/{position}"), pointers)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut pointers = Vec::new();
    visit(document, "", &mut pointers);
    pointers
}

/// Changes one of the texts in a document.
pub fn change_text(document: &mut Value, index: Index, change: &dyn Fn(&str) -> String) {
    let texts = pointers(document);
    let texts: Vec<&String> =
        texts.iter().filter(|pointer| document.pointer(pointer).is_some_and(Value::is_string)).collect();
    let place = document.pointer_mut(index.get(&texts).as_str()).unwrap();
    *place = change(place.as_str().unwrap_or_default()).into();
}

/// A change to a text.
#[derive(Debug, Clone)]
pub enum Scratch {
    /// Something is put in.
    Insert(Index, String),
    /// A stretch is gone.
    Cut(Index, usize),
    /// A stretch is there again.
    Repeat(Index, usize, usize),
}

pub fn scratches() -> impl Strategy<Value = Vec<Scratch>> {
    let text = prop_oneof![
        prop::sample::select(&TEXTS[..]).prop_map(str::to_owned),
        "[\\[\\]{}:,&*!|>'\"%@`#\\\\ \t\n-]{1,3}",
        ".{1,3}",
    ];
    let scratch = prop_oneof![
        (any::<Index>(), text).prop_map(|(at, text)| Scratch::Insert(at, text)),
        (any::<Index>(), 1..20usize).prop_map(|(at, length)| Scratch::Cut(at, length)),
        (any::<Index>(), 1..30usize, 1..4usize).prop_map(|(at, length, times)| Scratch::Repeat(at, length, times)),
    ];
    prop::collection::vec(scratch, 1..4)
}

impl Scratch {
    pub fn all(scratches: &[Self], text: &str) -> String {
        scratches.iter().fold(text.to_owned(), |text, scratch| scratch.apply(&text))
    }

    fn apply(&self, text: &str) -> String {
        let characters: Vec<char> = text.chars().collect();
        let split = |at: &Index| characters.split_at(at.index(characters.len() + 1));
        let written = |characters: &[char]| characters.iter().collect::<String>();
        match self {
            Self::Insert(at, inserted) => {
                let (before, after) = split(at);
                format!("{}{inserted}{}", written(before), written(after))
            }
            Self::Cut(at, length) => {
                let (before, after) = split(at);
                format!("{}{}", written(before), written(after.get(*length..).unwrap_or_default()))
            }
            Self::Repeat(at, length, times) => {
                let (before, after) = split(at);
                let again = written(after.get(..*length).unwrap_or(after)).repeat(*times);
                format!("{}{again}{}", written(before), written(after))
            }
        }
    }
}
