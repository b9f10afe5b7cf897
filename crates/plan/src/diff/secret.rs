//! What nobody is shown: a hash and a length stand for it, so that a change can be seen and a value cannot.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// How much of a hash is shown, in hexadecimal digits: enough to tell values apart.
const HASH_DIGITS: usize = 12;

/// Fields that are secret wherever they are, if they are texts: the tokens of kubeadm, its key for certificates, and the
/// passwords of users on machines.
const SECRET_FIELDS: [&str; 6] =
    ["token", "tlsBootstrapToken", "certificateKey", "passwd", "password", "client-key-data"];

/// Where clients keep a copy of all that they applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The lengths of the two parts of a bootstrap token, with a dot between them.
const TOKEN_PARTS: [usize; 2] = [6, 16];

/// An object as it may be shown: the data of Secrets, in whichever list they are, and the tokens in what kubeadm is told are
/// `sha256:<12 digits> (<n> bytes)`.
pub fn redacted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => redacted_object(fields, fields.get("kind").is_some_and(|kind| kind == "Secret")),
        Value::Array(elements) => Value::Array(elements.iter().map(redacted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// A text as it may be shown where only the path of its field is known: a hash of it, if the path sounds secret.
pub(crate) fn text_at(path: &str, text: &str) -> String {
    let path = path.to_ascii_lowercase();
    let sounds = |part: &str| {
        let is_field = SECRET_FIELDS.iter().any(|field| part.eq_ignore_ascii_case(field));
        is_field || ["password", "token", "secret", "privatekey"].iter().any(|word| part.contains(word))
    };
    if path.split(['.', '[', ']']).any(sounds) { hash(text.as_bytes()) } else { text.to_owned() }
}

fn redacted_object(fields: &Map<String, Value>, is_secret: bool) -> Value {
    let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default();
    let shown = fields.iter().map(|(name, value)| {
        let value = match name.as_str() {
            "data" if is_secret => hidden(value, decoded),
            "stringData" if is_secret => hidden(value, plain),
            "metadata" if is_secret => without_copy(value),
            // The elements of such a list do not say what they are.
            "items" if kind == "SecretList" => secrets(value),
            _ if SECRET_FIELDS.contains(&name.as_str()) && value.is_string() => hidden(value, plain),
            _ => redacted(value),
        };
        (name.clone(), value)
    });
    let mut shown = Value::Object(shown.collect());
    if kind.starts_with("Kubeadm") || fields.contains_key("kubeadmConfigSpec") {
        hide_tokens(&mut shown);
    }
    shown
}

fn secrets(items: &Value) -> Value {
    let secret = |item: &Value| item.as_object().map_or_else(|| hidden(item, plain), |it| redacted_object(it, true));
    items.as_array().map_or_else(|| hidden(items, plain), |items| items.iter().map(secret).collect())
}

/// Hides every value in a field, however deep it is.
fn hidden(value: &Value, bytes: fn(&str) -> Vec<u8>) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), hidden(value, bytes))).collect(),
        Value::Array(elements) => Value::Array(elements.iter().map(|value| hidden(value, bytes)).collect()),
        Value::String(text) => hash(&bytes(text)).into(),
        Value::Bool(_) | Value::Number(_) => hash(value.to_string().as_bytes()).into(),
    }
}

fn plain(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// What the data of a Secret stands for. What is no base64 is hidden as it is.
fn decoded(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_else(|_| plain(text))
}

/// The metadata of a Secret without the copy of it that `kubectl apply` leaves there.
fn without_copy(metadata: &Value) -> Value {
    let mut metadata = redacted(metadata);
    if let Some(copy) = metadata.pointer_mut("/annotations").and_then(|all| all.get_mut(LAST_APPLIED)) {
        *copy = hidden(copy, plain);
    }
    metadata
}

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let nibbles = digest.iter().flat_map(|byte| [byte >> 4, byte & 0xf]).take(HASH_DIGITS);
    let digits: String = nibbles.filter_map(|nibble| char::from_digit(nibble.into(), 16)).collect();
    format!("sha256:{digits} ({} bytes)", bytes.len())
}

/// Hides what looks like a bootstrap token in any text: also in files and commands that a machine is given.
fn hide_tokens(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_tokens(text),
        Value::Array(elements) => elements.iter_mut().for_each(hide_tokens),
        Value::Object(fields) => fields.values_mut().for_each(hide_tokens),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn without_tokens(text: &str) -> String {
    let is_of_token = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.';
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_of_token) {
        let (before, word) = rest.split_at(start);
        let end = word.find(|c| !is_of_token(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        shown.push_str(before);
        // A full stop at the end of a sentence is no part of it.
        let trimmed = word.trim_end_matches('.');
        if is_token(trimmed) {
            shown.push_str(&hash(trimmed.as_bytes()));
            shown.push_str(word.get(trimmed.len()..).unwrap_or_default());
        } else {
            shown.push_str(word);
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

fn is_token(word: &str) -> bool {
    word.split_once('.').is_some_and(|(id, secret)| [id.len(), secret.len()] == TOKEN_PARTS && !secret.contains('.'))
}
