//! Runs a case: sends its requests, reads its watches, and says what was to be seen at each step.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use super::mask::Mask;
use super::script::{Action, Case, Expect, Relation, Request, Until};
use super::transport::{Error, Transport};
use super::{path, show};

/// How long a step waits for what must come; on a paused clock this takes no time. The slowest are a bookmark on a quiet watch (once a
/// minute) and a real garbage collector (it looks for new kinds every 30 seconds).
const DEADLINE: Duration = Duration::from_secs(150);
const POLL: Duration = Duration::from_millis(40);

/// What was seen at a step.
pub struct Seen {
    pub step: usize,
    pub code: Option<u16>,
    pub text: String,
}

/// Runs a case; `number` keeps its namespace and API group apart from those of other cases.
pub async fn case(case: &Case, number: usize, transport: &dyn Transport) -> Result<Vec<Seen>, String> {
    steps(case, Runner::new(transport, number)).await
}

/// Runs all steps of a case.
pub async fn steps(case: &Case, mut runner: Runner<'_>) -> Result<Vec<Seen>, String> {
    if case.namespaced {
        runner.make_namespace().await?;
    }
    let mut seen = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        let outcome = runner.step(&step.action, step.expect.as_ref()).await;
        let outcome = outcome.map_err(|why| format!("line {}: {why}", step.line + 1))?;
        seen.extend(outcome.map(|(code, text)| Seen { step: index, code, text }));
    }
    Ok(seen)
}

/// One case on its way.
pub struct Runner<'a> {
    transport: &'a dyn Transport,
    variables: BTreeMap<String, String>,
    mask: Mask,
    watches: BTreeMap<String, Frames>,
    /// The latest answer, as it came.
    pub last: Value,
    /// Whether other cases have the same API group, and one of them may have defined its kinds already.
    shared_group: bool,
}

struct Got {
    code: u16,
    headers: http::HeaderMap,
    body: Value,
}

impl<'a> Runner<'a> {
    /// A case that has a namespace and an API group of its own.
    pub fn new(transport: &'a dyn Transport, number: usize) -> Self {
        Self::with_group(transport, number, &format!("g{number:04}.example.com"), false)
    }

    /// A case that has a namespace of its own and shares an API group with others.
    pub fn sharing_group(transport: &'a dyn Transport, number: usize, group: &str) -> Self {
        Self::with_group(transport, number, group, true)
    }

    fn with_group(transport: &'a dyn Transport, number: usize, group: &str, shared_group: bool) -> Self {
        let mut runner = Self {
            transport,
            variables: BTreeMap::new(),
            mask: Mask::default(),
            watches: BTreeMap::new(),
            last: Value::Null,
            shared_group,
        };
        let hooks = transport.hooks().map(|hooks| (hooks.base(number), hooks.authority()));
        let (hook, authority) = hooks.unwrap_or_default();
        let variables =
            [("NS", format!("case-{number:04}")), ("GROUP", group.to_owned()), ("HOOK", hook), ("CA", authority)];
        for (name, value) in variables.into_iter().filter(|(_, value)| !value.is_empty()) {
            runner.mask.literal(&value, &format!("${name}"));
            runner.variables.insert(name.to_owned(), value);
        }
        runner
    }

    /// Creates the case's namespace.
    pub async fn make_namespace(&mut self) -> Result<(), String> {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.variables["NS"]}});
        let got = self.fetch(&post("/api/v1/namespaces", &body)).await?;
        if got.code == 201 { Ok(()) } else { Err(format!("the case's namespace was refused: {}", got.body)) }
    }

    /// Does a step; what was to be seen, if there is something to see.
    pub async fn step(
        &mut self,
        action: &Action,
        expect: Option<&Expect>,
    ) -> Result<Option<(Option<u16>, String)>, String> {
        match action {
            Action::Request(request) => {
                let got = self.repeat(request).await?;
                let code = got.code;
                Ok(Some((Some(code), self.show(got, expect)?)))
            }
            Action::Watch { name, request } => {
                let (head, body) = self.send(request).await?.into_parts();
                if head.status == 200 {
                    self.watches.insert(name.clone(), Frames { body: Some(body), buffer: BytesMut::new() });
                    return Ok(Some((Some(200), String::new())));
                }
                let body = parse(&collect(body).await?);
                let got = Got { code: head.status.as_u16(), headers: head.headers, body };
                Ok(Some((Some(head.status.as_u16()), self.show(got, expect)?)))
            }
            Action::Frames { name, count } => Ok(Some((None, self.frames(name, *count, expect).await?))),
            Action::Let { name, path } => {
                let value =
                    path::get(&self.last, path)?.ok_or_else(|| format!("nothing at {path} in {}", self.last))?;
                self.variables.insert(name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
                Ok(None)
            }
            Action::Check { left, relation, right } => self.check(left, *relation, right).map(|()| None),
            Action::Hook { name, body } => {
                let hooks = self.transport.hooks().ok_or("no webhooks on this way")?;
                let said = yaml(&self.filled(body)?)?;
                hooks.put(&self.filled(&format!("$HOOK/{name}"))?, said);
                Ok(None)
            }
            Action::Asked { name } => {
                let hooks = self.transport.hooks().ok_or("no webhooks on this way")?;
                let asked = hooks.asked(&self.filled(&format!("$HOOK/{name}"))?);
                let got = Got { code: 0, headers: http::HeaderMap::new(), body: asked };
                Ok(Some((None, self.show(got, expect)?)))
            }
            Action::Crd { kind, scope, body } => self.define(kind, scope, body).await.map(|()| None),
        }
    }

    fn check(&self, left: &str, relation: Relation, right: &str) -> Result<(), String> {
        let number = |text: &str| -> Result<u64, String> {
            let text = self.filled(text)?;
            text.parse().map_err(|_| format!("not a resource version: {text}"))
        };
        let (a, b) = (number(left)?, number(right)?);
        let holds = match relation {
            Relation::Less => a < b,
            Relation::Equal => a == b,
        };
        if holds { Ok(()) } else { Err(format!("{left} is {a} and {right} is {b}")) }
    }

    async fn define(&mut self, kind: &str, scope: &str, body: &str) -> Result<(), String> {
        let extra: Value = yaml(&self.filled(body)?)?;
        let group = self.variables["GROUP"].clone();
        let singular = kind.to_lowercase();
        let properties = extra.get("schema").cloned().unwrap_or_else(|| json!({}));
        let mut version = json!({"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}});
        for field in ["subresources", "additionalPrinterColumns", "selectableFields"] {
            if let Some(value) = extra.get(field) {
                version[field] = value.clone();
            }
        }
        if let Some(rules) = extra.get("rules") {
            version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = rules.clone();
        }
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{singular}s.{group}")},
            "spec": {"group": group, "scope": scope, "versions": [version],
                "names": {"plural": format!("{singular}s"), "singular": singular, "kind": kind, "listKind": format!("{kind}List")}}});
        let got = self.fetch(&post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd)).await?;
        if got.code != 201 && !(got.code == 409 && self.shared_group) {
            return Err(format!("the definition was refused: {}", got.body));
        }
        let mut served = get(&format!("/apis/{group}/v1/{singular}s"));
        served.until = Some(Until::Code(200));
        self.repeat(&served).await.map(|_| ())
    }

    /// Sends a request, and again while it is not as it must become.
    async fn repeat(&mut self, request: &Request) -> Result<Got, String> {
        let end = tokio::time::Instant::now() + DEADLINE;
        loop {
            let got = self.fetch(request).await?;
            let done = match &request.until {
                // A real server is busy for a moment after a definition has changed.
                None => got.body["message"] != "storage is (re)initializing",
                Some(Until::Code(code)) => got.code == *code,
                Some(Until::Present(path)) => path::get(&got.body, path)?.is_some(),
                Some(Until::Absent(path)) => path::get(&got.body, path)?.is_none(),
                Some(Until::Equals(path, value)) => {
                    path::get(&got.body, path)?.is_some_and(|found| show::flow(&found) == *value)
                }
            };
            if done || tokio::time::Instant::now() >= end {
                self.last = got.body.clone();
                return Ok(got);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn fetch(&self, request: &Request) -> Result<Got, String> {
        let answer = tokio::time::timeout(DEADLINE, async {
            let (head, body) = self.send(request).await?.into_parts();
            let body = parse(&collect(body).await?);
            Ok(Got { code: head.status.as_u16(), headers: head.headers, body })
        });
        answer.await.map_err(|_| "no answer in time".to_owned())?
    }

    async fn send(&self, request: &Request) -> Result<super::transport::Answer, String> {
        let mut builder = http::Request::builder().method(request.method.as_str()).uri(self.filled(&request.target)?);
        let mut media = None;
        for (name, value) in &request.headers {
            if name == "content-type" {
                media = Some(value.clone());
            } else {
                builder = builder.header(name, self.filled(value)?);
            }
        }
        if !request.body.is_empty() {
            builder = builder.header("content-type", media.as_deref().unwrap_or("application/json"));
        }
        let body = body(&self.filled(&request.body)?, media.as_deref().unwrap_or("application/json"))?;
        let request = builder.body(Full::new(Bytes::from(body))).map_err(|why| why.to_string())?;
        self.transport.send(request).await.map_err(|why| format!("not sent: {why}"))
    }

    /// A text with its `$VARIABLES` filled in; `${x*9}` is nine times `x`.
    fn filled(&self, text: &str) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some((repeat, after)) = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'))
                && let Some((unit, Ok(times))) = repeat.split_once('*').map(|(unit, n)| (unit, n.parse()))
            {
                out.push_str(&unit.repeat(times));
                rest = after;
                continue;
            }
            let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit())).unwrap_or(rest.len());
            if end == 0 {
                out.push('$');
                continue;
            }
            let name = &rest[..end];
            out.push_str(self.variables.get(name).ok_or_else(|| format!("nothing is known as ${name}"))?);
            rest = &rest[end..];
        }
        out.push_str(rest);
        Ok(out)
    }

    fn show(&mut self, mut got: Got, expect: Option<&Expect>) -> Result<String, String> {
        let select = expect.map_or(&[][..], |expect| &expect.select);
        let mut out = String::new();
        for warning in got.headers.get_all("warning") {
            let warning = self.mask.text(warning.to_str().unwrap_or("?"));
            writeln!(out, "warning: {warning}").map_err(|why| why.to_string())?;
        }
        self.mask.value(&mut got.body);
        if got.code >= 400 && got.body.is_object() {
            settle(&mut got.body);
        }
        if select.is_empty() || (got.code >= 400 && !about_failure(select)) {
            out.push_str(&whole(got.body));
        } else if select != ["-"] {
            let values = selected(&got.body, select, Some((&got.headers, &mut self.mask)))?;
            out.push_str(&show::entries(values.iter().map(|(name, value)| (*name, value.as_ref()))));
        }
        let lines: Vec<&str> = out.lines().map(|line| if line.is_empty() { "|" } else { line }).collect();
        Ok(lines.join("\n"))
    }

    async fn frames(&mut self, name: &str, count: Option<usize>, expect: Option<&Expect>) -> Result<String, String> {
        let select = expect.map_or(&[][..], |expect| &expect.select);
        let mut out = Vec::new();
        let mut taken = 0;
        let end = tokio::time::Instant::now() + DEADLINE;
        while count.is_none_or(|count| taken < count) {
            let watch = self.watches.get_mut(name).ok_or_else(|| format!("no watch called {name}"))?;
            let Ok(frame) = tokio::time::timeout_at(end, watch.next()).await else {
                out.push("(nothing more in time)".to_owned());
                break;
            };
            let Some(mut frame) = frame? else {
                out.push("(end)".to_owned());
                break;
            };
            self.last = frame["object"].clone();
            self.mask.value(&mut frame);
            out.push(show_frame(frame, select)?);
            taken += 1;
        }
        Ok(out.join("\n"))
    }
}

fn show_frame(mut frame: Value, select: &[String]) -> Result<String, String> {
    let kind = frame["type"].as_str().unwrap_or("(no type)").to_owned();
    let object = frame["object"].take();
    if select == ["-"] {
        return Ok(kind);
    }
    if select.is_empty() || kind == "ERROR" {
        let text = whole(object);
        return Ok(text.lines().fold(kind, |out, line| out + "\n  " + line));
    }
    let values = selected(&object, select, None)?;
    Ok(format!("{kind} {}", show::line(values.iter().map(|(name, value)| (*name, value.as_ref())))))
}

/// Whether a step that selects these paths knows that it will be refused; otherwise a refusal is shown whole.
fn about_failure(select: &[String]) -> bool {
    let about = |word: &String| {
        [".code", ".reason", ".message", ".details", "@", "-"].iter().any(|start| word.starts_with(start))
    };
    select.iter().any(|word| about(word) || word == ".")
}

type Headers<'a> = Option<(&'a http::HeaderMap, &'a mut Mask)>;

fn selected<'s>(
    body: &Value,
    select: &'s [String],
    mut headers: Headers<'_>,
) -> Result<Vec<(&'s str, Option<Value>)>, String> {
    let mut values = Vec::new();
    for word in select {
        let value = match (word.strip_prefix('@'), &mut headers) {
            (Some(header), Some((headers, mask))) => {
                headers.get(header).map(|value| mask.text(value.to_str().unwrap_or("?")).into())
            }
            (Some(_), None) => return Err("a frame has no headers".to_owned()),
            (None, _) => path::get(body, word)?.map(|mut value| {
                without(&mut value, if word.contains("managedFields") { &["description"] } else { SELDOM });
                value
            }),
        };
        values.push((word.as_str(), value));
    }
    Ok(values)
}

/// A whole answer without what is seldom looked at: managed fields, and the parts of a failure that are always the same.
fn whole(mut body: Value) -> String {
    if let Value::String(text) = body {
        return text;
    }
    without(&mut body, SELDOM);
    if body["kind"] == "Status"
        && body["status"] == "Failure"
        && body["apiVersion"] == "v1"
        && body["metadata"] == json!({})
    {
        let part = |name: &'static str| (name, body.get(name));
        return show::entries(
            ["code", "reason", "message", "details"].map(part).into_iter().filter(|(_, v)| v.is_some()),
        );
    }
    show::value(&body)
}

/// Puts causes in order where a real server has none: the managers of a conflict and the fields of custom resources come from Go maps.
fn settle(body: &mut Value) {
    let group = body.pointer("/details/group").and_then(Value::as_str).unwrap_or_default();
    let unordered = body["code"] == 409 || matches!(group, "$GROUP" | "apiextensions.k8s.io");
    let Some(Value::Array(causes)) = body.pointer_mut("/details/causes") else { return };
    if !unordered {
        return;
    }
    let before = listed(causes);
    causes.sort_by_key(ToString::to_string);
    let after = listed(causes);
    if let Some(message) = body["message"].as_str() {
        body["message"] = message.replace(&before, &after).into();
    }
}

/// Causes as a message lists them: each once.
fn listed(causes: &[Value]) -> String {
    let mut items: Vec<String> = Vec::new();
    for cause in causes {
        let item = format!("{}: {}", cause["field"].as_str().unwrap_or("?"), cause["message"].as_str().unwrap_or("?"));
        if !items.contains(&item) {
            items.push(item);
        }
    }
    format!("[{}]", items.join(", "))
}

/// Managed fields are shown when asked for; descriptions are other people's prose.
const SELDOM: &[&str] = &["managedFields", "description"];

fn without(value: &mut Value, keys: &[&str]) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| !keys.contains(&key.as_str()) || value.is_object());
            map.values_mut().for_each(|value| without(value, keys));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without(item, keys)),
        _ => {}
    }
}

/// A body as it is sent: YAML becomes JSON when JSON is wanted, and `!raw` is sent as it stands.
fn body(text: &str, media: &str) -> Result<Vec<u8>, String> {
    if let Some(raw) = text.strip_prefix("!raw\n") {
        return Ok(raw.trim_end_matches('\n').as_bytes().to_vec());
    }
    if text.is_empty() || !(media.contains("json") || media.contains("apply-patch+yaml")) {
        return Ok(text.as_bytes().to_vec());
    }
    serde_json::to_vec(&yaml(text)?).map_err(|why| why.to_string())
}

/// Reads YAML in which `y` and `no` are words.
fn yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|why| format!("the body: {why}"))
}

fn parse(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned().into())
}

async fn collect(body: UnsyncBoxBody<Bytes, Error>) -> Result<Bytes, String> {
    body.collect().await.map(http_body_util::Collected::to_bytes).map_err(|why| format!("the answer broke off: {why}"))
}

fn get(target: &str) -> Request {
    Request { method: "GET".into(), target: target.into(), headers: Vec::new(), body: String::new(), until: None }
}

fn post(target: &str, body: &Value) -> Request {
    Request { method: "POST".into(), body: body.to_string(), ..get(target) }
}

/// The frames of a watch: one line of JSON each.
struct Frames {
    body: Option<UnsyncBoxBody<Bytes, Error>>,
    buffer: BytesMut,
}

impl Frames {
    async fn next(&mut self) -> Result<Option<Value>, String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                return serde_json::from_slice(&line).map(Some).map_err(|why| format!("a frame is not JSON: {why}"));
            }
            let Some(body) = &mut self.body else { return Ok(None) };
            match body.frame().await {
                Some(Ok(frame)) => self.buffer.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
                Some(Err(why)) => return Err(format!("the watch broke off: {why}")),
                None if self.buffer.is_empty() => self.body = None,
                None => return Err("the last frame does not end its line".to_owned()),
            }
        }
    }
}
