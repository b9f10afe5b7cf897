//! The type of an expression, and what makes no sense in it.

use std::collections::BTreeMap;
use std::rc::Rc;

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, Expr, LiteralValue, SelectExpr, operators};

use super::place;
use super::types::Type;
use crate::cel::value::escaped;
use crate::schema::Shape;

/// The names that an expression can use.
pub(in crate::cel) struct Scope<'s>(BTreeMap<String, Type<'s>>);

impl<'s> Scope<'s> {
    pub(in crate::cel) fn new<const N: usize>(names: [(&str, Type<'s>); N]) -> Self {
        Self(names.into_iter().map(|(name, type_)| (name.to_owned(), type_)).collect())
    }

    /// Adds a name of which nothing is known.
    pub(in crate::cel) fn add(&mut self, name: &str) {
        self.0.insert(name.to_owned(), Type::Dyn);
    }
}

/// The names of types, which are values too, and of the optional library.
const TYPES: [&str; 13] = [
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "optional",
    "math",
    "optional_type",
];

/// The functions of the language and of Kubernetes, with the type that they make (`None`: it depends).
const FUNCTIONS: &[(&str, Option<fn() -> Type<'static>>)] = &[
    ("size", Some(|| Type::Int)),
    ("contains", Some(|| Type::Bool)),
    ("startsWith", Some(|| Type::Bool)),
    ("endsWith", Some(|| Type::Bool)),
    ("matches", Some(|| Type::Bool)),
    ("int", Some(|| Type::Int)),
    ("uint", Some(|| Type::Uint)),
    ("double", Some(|| Type::Double)),
    ("string", Some(|| Type::String)),
    ("bool", Some(|| Type::Bool)),
    ("bytes", Some(|| Type::Bytes)),
    ("timestamp", Some(|| Type::Timestamp)),
    ("duration", Some(|| Type::Duration)),
    ("isQuantity", Some(|| Type::Bool)),
    ("isIP", Some(|| Type::Bool)),
    ("isCIDR", Some(|| Type::Bool)),
    ("isURL", Some(|| Type::Bool)),
    ("isSemver", Some(|| Type::Bool)),
    ("isSorted", Some(|| Type::Bool)),
    ("lowerAscii", Some(|| Type::String)),
    ("upperAscii", Some(|| Type::String)),
    ("trim", Some(|| Type::String)),
    ("replace", Some(|| Type::String)),
    ("substring", Some(|| Type::String)),
    ("charAt", Some(|| Type::String)),
    ("find", Some(|| Type::String)),
    ("indexOf", Some(|| Type::Int)),
    ("lastIndexOf", Some(|| Type::Int)),
    ("isGreaterThan", Some(|| Type::Bool)),
    ("isLessThan", Some(|| Type::Bool)),
    ("hasValue", Some(|| Type::Bool)),
    ("join", Some(|| Type::String)),
];

/// Those whose type is not followed.
const OTHERS: &[&str] = &[
    "dyn",
    "type",
    "quantity",
    "ip",
    "cidr",
    "url",
    "semver",
    "split",
    "findAll",
    "sum",
    "min",
    "max",
    "flatten",
    "sort",
    "reverse",
    "distinct",
    "slice",
    "format",
    "orValue",
    "or",
    "value",
    "of",
    "none",
    "ofNonZeroValue",
    "optMap",
    "optFlatMap",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "getHost",
    "getHostname",
    "getPort",
    "getEscapedPath",
    "getQuery",
    "getScheme",
    "family",
    "isCanonical",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "containsIP",
    "containsCIDR",
    "prefixLength",
    "masked",
    "asInteger",
    "isInteger",
    "asApproximateFloat",
    "sign",
    "add",
    "sub",
    "compareTo",
    "major",
    "minor",
    "patch",
    "validate",
    "named",
    "equivalent",
    "intersects",
    "check",
    "allowed",
    "authorizer",
    "group",
    "resource",
    "subresource",
    "namespace",
    "name",
    "path",
    "serviceAccount",
    "errored",
    "error",
    "reason",
    "key",
    "encode",
    "decode",
    "quote",
    "range",
    "greatest",
    "least",
    "ceil",
    "floor",
    "round",
    "abs",
    "trunc",
    "strings",
    "first",
    "last",
    "include",
    "exists_one",
    "transformList",
    "transformMap",
    "jsonpatch",
    "escapeKey",
];

/// The type that an expression makes, and what makes no sense, with the places.
pub(super) fn infer<'s>(text: &str, expression: &IdedExpr, scope: Scope<'s>) -> (Type<'s>, Vec<String>) {
    let mut inference = Inference { text, scope: scope.0, troubles: Vec::new() };
    let made = inference.of(expression);
    (made, inference.troubles)
}

struct Inference<'t, 's> {
    text: &'t str,
    scope: BTreeMap<String, Type<'s>>,
    troubles: Vec<String>,
}

impl<'s> Inference<'_, 's> {
    fn trouble(&mut self, offset: usize, what: &str) -> Type<'s> {
        let trouble = place::at(self.text, offset, what);
        if !self.troubles.contains(&trouble) {
            self.troubles.push(trouble);
        }
        Type::Dyn
    }

    fn of(&mut self, expression: &IdedExpr) -> Type<'s> {
        match &expression.expr {
            Expr::Unspecified | Expr::Struct(_) => Type::Dyn,
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.select(select),
            Expr::List(list) => {
                let mut elements = list.elements.iter().map(|element| self.of(element)).collect::<Vec<_>>().into_iter();
                let first = elements.next().unwrap_or(Type::Dyn);
                let same = elements.all(|element| element.is(&first));
                Type::List(Rc::new(if same { first } else { Type::Dyn }))
            }
            Expr::Map(_) => Type::Map(Rc::new(Type::Dyn)),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(walk) => self.walk(walk),
        }
    }

    fn name(&mut self, name: &str) -> Type<'s> {
        if let Some(known) = self.scope.get(name) {
            return known.clone();
        }
        if TYPES.contains(&name) || name.starts_with('@') || name.starts_with("__") {
            return Type::Dyn;
        }
        let offset = place::name(self.text, name, false);
        self.trouble(offset, &format!("undeclared reference to '{name}' (in container '')"))
    }

    fn select(&mut self, select: &SelectExpr) -> Type<'s> {
        // `optional.none()` and `math.greatest()` are names with a dot.
        let operand = self.of(&select.operand);
        let field = &select.field;
        let dot = place::name(self.text, field, true);
        let offset =
            if select.test { self.text[..dot].rfind("has(").map_or(dot, |has| has + "has".len()) } else { dot };
        let found = match operand {
            Type::Dyn => Type::Dyn,
            Type::Map(values) => (*values).clone(),
            Type::Object(schema) => {
                let Shape::Object(shape) = &schema.shape else { return Type::Dyn };
                let known = shape.properties.iter().find(|(name, _)| escaped(name).as_ref() == Some(field));
                match known {
                    // What is inside of the metadata is not followed.
                    Some((name, _)) if name == "metadata" => Type::Dyn,
                    Some((_, inner)) => Type::of(inner),
                    None if schema.preserve_unknown_fields => Type::Dyn,
                    None => return self.trouble(offset, &format!("undefined field '{field}'")),
                }
            }
            other => return self.trouble(offset, &format!("type '{other}' does not support field selection")),
        };
        if select.test { Type::Bool } else { found }
    }

    fn walk(&mut self, walk: &ComprehensionExpr) -> Type<'s> {
        let range = self.of(&walk.iter_range);
        let element = match range {
            Type::List(element) => (*element).clone(),
            Type::Map(_) => Type::String,
            Type::Dyn | Type::Object(_) => Type::Dyn,
            other => {
                let what = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                return self.trouble(0, &what);
            }
        };
        let begins = self.of(&walk.accu_init);
        let outer = self.scope.clone();
        self.scope.insert(walk.iter_var.clone(), element);
        if let Some(second) = &walk.iter_var2 {
            self.scope.insert(second.clone(), Type::Dyn);
        }
        self.scope.insert(walk.accu_var.clone(), begins);
        let step = self.of(&walk.loop_step);
        self.scope.insert(walk.accu_var.clone(), step);
        let made = self.of(&walk.result);
        self.scope = outer;
        made
    }

    fn call(&mut self, call: &CallExpr) -> Type<'s> {
        let target = call.target.as_ref().map(|target| self.of(target));
        let arguments: Vec<Type<'s>> = call.args.iter().map(|argument| self.of(argument)).collect();
        let name = call.func_name.as_str();
        if matches!(name, operators::LOGICAL_AND | operators::LOGICAL_OR) {
            for (argument, type_) in call.args.iter().zip(&arguments) {
                if !type_.is(&Type::Bool) {
                    let offset = self.begin(argument);
                    self.trouble(offset, &format!("expected type 'bool' but found '{type_}'"));
                }
            }
            return Type::Bool;
        }
        if let Some(made) = operator(name, &arguments) {
            return made.unwrap_or_else(|| {
                let offset = place::operator(self.text, symbol(name));
                self.no_overload(offset, name, None, &arguments)
            });
        }
        if name.starts_with('_') || name.starts_with('@') || OTHERS.contains(&name) {
            return Type::Dyn;
        }
        let Some((_, made)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            let offset = place::name(self.text, name, target.is_some()) + usize::from(target.is_some());
            // The place is that of the parenthesis.
            return self.trouble(offset + name.len(), &format!("undeclared reference to '{name}' (in container '')"));
        };
        let about_text =
            matches!(name, "startsWith" | "endsWith" | "matches") || name == "contains" && arguments.len() == 1;
        let fits = arguments.iter().chain(&target).all(|argument| argument.is(&Type::String));
        if about_text && !fits {
            let offset = place::name(self.text, name, target.is_some()) + usize::from(target.is_some()) + name.len();
            return self.no_overload(offset, name, target.as_ref(), &arguments);
        }
        made.map_or(Type::Dyn, |made| made())
    }

    /// Where an expression is said to be: a field at its dot, a name at its beginning.
    fn begin(&self, expression: &IdedExpr) -> usize {
        match &expression.expr {
            Expr::Select(select) => place::name(self.text, &select.field, true),
            Expr::Ident(name) => place::name(self.text, name, false),
            Expr::Call(call) => place::operator(self.text, symbol(&call.func_name)),
            _ => 0,
        }
    }

    fn no_overload(
        &mut self,
        offset: usize,
        name: &str,
        target: Option<&Type<'s>>,
        arguments: &[Type<'s>],
    ) -> Type<'s> {
        let shown: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let target = target.map_or(String::new(), |target| format!("{target}."));
        let what = format!("found no matching overload for '{name}' applied to '{target}({})'", shown.join(", "));
        self.trouble(offset, &what)
    }
}

fn of_literal<'s>(literal: &LiteralValue) -> Type<'s> {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}

/// What an operator makes of operands of these types: `Some(None)` when it is not for them, `None` when it is no operator.
fn operator<'s>(name: &str, operands: &[Type<'s>]) -> Option<Option<Type<'s>>> {
    let all = |wanted: &Type<'_>| operands.iter().all(|operand| operand.is(wanted));
    let pair = |test: &dyn Fn(&Type<'s>, &Type<'s>) -> bool| match operands {
        [a, b] => test(a, b),
        _ => false,
    };
    let unknown = operands.iter().any(|operand| matches!(operand, Type::Dyn));
    let first = || operands.first().cloned().unwrap_or(Type::Dyn);
    let made = match name {
        operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT => {
            all(&Type::Bool).then_some(Type::Bool)
        }
        operators::EQUALS | operators::NOT_EQUALS => pair(&|a, b| a.is(b)).then_some(Type::Bool),
        operators::GREATER | operators::GREATER_EQUALS | operators::LESS | operators::LESS_EQUALS => {
            let ordered = |a: &Type<'s>, b: &Type<'s>| a.is(b) || a.is_number() && b.is_number();
            pair(&ordered).then_some(Type::Bool)
        }
        _ if unknown && is_operator(name) => Some(Type::Dyn),
        operators::ADD => {
            let times = |a: &Type<'s>, b: &Type<'s>| {
                matches!((a, b), (Type::Timestamp, Type::Duration) | (Type::Duration, Type::Timestamp))
            };
            let adds = |a: &Type<'s>, b: &Type<'s>| {
                a.is(b) && !matches!(a, Type::Bool | Type::Null | Type::Object(_) | Type::Map(_) | Type::Timestamp)
            };
            pair(&|a, b| adds(a, b) || times(a, b)).then(|| if pair(&times) { Type::Timestamp } else { first() })
        }
        operators::SUBSTRACT => match operands {
            [Type::Timestamp, Type::Timestamp] => Some(Type::Duration),
            [Type::Timestamp, Type::Duration] => Some(Type::Timestamp),
            [Type::Duration, Type::Duration] => Some(Type::Duration),
            [a, b] => (a.is_number() && a.is(b)).then(first),
            _ => None,
        },
        operators::MULTIPLY | operators::DIVIDE => pair(&|a, b| a.is_number() && a.is(b)).then(first),
        operators::MODULO => pair(&|a, b| matches!(a, Type::Int | Type::Uint) && a.is(b)).then(first),
        operators::NEGATE => operands.first().is_some_and(|a| matches!(a, Type::Int | Type::Double)).then(first),
        operators::IN => match operands {
            [item, Type::List(element)] => item.is(element).then_some(Type::Bool),
            [item, Type::Map(_)] => item.is(&Type::String).then_some(Type::Bool),
            _ => None,
        },
        operators::INDEX => match operands {
            [Type::List(element), index] => (index.is_number()).then(|| (**element).clone()),
            [Type::Map(values), key] => key.is(&Type::String).then(|| (**values).clone()),
            _ => None,
        },
        operators::CONDITIONAL => match operands {
            [condition, a, b] => (condition.is(&Type::Bool) && a.is(b)).then(|| a.clone()),
            _ => None,
        },
        _ => return None,
    };
    Some(made)
}

fn is_operator(name: &str) -> bool {
    !symbol(name).is_empty()
}

/// How an operator is written.
fn symbol(name: &str) -> &'static str {
    const SYMBOLS: [(&str, &str); 18] = [
        (operators::LOGICAL_AND, "&&"),
        (operators::LOGICAL_OR, "||"),
        (operators::LOGICAL_NOT, "!"),
        (operators::EQUALS, "=="),
        (operators::NOT_EQUALS, "!="),
        (operators::GREATER_EQUALS, ">="),
        (operators::LESS_EQUALS, "<="),
        (operators::GREATER, ">"),
        (operators::LESS, "<"),
        (operators::ADD, "+"),
        (operators::SUBSTRACT, "-"),
        (operators::MULTIPLY, "*"),
        (operators::DIVIDE, "/"),
        (operators::MODULO, "%"),
        (operators::NEGATE, "-"),
        (operators::IN, "in "),
        (operators::INDEX, "["),
        (operators::CONDITIONAL, "?"),
    ];
    SYMBOLS.iter().find(|(known, _)| *known == name).map_or("", |(_, symbol)| symbol)
}
