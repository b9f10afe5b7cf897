//! What an expression may take.
//!
//! The interpreter does not count what it does, so nothing is begun that could take too much: an upper bound follows from the
//! expression and from the sizes of the largest list or map and of the longest text that it may walk through. Kubernetes counts, so it also lets through
//! what turns out cheap.

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{EntryExpr, Expr};
use serde_json::Value;

/// What all rules of a write may take together, as in Kubernetes; one step of the interpreter is one.
pub(super) const BUDGET: u64 = 10_000_000;

/// The largest things that an expression may meet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Widths {
    /// The elements of a list or a map.
    pub(super) elements: u64,
    /// The bytes of a text.
    pub(super) text: u64,
}

impl Widths {
    pub(super) fn max(self, other: Self) -> Self {
        Self { elements: self.elements.max(other.elements), text: self.text.max(other.text) }
    }

    /// Those of a value.
    pub(super) fn of(value: &Value) -> Self {
        let inside = |values: &mut dyn Iterator<Item = &Value>, elements: usize| {
            values.map(Self::of).fold(Self { elements: elements as u64, text: 0 }, Self::max)
        };
        match value {
            Value::Array(elements) => inside(&mut elements.iter(), elements.len()),
            Value::Object(fields) => inside(&mut fields.values(), fields.len()),
            Value::String(text) => Self { elements: 1, text: text.len() as u64 },
            Value::Null | Value::Bool(_) | Value::Number(_) => Self { elements: 1, text: 0 },
        }
    }
}

/// The functions that read through a text; ten bytes are one step, as in Kubernetes.
const READERS: [&str; 14] = [
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "find",
    "findAll",
    "split",
    "replace",
    "indexOf",
    "lastIndexOf",
    "lowerAscii",
    "upperAscii",
    "trim",
    "join",
];

/// An upper bound of the steps that an expression takes.
pub(super) fn bound(expression: &IdedExpr, widths: Widths) -> u64 {
    let all = |expressions: &[IdedExpr]| {
        expressions.iter().fold(0_u64, |sum, expression| sum.saturating_add(bound(expression, widths)))
    };
    let inside = match &expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => 0,
        Expr::Call(call) => {
            let read = if READERS.contains(&call.func_name.as_str()) { widths.text / 10 } else { 0 };
            let target = call.target.as_ref().map_or(0, |target| bound(target, widths));
            target.saturating_add(all(&call.args)).saturating_add(read)
        }
        Expr::Select(select) => bound(&select.operand, widths),
        Expr::List(list) => all(&list.elements),
        Expr::Map(map) => entries(map.entries.iter().map(|entry| &entry.expr), widths),
        Expr::Struct(made) => entries(made.entries.iter().map(|entry| &entry.expr), widths),
        Expr::Comprehension(walk) => {
            // A literal list is as long as it is written.
            let length = match &walk.iter_range.expr {
                Expr::List(list) => list.elements.len() as u64,
                // A text can be split into as many parts as it has bytes.
                Expr::Call(call) if matches!(call.func_name.as_str(), "split" | "findAll") => widths.text,
                _ => widths.elements,
            };
            let each = bound(&walk.loop_cond, widths).saturating_add(bound(&walk.loop_step, widths));
            let around = all(&[walk.iter_range.clone(), walk.accu_init.clone(), walk.result.clone()]);
            around.saturating_add(length.saturating_mul(each))
        }
    };
    inside.saturating_add(1)
}

fn entries<'e>(entries: impl Iterator<Item = &'e EntryExpr>, widths: Widths) -> u64 {
    entries.fold(0, |sum, entry| match entry {
        EntryExpr::StructField(field) => sum.saturating_add(bound(&field.value, widths)),
        EntryExpr::MapEntry(entry) => {
            sum.saturating_add(bound(&entry.key, widths)).saturating_add(bound(&entry.value, widths))
        }
    })
}

#[cfg(test)]
mod tests {
    use kube_cel::cel::Program;

    use super::*;

    #[track_caller]
    fn check(expression: &str, elements: u64, least: u64, most: u64) {
        let program = Program::compile(expression).unwrap();
        let bound = bound(program.expression(), Widths { elements, text: 1000 });
        assert!((least..=most).contains(&bound), "{expression}: {bound}");
    }

    #[test]
    fn walks_inside_of_walks_multiply() {
        check("self.a > 1", 1000, 1, 10);
        check("self.l.all(x, x > 1)", 1000, 1000, 20_000);
        check("self.l.all(x, self.l.all(y, x != y))", 1000, 1_000_000, 100_000_000);
        check("self.s.contains('x')", 1, 100, 120);
        check("[1, 2, 3].all(x, x > 1)", 1_000_000, 1, 100);
        check("self.l.all(x, self.l.all(y, self.l.all(z, x + y + z > 1)))", 1 << 40, u64::MAX, u64::MAX);
    }
}
