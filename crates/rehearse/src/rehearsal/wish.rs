//! What is asked of a cluster, in a form that a command can say: `--to v1.16.7`, `--set topology.workers.count=5`, `--delete`.
//!
//! **Invariant**: what [`Wish::words`] prints is read by the command as the same wish.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_api::version::KubernetesVersion;

/// What is asked of a cluster that is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Wish {
    /// Another release.
    Release {
        /// A version in full, or the beginning of one.
        to: String,
        /// The release, in full, that this one is only a hop to: workers that may wait for it do.
        on_the_way_to: Option<KubernetesVersion>,
    },
    /// Other fields: a merge patch.
    Patch(Value),
    /// That it goes.
    Delete,
    /// Nothing: only what the scenario holds in store happens to it.
    Nothing,
}

impl Wish {
    /// Another release.
    pub fn release(to: &str) -> Self {
        Self::Release { to: to.to_owned(), on_the_way_to: None }
    }

    /// Other fields, and perhaps another release with them, in one write.
    pub fn fields(to: Option<&str>, settings: &[Setting]) -> Self {
        if settings.is_empty() {
            return to.map_or(Self::Nothing, Self::release);
        }
        let mut spec = Map::new();
        if let Some(to) = to {
            spec.insert("distribution".to_owned(), distribution(to));
        }
        for Setting { path, value } in settings {
            put(&mut spec, path, value);
        }
        Self::Patch(json!({ "spec": spec }))
    }

    /// The release that is asked for, as it was asked for.
    pub fn to(&self) -> Option<&str> {
        match self {
            Self::Release { to, .. } => Some(to),
            Self::Patch(patch) => patch["spec"]["distribution"]["version"].as_str(),
            Self::Delete | Self::Nothing => None,
        }
    }

    /// What a command is told so that it asks the same. A hop is asked for with the way that it is part of.
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Release { to, on_the_way_to } => {
                let to = on_the_way_to.as_ref().map_or(to.as_str(), KubernetesVersion::as_str);
                vec![format!("--to {to}")]
            }
            Self::Patch(_) => {
                let to = self.to().map(|to| format!("--to {to}"));
                let settings = self.settings();
                to.into_iter().chain(settings.iter().map(|setting| format!("--set {}", setting.word()))).collect()
            }
            Self::Delete => vec!["--delete".to_owned()],
            Self::Nothing => Vec::new(),
        }
    }

    /// The fields that are asked for besides the release.
    fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        if let Self::Patch(patch) = self {
            for (field, value) in patch["spec"].as_object().into_iter().flatten() {
                if field != "distribution" {
                    leaves(&mut vec![field.clone()], value, &mut settings);
                }
            }
        }
        settings
    }
}

impl fmt::Display for Wish {
    /// As it follows the name of a cluster: `to v1.16.7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release { to, .. } => write!(f, "to {to}"),
            Self::Patch(_) => {
                let to = self.to().map(|to| format!("to {to}"));
                let settings = self.settings().into_iter().map(|setting| setting.to_string());
                let settings: Vec<String> = settings.collect();
                let settings = (!settings.is_empty()).then(|| format!("with {}", settings.join(", ")));
                f.write_str(&to.into_iter().chain(settings).collect::<Vec<_>>().join(" "))
            }
            Self::Delete => f.write_str("to its end"),
            Self::Nothing => f.write_str("as it is"),
        }
    }
}

/// What the notes on rolling updates tell people: the full version must go, or it would contradict the hint.
pub(super) fn distribution(to: &str) -> Value {
    json!({"fullVersion": null, "version": to})
}

fn put(fields: &mut Map<String, Value>, path: &[String], value: &Value) {
    match path {
        [] => {}
        [last] => drop(fields.insert(last.clone(), value.clone())),
        [first, rest @ ..] => {
            let within = fields.entry(first.clone()).or_insert_with(|| json!({}));
            if !within.is_object() {
                *within = json!({});
            }
            if let Some(within) = within.as_object_mut() {
                put(within, rest, value);
            }
        }
    }
}

/// The values at the ends of a tree, with the way to each. An empty object is one.
fn leaves(path: &mut Vec<String>, value: &Value, found: &mut Vec<Setting>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (field, value) in fields {
                path.push(field.clone());
                leaves(path, value, found);
                path.pop();
            }
        }
        value => found.push(Setting { path: path.clone(), value: value.clone() }),
    }
}

/// A field of a cluster's spec and the value that it is to have: `topology.workers.count=5`.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The way to it, from the spec on.
    path: Vec<String>,
    /// What it is to be. Null takes it away.
    value: Value,
}

/// A text that is no setting.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SettingError {
    /// There is no value.
    #[error("{0:?} has no value: write it as topology.workers.count=5")]
    NoValue(String),
    /// A release is asked for in another way.
    #[error("{0:?} names a release: ask for it with --to")]
    Release(String),
    /// It is not for users to set.
    #[error("{0:?} cannot be set: accepted are fields under topology and settings")]
    Elsewhere(String),
}

impl Setting {
    /// As one word of a shell.
    fn word(&self) -> String {
        let text = self.to_string();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
        if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
    }
}

impl FromStr for Setting {
    type Err = SettingError;

    /// The path may begin at the object, as documents write it: `.spec.topology.workers.count`. The value is JSON where it can
    /// be read as that, and a text where it cannot.
    fn from_str(text: &str) -> Result<Self, SettingError> {
        let (path, value) = text.split_once('=').ok_or_else(|| SettingError::NoValue(text.to_owned()))?;
        let within = path.strip_prefix('.').unwrap_or(path);
        let within = within.strip_prefix("spec.").unwrap_or(within);
        let fields: Vec<String> = within.split('.').map(str::to_owned).collect();
        match fields.first().map(String::as_str) {
            _ if fields.len() < 2 || fields.iter().any(String::is_empty) => {
                Err(SettingError::Elsewhere(path.to_owned()))
            }
            Some("topology" | "settings") => {
                let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
                Ok(Self { path: fields, value })
            }
            Some("distribution") => Err(SettingError::Release(path.to_owned())),
            _ => Err(SettingError::Elsewhere(path.to_owned())),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.path.join("."))?;
        match &self.value {
            // A text that reads as something else has its quotes.
            Value::String(text) if serde_json::from_str::<Value>(text).is_err() => f.write_str(text),
            value => write!(f, "{value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(text: &str) -> Setting {
        text.parse().unwrap()
    }

    #[test]
    fn settings_are_read_as_documents_write_them_and_written_so_that_they_are_read_as_the_same() {
        for (text, written) in [
            ("topology.workers.count=5", "topology.workers.count=5"),
            (".spec.topology.controlPlane.class=best-effort-large", "topology.controlPlane.class=best-effort-large"),
            ("spec.settings.network.serviceDomain=\"5\"", "settings.network.serviceDomain=\"5\""),
            (
                "settings.network.pods.cidrBlocks=[\"192.0.2.0/16\"]",
                "settings.network.pods.cidrBlocks=[\"192.0.2.0/16\"]",
            ),
            ("settings.storage=null", "settings.storage=null"),
        ] {
            assert_eq!(setting(text).to_string(), written);
            assert_eq!(setting(written), setting(text));
        }
        assert_eq!(setting("topology.workers.count=5").value, json!(5));
        assert_eq!(setting("topology.workers.class=5x").value, json!("5x"));
    }

    #[test]
    fn what_cannot_be_set_is_refused_with_what_can() {
        let check = |text: &str, words: &str| {
            let why = text.parse::<Setting>().unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        };
        check("topology.workers.count", "write it as topology.workers.count=5");
        check("distribution.version=v1.16", "ask for it with --to");
        check("metadata.labels.a=b", "accepted are fields under topology and settings");
        check("topology=1", "accepted are fields under topology and settings");
        check("topology..count=1", "accepted are fields under topology and settings");
    }

    #[test]
    fn a_wish_is_told_to_a_command_in_words_that_ask_the_same() {
        let check = |wish: &Wish, words: &str| assert_eq!(wish.words().join(" "), words);
        check(&Wish::release("v1.16.7"), "--to v1.16.7");
        let on_the_way_to = Some("v1.17.4+vmware.1-guest.1".parse().unwrap());
        let hop = Wish::Release { to: "v1.16.8".into(), on_the_way_to };
        check(&hop, "--to v1.17.4+vmware.1-guest.1");
        let both = Wish::fields(
            Some("v1.16.7"),
            &[setting("topology.workers.count=5"), setting("topology.workers.class=best-effort-large")],
        );
        check(&both, "--to v1.16.7 --set topology.workers.class=best-effort-large --set topology.workers.count=5");
        assert_eq!(
            both,
            Wish::Patch(json!({"spec": {
                "distribution": {"fullVersion": null, "version": "v1.16.7"},
                "topology": {"workers": {"count": 5, "class": "best-effort-large"}},
            }}))
        );
        assert_eq!(
            both.to_string(),
            "to v1.16.7 with topology.workers.class=best-effort-large, topology.workers.count=5"
        );
        let list = Wish::fields(None, &[setting("settings.network.pods.cidrBlocks=[\"192.0.2.0/16\"]")]);
        check(&list, r#"--set 'settings.network.pods.cidrBlocks=["192.0.2.0/16"]'"#);
        check(&Wish::Delete, "--delete");
        check(&Wish::fields(None, &[]), "");
    }
}
