//! What is wrong with the rules of a definition, before it is accepted.
//!
//! The interpreter has no types. Those that a schema gives are followed here as far as they are known; where they are not, a
//! rule gets the benefit of the doubt, and what is wrong shows when it is asked.

mod infer;
pub(super) mod place;
mod types;

use kube_cel::cel::Program;
use serde_json::Value;

use self::infer::Scope;
use self::types::Type;
use super::cost::{self, Widths};
use super::parse::parsed;
use crate::field::FieldError;
use crate::kind::builtins;
use crate::path::Path;
use crate::schema::{Schema, Shape, compile};
use crate::value::Fields;

/// What one rule may take, and all of a definition, as in Kubernetes.
const RULE_BUDGET: u64 = 10_000_000;
const TOTAL_BUDGET: u64 = 100_000_000;

/// What is wrong with the rules in a structural schema.
pub(crate) fn definition(openapi: &Value, place: &Path<'_>, errors: &mut Vec<FieldError>) {
    let schema = compile::structural(openapi, builtins::object_meta());
    let before = errors.len();
    let mut checker = Checker { errors, total: 0 };
    checker.node(openapi, &schema, None, place);
    let total = checker.total;
    if total > TOTAL_BUDGET {
        let rules = errors.split_off(before);
        for error in rules {
            if error.detail.starts_with("estimated rule cost") {
                let contributed =
                    "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
                errors.push(FieldError::forbidden(error.path.clone(), contributed));
            }
            errors.push(error);
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by";
        errors.push(FieldError::forbidden(place, too_costly(what, total, TOTAL_BUDGET)));
    }
}

/// The rules of one definition.
struct Checker<'e> {
    errors: &'e mut Vec<FieldError>,
    /// What all rules may take together.
    total: u64,
}

impl Checker<'_> {
    /// `lost` is where what was before can no longer be told.
    fn node(&mut self, openapi: &Value, schema: &Schema, lost: Option<&str>, place: &Path<'_>) {
        let rules = place.field("x-kubernetes-validations");
        for (index, rule) in openapi.list("x-kubernetes-validations").iter().enumerate() {
            let place = rules.index(index);
            self.rule(rule, openapi, schema, lost, &place);
        }
        let here = place.to_string();
        match &schema.shape {
            Shape::Object(shape) => {
                let lost = lost.or(shape.atomic.then_some(&here));
                let properties = place.field("properties");
                for (name, inner) in openapi.entries("properties") {
                    if let Some(property) = shape.properties.get(name) {
                        self.node(inner, property, lost, &properties.key(name));
                    }
                }
                if let Some(additional) = &shape.additional {
                    self.node(
                        openapi.at("additionalProperties"),
                        additional,
                        lost,
                        &place.field("additionalProperties"),
                    );
                }
            }
            Shape::Array(shape) => {
                let is_followed = matches!(shape.list, crate::schema::ListType::Map(_));
                let lost = lost.or((!is_followed).then_some(&here));
                self.node(openapi.at("items"), &shape.items, lost, &place.field("items"));
            }
            Shape::Any | Shape::String | Shape::Integer | Shape::Number | Shape::Boolean | Shape::IntOrString => {}
        }
    }

    fn rule(&mut self, rule: &Value, openapi: &Value, schema: &Schema, lost: Option<&str>, place: &Path<'_>) {
        let errors = &mut *self.errors;
        let text = rule.text("rule");
        if text.trim().is_empty() {
            return;
        }
        let mut refuse = |field: &str, detail: String| {
            errors.push(
                FieldError::invalid(place.field(field), rule.clone(), detail).showing(crate::crd::shown_rule(rule)),
            );
        };
        let of_self = Type::of(schema);
        let old = if rule.flag("optionalOldSelf") { Type::Dyn } else { of_self.clone() };
        let scope = || Scope::new([("self", of_self.clone()), ("oldSelf", old.clone())]);
        match compiled(text, scope(), &Type::Bool) {
            Err(Trouble::Compile(why)) => refuse("rule", format!("compilation failed: {why}")),
            Err(Trouble::Type(_)) => refuse("rule", "cel expression must evaluate to a bool".to_owned()),
            Ok(program) => {
                if let Some(lost) = lost.filter(|_| program.references().has_variable("oldSelf")) {
                    let detail =
                        format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {lost}");
                    errors.push(FieldError::invalid(place.field("rule"), text, detail));
                }
                let bound = cost::bound(program.expression(), widths(openapi));
                self.total = self.total.saturating_add(bound);
                if bound > RULE_BUDGET {
                    let what = "estimated rule cost exceeds budget by";
                    errors.push(FieldError::forbidden(place.field("rule"), too_costly(what, bound, RULE_BUDGET)));
                }
            }
        }
        let expression = rule.text("messageExpression");
        if expression.trim().is_empty() {
            return;
        }
        let mut refuse = |detail: String| {
            let error = FieldError::invalid(place.field("messageExpression"), rule.clone(), detail);
            errors.push(error.showing(crate::crd::shown_rule(rule)));
        };
        match compiled(expression, scope(), &Type::String) {
            Err(Trouble::Compile(why)) => refuse(format!("messageExpression compilation failed: {why}")),
            Err(Trouble::Type(_)) => refuse("messageExpression must evaluate to a string".to_owned()),
            Ok(_) => {}
        }
    }
}

/// Why an expression is not accepted.
pub(super) enum Trouble {
    /// It cannot be read, or makes no sense.
    Compile(String),
    /// It makes something else than is wanted: this.
    Type(String),
}

/// An expression that makes sense, and makes what is wanted.
pub(super) fn compiled(text: &str, scope: Scope<'_>, wanted: &Type<'_>) -> Result<Program, Trouble> {
    let program = parsed(text)?;
    let (made, troubles) = infer::infer(text, program.expression(), scope);
    if !troubles.is_empty() {
        return Err(Trouble::Compile(troubles.join("\n")));
    }
    if made.is(wanted) { Ok(program) } else { Err(Trouble::Type(made.to_string())) }
}

fn too_costly(what: &str, bound: u64, budget: u64) -> String {
    let factor = bound / budget;
    let factor = if factor > 100 { "more than 100x".to_owned() } else { format!("{factor}x") };
    format!(
        "{what} factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, \
         maps, and strings are declared)"
    )
}

/// The bounds of the largest list or map and of the longest text below a schema; where it names none, what fits into a request.
fn widths(openapi: &Value) -> Widths {
    const BYTES: u64 = 3 * 1024 * 1024;
    // An element, however small, has a separator.
    const ELEMENTS: u64 = BYTES / 4;
    let bound = |keyword: &str, otherwise: u64| openapi.at(keyword).as_u64().unwrap_or(otherwise);
    let none = Widths::default();
    let own = match openapi.text("type") {
        "array" => Widths { elements: bound("maxItems", ELEMENTS), ..none },
        "object" if openapi.has("additionalProperties") => {
            Widths { elements: bound("maxProperties", ELEMENTS), ..none }
        }
        "string" if openapi.has("enum") || openapi.has("format") => none,
        "string" => Widths { text: bound("maxLength", BYTES), ..none },
        _ => none,
    };
    let inside = openapi.entries("properties").map(|(_, inner)| inner);
    let inside = inside.chain([openapi.at("items"), openapi.at("additionalProperties")]);
    inside.filter(|inner| inner.is_object()).map(widths).fold(own, Widths::max)
}

/// A scope of names of which nothing is known.
pub(super) fn scope_of_dynamic<'s>(names: &[&str]) -> Scope<'s> {
    let mut scope = Scope::new([]);
    for name in names {
        scope.add(name);
    }
    scope
}

/// What a condition must make.
pub(super) fn boolean<'s>() -> Type<'s> {
    Type::Bool
}
