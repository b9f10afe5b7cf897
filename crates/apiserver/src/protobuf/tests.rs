use proptest::prelude::*;
use serde_json::json;

use super::*;

// Written by the Go client.
const NAMESPACE: &str = "azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhkKEQoBbhIAGgAiACoAMgA4AEIAEgAaAgoAGgAiAA==";
const CONFIG_MAP: &str =
    "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEjMKGQoBYxIAGgAiACoAMgA4AEIAWgYKAWESAWISBQoBZRIAEgYKAWsSAXYaBwoBeBICAP8aACIA";
const POD: &str = "azhzAAoJCgJ2MRIDUG9kEqgBChkKAXASABoAIgAqADIAOABCCAiA4s+qBhAAEnYKCQoBdhIEEgIKABJKCgFjEgFpKgBCDwoNCgNjcHUSBgoENTAwbVIfChMSEQoAEgkIARAAGgN3ZWIaACIAEAAYACAFKAAwAGoAcgCAAQCIAQCQAQCiAQAaADIAQgBKAFIAWABgAGgAggEAigEAmgEAqAEAwgEAGhMKABoAIgAqADIASgBaAHIAiAEAGgAiAA==";
const DEPLOYMENT: &str = "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50EmEKEQoBZBIAGgAiACoAMgA4AEIAEj4IABIAGjAKEAoAEgAaACIAKgAyADgAQgASHBoAMgBCAEoAUgBYAGAAaACCAQCKAQCaAQDCAQAiAgoAKAA4ABoMCAAQABgAIAAoADgAGgAiAA==";
const LEASE: &str =
    "azhzAAofChZjb29yZGluYXRpb24uazhzLmlvL3YxEgVMZWFzZRIlChEKAWwSABoAIgAqADIAOABCABIQCgJtZSIKCIDiz6oGEJDIAhoAIgA=";
const REVIEW: &str = "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSNQoQCgASABoAIgAqADIAOABCABIXChUKABIDZ2V0GgAiACoEcG9kczIAOgAaCAgAEgAaACAAGgAiAA==";
const EVICTION: &str = "azhzAAoVCglwb2xpY3kvdjESCEV2aWN0aW9uEiAKEQoBcBIAGgAiACoAMgA4AEIAEgsI////////////ARoAIgA=";
const DELETE_OPTIONS: &str = "azhzAAoYCgdhcHBzL3YxEg1EZWxldGVPcHRpb25zEg0iBk9ycGhhbioDQWxsGgAiAA==";

fn bytes(body: &str) -> Vec<u8> {
    STANDARD.decode(body).unwrap()
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "reads better in a table")]
fn check(body: &str, expected: Value) {
    assert_eq!(decode(&bytes(body)).unwrap(), expected);
}

#[test]
fn bodies_of_the_go_client_become_the_json_that_it_would_have_sent() {
    check(NAMESPACE, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}));
    check(
        CONFIG_MAP,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"a": "b"}},
            "data": {"k": "v", "e": ""}, "binaryData": {"x": "AP8="}}),
    );
    check(
        POD,
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "creationTimestamp": "2023-11-14T22:13:20Z"},
            "spec": {"automountServiceAccountToken": false, "volumes": [{"name": "v", "emptyDir": {}}],
                "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "500m"}},
                    "livenessProbe": {"httpGet": {"port": "web"}, "periodSeconds": 5}}]}}),
    );
    check(
        DEPLOYMENT,
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 0, "selector": {}}}),
    );
    check(
        LEASE,
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
            "spec": {"holderIdentity": "me", "renewTime": "2023-11-14T22:13:20.000042Z"}}),
    );
    check(
        REVIEW,
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}, "status": {"allowed": false}}),
    );
    check(
        EVICTION,
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"},
            "deleteOptions": {"gracePeriodSeconds": -1}}),
    );
    check(
        DELETE_OPTIONS,
        json!({"apiVersion": "apps/v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan", "dryRun": ["All"]}),
    );
}

#[test]
fn what_is_not_understood_is_refused() {
    let prefix = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    let check = |body: &[u8], why: &str| assert_eq!(decode(body).unwrap_err().to_string(), why);
    check(b"", "empty data");
    check(b"{}", prefix);
    check(b"k8s", prefix);
    check(b"k8s\0\x0a", "unexpected EOF");
    check(b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "unexpected EOF");
    check(b"k8s\0\x0b", "proto: illegal wireType 3");
    check(b"k8s\0\x0a\x06\x0a\x01x\x12\x01y", "no kind \"y\" is registered for version \"x\"");
    let foreign = ProtobufError::UnknownKind { api_version: "x".into(), kind: "y".into() };
    assert_eq!(decode(b"k8s\0\x0a\x06\x0a\x01x\x12\x01y"), Err(foreign));
}

/// A schema in a schema in a schema: `spec.versions[0].schema.openAPIV3Schema.not.not…`.
#[test]
fn hostile_nesting_is_refused() {
    let wrap = |field: &[u8], inner: &[u8]| {
        let mut out = field.to_vec();
        let mut length = inner.len();
        while length >= 0x80 {
            out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        out.push(u8::try_from(length).unwrap());
        out.extend_from_slice(inner);
        out
    };
    let nested = |depth: usize| {
        // JSONSchemaProps: 28 not; CustomResourceValidation: 1; CustomResourceDefinitionVersion: 4; spec: 7; 2.
        let schema = (0..depth).fold(Vec::new(), |inner, _| wrap(&[0xe2, 0x01], &inner));
        let object =
            [&[0x0a_u8][..], &[0x22], &[0x3a], &[0x12]].iter().fold(schema, |inner, field| wrap(field, &inner));
        let kind = wrap(&[0x12], b"CustomResourceDefinition");
        let meta = [wrap(&[0x0a], b"apiextensions.k8s.io/v1"), kind].concat();
        [MAGIC.to_vec(), wrap(&[0x0a], &meta), wrap(&[0x12], &object)].concat()
    };
    let found = decode(&nested(2)).unwrap();
    assert_eq!(found["spec"]["versions"][0]["schema"]["openAPIV3Schema"], json!({"not": {"not": {}}}), "{found}");
    assert_eq!(decode(&nested(10_000)), Err(ProtobufError::Malformed("exceeded max depth".into())));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        noise in proptest::collection::vec(any::<u8>(), 0..64),
        body in proptest::sample::select(vec![NAMESPACE, CONFIG_MAP, POD, DEPLOYMENT, LEASE, REVIEW, EVICTION]),
        at in any::<proptest::sample::Index>(),
    ) {
        drop(decode(&noise));
        drop(decode(&[MAGIC, &noise].concat()));
        // A real body, damaged behind the envelope.
        let mut body = bytes(body);
        let at = at.index(body.len());
        for (i, byte) in noise.iter().take(3).enumerate() {
            if let Some(place) = body.get_mut(at + i) {
                *place = *byte;
            }
        }
        drop(decode(&body));
        drop(decode(&body[..at]));
    }
}
