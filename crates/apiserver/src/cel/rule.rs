//! The rules of one place in a schema.

use std::sync::Arc;

use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::Value;

use super::cost::{self, Widths};
use super::parse;
use super::words;
use crate::field::{FieldError, Problem};
use crate::value::Fields;

/// A message that an expression makes is cut at this length, in bytes.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// The rules of one place, ready to be asked.
#[derive(Debug, Default)]
pub(crate) struct Compiled(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    text: String,
    message: String,
    reason: String,
    /// Whom the refusal is about, below the place of the rule.
    field_path: String,
    /// It is about a change, and so not about what is new.
    is_transition: bool,
    /// It is asked about what is new, too.
    is_old_optional: bool,
    program: Option<Program>,
    message_program: Option<Program>,
}

/// What there is to say about a refusal.
pub(super) struct Refusal {
    pub(super) error: FieldError,
    /// It holds even if the value is as it was.
    pub(super) is_transition: bool,
}

/// A value at the place of rules.
pub(super) struct Subject<'a> {
    pub(super) place: &'a str,
    /// As expressions see it.
    pub(super) value: Cel,
    /// What was there before.
    pub(super) old: Option<Cel>,
    /// The value itself, if it is small enough to be shown.
    pub(super) shown: Option<&'a Value>,
    /// The name of its type.
    pub(super) type_: &'static str,
    /// How large it is.
    pub(super) widths: Widths,
}

impl Compiled {
    /// Compiles `x-kubernetes-validations`. One that cannot be read refuses everything: its definition was accepted by mistake.
    pub(crate) fn new(rules: &[Value]) -> Self {
        Self(rules.iter().map(Rule::new).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Holds a value against the rules. `left` is what may still be spent; nothing is asked once it is gone.
    pub(super) fn refusals(&self, subject: Subject<'_>, functions: &Context<'_>, left: &mut u64) -> Vec<Refusal> {
        let Subject { place, value, old, shown, type_, widths } = subject;
        let mut scope = functions.new_inner_scope();
        scope.add_variable_from_value("self", value);
        let mut refusals = Vec::new();
        for rule in &self.0 {
            if rule.is_transition && old.is_none() && !rule.is_old_optional {
                continue;
            }
            if rule.is_transition {
                scope.add_variable_from_value("oldSelf", rule.old(old.clone()));
            }
            let error = match rule.verdict(&scope, widths, left) {
                Verdict::Holds => continue,
                Verdict::Broken(detail) => rule.error(place, shown, detail),
                Verdict::Unknown(why) => FieldError::invalid(place, type_, why),
            };
            refusals.push(Refusal { error, is_transition: rule.is_transition });
            if *left == 0 {
                break;
            }
        }
        refusals
    }
}

enum Verdict {
    Holds,
    /// It does not, and this is to be said.
    Broken(String),
    /// Nobody can tell, for this reason.
    Unknown(String),
}

impl Rule {
    fn new(rule: &Value) -> Self {
        let program = parse::parsed(rule.text("rule")).ok();
        let is_transition = program.as_ref().is_some_and(|program| program.references().has_variable("oldSelf"));
        let expression = rule.text("messageExpression");
        Self {
            text: rule.text("rule").trim().to_owned(),
            message: rule.text("message").trim().to_owned(),
            reason: rule.text("reason").to_owned(),
            field_path: rule.text("fieldPath").to_owned(),
            is_transition,
            is_old_optional: rule.flag("optionalOldSelf"),
            program,
            message_program: Some(expression).filter(|text| !text.is_empty()).and_then(|text| parse::parsed(text).ok()),
        }
    }

    fn old(&self, old: Option<Cel>) -> Cel {
        match (old, self.is_old_optional) {
            (Some(old), false) => old,
            (Some(old), true) => Cel::Opaque(Arc::new(OptionalValue::of(old))),
            (None, _) => Cel::Opaque(Arc::new(OptionalValue::none())),
        }
    }

    fn verdict(&self, scope: &Context<'_>, widths: Widths, left: &mut u64) -> Verdict {
        let Some(program) = &self.program else {
            return Verdict::Unknown(format!("rule compile error: {}", self.text));
        };
        let Some(rest) = left.checked_sub(cost::bound(program.expression(), widths)) else {
            *left = 0;
            return Verdict::Unknown(format!(
                "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost \
                 exceeds limit for rule: {}",
                self.plain()
            ));
        };
        *left = rest;
        match program.execute(scope) {
            Ok(Cel::Bool(true)) => Verdict::Holds,
            Ok(_) => Verdict::Broken(self.detail(scope)),
            Err(error) => {
                let why = words(&error);
                Verdict::Unknown(if why.starts_with("no such overload") {
                    format!(
                        "'{why}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                        self.plain()
                    )
                } else {
                    format!("{why} evaluating rule: {}", self.plain())
                })
            }
        }
    }

    fn plain(&self) -> &str {
        if self.message.is_empty() { &self.text } else { &self.message }
    }

    /// The message: as its expression makes it, as it is written, or the rule itself.
    fn detail(&self, scope: &Context<'_>) -> String {
        let made = self.message_program.as_ref().and_then(|program| match program.execute(scope) {
            Ok(Cel::String(text)) => Some(text.trim().to_owned()),
            _ => None,
        });
        let usable = |text: &String| !text.is_empty() && !text.contains('\n') && text.len() <= MESSAGE_BYTES_MAX;
        made.filter(usable).unwrap_or_else(|| {
            if self.message.is_empty() { format!("failed rule: {}", self.text) } else { self.message.clone() }
        })
    }

    fn error(&self, place: &str, shown: Option<&Value>, detail: String) -> FieldError {
        let place = if self.field_path.is_empty() {
            place.to_owned()
        } else {
            let below = self.field_path.replace("['", "[").replace("']", "]");
            let above = if place == "<nil>" { "" } else { place };
            format!("{above}{below}").trim_start_matches('.').to_owned()
        };
        let value = shown.cloned().unwrap_or_default();
        let error = match self.reason.as_str() {
            "FieldValueForbidden" => FieldError::forbidden(place, detail),
            "FieldValueRequired" => FieldError::required(place, detail),
            "FieldValueDuplicate" => FieldError::new(Problem::Duplicate, place, value, ""),
            _ => FieldError::invalid(place, value, detail),
        };
        if shown.is_some() { error } else { error.showing("") }
    }
}
