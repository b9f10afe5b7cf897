//! Rules in the Common Expression Language: those of custom resources (`x-kubernetes-validations`) and the match conditions of
//! webhooks.
//!
//! [`rule`] compiles the rules of one place in a schema, once, when the schema is compiled; [`walk`] holds an object against
//! them; [`check`] says what is wrong with a rule before its definition is accepted; [`parse`] bounds how deep one may be, [`cost`] what it may take.

mod check;
pub(crate) mod condition;
mod cost;
mod parse;
mod rule;
mod value;
mod walk;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::{Context, ExecutionError, Value};

pub(crate) use check::definition;
pub(crate) use rule::Compiled;
pub(crate) use walk::problems;

/// All functions that Kubernetes has.
fn functions() -> Context<'static> {
    let mut context = Context::default().with_all();
    // Types are values: the interpreter has none, so they are what they are called.
    context.add_function("type", |value: Value| type_name(&value).to_owned());
    for name in ["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type"] {
        context.add_variable_from_value(name, name.to_owned());
    }
    context
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::Bool(_) => "bool",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Null => "null_type",
        _ => "dyn",
    }
}

/// Why an expression has no value, in the words of a real server.
fn words(error: &ExecutionError) -> String {
    use ExecutionError as E;
    match error {
        E::NoSuchKey(key) => format!("no such key: {key}"),
        E::IndexOutOfBounds(Value::Int(index)) => format!("index out of bounds: {index}"),
        E::DivisionByZero(_) => "division by zero".to_owned(),
        E::RemainderByZero(_) => "modulus by zero".to_owned(),
        E::Overflow(..) => "integer overflow".to_owned(),
        E::UndeclaredReference(name) => format!("no such attribute(s): {name}"),
        E::FunctionError { message, .. } => message.clone(),
        E::NoSuchOverload
        | E::UnsupportedTargetType { .. }
        | E::NotSupportedAsMethod { .. }
        | E::UnexpectedType { .. }
        | E::ValuesNotComparable(..)
        | E::UnsupportedUnaryOperator(..)
        | E::UnsupportedBinaryOperator(..)
        | E::UnsupportedMapIndex(_)
        | E::UnsupportedListIndex(_)
        | E::UnsupportedIndex(..) => "no such overload".to_owned(),
        other => other.to_string(),
    }
}
