//! The match conditions of a webhook.

use std::sync::Arc;

use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::{Value, json};

use super::check::{self, Trouble};
use super::{functions, parse, value, words};
use crate::admission::{Attributes, Conditions};
use crate::field::{FieldError, quote};
use crate::path::Path;
use crate::value::Fields;

/// What an expression can speak of.
const NAMES: [&str; 4] = ["object", "oldObject", "request", "authorizer"];

/// Conditions that must all hold.
struct Compiled(Vec<Condition>);

struct Condition {
    name: String,
    expression: String,
    program: Option<Program>,
}

/// The conditions that a webhook has, if it has any.
pub(crate) fn of(hook: &Value) -> Option<Arc<dyn Conditions>> {
    let conditions = hook.list("matchConditions");
    let compiled = conditions.iter().map(|condition| {
        let (name, expression) = (condition.text("name").to_owned(), condition.text("expression").to_owned());
        let program = parse::parsed(&expression).ok();
        Condition { name, expression, program }
    });
    (!conditions.is_empty()).then(|| Arc::new(Compiled(compiled.collect())) as Arc<dyn Conditions>)
}

/// What is wrong with an expression; `place` is that of the condition.
pub(crate) fn problem(expression: &str, place: &Path<'_>) -> Option<FieldError> {
    let scope = check::scope_of_dynamic(&NAMES);
    let why = match check::compiled(expression, scope, &check::boolean()) {
        Ok(_) => return None,
        Err(Trouble::Compile(why)) => format!("compilation failed: {why}"),
        Err(Trouble::Type(made)) => format!("must evaluate to bool but got {made}"),
    };
    Some(FieldError::invalid(place.field("expression"), expression, why))
}

impl Conditions for Compiled {
    fn hold(&self, attributes: &Attributes<'_>, object: Option<&Value>, old: Option<&Value>) -> Result<bool, String> {
        let mut scope: Context<'_> = functions();
        let seen = |value: Option<&Value>| value.map_or(Cel::Null, value::untyped);
        scope.add_variable_from_value("object", seen(object));
        scope.add_variable_from_value("oldObject", seen(old));
        scope.add_variable_from_value("request", value::untyped(&request(attributes)));
        let mut errors = Vec::new();
        for Condition { name, expression, program } in &self.0 {
            let made = match program {
                Some(program) => program
                    .execute(&scope)
                    .map_err(|error| format!("expression '{expression}' resulted in error: {}", words(&error))),
                None => Err("compilation error".to_owned()),
            };
            match made {
                // One that does not hold is enough, whatever the others are.
                Ok(Cel::Bool(false)) => return Ok(false),
                Ok(Cel::Bool(true)) => {}
                Ok(_) => errors.push(format!("{} must evaluate to bool", quote(name))),
                Err(why) => errors.push(why),
            }
        }
        if errors.is_empty() { Ok(true) } else { Err(errors.join(", ")) }
    }
}

/// What was asked, without the objects.
fn request(attributes: &Attributes<'_>) -> Value {
    let (kind, user) = (attributes.kind, attributes.user);
    let [group, version, shown] = attributes.shown_as(kind);
    json!({
        "kind": {"group": group, "version": version, "kind": shown},
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "subResource": attributes.subresource,
        "requestKind": {"group": group, "version": version, "kind": shown},
        "requestResource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "requestSubResource": attributes.subresource,
        "name": attributes.name,
        "namespace": attributes.namespace,
        "operation": attributes.operation.as_str(),
        "userInfo": {"username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra},
        "dryRun": attributes.dry_run,
    })
}
