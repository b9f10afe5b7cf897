//! The types of expressions, as far as a schema tells them.

use std::fmt;
use std::rc::Rc;

use crate::schema::{Schema, Shape};

/// What an expression makes.
#[derive(Clone)]
pub(in crate::cel) enum Type<'s> {
    /// Anything: nothing is known.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    List(Rc<Type<'s>>),
    /// Keys are texts.
    Map(Rc<Type<'s>>),
    Object(&'s Schema),
}

impl<'s> Type<'s> {
    /// What a schema says.
    pub(super) fn of(schema: &'s Schema) -> Self {
        let format = schema.rules.as_ref().and_then(|rules| rules.format.as_deref());
        if schema.nullable {
            return Self::Dyn;
        }
        match (&schema.shape, format) {
            (Shape::String, Some("date" | "date-time")) => Self::Timestamp,
            (Shape::String, Some("duration")) => Self::Duration,
            (Shape::String, Some("byte")) => Self::Bytes,
            (Shape::String, _) => Self::String,
            (Shape::Integer, _) => Self::Int,
            (Shape::Number, _) => Self::Double,
            (Shape::Boolean, _) => Self::Bool,
            (Shape::Array(shape), _) => Self::List(Rc::new(Self::of(&shape.items))),
            (Shape::Object(shape), _) if shape.properties.is_empty() => match &shape.additional {
                Some(values) => Self::Map(Rc::new(Self::of(values))),
                None => Self::Dyn,
            },
            (Shape::Object(_), _) if schema.rules.as_ref().is_some_and(|rules| rules.untyped) => Self::Dyn,
            (Shape::Object(_), _) => Self::Object(schema),
            (Shape::Any | Shape::IntOrString, _) => Self::Dyn,
        }
    }

    /// Whether it is, or may be, that type.
    pub(super) fn is(&self, other: &Type<'_>) -> bool {
        match (self, other) {
            (Self::Dyn, _) | (_, Type::Dyn) => true,
            (Self::List(a), Type::List(b)) | (Self::Map(a), Type::Map(b)) => a.is(b),
            (Self::Object(a), Type::Object(b)) => std::ptr::eq(*a, *b),
            (Self::Object(_), Type::Null) | (Self::Null, Type::Object(_)) => true,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(&b.same_life()),
        }
    }

    /// The same type, of which only the kind is asked.
    fn same_life<'x>(&self) -> Type<'x> {
        match self {
            Self::Dyn | Self::Object(_) => Type::Dyn,
            Self::Null => Type::Null,
            Self::Bool => Type::Bool,
            Self::Int => Type::Int,
            Self::Uint => Type::Uint,
            Self::Double => Type::Double,
            Self::String => Type::String,
            Self::Bytes => Type::Bytes,
            Self::Timestamp => Type::Timestamp,
            Self::Duration => Type::Duration,
            Self::List(_) => Type::List(Rc::new(Type::Dyn)),
            Self::Map(_) => Type::Map(Rc::new(Type::Dyn)),
        }
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }
}

/// As the reference implementation prints it.
impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(inner) => write!(f, "list({inner})"),
            Self::Map(inner) => write!(f, "map(string, {inner})"),
            Self::Object(_) => f.write_str("object"),
        }
    }
}
