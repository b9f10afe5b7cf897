//! Parameters of delete and deletecollection: from the body when there is one, else from the query string. Never from both.

use serde_json::Value;

use super::{Query, check_dry_run, refuse_options};
use crate::field::FieldError;
use crate::json_syntax::type_name;
use crate::status::ApiError;

/// How an object is deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Only if the object is still this one.
    pub preconditions: Preconditions,
    /// How long the object may take to end. A negative period counts as one second.
    pub grace_period_seconds: Option<i64>,
    /// What happens to what the object owns. `None`: what the kind does by default.
    pub propagation: Option<Propagation>,
    /// `orphanDependents`, the old way to say it. `Some(false)` makes the answer 202 when the object is not gone at once.
    pub orphan_dependents: Option<bool>,
    /// Everything but the deletion.
    pub dry_run: bool,
}

/// What must still be true of the object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// Its uid.
    pub uid: Option<String>,
    /// Its resource version.
    pub resource_version: Option<String>,
}

/// What happens to what an object owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// It is left behind.
    Orphan,
    /// It goes after the object.
    Background,
    /// It goes before the object.
    Foreground,
}

/// The options as sent.
#[derive(Default)]
struct Sent {
    preconditions: Preconditions,
    grace_period_seconds: Option<i64>,
    propagation: Option<String>,
    orphan_dependents: Option<bool>,
    dry_run: Vec<String>,
}

impl DeleteOptions {
    /// Reads the parameters; a body, when there is one, replaces the query string.
    pub fn parse(query: &Query<'_>, body: Option<&Value>) -> Result<Self, ApiError> {
        let sent = match body {
            Some(body) => Sent::from_body(body).map_err(ApiError::bad_request)?,
            None => Sent::from_query(query)?,
        };
        sent.check()
    }
}

impl Sent {
    fn from_query(query: &Query<'_>) -> Result<Self, ApiError> {
        let text = |key: &str| query.first(key).filter(|v| !v.is_empty()).map(str::to_owned);
        Ok(Self {
            preconditions: Preconditions { uid: text("uid"), resource_version: text("resourceVersion") },
            grace_period_seconds: query.number("gracePeriodSeconds")?,
            propagation: query.first("propagationPolicy").map(str::to_owned),
            orphan_dependents: query.flag("orphanDependents"),
            dry_run: query.all("dryRun").map(str::to_owned).collect(),
        })
    }

    fn from_body(body: &Value) -> Result<Self, String> {
        if !body.is_object() && !body.is_null() {
            let found = type_name(body);
            return Err(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct \
                 {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
            ));
        }
        let kind = body.get("kind").and_then(Value::as_str).unwrap_or_default();
        if !matches!(kind, "" | "DeleteOptions") {
            let version = body.get("apiVersion").and_then(Value::as_str).unwrap_or("v1");
            let scheme = "pkg/runtime/scheme.go:111";
            return Err(format!("no kind {kind:?} is registered for version {version:?} in scheme {scheme:?}"));
        }
        let none = Value::Null;
        let preconditions = body.get("preconditions").unwrap_or(&none);
        if !preconditions.is_object() && !preconditions.is_null() {
            return Err(mismatch(preconditions, "DeleteOptions.preconditions", "v1.Preconditions"));
        }
        let inside = "Preconditions.preconditions";
        Ok(Self {
            preconditions: Preconditions {
                uid: text(preconditions, inside, "uid", "types.UID")?,
                resource_version: text(preconditions, inside, "resourceVersion", "string")?,
            },
            grace_period_seconds: number(body, "gracePeriodSeconds")?,
            propagation: text(body, "DeleteOptions", "propagationPolicy", "v1.DeletionPropagation")?,
            orphan_dependents: flag(body, "orphanDependents")?,
            dry_run: texts(body, "dryRun")?,
        })
    }

    fn check(self) -> Result<DeleteOptions, ApiError> {
        let mut errors = Vec::new();
        let field = "propagationPolicy";
        if let (Some(_), Some(policy)) = (self.orphan_dependents, &self.propagation) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(field, policy.as_str(), why));
        }
        let propagation = match self.propagation.as_deref() {
            None => None,
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let allowed = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(field, other, &allowed));
                None
            }
        };
        check_dry_run(&self.dry_run.iter().map(String::as_str).collect::<Vec<_>>(), &mut errors);
        refuse_options("DeleteOptions", &errors)?;
        let old = |orphan| if orphan { Propagation::Orphan } else { Propagation::Background };
        Ok(DeleteOptions {
            preconditions: self.preconditions,
            grace_period_seconds: self.grace_period_seconds.map(|s| if s < 0 { 1 } else { s }),
            propagation: propagation.or(self.orphan_dependents.map(old)),
            orphan_dependents: self.orphan_dependents,
            dry_run: !self.dry_run.is_empty(),
        })
    }
}

fn mismatch(found: &Value, path: &str, wanted: &str) -> String {
    let found = match found {
        Value::Number(n) if wanted == "int64" => format!("number {n}"),
        other => type_name(other).to_owned(),
    };
    format!("json: cannot unmarshal {found} into Go struct field {path} of type {wanted}")
}

fn text(object: &Value, owner: &str, field: &str, wanted: &str) -> Result<Option<String>, String> {
    match object.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(mismatch(other, &format!("{owner}.{field}"), wanted)),
    }
}

fn number(object: &Value, field: &str) -> Result<Option<i64>, String> {
    match object.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(other) => {
            let wrong = || mismatch(other, &format!("DeleteOptions.{field}"), "int64");
            other.as_i64().map(Some).ok_or_else(wrong)
        }
    }
}

fn flag(object: &Value, field: &str) -> Result<Option<bool>, String> {
    match object.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(other) => Err(mismatch(other, &format!("DeleteOptions.{field}"), "bool")),
    }
}

fn texts(object: &Value, field: &str) -> Result<Vec<String>, String> {
    let path = || format!("DeleteOptions.{field}");
    match object.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            items.iter().map(|i| i.as_str().map(str::to_owned).ok_or_else(|| mismatch(i, &path(), "string"))).collect()
        }
        Some(other) => Err(mismatch(other, &path(), "[]string")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "reads better in a table")]
    fn refuses(query: &str, body: Option<Value>, code: u16, message: &str) {
        let refusal = DeleteOptions::parse(&Query::parse(query), body.as_ref()).unwrap_err();
        assert_eq!((refusal.code.as_u16(), refusal.message.as_str()), (code, message), "{query} {body:?}");
    }

    #[test]
    fn a_body_replaces_the_query_string() {
        let body = json!({"kind": "DeleteOptions", "apiVersion": "apps/v1", "gracePeriodSeconds": -5, "dryRun": ["All"],
            "preconditions": {"uid": "u", "resourceVersion": "7"}, "propagationPolicy": "Foreground", "foo": 1});
        let options = DeleteOptions::parse(&Query::parse("gracePeriodSeconds=x"), Some(&body)).unwrap();
        let expected = DeleteOptions {
            preconditions: Preconditions { uid: Some("u".into()), resource_version: Some("7".into()) },
            grace_period_seconds: Some(1),
            propagation: Some(Propagation::Foreground),
            orphan_dependents: None,
            dry_run: true,
        };
        assert_eq!(options, expected);
        assert_eq!(DeleteOptions::parse(&Query::default(), Some(&json!({}))), Ok(DeleteOptions::default()));
    }

    #[test]
    fn the_query_string_counts_without_a_body() {
        let query = Query::parse("gracePeriodSeconds=5&orphanDependents=true&uid=u&resourceVersion=7");
        let options = DeleteOptions::parse(&query, None).unwrap();
        assert_eq!((options.grace_period_seconds, options.propagation), (Some(5), Some(Propagation::Orphan)));
        assert_eq!(options.preconditions.resource_version.as_deref(), Some("7"));
    }

    #[test]
    fn options_that_make_no_sense_are_invalid() {
        let invalid = |query: &str, body: Option<Value>, why: &str| {
            refuses(query, body, 422, &format!("DeleteOptions.meta.k8s.io \"\" is invalid: {why}"));
        };
        let policy = |value: &str| {
            format!(
                "propagationPolicy: Unsupported value: {value:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            )
        };
        let both =
            "propagationPolicy: Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set";
        invalid("propagationPolicy=Foo", None, &policy("Foo"));
        invalid("propagationPolicy=", None, &policy(""));
        invalid("", Some(json!({"propagationPolicy": "Foo"})), &policy("Foo"));
        invalid("propagationPolicy=Orphan&orphanDependents=true", None, both);
        invalid("", Some(json!({"orphanDependents": true, "propagationPolicy": "Orphan"})), both);
        invalid("dryRun=X", None, "dryRun: Unsupported value: [\"X\"]: supported values: \"All\"");
    }

    #[test]
    fn options_of_the_wrong_type_are_bad_requests() {
        let check = |body: Value, why: &str| refuses("", Some(body), 400, why);
        check(
            json!({"gracePeriodSeconds": "x"}),
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        );
        check(
            json!({"gracePeriodSeconds": 5.5}),
            "json: cannot unmarshal number 5.5 into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        );
        check(
            json!({"dryRun": "All"}),
            "json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string",
        );
        check(
            json!({"preconditions": {"uid": 5}}),
            "json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID",
        );
        check(
            json!({"kind": "Foo", "apiVersion": "v1"}),
            "no kind \"Foo\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        );
        refuses("gracePeriodSeconds=x", None, 400, "strconv.ParseInt: parsing \"x\": invalid syntax");
    }
}
