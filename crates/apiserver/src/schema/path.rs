//! Where in an object a walk is: a list of steps on the stack, made into text only when there is something to say.

use std::fmt::Write as _;

/// A place in an object, as steps from the root.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Path<'a> {
    /// The object itself.
    Root,
    /// A named field of an object.
    Field(&'a Path<'a>, &'a str),
    /// A key of a map. Two traditions print it: `spec.map.key` and `spec.map[key]`.
    Key(&'a Path<'a>, &'a str),
    /// An element of a list.
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    /// The field `name` of what is here.
    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        Path::Field(self, name)
    }

    /// The value of the map's key `name`.
    pub(crate) fn key(&'a self, name: &'a str) -> Self {
        Path::Key(self, name)
    }

    /// The element at `index`.
    pub(crate) fn index(&'a self, index: usize) -> Self {
        Path::Index(self, index)
    }

    /// `spec.map.key[0]`, as schema validation and strict decoding print it. Empty at the root.
    pub(crate) fn dotted(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, false);
        text
    }

    /// `spec.map[key][0]`, as hand-written validation prints it; the root is `<nil>`.
    pub(crate) fn bracketed(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, true);
        if text.is_empty() {
            text.push_str("<nil>");
        }
        text
    }

    fn write(&self, text: &mut String, brackets: bool) {
        match *self {
            Path::Root => {}
            Path::Key(parent, name) if brackets => {
                parent.write(text, brackets);
                text.push('[');
                text.push_str(name);
                text.push(']');
            }
            Path::Field(parent, name) | Path::Key(parent, name) => {
                parent.write(text, brackets);
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Path::Index(parent, index) => {
                parent.write(text, brackets);
                // Writing to a String cannot fail.
                let _infallible = write!(text, "[{index}]");
            }
        }
    }
}
