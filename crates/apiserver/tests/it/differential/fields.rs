//! What objects of each kind may look like: for each field, values that make sense and values that do not.

use serde_json::{Map, Value, json};

use crate::random::Random;

/// A kind that sequences are about.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    ConfigMap,
    Secret,
    Service,
    Pod,
    Deployment,
    Widget,
}

pub const KINDS: [Kind; 6] = [Kind::ConfigMap, Kind::Secret, Kind::Service, Kind::Pod, Kind::Deployment, Kind::Widget];

/// A field's path and its values: those that are taken, then those that are mostly refused.
type Field = (&'static str, Value, Value);

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::Service => "Service",
            Self::Pod => "Pod",
            Self::Deployment => "Deployment",
            Self::Widget => "Widget",
        }
    }

    pub fn api_version(self) -> &'static str {
        match self {
            Self::Deployment => "apps/v1",
            Self::Widget => "$GROUP/v1",
            _ => "v1",
        }
    }

    /// Where its objects are.
    pub fn collection(self) -> String {
        let api = match self {
            Self::Deployment => "/apis/apps/v1",
            Self::Widget => "/apis/$GROUP/v1",
            _ => "/api/v1",
        };
        format!("{api}/namespaces/$NS/{}s", self.name().to_lowercase())
    }

    pub fn has_status(self) -> bool {
        !matches!(self, Self::ConfigMap | Self::Secret)
    }

    /// What an object must have to be taken.
    fn base(self) -> Value {
        match self {
            Self::ConfigMap | Self::Secret | Self::Widget => json!({}),
            Self::Service => {
                json!({"spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"name": "a", "port": 80}]}})
            }
            Self::Pod => json!({"spec": {"containers": [{"name": "a", "image": "a:1"}]}}),
            Self::Deployment => json!({"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {
                "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}}}),
        }
    }

    fn own_fields(self) -> Vec<Field> {
        match self {
            Self::ConfigMap => vec![
                ("data/a", json!(["1", "2", "", null]), json!([5, true, {"a": 1}, ["x"]])),
                ("data/b.c", json!(["1", "2"]), json!([null])),
                ("binaryData/x", json!(["AAAA", "aGk=", ""]), json!(["!!", 5, null])),
                ("immutable", json!([false, false, true, null]), json!(["true", 1])),
            ],
            Self::Secret => vec![
                ("data/a", json!(["AAAA", "aGk=", ""]), json!(["!!", 5, {}])),
                ("stringData/a", json!(["1", "2", ""]), json!([5, null])),
                ("stringData/b", json!(["1", "2"]), json!([[]])),
                (
                    "type",
                    json!(["Opaque", "example.com/x"]),
                    json!(["kubernetes.io/tls", "kubernetes.io/basic-auth", 5]),
                ),
                ("immutable", json!([false, false, true]), json!(["true"])),
            ],
            Self::Service => service_fields(),
            Self::Pod => {
                let mut fields = pod_fields("spec");
                fields.push(("status/phase", json!(["Running", "Pending"]), json!(["Odd", 5])));
                fields.push(("status/conditions", conditions(), json!([[{"type": "Ready"}], {}])));
                fields
            }
            Self::Deployment => {
                let mut fields = pod_fields("spec/template/spec");
                fields.extend(deployment_fields());
                fields
            }
            Self::Widget => widget_fields(),
        }
    }

    fn fields(self) -> Vec<Field> {
        let mut fields = vec![
            ("metadata/labels/l", json!(["a", "b", "c", "", null]), json!(["-", 5, {"a": 1}])),
            ("metadata/labels/m", json!(["a", "b"]), json!(["a b"])),
            ("metadata/annotations/n", json!(["a", "b", null]), json!([5, true])),
            (
                "metadata/finalizers",
                json!([["example.com/f"], [], ["example.com/f", "example.com/g"]]),
                json!([["f"], "f", null]),
            ),
            ("metadata/generation", json!([7]), json!(["x"])),
            (
                "metadata/ownerReferences",
                json!([[{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u1"}],
                [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u2", "controller": true}]]),
                json!([[{"kind": "Pod"}], [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u1", "blockOwnerDeletion": "x"}]]),
            ),
            ("metadata/creationTimestamp", json!([null]), json!(["2001-01-01T00:00:00Z", "x"])),
            ("metadata/uid", json!([null]), json!(["x", 7])),
            ("metadata/bogus", json!([1]), json!([null])),
            ("bogus", json!([1]), json!([{"a": []}])),
        ];
        // An own field is wanted more often than one of the metadata.
        for _ in 0..3 {
            fields.extend(self.own_fields());
        }
        fields
    }

    /// An object, or a part of one; `base` says whether it has what it must.
    pub fn object(self, random: &mut Random, base: bool) -> Value {
        let mut object = if base { self.base() } else { json!({}) };
        let fields = self.fields();
        for _ in 0..=random.below(3) {
            let (path, value) = field(random, &fields);
            set(&mut object, path, value);
        }
        object
    }

    /// A field's pointer and a value for it, for a JSON patch.
    pub fn pointer(self, random: &mut Random) -> (String, Value) {
        let fields = self.fields();
        let (path, value) = field(random, &fields);
        (format!("/{path}"), value)
    }
}

/// A field and a value for it: one in twelve is odd.
fn field(random: &mut Random, fields: &[Field]) -> (&'static str, Value) {
    let (path, good, odd) = &fields[random.below(fields.len())];
    let from = if random.percent(8) { odd } else { good };
    let values = from.as_array().unwrap();
    (path, values[random.below(values.len())].clone())
}

fn set(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    for part in path.split('/') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = at.as_object_mut().unwrap().entry(part.to_owned()).or_insert(Value::Null);
    }
    *at = value;
}

fn conditions() -> Value {
    json!([[{"type": "Ready", "status": "True"}],
        [{"type": "Ready", "status": "False", "reason": "R"}, {"type": "Other", "status": "True"}], []])
}

fn service_fields() -> Vec<Field> {
    vec![
        (
            "spec/ports",
            json!([[{"name": "a", "port": 80}], [{"name": "a", "port": 80}, {"name": "b", "port": 81, "protocol": "UDP"}],
            [{"port": 80, "targetPort": "web"}], [{"name": "b", "port": 80, "targetPort": 8080}]]),
            json!([[{"name": "a", "port": 80}, {"name": "a", "port": 81}], [{"port": 80}, {"port": 81}], [{"port": "x"}], [],
                [{"port": 80, "$patch": "delete"}], null, [{"name": "A_", "port": 70000}]]),
        ),
        ("spec/selector", json!([{"a": "b"}, {"c": "d"}]), json!([{"a": 5}, {"a": "b c"}])),
        ("spec/sessionAffinity", json!(["None", "ClientIP"]), json!(["X"])),
        ("spec/publishNotReadyAddresses", json!([true, false]), json!(["x"])),
        ("spec/externalIPs", json!([["8.8.8.8"]]), json!([["x"], ["127.0.0.1"]])),
        ("spec/type", json!(["ClusterIP"]), json!(["ExternalName", "X"])),
        (
            "status/loadBalancer/ingress",
            json!([[{"ip": "1.2.3.4"}], []]),
            json!([[{"ip": "x"}], [{"hostname": "A b"}]]),
        ),
        (
            "status/conditions",
            json!([[{"type": "A", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2001-01-01T00:00:00Z"}]]),
            json!([[{"type": "A"}]]),
        ),
    ]
}

fn pod_fields(at: &'static str) -> Vec<Field> {
    let path = |field: &str| -> &'static str { Box::leak(format!("{at}/{field}").into_boxed_str()) };
    let containers = json!([[{"name": "a", "image": "a:1"}], [{"name": "a", "image": "a:2"}],
        [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b", "env": [{"name": "X", "value": "1"}]}],
        [{"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}],
        [{"name": "a", "image": "a:1", "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]}],
        [{"name": "a", "image": "a:1", "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"cpu": 1}}}],
        [{"name": "a", "image": "a", "livenessProbe": {"httpGet": {"port": "web"}}, "command": ["x", "y"]}],
        [{"name": "a", "image": "a:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]]);
    let odd = json!([[], [{"name": "a"}], [{"name": "A", "image": "x"}], [{"image": "x"}], null, {}, ["a"],
        [{"name": "a", "image": "a"}, {"name": "a", "image": "b"}], [{"name": "a", "image": "a", "bogus": 1}],
        [{"name": "a", "image": "a", "env": [{"name": "X", "value": 5}]}], [{"name": "a", "$patch": "delete"}], [{"$patch": "replace"}],
        [{"name": "a", "image": "a", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}],
        [{"name": "a", "image": "a", "ports": [{"containerPort": 0}]}], [{"name": "a", "image": "a", "imagePullPolicy": "X"}]]);
    vec![
        (path("containers"), containers.clone(), odd.clone()),
        (path("containers"), containers, odd),
        (path("initContainers"), json!([[{"name": "i", "image": "i"}], []]), json!([[{"name": "a", "image": "x"}]])),
        (
            path("volumes"),
            json!([[{"name": "v", "emptyDir": {}}], [{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "secret": {"secretName": "s"}}]]),
            json!([[{"name": "v"}, {"name": "v"}], [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]]),
        ),
        (path("nodeSelector"), json!([{"a": "b"}, {"c": "d"}, null]), json!([{"a": 5}])),
        (
            path("tolerations"),
            json!([[{"key": "k", "operator": "Exists"}], []]),
            json!([[{"key": "k", "operator": "X"}]]),
        ),
        (path("activeDeadlineSeconds"), json!([5, 10]), json!([-1, "x"])),
        (path("terminationGracePeriodSeconds"), json!([5, 30]), json!([-1])),
        (path("restartPolicy"), json!(["Always"]), json!(["Never", "X"])),
        (path("hostname"), json!(["h"]), json!(["H_"])),
        (path("securityContext"), json!([{"runAsUser": 5}, {"fsGroup": 5}, {}]), json!([{"runAsUser": -5}])),
        (path("imagePullSecrets"), json!([[{"name": "x"}], [{"name": "x"}, {"name": "y"}]]), json!([[{}]])),
    ]
}

fn deployment_fields() -> Vec<Field> {
    vec![
        ("spec/replicas", json!([0, 1, 3, null]), json!([-1, "x", 1.5])),
        ("spec/replicas", json!([2, 5]), json!([2_147_483_648_i64])),
        ("spec/paused", json!([true, false]), json!(["x"])),
        ("spec/minReadySeconds", json!([0, 5]), json!([-1])),
        (
            "spec/strategy",
            json!([{"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "50%"}},
            {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, {"$retainKeys": ["type"], "type": "Recreate"}]),
            json!([{"type": "X"}, {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
                {"rollingUpdate": {"maxSurge": "x"}}, null]),
        ),
        (
            "spec/template/metadata/labels",
            json!([{"app": "a"}, {"app": "a", "x": "y"}]),
            json!([{"app": "b"}, null, {"x": "y"}]),
        ),
        (
            "spec/selector",
            json!([{"matchLabels": {"app": "a"}}]),
            json!([{"matchLabels": {"app": "b"}}, {"matchExpressions": [{"key": "app", "operator": "In"}]}, {}]),
        ),
        ("spec/revisionHistoryLimit", json!([1]), json!([-1])),
        ("spec/progressDeadlineSeconds", json!([100]), json!([0])),
        ("status/replicas", json!([1, 2]), json!([-1])),
        ("status/observedGeneration", json!([1]), json!([-1, "x"])),
        ("status/conditions", conditions(), json!([[{"type": "A"}]])),
    ]
}

fn widget_fields() -> Vec<Field> {
    vec![
        ("spec/size", json!([0, 3, 10, null]), json!([11, "x", 1.5, -1])),
        ("spec/mode", json!(["a", "b", null]), json!(["c", 5])),
        ("spec/tags", json!([["x"], ["y", "x"], ["x", "z"], []]), json!([["x", "x"], [5], null, "x"])),
        (
            "spec/items",
            json!([[{"name": "x"}], [{"name": "x", "port": 1}, {"name": "y"}], [{"name": "y", "port": 2}], []]),
            json!([[{"name": "x"}, {"name": "x"}], [{}], [{"port": 1}], null, [5]]),
        ),
        (
            "spec/pairs",
            json!([[{"name": "x"}], [{"name": "x", "proto": "UDP"}, {"name": "x"}], [{"name": "y", "proto": "UDP", "note": "n"}]]),
            json!([[{"name": "x"}, {"name": "x", "proto": "TCP"}], [{"proto": "UDP"}]]),
        ),
        ("spec/list", json!([["a"], ["b", "a"], []]), json!([[5], null])),
        ("spec/atomic", json!([{"a": "1"}, {"b": "2"}, {"a": "1", "b": "2"}, null]), json!([{"a": 5}, []])),
        (
            "spec/free",
            json!([{"a": 1}, {"b": {"c": [1, 2]}}, {"known": "x", "a": null}, {}]),
            json!([{"known": 5}, 5, null]),
        ),
        ("spec/any", json!([1, "x", {"a": [1]}, [1, {"b": 2}], null, true]), json!([1.5])),
        ("spec/port", json!([80, "web", null]), json!([1.5, {}])),
        ("spec/nested", json!([{}, {"a": 1}, {"b": 2}, {"a": 3, "b": 4}, null]), json!([{"c": 1}, {"a": "x"}, []])),
        ("spec/nullable", json!(["x", null]), json!([5])),
        ("spec/map", json!([{"a": "1"}, {"b": "2"}, {"a": null}, {}]), json!([{"a": 5}, null])),
        ("spec/when", json!(["2001-01-01T00:00:00Z"]), json!(["yesterday"])),
        ("spec/ratio", json!([0.5, 1, 1.0, 100_000_000_000_000_000_000_000.0]), json!(["x"])),
        ("spec/unknown", json!([1]), json!([{"a": 1}])),
        ("status/phase", json!(["A", "B", null]), json!([5])),
        ("status/count", json!([1, 2]), json!([-1])),
        (
            "status/conditions",
            conditions(),
            json!([[{"type": "A", "status": "True"}, {"type": "A", "status": "False"}], [{"status": "x"}]]),
        ),
    ]
}

/// The definition of widgets, as a conformance case writes it.
pub const WIDGET: &str = r"> CRD Widget
schema:
  spec:
    type: object
    default: {}
    properties:
      size: {type: integer, minimum: 0, maximum: 10, default: 1}
      mode: {type: string, enum: [a, b], default: a}
      tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      items:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer, default: 80}}}
      pairs:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name, proto]
        items:
          type: object
          required: [name]
          properties: {name: {type: string}, proto: {type: string, default: TCP}, note: {type: string}}
      list: {type: array, items: {type: string}}
      atomic: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: string}}}
      any: {x-kubernetes-preserve-unknown-fields: true}
      port: {x-kubernetes-int-or-string: true}
      nested: {type: object, properties: {a: {type: integer}, b: {type: integer, default: 9}}}
      nullable: {type: string, nullable: true, default: q}
      map: {type: object, additionalProperties: {type: string}}
      when: {type: string, format: date-time}
      ratio: {type: number}
  status:
    type: object
    properties:
      phase: {type: string}
      count: {type: integer, minimum: 0}
      conditions:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [type]
        items: {type: object, required: [type, status], properties: {type: {type: string}, status: {type: string}, reason: {type: string}}}
subresources: {status: {}}";
