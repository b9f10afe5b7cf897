//! Hostile input: whatever is sent, the server answers, in its own form, and a refusal changes nothing.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Number, Value, json};
use tower::ServiceExt as _;
use windlass_apiserver::{ApiServer, Options};

use crate::client::send;
use crate::random::Random;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WIDGETS: &str = "/apis/ex.io/v1/namespaces/default/widgets";

/// The objects that are aimed at: their collections and kinds.
const AIMS: [(&str, &str, &str); 5] = [
    (CONFIG_MAPS, "v1", "ConfigMap"),
    ("/api/v1/namespaces/default/services", "v1", "Service"),
    ("/api/v1/namespaces/default/pods", "v1", "Pod"),
    ("/apis/apps/v1/namespaces/default/deployments", "apps/v1", "Deployment"),
    (WIDGETS, "ex.io/v1", "Widget"),
];

const MEDIA: [&str; 8] = [
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain; charset=\"",
];

/// The names of fields that lead somewhere.
const KNOWN: &str = "metadata|spec|status|name|labels|annotations|finalizers|ownerReferences|managedFields|data|template|\
    containers|ports|size|tags|items|creationTimestamp|resourceVersion|uid|generation|kind|apiVersion|\
    $patch|$setElementOrder/containers|$deleteFromPrimitiveList/finalizers|$retainKeys|selector|\
    replicas|fieldsV1|manager|time|namespace|generateName|deletionTimestamp";

/// Parts of paths.
const PARTS: &str = "api|apis|v1|namespaces|default|configmaps|a|status|scale|watch|apps|deployments|ex.io|widgets|\
    openapi|v3|version|..|.||%2e%2e|%00|%ff|%|é|a%2fb|pods|eviction|log|nodes";

/// The names of options.
const QUERIES: &str = "limit|continue|labelSelector|fieldSelector|resourceVersion|resourceVersionMatch|watch|\
    timeoutSeconds|dryRun|fieldManager|fieldValidation|force|propagationPolicy|gracePeriodSeconds|\
    sendInitialEvents|allowWatchBookmarks|includeObject|pretty||%";

/// The values of options.
const VALUES: &str = "|1|-1|0|true|All|Strict|18446744073709551616|a=b|a in (|!|a,,b|%ff|metadata.name=a|Exact|\
    NotOlderThan|eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0|é|%00|Foreground|x%0Ay";

/// The words of a schema.
const WORDS: &str = "default|enum|minimum|maximum|pattern|format|nullable|x-kubernetes-preserve-unknown-fields|\
    x-kubernetes-int-or-string|x-kubernetes-embedded-resource|x-kubernetes-list-type|\
    x-kubernetes-list-map-keys|required|multipleOf|maxLength|allOf|anyOf|not|additionalProperties|\
    x-kubernetes-map-type|uniqueItems|x-kubernetes-validations";

/// One of several words.
fn word(random: &mut Random, from: &'static str) -> &'static str {
    let words: Vec<&str> = from.split('|').collect();
    random.one(&words)
}

/// A server with an object of each kind.
async fn server() -> ApiServer {
    let server = ApiServer::new(Options::default());
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                        "size": {"type": "integer", "default": 1, "maximum": 9},
                        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                        "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}});
    let made = send(&server, Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd).await;
    assert_eq!(made.code, 201, "{}", made.body);
    for (path, version, kind) in AIMS {
        let pod = json!({"containers": [{"name": "a", "image": "a"}]});
        let spec = match kind {
            "ConfigMap" => json!(null),
            "Service" => json!({"clusterIP": "None", "ports": [{"port": 80}]}),
            "Pod" => pod,
            "Deployment" => json!({"selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod}}),
            _ => json!({"size": 2, "tags": ["x"], "items": [{"name": "n"}]}),
        };
        let object =
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a", "labels": {"l": "v"}}, "spec": spec});
        let made = send(&server, Method::POST, path, &object).await;
        assert_eq!(made.code, 201, "{}", made.body);
    }
    server
}

/// Sends a request and checks what must hold of every answer.
async fn check(server: &ApiServer, request: Request<Full<Bytes>>) -> u16 {
    let shown = format!("{request:?}");
    let before = server.store().revision();
    let answering = tokio::spawn(server.clone().oneshot(request));
    let response = answering.await.unwrap_or_else(|why| panic!("{why}\n{shown}")).unwrap();
    let after = server.store().revision();
    let (head, body) = response.into_parts();
    let code = head.status.as_u16();
    assert!(after >= before, "{shown}");
    if code < 400 {
        return code;
    }
    assert_eq!(after, before, "refused with {code}, and yet something was written: {shown}");
    let body = body.collect().await.unwrap().to_bytes();
    if let Ok(status) = serde_json::from_slice::<Value>(&body) {
        assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)), "{shown}\n{status}");
        assert!(status["message"].as_str().is_some_and(|message| !message.is_empty()), "{shown}\n{status}");
    } else {
        assert_eq!((code, &body[..]), (404, &b"404 page not found\n"[..]), "{shown}");
    }
    code
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(test);
}

fn request(method: &str, path: &str, media: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(path).body(Full::new(body.into())).unwrap();
    request.headers_mut().insert("content-type", HeaderValue::from_str(media).unwrap());
    request
}

fn text(random: &mut Random) -> String {
    let odd = [
        "",
        "a",
        "metadata",
        "spec",
        "é",
        "\u{0}",
        "\u{202e}x",
        "a/b",
        "~1",
        "..",
        "%2f",
        "$patch",
        "-1",
        "0",
        "9".repeat(40).leak(),
        "x".repeat(300).leak(),
        "\u{1F9E8}",
        "\n",
        "\"",
        "k:{\"name\":\"n\"}",
        "2001-01-01T00:00:00Z",
        "1e999",
        "null",
    ];
    random.one(&odd).to_owned()
}

/// Names that lead somewhere, and some that do not.
fn key(random: &mut Random) -> String {
    if random.percent(90) { word(random, KNOWN).to_owned() } else { text(random) }
}

fn scalar(random: &mut Random) -> Value {
    match random.below(9) {
        0 => Value::Null,
        1 => random.percent(50).into(),
        2 => i64::MIN.into(),
        3 => u64::MAX.into(),
        4 => Number::from_f64(1e308).map_or(Value::Null, Value::Number),
        5 => 0.into(),
        6 => random.next().into(),
        _ => text(random).into(),
    }
}

/// Any JSON.
fn any(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 4 } else { 10 }) {
        0..4 => scalar(random),
        4..6 => (0..random.below(4)).map(|_| any(random, depth - 1)).collect(),
        _ => {
            let fields = (0..random.below(5)).map(|_| (key(random), any(random, depth - 1)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

/// An object in which a few places hold anything.
fn spoiled(random: &mut Random, object: &Value) -> Value {
    let mut object = object.clone();
    for _ in 0..=random.below(2) {
        spoil(random, &mut object);
    }
    object
}

fn spoil(random: &mut Random, value: &mut Value) {
    let deeper = random.percent(75);
    match value {
        Value::Object(fields) if deeper && !fields.is_empty() => {
            let at = random.below(fields.len());
            spoil(random, fields.values_mut().nth(at).unwrap());
        }
        Value::Object(fields) if random.percent(50) => {
            fields.insert(key(random), any(random, 2));
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let at = random.below(items.len());
            spoil(random, &mut items[at]);
        }
        other => *other = any(random, 3),
    }
}

#[test]
fn any_bytes_with_any_content_type_are_answered() {
    run(async {
        let server = server().await;
        let mut random = Random::new(1);
        let deep: String = "[".repeat(100_000);
        let deep_objects = "{\"a\":".repeat(5_000);
        let deep_yaml: String = (0..300).fold(String::new(), |mut out, n| {
            writeln!(out, "{:n$}a:", "").unwrap();
            out
        });
        let twice = r#"{"kind":"ConfigMap","kind":"Pod","metadata":{"name":"x","name":"y"},"data":{"a":"1","a":"2"}}"#;
        let fixed = [
            deep.as_str(),
            &deep_objects,
            &deep_yaml,
            twice,
            "",
            "null",
            "[]",
            "\"",
            "\u{feff}{}",
            "{",
            "[{]",
            "1e999",
            "-",
            "&a [*a]",
            "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]",
            "k8s\0",
            "k8s\0\u{1}",
            "k8s\0\n\u{7f}",
        ];
        for media in MEDIA {
            for method in ["POST", "PUT", "PATCH", "DELETE"] {
                let path = if method == "POST" { CONFIG_MAPS.to_owned() } else { format!("{CONFIG_MAPS}/a") };
                for body in fixed {
                    check(&server, request(method, &path, media, body.to_owned())).await;
                }
                for _ in 0..8 {
                    let bytes: Vec<u8> = (0..random.below(40)).map(|_| random.next().to_le_bytes()[0]).collect();
                    check(&server, request(method, &path, media, bytes)).await;
                }
            }
        }
    });
}

#[test]
fn any_path_query_and_header_is_answered() {
    run(async {
        let server = server().await;
        let mut random = Random::new(2);
        for _ in 0..1_500 {
            let mut path = String::new();
            for _ in 0..random.below(9) {
                write!(path, "/{}", word(&mut random, PARTS)).unwrap();
            }
            if random.percent(40) {
                path = random
                    .one(&[CONFIG_MAPS, WIDGETS, "/api/v1/namespaces/default/configmaps/a", "/apis/ex.io/v1/widgets"])
                    .to_owned();
            }
            for n in 0..random.below(4) {
                let sign = if n == 0 { '?' } else { '&' };
                write!(path, "{sign}{}={}", word(&mut random, QUERIES), word(&mut random, VALUES)).unwrap();
            }
            let Ok(uri) = http::Uri::try_from(if path.is_empty() { "/" } else { &path }) else { continue };
            // Deleting whole collections would leave nothing to aim at.
            let method = random.one(&["GET", "GET", "POST", "PUT", "PATCH", "HEAD", "OPTIONS", "CONNECT", "BREW"]);
            let mut request =
                Request::builder().method(method).uri(uri).body(Full::new(Bytes::from_static(b"{}"))).unwrap();
            for name in ["accept", "content-type", "user-agent", "impersonate-user"] {
                let value = random.one(&[
                    "application/json;as=Table;g=meta.k8s.io;v=v1",
                    ";;",
                    "*/*;q=x",
                    "\u{ff}",
                    "application/json;as=\"",
                    "a/b",
                ]);
                if random.percent(30) {
                    request.headers_mut().insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
                }
            }
            check(&server, request).await;
        }
    });
}

#[test]
fn any_patch_of_any_object_is_answered() {
    run(async {
        let server = server().await;
        let mut random = Random::new(3);
        for n in 0..1_200 {
            let (path, version, kind) = random.one(&AIMS);
            let path = format!("{path}/a{}", random.one(&["", "", "", "/status", "/scale"]));
            let media = random.one(&MEDIA[2..6]);
            let current =
                send(&server, Method::GET, path.split_once("/a/").map_or(&path, |_| &path), &Value::Null).await.body;
            let body = match (media, random.below(4)) {
                (_, 0) => any(&mut random, 4),
                ("application/json-patch+json", _) => operations(&mut random),
                ("application/apply-patch+yaml", 1) => {
                    let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": any(&mut random, 4)});
                    spoil(&mut random, &mut object);
                    object
                }
                _ => spoiled(&mut random, &current),
            };
            let query = random.one(&[
                "?fieldManager=m&force=true",
                "?fieldManager=m",
                "?fieldManager=m&dryRun=All",
                "?fieldManager=m&fieldValidation=Strict",
            ]);
            let query = if media.contains("apply") { query } else { query.split('&').next().unwrap() };
            check(&server, request("PATCH", &format!("{path}{query}"), media, body.to_string())).await;
            if n % 200 == 0 {
                intact(&server).await;
            }
        }
    });
}

#[test]
fn any_object_is_taken_or_refused() {
    run(async {
        let server = server().await;
        let mut random = Random::new(4);
        let mut taken = 0;
        for n in 0..1_000 {
            let (path, version, kind) = random.one(&AIMS);
            let mut current = send(&server, Method::GET, &format!("{path}/a"), &Value::Null).await.body;
            if random.percent(50) {
                current["metadata"] = json!({"name": format!("n{n}")});
            }
            let mut object = spoiled(&mut random, &current);
            if random.percent(80) && object.is_object() {
                object["apiVersion"] = version.into();
                object["kind"] = kind.into();
            }
            let (method, path) =
                if random.percent(50) { ("PUT", format!("{path}/a")) } else { ("POST", path.to_owned()) };
            let code = check(&server, request(method, &path, "application/json", object.to_string())).await;
            taken += usize::from(code < 300);
        }
        intact(&server).await;
        assert!(taken > 30, "nearly all was refused: {taken}");
    });
}

#[test]
fn any_definition_is_taken_or_refused_and_what_it_defines_is_served() {
    run(async {
        let server = server().await;
        let mut random = Random::new(5);
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let mut taken = 0;
        for n in 0..150 {
            let plural = format!("t{n}s");
            let mut crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.ex.io")},
                "spec": {"group": "ex.io", "scope": "Namespaced", "names": {"plural": plural, "kind": format!("T{n}")},
                    "versions": [{"name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema(&mut random, 3)}}}}]}});
            if random.percent(30) {
                spoil(&mut random, &mut crd["spec"]);
            }
            check(&server, request("POST", path, "application/json", crd.to_string())).await;
            for _ in 0..2 {
                let object = json!({"apiVersion": "ex.io/v1", "kind": format!("T{n}"), "metadata": {"name": "a"}, "spec": any(&mut random, 3)});
                let objects = format!("/apis/ex.io/v1/namespaces/default/{plural}");
                let code = check(&server, request("POST", &objects, "application/json", object.to_string())).await;
                taken += usize::from(code == 201);
                let apply = format!("{objects}/a?fieldManager=m&force=true");
                check(&server, request("PATCH", &apply, "application/apply-patch+yaml", object.to_string())).await;
            }
        }
        assert!(taken > 5, "hardly anything was taken: {taken}");
        check(&server, request("GET", "/openapi/v3/apis/ex.io/v1", "application/json", "")).await;
    });
}

fn schema(random: &mut Random, depth: usize) -> Value {
    let mut schema =
        json!({"type": random.one(&["object", "object", "array", "string", "integer", "number", "boolean", "x"])});
    if schema["type"] == "object" && depth > 0 {
        schema["properties"] = (0..random.below(4)).map(|_| (key(random), self::schema(random, depth - 1))).collect();
    } else if schema["type"] == "array" && depth > 0 {
        schema["items"] = self::schema(random, depth - 1);
    }
    for _ in 0..random.below(3) {
        let word = word(random, WORDS);
        schema[word] = match random.below(4) {
            0 => true.into(),
            1 => random.one(&["set", "map", "atomic", "granular", "^a(b", "date-time", "int32", "^a*$"]).into(),
            2 => json!([key(random)]),
            _ => any(random, 2),
        };
    }
    schema
}

fn operations(random: &mut Random) -> Value {
    let pointer = |random: &mut Random| {
        (0..random.below(4)).fold(String::new(), |at, _| {
            format!(
                "{at}/{}",
                if random.percent(80) {
                    key(random)
                } else {
                    random.one(&["0", "-", "-1", "99999999999999999999", "~", "~2"]).to_owned()
                }
            )
        })
    };
    let operation = |random: &mut Random| {
        let mut operation = json!({"op": random.one(&["add", "replace", "remove", "test", "move", "copy", "x"]), "path": pointer(random),
            "from": pointer(random), "value": any(random, 2)});
        if random.percent(10) {
            spoil(random, &mut operation);
        }
        operation
    };
    (0..random.below(4)).map(|_| operation(random)).collect()
}

/// Whatever was taken can be read again, one by one and in lists.
async fn intact(server: &ApiServer) {
    for (path, ..) in AIMS {
        let list = send(server, Method::GET, path, &Value::Null).await;
        assert_eq!(list.code, 200);
        for item in list.body["items"].as_array().unwrap() {
            let name = item["metadata"]["name"].as_str().unwrap();
            let one = send(server, Method::GET, &format!("{path}/{name}"), &Value::Null).await;
            assert_eq!((one.code, &one.body["metadata"]), (200, &item["metadata"]));
            assert!(item["metadata"]["uid"].is_string() && item["metadata"]["creationTimestamp"].is_string(), "{item}");
        }
    }
}
