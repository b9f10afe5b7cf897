//! What is wrong with a `CustomResourceDefinition`.
//!
//! Kubernetes judges an older form of it, in which what all versions share stands once for all: that is why a schema that is
//! the same in all versions (also: in the only one) is complained about as `spec.validation`.

use serde_json::Value;

use super::version::{columns, deprecation, selectable_fields, subresources};
use super::{defaults, openapi, shown, structural};
use crate::field::FieldError;
use crate::meta::format::{is_dns_subdomain, is_dns1035_label};
use crate::path::Path;
use crate::schema::{compile, format};
use crate::value::Fields;

const SPEC: Path<'static> = Path::new("spec");
const STATUS: Path<'static> = Path::new("status");
const APPROVAL: &str = "api-approved.kubernetes.io";

/// What is wrong with the definition; the second argument is the definition as stored (an update), or `None` (a create).
/// The rules that all metadata follows are checked elsewhere.
pub fn validate(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = crd.at("spec");
    if old.is_none() {
        let name = crd.at("metadata").text("name");
        if name != format!("{}.{}", spec.at("names").text("plural"), spec.text("group")) {
            let detail = "must be spec.names.plural+\".\"+spec.group";
            errors.push(FieldError::invalid(Path::new("metadata").field("name"), name, detail));
        }
    }
    validate_spec(spec, &mut errors);
    if let Some(old) = old {
        immutable(spec, old, &mut errors);
    }
    names(crd.at("status").at("acceptedNames"), &STATUS.field("acceptedNames"), &mut errors);
    stored_versions(crd, &mut errors);
    approval(crd, old, &mut errors);
    let preserves = |crd: &Value| crd.at("spec").flag("preserveUnknownFields");
    if preserves(crd) && !old.is_some_and(preserves) {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid(SPEC.field("preserveUnknownFields"), true, detail));
    }
    errors
}

/// What changes slowly: the names by which stored objects are found.
fn immutable(spec: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let old_spec = old.at("spec");
    let established = super::condition(old, "Established").is_some_and(|condition| condition.text("status") == "True");
    let names = SPEC.field("names");
    let (new_names, old_names) = (spec.at("names"), old_spec.at("names"));
    let fields = [
        (established, spec.at("scope"), old_spec.at("scope"), SPEC.field("scope")),
        (established, new_names.at("kind"), old_names.at("kind"), names.field("kind")),
        (true, spec.at("group"), old_spec.at("group"), SPEC.field("group")),
        (true, new_names.at("plural"), old_names.at("plural"), names.field("plural")),
    ];
    for (fixed, new, old, place) in fields {
        if fixed && new != old {
            errors.push(FieldError::invalid(place, new.clone(), "field is immutable"));
        }
    }
}

fn validate_spec(spec: &Value, errors: &mut Vec<FieldError>) {
    group_and_scope(spec, errors);
    let versions = spec.list("versions");
    let list = SPEC.field("versions");
    let shared_parts = shared_parts(versions);
    let shared = |part: &str| shared_parts.contains(&part);
    if !shared("schema") || versions.first().is_some_and(|first| !has_schema(first)) {
        for (index, version) in versions.iter().enumerate() {
            if !has_schema(version) {
                let place = list.index(index);
                errors.push(FieldError::required(place.field("schema").field("openAPIV3Schema"), ""));
            }
        }
    }
    if spec.flag("preserveUnknownFields") && versions.iter().any(|v| has_default(v.at("schema").at("openAPIV3Schema")))
    {
        let detail = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(SPEC.field("preserveUnknownFields"), true, detail));
    }
    for (index, version) in versions.iter().enumerate() {
        let place = list.index(index);
        complain(errors, &place.field("name"), version.text("name"), &is_dns1035_label(version.text("name")));
        deprecation(version, &place, errors);
        if !shared("schema") {
            let status = version.at("subresources").has("status");
            schema(version.at("schema"), status, &place.field("schema"), errors);
        }
        if !shared("subresources") {
            subresources(version.at("subresources"), &place.field("subresources"), errors);
        }
        if !shared("additionalPrinterColumns") {
            columns(version, &place.field("additionalPrinterColumns"), errors);
        }
        if !shared("selectableFields") {
            selectable_fields(version, &place, errors);
        }
    }
    counts(versions, &shared_parts, errors);
    spec_names(spec.at("names"), errors);
    if let Some(first) = versions.first() {
        let status = versions.iter().any(|version| version.at("subresources").has("status"));
        if shared("schema") {
            schema(first.at("schema"), status, &SPEC.field("validation"), errors);
        }
        if shared("subresources") {
            subresources(first.at("subresources"), &SPEC.field("subresources"), errors);
        }
        if shared("additionalPrinterColumns") {
            columns(first, &SPEC.field("additionalPrinterColumns"), errors);
        }
        if shared("selectableFields") {
            selectable_fields(first, &SPEC, errors);
        }
    }
    conversion(spec, errors);
}

/// The parts of a version that stand once for all when they are the same in all versions.
const PARTS: [&str; 4] = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];

fn shared_parts(versions: &[Value]) -> Vec<&'static str> {
    let same = |part: &&str| {
        let mut values = versions.iter().map(|version| version.at(part));
        let first = values.next();
        values.all(|value| Some(value) == first)
    };
    PARTS.into_iter().filter(same).collect()
}

fn has_schema(version: &Value) -> bool {
    version.at("schema").has("openAPIV3Schema")
}

fn has_default(schema: &Value) -> bool {
    match schema {
        Value::Object(keywords) => keywords.contains_key("default") || keywords.values().any(has_default),
        Value::Array(schemas) => schemas.iter().any(has_default),
        _ => false,
    }
}

fn complain(errors: &mut Vec<FieldError>, place: &Path<'_>, value: &str, wrong: &[String]) {
    if !wrong.is_empty() {
        errors.push(FieldError::invalid(*place, value, wrong.join(",")));
    }
}

fn group_and_scope(spec: &Value, errors: &mut Vec<FieldError>) {
    let (group, place) = (spec.text("group"), SPEC.field("group"));
    let wrong = is_dns_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(place, ""));
    } else if !wrong.is_empty() {
        complain(errors, &place, group, &wrong);
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(place, group, "should be a domain with at least one dot"));
    }
    one_of(spec.text("scope"), &["Cluster", "Namespaced"], &SPEC.field("scope"), errors);
}

fn one_of(value: &str, allowed: &[&str], place: &Path<'_>, errors: &mut Vec<FieldError>) {
    if value.is_empty() {
        errors.push(FieldError::required(*place, ""));
    } else if !allowed.contains(&value) {
        errors.push(FieldError::not_supported(*place, value, allowed));
    }
}

fn counts(versions: &[Value], shared: &[&str], errors: &mut Vec<FieldError>) {
    let place = SPEC.field("versions");
    let names: Vec<&str> = versions.iter().map(|version| version.text("name")).collect();
    let repeated =
        names.iter().enumerate().any(|(index, name)| names.iter().take(index).any(|earlier| earlier == name));
    let complaint = |detail: &str| {
        // A list that is not there is none in Go either.
        let shown = if versions.is_empty() { "null".to_owned() } else { shown::versions(versions, shared) };
        FieldError::invalid(place, Value::Array(versions.to_vec()), detail).showing(shown)
    };
    if repeated {
        errors.push(complaint("must contain unique version names"));
    }
    if versions.iter().filter(|version| version.flag("storage")).count() != 1 {
        errors.push(complaint("must have exactly one version marked as storage version"));
    }
    if let Some(first) = names.first().filter(|first| !first.is_empty()) {
        complain(errors, &SPEC.field("version"), first, &is_dns1035_label(first));
    }
}

fn spec_names(given: &Value, errors: &mut Vec<FieldError>) {
    let place = SPEC.field("names");
    for name in ["plural", "singular", "kind", "listKind"] {
        if given.text(name).is_empty() {
            errors.push(FieldError::required(place.field(name), ""));
        }
    }
    names(given, &place, errors);
}

fn names(names: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for field in ["plural", "singular"] {
        let name = names.text(field);
        if !name.is_empty() {
            complain(errors, &path.field(field), name, &is_dns1035_label(name));
        }
    }
    for field in ["kind", "listKind"] {
        let kind = names.text(field);
        let wrong = is_dns1035_label(&kind.to_lowercase());
        if !kind.is_empty() && !wrong.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            errors.push(FieldError::invalid(path.field(field), kind, detail));
        }
    }
    let list = |field: &str, errors: &mut Vec<FieldError>| {
        let place = path.field(field);
        for (index, name) in names.texts(field).enumerate() {
            complain(errors, &place.index(index), name, &is_dns1035_label(name));
        }
    };
    list("shortNames", errors);
    let (kind, list_kind) = (names.text("kind"), names.text("listKind"));
    if !kind.is_empty() && kind == list_kind {
        errors.push(FieldError::invalid(path.field("listKind"), list_kind, "kind and listKind may not be the same"));
    }
    list("categories", errors);
}

fn schema(validation: &Value, status: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let schema = validation.at("openAPIV3Schema");
    if !schema.is_object() {
        return;
    }
    let place = path.field("openAPIV3Schema");
    let before = errors.len();
    if status {
        root_keywords(schema, &place, errors);
    }
    if schema.flag("nullable") {
        errors.push(FieldError::forbidden(place.field("nullable"), "nullable cannot be true at the root"));
    }
    let unsupported = structural::unsupported(schema);
    if unsupported.is_none() {
        let found = structural::validate(schema, &place);
        if found.is_empty() {
            defaults::validate(&compile::structural(schema, None), &place, errors);
        }
        errors.extend(found);
    }
    openapi::validate(schema, &place, errors);
    #[cfg(feature = "cel")]
    if errors.len() == before && unsupported.is_none() {
        crate::cel::definition(schema, &place, errors);
    }
    if let Some(detail) = unsupported.filter(|_| errors.len() == before) {
        errors.push(FieldError::invalid(place, "", detail));
    }
}

/// With a status of its own, the object as a whole can have few rules: each half is validated without the other.
fn root_keywords(schema: &Value, place: &Path<'_>, errors: &mut Vec<FieldError>) {
    const FORBIDDEN: [&str; 22] = [
        "id",
        "$schema",
        "$ref",
        "nullable",
        "default",
        "enum",
        "maxProperties",
        "minProperties",
        "allOf",
        "oneOf",
        "anyOf",
        "not",
        "additionalProperties",
        "patternProperties",
        "dependencies",
        "additionalItems",
        "definitions",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ];
    let declared = schema.text("type");
    let filled = |keyword: &&&str| !matches!(schema.at(keyword), Value::Null | Value::Bool(false));
    if !declared.is_empty() && declared != "object" {
        let detail =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(place.field("type"), declared, detail));
    } else if FORBIDDEN.iter().any(|keyword| filled(&keyword)) {
        let detail = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength \
                      Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example \
                      XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status \
                      subresource is enabled";
        errors.push(FieldError::invalid(*place, schema.clone(), detail).showing(shown::schema(schema)));
    }
}

fn conversion(spec: &Value, errors: &mut Vec<FieldError>) {
    let conversion = spec.at("conversion");
    if !conversion.is_object() {
        return;
    }
    let place = SPEC.field("conversion");
    let (strategy, webhook) = (conversion.text("strategy"), conversion.at("webhook"));
    if strategy != "None" && spec.flag("preserveUnknownFields") {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(place.field("strategy"), strategy, detail));
    }
    one_of(strategy, &["None", "Webhook"], &place.field("strategy"), errors);
    let (client, versions) = (webhook.at("clientConfig"), webhook.list("conversionReviewVersions"));
    let (client_place, versions_place) = (place.field("webhookClientConfig"), place.field("conversionReviewVersions"));
    if strategy != "Webhook" {
        for (set, place) in [(!client.is_null(), client_place), (!versions.is_empty(), versions_place)] {
            if set {
                errors.push(FieldError::forbidden(place, "should not be set when strategy is not set to Webhook"));
            }
        }
        return;
    }
    if client.is_null() {
        errors.push(FieldError::required(client_place, "required when strategy is set to Webhook"));
    } else if client.has("url") == client.has("service") {
        errors.push(FieldError::required(client_place, "exactly one of url or service is required"));
    }
    if versions.is_empty() {
        errors.push(FieldError::required(versions_place, ""));
    } else if !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        errors.push(FieldError::invalid(versions_place, versions.to_vec(), "must include at least one of v1, v1beta1"));
    }
}

fn stored_versions(crd: &Value, errors: &mut Vec<FieldError>) {
    let place = STATUS.field("storedVersions");
    let status = crd.at("status");
    let stored: Vec<&str> = status.texts("storedVersions").collect();
    if stored.is_empty() {
        errors.push(FieldError::invalid(place, Value::Null, "must have at least one stored version"));
        return;
    }
    let versions = crd.at("spec").list("versions");
    for (index, version) in versions.iter().enumerate() {
        let name = version.text("name");
        // A name that stands twice is found once.
        let found = stored.contains(&name) && !versions.iter().take(index).any(|earlier| earlier.text("name") == name);
        if version.flag("storage") && !found {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(place, status.at("storedVersions").clone(), detail));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if !versions.iter().any(|version| version.text("name") == *name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a \
                 storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(place.index(index), *name, detail));
        }
    }
}

/// Groups of the Kubernetes community need an approval, or an explicit lack of one.
fn approval(crd: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let group = crd.at("spec").text("group");
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    let annotation = |crd: &'_ Value| crd.at("metadata").at("annotations").text(APPROVAL).to_owned();
    let state = |text: &str| match text {
        "" => "missing",
        text if text.starts_with("unapproved") => "bypassed",
        text if text.contains("://") && format::matches("uri", text) == Some(true) => "approved",
        _ => "invalid",
    };
    let given = annotation(crd);
    let now = state(&given);
    if !protected || old.is_some_and(|old| state(&annotation(old)) == now) {
        return;
    }
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let annotations = Path::new("metadata");
    let annotations = annotations.field("annotations");
    let place = annotations.key(APPROVAL);
    if now == "missing" {
        let detail = format!("protected groups must have approval annotation {APPROVAL:?}, {see}");
        errors.push(FieldError::required(place, detail));
    } else if now == "invalid" {
        let detail = format!(
            "protected groups must have approval annotation {APPROVAL:?} with either a URL or a reason starting with \
             \"unapproved\", {see}"
        );
        errors.push(FieldError::invalid(place, given, detail));
    }
}
