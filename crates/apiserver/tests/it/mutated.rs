//! The requests of the conformance table, spoiled: whatever comes of them is answered, never with a fault of ours.
//!
//! The table is the corpus: real requests about everything that the server does. `FUZZ_SEED` and `FUZZ_ROUNDS` say where to begin
//! and how long to go on; a failure prints the seed of its round, with which that round alone is repeated.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use windlass_apiserver::{ApiServer, Options};

use crate::client::send;
use crate::conformance::script::{Action, Script};
use crate::random::Random;

/// A few seconds on an idle machine, in a debug build.
const ROUNDS: u64 = 300;
/// Requests of a round: a server of its own, which they change for each other.
const REQUESTS: usize = 24;
/// No answer may be larger than what its round can have put into the server, many times over.
const ANSWER_BYTES_MAX: usize = 32 << 20;

const NAMESPACE: &str = "case-0000";
const GROUP: &str = "g0000.example.com";

/// Bytes that parsers stumble over.
const ODD: [&str; 18] = [
    "\0", "\u{feff}", "\"", "\\", "{", "}", "[", "]", ":", ",", "null", "-", "1e999", "\u{202e}", "\\u0000", "%00",
    "../", "&a *a",
];

/// A request of the corpus.
#[derive(Clone)]
struct Seed {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

fn corpus() -> Vec<Seed> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|x| x == "txt") && !path.ends_with("differences.txt"));
    paths.sort();
    let mut seeds = Vec::new();
    for path in paths {
        let script = Script::parse("corpus", &std::fs::read_to_string(path).unwrap()).unwrap();
        for step in script.cases.iter().flat_map(|case| &case.steps) {
            let (Action::Request(request) | Action::Watch { request, .. }) = &step.action else { continue };
            let filled = |text: &str| text.replace("$NS", NAMESPACE).replace("$GROUP", GROUP);
            let text = filled(&request.body);
            let body = match text.strip_prefix("!raw\n") {
                Some(raw) => raw.as_bytes().to_vec(),
                None => serde_saphyr::from_str::<Value>(&text)
                    .map_or(text.into_bytes(), |value| value.to_string().into_bytes()),
            };
            let headers = request.headers.iter().map(|(name, value)| (name.clone(), filled(value))).collect();
            seeds.push(Seed { method: request.method.clone(), target: filled(&request.target), headers, body });
        }
    }
    assert!(seeds.len() > 1_000, "the table is the corpus, and has {} requests", seeds.len());
    seeds
}

async fn server() -> ApiServer {
    let server = ApiServer::new(Options::default());
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    assert_eq!(send(&server, Method::POST, "/api/v1/namespaces", &namespace).await.code, 201);
    let crd = json!({"metadata": {"name": format!("widgets.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "x-kubernetes-validations": [{"rule": "!has(self.n) || self.n >= 0"}],
                    "properties": {"n": {"type": "integer"}}}}}}}]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = send(&server, Method::POST, path, &crd).await;
    assert_eq!(made.code, 201, "{}", made.body);
    server
}

/// Spoils some bytes: turns, cuts, doubles, and puts odd ones in.
fn spoil(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() + 1);
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(at),
            2 => {
                let end = at + random.below(bytes.len() - at + 1);
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            3 => {
                let end = at + random.below(bytes.len() - at + 1);
                bytes.drain(at..end);
            }
            4 => {
                let odd = random.one(&ODD);
                bytes.splice(at..at, odd.bytes());
            }
            5 if !other.is_empty() => {
                let from = random.below(other.len());
                bytes.splice(at.., other[from..].iter().copied());
            }
            _ => {
                let depth = random.below(400);
                bytes.splice(at..at, std::iter::repeat_n(b'[', depth));
            }
        }
    }
}

/// A request of the corpus, often with something wrong in one of its parts.
fn mutated(random: &mut Random, corpus: &[Seed]) -> Option<Request<Full<Bytes>>> {
    let mut seed = random.one(corpus);
    let other = random.one(corpus);
    if random.percent(25) {
        seed.method = other.method;
    }
    if random.percent(20) {
        seed.target.clone_from(&other.target);
    }
    if random.percent(25) {
        let mut target = seed.target.clone().into_bytes();
        spoil(random, &mut target, other.target.as_bytes());
        seed.target = String::from_utf8_lossy(&target).into_owned();
    }
    if random.percent(20) {
        seed.headers = other.headers;
    }
    if random.percent(50) {
        spoil(random, &mut seed.body, &other.body);
    }
    let mut request = Request::builder().method(seed.method.as_str()).uri(seed.target.as_str());
    let has_type = seed.headers.iter().any(|(name, _)| name == "content-type");
    for (name, value) in &seed.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        request = request.header(name, HeaderValue::from_str(value).ok()?);
    }
    if !has_type && !seed.body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    // What no HTTP library would let through is nobody's request.
    request.body(Full::new(Bytes::from(seed.body))).ok()
}

async fn round(seed: u64, corpus: &[Seed]) {
    let random = &mut Random::new(seed);
    let server = server().await;
    for _ in 0..REQUESTS {
        let Some(request) = mutated(random, corpus) else { continue };
        let shown =
            format!("FUZZ_SEED={seed} FUZZ_ROUNDS=1: {} {} {:?}", request.method(), request.uri(), request.body());
        // What ends the process leaves no other trace: `--nocapture` shows it.
        if std::env::var_os("FUZZ_SEED").is_some() {
            eprintln!("{shown}");
        }
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch"))
            || request.uri().path().contains("/watch");
        let answering = tokio::spawn(server.clone().oneshot(request));
        let (head, body) = answering.await.unwrap_or_else(|why| panic!("{why}\n{shown}")).unwrap().into_parts();
        let code = head.status.as_u16();
        // A watch that was begun goes on.
        if is_watch && code == 200 {
            continue;
        }
        let body = body.collect().await.unwrap().to_bytes();
        assert!(body.len() < ANSWER_BYTES_MAX, "an answer of {} bytes: {shown}", body.len());
        assert!(code < 500 || code == 501 || is_foreseen(&body), "{code}: {}\n{shown}", String::from_utf8_lossy(&body));
    }
}

/// Whether it is one of those that a real server has, too, in the same words: a fault without a reason, and the answer to a
/// version that has yet to come.
fn is_foreseen(body: &[u8]) -> bool {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = status["message"].as_str().unwrap_or_default();
    let to_come = said.starts_with("Timeout: Too large resource version");
    let nameless = status["code"] == 500 && status.get("reason").is_none();
    status["kind"] == "Status" && (nameless || status["code"] == 504 && to_come)
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn spoiled_requests_are_answered() {
    let corpus = corpus();
    let (first, rounds) = (number("FUZZ_SEED", 1), number("FUZZ_ROUNDS", ROUNDS));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    for seed in first..first + rounds {
        runtime.block_on(round(seed, &corpus));
    }
}

/// Defines a kind with a rule; the code of the answer, and its message.
async fn define(rule: &str) -> (u16, String) {
    let crd = json!({"metadata": {"name": format!("gadgets.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-validations": [{"rule": rule}]}}}]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let server = server().await;
    let made = send(&server, Method::POST, path, &crd).await;
    if made.code == 201 {
        // What is accepted is evaluated, too.
        let gadget = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Gadget", "metadata": {"name": "a"}});
        let path = format!("/apis/{GROUP}/v1/namespaces/default/gadgets");
        let created = send(&server, Method::POST, &path, &gadget).await;
        assert!(matches!(created.code, 201 | 422), "{}", created.body);
    }
    (made.code, made.body["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_rule_that_nests_too_deeply_is_refused() {
    let conditions = |count: usize| "false ? false : ".repeat(count) + "true";
    let brackets = |count: usize| "(".repeat(count) + "true" + &")".repeat(count);
    for rule in ["[".repeat(5_000), brackets(91), conditions(41), conditions(200), conditions(5_000)] {
        let (code, message) = define(&rule).await;
        assert_eq!(code, 422, "{message}");
        assert!(message.contains("expression recursion limit exceeded: "), "{message}");
    }
    // Conditions in brackets that have ended are not within each other.
    let apart = vec![format!("({})", conditions(20)); 5].join(" && ");
    for rule in [brackets(90), conditions(35), apart] {
        assert_eq!(define(&rule).await, (201, String::new()), "{rule}");
    }
}

#[tokio::test]
async fn a_rule_that_goes_on_and_on_is_answered() {
    for (first, more, last) in [
        ("1", " + 1", " > 0"),
        ("true", " || true", ""),
        ("true", " && true", ""),
        ("'a'", " + 'a'", " == ''"),
        ("self", ".metadata", " == self"),
        ("self", "['a']", " == self"),
        ("", "!", "true"),
        ("", "- ", "1 == 1"),
        ("[1]", ".map(x, x)", " == []"),
    ] {
        for count in [35, 45, 90, 20_000] {
            let (code, message) = define(&[first, &more.repeat(count), last].concat()).await;
            assert!(matches!(code, 201 | 422), "{count} times {more}: {code} {message}");
        }
    }
}

#[test]
fn requests_of_the_table_are_answered_as_they_are() {
    let corpus = corpus();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let server = server().await;
        for seed in corpus.iter().filter(|seed| !seed.target.contains("watch")) {
            let mut request = Request::builder().method(seed.method.as_str()).uri(seed.target.as_str());
            for (name, value) in &seed.headers {
                request = request.header(name, value);
            }
            let request = request.body(Full::new(Bytes::from(seed.body.clone()))).unwrap();
            let (head, body) = server.clone().oneshot(request).await.unwrap().into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let code = head.status.as_u16();
            assert!(code < 500 || code == 501 || is_foreseen(&body), "{code}: {} {}", seed.method, seed.target);
        }
    });
}
