//! The one way to the parser, and how deep an expression may be.
//!
//! The parser calls itself for each bracket and for each step of a chain, and so does whoever walks through what it made: the checker,
//! the interpreter, even the end of an expression's life. Too deep a one would exhaust the stack, and end the process.

use std::thread;

use kube_cel::cel::common::ast::{EntryExpr, Expr};
use kube_cel::cel::{IdedExpr, ParseErrors, Program};

use super::check::{Trouble, place};

/// How deep a text may be. The parser has a limit of 96 of its own, beyond which it may panic.
const DEPTH_MAX: usize = 90;

/// How deep what was made of it may be: it is walked on the stack of whoever asks. Without optimisation, 2 MiB end somewhere above 50.
const TREE_MAX: usize = 40;

/// A text that is no deeper is read on the stack of whoever asks. Without optimisation a bracket takes 100 KiB of it.
const AT_HOME_MAX: usize = 8;

/// For others: a bracket's share times [`DEPTH_MAX`], and as much again. It is only taken as far as it is used.
const STACK_BYTES: usize = 32 << 20;

/// An expression that can be read, and walked.
pub(in crate::cel) fn parsed(text: &str) -> Result<Program, Trouble> {
    let depth = depth(text);
    if depth > DEPTH_MAX {
        return Err(too_deep(DEPTH_MAX));
    }
    if depth <= AT_HOME_MAX {
        return read(text);
    }
    let read = thread::scope(|scope| {
        let reader = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || read(text));
        reader.ok().and_then(|reader| reader.join().ok())
    });
    read.unwrap_or_else(|| Err(Trouble::Compile("no thread could be had to read the expression".to_owned())))
}

fn read(text: &str) -> Result<Program, Trouble> {
    let program = Program::compile(text).map_err(|errors| Trouble::Compile(unread(text, &errors)))?;
    if tree_depth(program.expression()) > TREE_MAX { Err(too_deep(TREE_MAX)) } else { Ok(program) }
}

fn too_deep(limit: usize) -> Trouble {
    Trouble::Compile(format!("expression recursion limit exceeded: {limit}"))
}

fn unread(text: &str, errors: &ParseErrors) -> String {
    let all = errors.errors.iter().map(|error| {
        let (line, column) = (usize::try_from(error.pos.0).unwrap_or(1), usize::try_from(error.pos.1).unwrap_or(1));
        place::pointed(text, line, column, &error.msg)
    });
    all.collect::<Vec<_>>().join("\n")
}

/// An upper bound of how deep a text is: brackets that are open, and in each of them the steps since something new began, and the
/// conditions (`? :`) that it stands in. Texts in quotes are counted as if they were none.
fn depth(text: &str) -> usize {
    let mut open = vec![(0_usize, 0_usize)];
    let mut deepest = 0;
    for byte in text.bytes() {
        if matches!(byte, b')' | b']' | b'}') && open.len() > 1 {
            open.pop();
        }
        let Some((steps, conditions)) = open.last_mut() else { break };
        match byte {
            b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'!' | b'<' | b'>' | b'=' => *steps += 1,
            b',' | b'&' | b'|' | b':' => *steps = 0,
            b'?' => (*steps, *conditions) = (0, *conditions + 1),
            b'(' | b'[' | b'{' => {
                *steps += 1;
                open.push((0, 0));
            }
            _ => continue,
        }
        deepest = deepest.max(open.iter().map(|(steps, conditions)| steps + conditions).sum());
        if deepest > DEPTH_MAX {
            break;
        }
    }
    deepest
}

fn tree_depth(expression: &IdedExpr) -> usize {
    let deepest = |expressions: &mut dyn Iterator<Item = &IdedExpr>| expressions.map(tree_depth).max().unwrap_or(0);
    let inside = match &expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => 0,
        Expr::Call(call) => deepest(&mut call.target.as_deref().into_iter().chain(&call.args)),
        Expr::Select(select) => tree_depth(&select.operand),
        Expr::List(list) => deepest(&mut list.elements.iter()),
        Expr::Map(map) => deepest(&mut map.entries.iter().flat_map(|entry| parts(&entry.expr))),
        Expr::Struct(made) => deepest(&mut made.entries.iter().flat_map(|entry| parts(&entry.expr))),
        Expr::Comprehension(walk) => deepest(
            &mut [&walk.iter_range, &walk.accu_init, &walk.loop_cond, &walk.loop_step, &walk.result].into_iter(),
        ),
    };
    inside + 1
}

fn parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_that_of_brackets_chains_and_conditions_and_not_of_what_stands_side_by_side() {
        let check = |text: &str, expected: usize| assert_eq!(depth(text), expected, "{text}");
        check("", 0);
        check("self.a.b", 2);
        check("((true))", 2);
        check("self.a(b.c)", 3);
        check("a.b && c.d && e.f", 1);
        check("a ? b : c ? d : e", 2);
        check("(a ? b : c) || (d ? e : f)", 2);
        check("f(a, b, c.d)", 2);
        check(")]}", 0);
        check(&"(".repeat(1_000_000), DEPTH_MAX + 1);
    }
}
