//! What a Go server says when JSON does not fit the struct that it is decoded into.
//!
//! Built-in kinds are structs there, so a string where a number belongs is no failed validation but a failed decoding: one
//! complaint, in the words of Go's JSON decoder. Of several, the one is reported that comes first by field name.

use serde_json::Value;

use super::{Schema, Shape};
use crate::json_syntax::type_name;

/// The first place where `value` cannot be decoded as the kind that `schema` describes, in the words of a real server.
pub fn decode_errors(value: &Value, schema: &Schema, kind: &str, version: &str) -> Option<String> {
    let root = Place { owner: "", parent: None, field: "" };
    let error = node(value, schema, &root).err()?;
    Some(format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}"))
}

/// Where in the object: the struct that has the field, and the fields from the root. Indices and keys are not named.
struct Place<'a> {
    owner: &'a str,
    parent: Option<&'a Place<'a>>,
    field: &'a str,
}

impl Place<'_> {
    fn write(&self, text: &mut String) {
        let Some(parent) = self.parent else { return };
        parent.write(text);
        if !text.is_empty() {
            text.push('.');
        }
        if let Some((_, inlined, _)) =
            INLINE.iter().find(|(owner, _, own)| *owner == self.owner && !own.contains(&self.field))
        {
            text.push_str(inlined);
            text.push('.');
        }
        text.push_str(self.field);
    }

    fn mismatch(&self, found: &str, wanted: &str) -> String {
        let mut path = String::new();
        self.write(&mut path);
        if path.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {wanted}");
        }
        let named = NAMED.iter().find(|(owner, field, _)| *owner == self.owner && *field == self.field);
        let wanted = named.map_or(wanted, |(_, _, name)| name);
        format!("json: cannot unmarshal {found} into Go struct field {}.{path} of type {wanted}", self.owner)
    }
}

/// Fields whose type has a name of its own in Go, which the schema does not tell: struct, field, type.
const NAMED: [(&str, &str, &str); 26] = [
    ("Container", "imagePullPolicy", "v1.PullPolicy"),
    ("Container", "terminationMessagePolicy", "v1.TerminationMessagePolicy"),
    ("ContainerPort", "protocol", "v1.Protocol"),
    ("CronJobSpec", "concurrencyPolicy", "v1.ConcurrencyPolicy"),
    ("DaemonSetUpdateStrategy", "type", "v1.DaemonSetUpdateStrategyType"),
    ("DeploymentStrategy", "type", "v1.DeploymentStrategyType"),
    ("HTTPGetAction", "scheme", "v1.URIScheme"),
    ("JobSpec", "completionMode", "v1.CompletionMode"),
    ("LabelSelectorRequirement", "operator", "v1.LabelSelectorOperator"),
    ("ObjectMeta", "uid", "types.UID"),
    ("ObjectReference", "uid", "types.UID"),
    ("OwnerReference", "uid", "types.UID"),
    ("PersistentVolumeClaimSpec", "volumeMode", "v1.PersistentVolumeMode"),
    ("PersistentVolumeSpec", "persistentVolumeReclaimPolicy", "v1.PersistentVolumeReclaimPolicy"),
    ("PodSpec", "dnsPolicy", "v1.DNSPolicy"),
    ("PodSpec", "preemptionPolicy", "v1.PreemptionPolicy"),
    ("PodSpec", "restartPolicy", "v1.RestartPolicy"),
    ("PodStatus", "phase", "v1.PodPhase"),
    ("Secret", "type", "v1.SecretType"),
    ("ServicePort", "protocol", "v1.Protocol"),
    ("ServiceSpec", "externalTrafficPolicy", "v1.ServiceExternalTrafficPolicy"),
    ("ServiceSpec", "sessionAffinity", "v1.ServiceAffinity"),
    ("ServiceSpec", "type", "v1.ServiceType"),
    ("StatefulSetSpec", "podManagementPolicy", "v1.PodManagementPolicyType"),
    ("Taint", "effect", "v1.TaintEffect"),
    ("Toleration", "operator", "v1.TolerationOperator"),
];

/// Structs that Go puts into others without a name in JSON; a refusal names them all the same. The first struct has the fields
/// of the second, except for the ones that are listed.
const INLINE: [(&str, &str, &[&str]); 3] = [
    ("Volume", "VolumeSource", &["name"]),
    ("EphemeralContainer", "EphemeralContainerCommon", &["targetContainerName"]),
    (
        "Probe",
        "ProbeHandler",
        &[
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
            "terminationGracePeriodSeconds",
        ],
    ),
];

fn node(value: &Value, schema: &Schema, place: &Place<'_>) -> Result<(), String> {
    let format = schema.rules.as_ref().and_then(|rules| rules.format.as_deref());
    match (value, &schema.shape) {
        (Value::Null, _)
        | (Value::Bool(_), Shape::Boolean)
        | (Value::Number(_), Shape::Number)
        | (Value::String(_), Shape::IntOrString) => Ok(()),
        (value, Shape::Any) if ends_with(schema, ".Quantity") => quantity(value),
        (_, Shape::Any) => Ok(()),
        (Value::String(text), Shape::String) => match format {
            Some("date-time") => time(text, ends_with(schema, ".MicroTime")),
            Some("byte") => base64(text),
            _ => Ok(()),
        },
        (Value::Number(number), Shape::Integer | Shape::IntOrString) => {
            let narrow = format == Some("int32") || matches!(schema.shape, Shape::IntOrString);
            match number.as_i64() {
                Some(whole) if !narrow || i32::try_from(whole).is_ok() => Ok(()),
                _ if narrow => Err(place.mismatch(&format!("number {number}"), "int32")),
                _ => Err(place.mismatch(&format!("number {number}"), "int64")),
            }
        }
        (other, Shape::IntOrString) => Err(place.mismatch(type_name(other), "int32")),
        (Value::Object(fields), Shape::Object(shape)) => {
            let owner = schema.definition.as_deref().map_or(place.owner, struct_name);
            for (name, value) in fields {
                if let Some(known) = shape.properties.get(name) {
                    node(value, known, &Place { owner, parent: Some(place), field: name })?;
                } else if let Some(additional) = &shape.additional {
                    node(value, additional, place)?;
                }
            }
            Ok(())
        }
        (Value::Array(elements), Shape::Array(shape)) => {
            elements.iter().try_for_each(|element| node(element, &shape.items, place))
        }
        (other, Shape::String) if format == Some("date-time") => Err(place.mismatch(type_name(other), "string")),
        (other, _) => Err(place.mismatch(type_name(other), &go_type(schema))),
    }
}

fn ends_with(schema: &Schema, end: &str) -> bool {
    schema.definition.as_deref().is_some_and(|definition| definition.ends_with(end))
}

/// `DeploymentSpec` of `io.k8s.api.apps.v1.DeploymentSpec`.
fn struct_name(definition: &str) -> &str {
    definition.rsplit('.').next().unwrap_or(definition)
}

/// Go's name of a type: that of a struct is qualified by the last word of its package.
fn go_type(schema: &Schema) -> String {
    if let Some(definition) = &schema.definition {
        let mut words = definition.rsplit('.');
        let (name, package) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        return format!("{package}.{name}");
    }
    let format = schema.rules.as_ref().and_then(|rules| rules.format.as_deref());
    match &schema.shape {
        Shape::String if format == Some("byte") => "[]uint8".to_owned(),
        Shape::String => "string".to_owned(),
        Shape::Integer => format.unwrap_or("int32").to_owned(),
        Shape::Number => "float64".to_owned(),
        Shape::Boolean => "bool".to_owned(),
        Shape::IntOrString => "intstr.IntOrString".to_owned(),
        Shape::Array(shape) => format!("[]{}", go_type(&shape.items)),
        Shape::Object(shape) => match &shape.additional {
            Some(values) if ends_with(values, ".Quantity") => "v1.ResourceList".to_owned(),
            Some(values) => format!("map[string]{}", go_type(values)),
            None => "struct {}".to_owned(),
        },
        Shape::Any => "interface {}".to_owned(),
    }
}

fn quantity(value: &Value) -> Result<(), String> {
    const SHAPE: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let text = match value {
        Value::String(text) => text.trim(),
        Value::Number(_) => return Ok(()),
        _ => return Err(SHAPE.to_owned()),
    };
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = unsigned.trim_start_matches(|c: char| c.is_ascii_digit());
    let suffix = digits.strip_prefix('.').map_or(digits, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if text.is_empty() || !exponent.bytes().all(|b| b.is_ascii_digit()) {
        return Err(SHAPE.to_owned());
    }
    let known = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].contains(&suffix);
    let power = suffix.strip_prefix(['e', 'E']).is_some_and(|power| {
        let power = power.strip_prefix(['+', '-']).unwrap_or(power);
        !power.is_empty() && power.bytes().all(|b| b.is_ascii_digit())
    });
    if known || power { Ok(()) } else { Err("unable to parse quantity's suffix".to_owned()) }
}

/// RFC 3339, and the words of Go's `time.Parse` for what is not.
fn time(text: &str, micro: bool) -> Result<(), String> {
    let fraction = if micro { ".000000" } else { "" };
    let cannot = |rest: &str, element: &str| {
        format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05{fraction}Z07:00\": cannot parse {rest:?} as {element:?}"
        )
    };
    let mut rest = text;
    let mut numbers = [0_u32; 6];
    let elements = [("2006", "-"), ("01", "-"), ("02", "T"), ("15", ":"), ("04", ":"), ("05", "")];
    for ((element, separator), number) in elements.into_iter().zip(&mut numbers) {
        let digits = rest.get(..element.len()).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        let Some(parsed) = digits.and_then(|digits| digits.parse().ok()) else { return Err(cannot(rest, element)) };
        *number = parsed;
        rest = rest.get(element.len()..).unwrap_or_default();
        let Some(after) = rest.strip_prefix(separator) else { return Err(cannot(rest, separator)) };
        rest = after;
    }
    let [year, month, day, hour, minute, second] = numbers;
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let ranges = [
        ("month", (1..=12).contains(&month)),
        ("hour", hour < 24),
        ("minute", minute < 60),
        ("second", second < 60),
        ("day", (1..=days).contains(&day)),
    ];
    if let Some((what, _)) = ranges.iter().find(|(_, sound)| !sound) {
        return Err(format!("parsing time {text:?}: {what} out of range"));
    }
    match rest.strip_prefix(['.', ',']).map(|after| (after, after.trim_start_matches(|c: char| c.is_ascii_digit()))) {
        Some((after, beyond)) if after.len() > beyond.len() => rest = beyond,
        _ if micro => return Err(cannot(rest, fraction)),
        _ => {}
    }
    let zone = rest == "Z" || matches!(rest.as_bytes(), [b'+' | b'-', _, _, b':', _, _]);
    if zone { Ok(()) } else { Err(cannot(rest, "Z07:00")) }
}

fn base64(text: &str) -> Result<(), String> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    // Go skips line breaks inside.
    let at = match STANDARD.decode(text) {
        Ok(_) => return Ok(()),
        Err(_) if text.contains(['\n', '\r']) && STANDARD.decode(text.replace(['\n', '\r'], "")).is_ok() => {
            return Ok(());
        }
        Err(base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol { offset: at, .. }) => at,
        Err(base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding) => text.len(),
    };
    Err(format!("illegal base64 data at input byte {at}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::decode_errors;
    use crate::schema::definitions::Definitions;

    fn definitions() -> Definitions {
        let reference =
            |name: &str| json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}], "default": {}});
        let facts = json!({
            "io.k8s.api.apps.v1.Deployment": {"type": "object", "properties": {
                "metadata": reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
                "spec": reference("io.k8s.api.apps.v1.DeploymentSpec"),
            }},
            "io.k8s.api.apps.v1.DeploymentSpec": {"type": "object", "properties": {
                "replicas": {"type": "integer", "format": "int32"},
                "paused": {"type": "boolean"},
                "limits": {"type": "object", "additionalProperties": reference("io.k8s.apimachinery.pkg.api.resource.Quantity")},
                "containers": {"type": "array", "items": reference("io.k8s.api.core.v1.Container")},
                "key": {"type": "string", "format": "byte"},
                "volumes": {"type": "array", "items": reference("io.k8s.api.core.v1.Volume")},
            }},
            "io.k8s.api.core.v1.Volume": {"type": "object", "properties": {
                "name": {"type": "string", "default": ""},
                "configMap": {"type": "object", "properties": {"name": {"type": "string"}}},
            }},
            "io.k8s.api.core.v1.Container": {"type": "object", "properties": {
                "name": {"type": "string", "default": ""},
                "imagePullPolicy": {"type": "string"},
                "port": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
            }},
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "properties": {
                "labels": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
                "creationTimestamp": {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time"}]},
            }},
            "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
            "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
        });
        Definitions::parse(facts.to_string().as_bytes()).unwrap()
    }

    #[track_caller]
    fn check(object: &Value, expected: Option<&str>) {
        let schema = definitions().schema("io.k8s.api.apps.v1.Deployment").unwrap();
        let prefix = "Deployment in version \"v1\" cannot be handled as a Deployment: ";
        let expected = expected.map(|text| format!("{prefix}{text}"));
        assert_eq!(decode_errors(object, &schema, "Deployment", "v1"), expected);
    }

    #[test]
    fn what_fits_is_taken() {
        check(
            &json!({"metadata": {"labels": {"a": "b", "c": null}, "creationTimestamp": "2024-02-29T00:00:00Z"},
                    "spec": {"replicas": 3, "paused": null, "limits": {"cpu": 1, "memory": "1Gi", "x": "1e3"}, "key": "YWJj",
                             "containers": [{"name": "a", "port": 80}, {"port": "http"}]}}),
            None,
        );
    }

    #[test]
    fn a_mismatch_names_the_struct_and_the_field() {
        let into = |found: &str, field: &str, wanted: &str| {
            format!("json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")
        };
        let cases = [
            (json!({"spec": {"replicas": "3"}}), into("string", "DeploymentSpec.spec.replicas", "int32")),
            (json!({"spec": {"replicas": 1.5}}), into("number 1.5", "DeploymentSpec.spec.replicas", "int32")),
            (
                json!({"spec": {"replicas": 3_000_000_000_u32}}),
                into("number 3000000000", "DeploymentSpec.spec.replicas", "int32"),
            ),
            (json!({"spec": {"paused": "yes"}}), into("string", "DeploymentSpec.spec.paused", "bool")),
            (json!({"spec": []}), into("array", "Deployment.spec", "v1.DeploymentSpec")),
            (json!({"spec": {"containers": {}}}), into("object", "DeploymentSpec.spec.containers", "[]v1.Container")),
            (
                json!({"spec": {"containers": [{"name": 1}]}}),
                into("number", "Container.spec.containers.name", "string"),
            ),
            (json!({"metadata": {"labels": {"a": 1}}}), into("number", "ObjectMeta.metadata.labels", "string")),
            (json!({"spec": {"limits": 1}}), into("number", "DeploymentSpec.spec.limits", "v1.ResourceList")),
            (json!({"spec": {"volumes": [{"name": 1}]}}), into("number", "Volume.spec.volumes.name", "string")),
            (
                json!({"spec": {"volumes": [{"configMap": 1}]}}),
                into("number", "Volume.spec.volumes.VolumeSource.configMap", "struct {}"),
            ),
            (
                json!({"spec": {"containers": [{"imagePullPolicy": 1}]}}),
                into("number", "Container.spec.containers.imagePullPolicy", "v1.PullPolicy"),
            ),
            (json!({"metadata": {"labels": "x"}}), into("string", "ObjectMeta.metadata.labels", "map[string]string")),
        ];
        for (object, expected) in cases {
            check(&object, Some(&expected));
        }
        check(&json!("x"), Some("json: cannot unmarshal string into Go value of type v1.Deployment"));
    }

    #[test]
    fn texts_with_a_meaning_are_read() {
        let layout = "2006-01-02T15:04:05Z07:00";
        let cases = [
            (
                json!({"metadata": {"creationTimestamp": "abc"}}),
                format!("parsing time \"abc\" as {layout:?}: cannot parse \"abc\" as \"2006\""),
            ),
            (
                json!({"metadata": {"creationTimestamp": "2024-02-30T00:00:00Z"}}),
                "parsing time \"2024-02-30T00:00:00Z\": day out of range".to_owned(),
            ),
            (
                json!({"spec": {"limits": {"cpu": "x"}}}),
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                    .to_owned(),
            ),
            (json!({"spec": {"limits": {"cpu": "1mm"}}}), "unable to parse quantity's suffix".to_owned()),
            (json!({"spec": {"key": "a b"}}), "illegal base64 data at input byte 1".to_owned()),
        ];
        for (object, expected) in cases {
            check(&object, Some(&expected));
        }
    }
}
