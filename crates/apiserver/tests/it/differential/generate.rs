//! Makes up request sequences, step by step: what a step asks for depends on what came back before.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::fields::{KINDS, Kind, WIDGET};
use crate::random::Random;

const NAMES: [&str; 3] = ["a", "b", "c"];
const MANAGERS: [&str; 3] = ["one", "two", "three"];
/// What is shown of an object.
const OBJECT: &str = "< 0 . .metadata.managedFields";

/// A sequence on its way.
pub struct Generator {
    random: Random,
    kind: Kind,
    /// The versions that each name has had, as variables.
    versions: Vec<(String, String)>,
    continuing: Option<(String, String)>,
    variables: usize,
    left: usize,
    watched: bool,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let kind = random.one(&KINDS);
        let left = 4 + random.below(12);
        Self { random, kind, versions: Vec::new(), continuing: None, variables: 0, left, watched: false }
    }

    /// What must be there before the first step.
    pub fn setup(&self) -> Option<&'static str> {
        (self.kind == Kind::Widget).then_some(WIDGET)
    }

    /// The next step, as a case writes it.
    pub fn next(&mut self) -> Option<String> {
        if self.left == 0 {
            return self.watch();
        }
        self.left -= 1;
        if self.versions.is_empty() || self.random.percent(12) {
            return Some(self.create());
        }
        Some(match self.random.below(100) {
            0..15 => self.update(),
            15..32 => self.apply(),
            32..44 => self.merge("MERGE"),
            44..58 => self.merge("STRATEGIC"),
            58..72 => self.json_patch(),
            72..84 => self.delete(),
            84..90 => self.get(),
            _ => self.list(),
        })
    }

    /// Takes what there is to know from an answer: the step that keeps it.
    pub fn learn(&mut self, answer: &Value) -> Option<String> {
        let (metadata, kind) = (&answer["metadata"], &answer["kind"]);
        if kind == "Status" {
            return None;
        }
        if metadata["continue"].as_str().is_some_and(|token| !token.is_empty()) {
            let variable = self.variable("C");
            if let Some((_, kept)) = &mut self.continuing {
                kept.clone_from(&variable);
            }
            return Some(format!("> LET {variable} = .metadata.continue"));
        }
        let name = metadata["name"].as_str()?.to_owned();
        metadata["resourceVersion"].as_str()?;
        let variable = self.variable("RV");
        self.versions.push((name, variable.clone()));
        Some(format!("> LET {variable} = .metadata.resourceVersion"))
    }

    fn variable(&mut self, stem: &str) -> String {
        self.variables += 1;
        format!("{stem}{}", self.variables)
    }

    /// An object's name: mostly one that exists.
    fn name(&mut self) -> String {
        if self.versions.is_empty() || self.random.percent(10) {
            return self.random.one(&NAMES).to_owned();
        }
        let at = self.random.below(self.versions.len());
        match self.versions[at].0.as_str() {
            name if name.len() == 1 => name.to_owned(),
            // A generated name is another one on each server.
            _ => self.random.one(&NAMES).to_owned(),
        }
    }

    /// A version that this name has: the latest, or an older one.
    fn version(&mut self, name: &str) -> Option<String> {
        let of_name: Vec<&String> = self.versions.iter().filter(|(n, _)| n == name).map(|(_, v)| v).collect();
        let latest = of_name.last()?;
        let one = if self.random.percent(70) { latest } else { of_name[self.random.below(of_name.len())] };
        Some(format!("${one}"))
    }

    fn target(&mut self, name: &str) -> String {
        let status = self.kind.has_status() && self.random.percent(20);
        format!("{}/{name}{}", self.kind.collection(), if status { "/status" } else { "" })
    }

    fn write_options(&mut self) -> Vec<String> {
        let mut options = Vec::new();
        if self.random.percent(8) {
            options.push("dryRun=All".to_owned());
        }
        if self.random.percent(30) {
            options.push(format!("fieldValidation={}", self.random.one(&["Strict", "Warn", "Ignore"])));
        }
        if self.random.percent(40) {
            options.push(format!("fieldManager={}", self.random.one(&MANAGERS)));
        }
        options
    }

    fn whole(&mut self, name: &str, base: bool) -> Value {
        let mut object = self.kind.object(&mut self.random, base);
        object["apiVersion"] = self.kind.api_version().into();
        object["kind"] = self.kind.name().into();
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        object["metadata"]["name"] = name.into();
        object
    }

    fn create(&mut self) -> String {
        let name = self.random.one(&NAMES);
        let mut object = self.whole(name, true);
        if self.random.percent(8) {
            object["metadata"].as_object_mut().unwrap().remove("name");
            object["metadata"]["generateName"] = "web-".into();
        }
        let options = self.write_options();
        step("POST", &self.kind.collection(), &options, &object, OBJECT)
    }

    fn update(&mut self) -> String {
        let name = self.name();
        let mut object = self.whole(&name, true);
        if self.random.percent(60)
            && let Some(version) = self.version(&name)
        {
            object["metadata"]["resourceVersion"] = version.into();
        }
        let (target, options) = (self.target(&name), self.write_options());
        step("PUT", &target, &options, &object, OBJECT)
    }

    fn apply(&mut self) -> String {
        let name = self.name();
        // A service without its base would be given an address.
        let base = self.kind == Kind::Service || self.random.percent(50);
        let mut object = self.whole(&name, base);
        if self.random.percent(8)
            && let Some(version) = self.version(&name)
        {
            object["metadata"]["resourceVersion"] = version.into();
        }
        let mut options = self.write_options();
        options.retain(|option| !option.starts_with("fieldManager"));
        options.push(format!("fieldManager={}", self.random.one(&MANAGERS)));
        if self.random.percent(35) {
            options.push("force=true".to_owned());
        }
        let target = self.target(&name);
        step("APPLY", &target, &options, &object, OBJECT)
    }

    fn merge(&mut self, method: &str) -> String {
        let name = self.name();
        let mut patch = self.kind.object(&mut self.random, false);
        if self.random.percent(12)
            && let Some(version) = self.version(&name)
            && patch["metadata"].is_object()
        {
            patch["metadata"]["resourceVersion"] = version.into();
        }
        if self.random.percent(6) {
            patch["$patch"] = self.random.one(&["replace", "merge", "delete", "x"]).into();
        }
        let (target, options) = (self.target(&name), self.write_options());
        step(method, &target, &options, &patch, OBJECT)
    }

    fn json_patch(&mut self) -> String {
        let name = self.name();
        let mut operations = Vec::new();
        for _ in 0..=self.random.below(2) {
            let (mut path, value) = self.kind.pointer(&mut self.random);
            if value.is_array() && self.random.percent(40) {
                path.push_str(self.random.one(&["/0", "/-", "/7"]));
            }
            let value = if path.ends_with(['0', '-']) { value[0].clone() } else { value };
            operations.push(match self.random.below(10) {
                0..4 => json!({"op": "add", "path": path, "value": value}),
                4..6 => json!({"op": "replace", "path": path, "value": value}),
                6 | 7 => json!({"op": "remove", "path": path}),
                8 => json!({"op": "test", "path": path, "value": value}),
                _ => {
                    let from = self.kind.pointer(&mut self.random).0;
                    json!({"op": self.random.one(&["copy", "move"]), "from": from, "path": path})
                }
            });
        }
        let (target, options) = (self.target(&name), self.write_options());
        step("JSONPATCH", &target, &options, &Value::Array(operations), OBJECT)
    }

    fn delete(&mut self) -> String {
        let name = self.name();
        let mut body = json!({});
        if self.random.percent(25)
            && let Some(version) = self.version(&name)
        {
            body["preconditions"] = json!({"resourceVersion": version});
        } else if self.random.percent(8) {
            body["preconditions"] = json!({"uid": "x"});
        }
        if self.random.percent(30) {
            body["propagationPolicy"] = self.random.one(&["Background", "Foreground", "Orphan", "Sideways"]).into();
        }
        if self.random.percent(15) {
            body["gracePeriodSeconds"] = self.random.one(&[0, 5, 30, -1]).into();
        }
        if self.random.percent(8) {
            body["dryRun"] = json!(["All"]);
        }
        if self.random.percent(12) {
            let selector = self.random.one(&["?labelSelector=l%3Da", "", "?labelSelector=l%21%3Da"]);
            return step("DELETE", &format!("{}{selector}", self.kind.collection()), &[], &body, "< 0 .");
        }
        let target = format!("{}/{name}", self.kind.collection());
        step("DELETE", &target, &[], &body, OBJECT)
    }

    fn get(&mut self) -> String {
        let name = self.name();
        let target = self.target(&name);
        let table =
            if self.random.percent(25) { "\n> Accept: application/json;as=Table;v=v1;g=meta.k8s.io" } else { "" };
        format!("> GET {target}{table}\n{OBJECT}")
    }

    fn list(&mut self) -> String {
        if let Some((query, variable)) = self.continuing.take().filter(|(_, variable)| !variable.is_empty()) {
            let target = format!("{}?{query}&continue=${variable}", self.kind.collection());
            self.continuing = Some((query, String::new()));
            return format!("> GET {target}\n< 0 .");
        }
        let selectors =
            ["", "", "l=a", "l!=a", "l", "!l", "l in (a,b)", "l notin (a),m", "l=a,m=b", "l>1", "l in ()", "-"];
        let fields = [
            "",
            "",
            "",
            "metadata.name=a",
            "metadata.name!=a",
            "metadata.namespace=$NS",
            "spec.x=1",
            "status.phase=Running",
        ];
        let mut query = Vec::new();
        let escape = |text: &str| text.replace('=', "%3D").replace(' ', "%20").replace('!', "%21").replace('>', "%3E");
        match self.random.one(&selectors) {
            "" => {}
            selector => query.push(format!("labelSelector={}", escape(selector))),
        }
        match self.random.one(&fields) {
            "" => {}
            selector => query.push(format!("fieldSelector={}", escape(selector))),
        }
        if self.random.percent(40) {
            query.push(format!("limit={}", self.random.one(&["1", "1", "2", "0", "-1"])));
        }
        let query = query.join("&");
        self.continuing = Some((query.clone(), String::new()));
        let mut target = format!("{}?{query}", self.kind.collection());
        if self.random.percent(20) {
            let at = self.random.below(self.versions.len());
            write!(target, "&resourceVersionMatch=Exact&resourceVersion=${}", self.versions[at].1).unwrap();
            self.continuing = None;
        }
        format!("> GET {target}\n< 0 .")
    }

    /// A sequence ends with what a watch from somewhere in it has seen.
    fn watch(&mut self) -> Option<String> {
        if self.watched {
            return None;
        }
        self.watched = true;
        let version = if self.versions.is_empty() || self.random.percent(20) {
            String::new()
        } else {
            let at = self.random.below(self.versions.len());
            format!("&resourceVersion=${}", self.versions[at].1)
        };
        let selector = self.random.one(&[
            "",
            "",
            "&labelSelector=l%3Da",
            "&labelSelector=%21l",
            "&fieldSelector=metadata.name%3Da",
        ]);
        let target = format!("{}?watch=1&timeoutSeconds=1{version}{selector}", self.kind.collection());
        Some(format!("> WATCH w {target}\n< 0\n\n> FRAMES w end\n< ."))
    }
}

fn step(method: &str, target: &str, options: &[String], body: &Value, show: &str) -> String {
    let query = if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) };
    let mut out = format!("> {method} {target}{query}\n");
    match body {
        Value::Array(items) => items.iter().for_each(|item| writeln!(out, "- {item}").unwrap()),
        Value::Object(map) if map.is_empty() => {}
        Value::Object(map) => map.iter().for_each(|(key, value)| writeln!(out, "{}: {value}", json!(key)).unwrap()),
        other => writeln!(out, "{other}").unwrap(),
    }
    out + show
}
