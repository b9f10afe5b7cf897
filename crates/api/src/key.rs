//! Keys of labels and annotations that know the type of their values.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The key of a label or annotation whose values are of type `T`.
pub struct Key<T> {
    /// The key as it is on the wire.
    pub name: &'static str,
    write: fn(&T) -> String,
}

impl<T> Key<T> {
    /// A key with its own way of writing a value. Whatever it writes, `FromStr` must read.
    pub(crate) const fn new(name: &'static str, write: fn(&T) -> String) -> Self {
        Self { name, write }
    }

    /// Whether the key is there, with any value.
    pub fn is_in(&self, entries: &BTreeMap<String, String>) -> bool {
        entries.contains_key(self.name)
    }

    /// The text for a value.
    pub fn text(&self, value: &T) -> String {
        (self.write)(value)
    }

    /// The entry for a value, to be put among an object's labels or annotations.
    pub fn entry(&self, value: &T) -> (String, String) {
        (self.name.to_owned(), self.text(value))
    }
}

impl<T> Key<T>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    /// The value among an object's labels or annotations; `None` if the key is not there.
    pub fn get(&self, entries: &BTreeMap<String, String>) -> Result<Option<T>, KeyError> {
        let Some(text) = entries.get(self.name) else { return Ok(None) };
        text.parse().map(Some).map_err(|source| KeyError { key: self.name, source: Box::new(source) })
    }
}

impl<T> fmt::Display for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.name).finish()
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

/// The value of a label or annotation that is not what its key promises.
#[derive(Debug, Error)]
#[error("the value of {key} cannot be read")]
pub struct KeyError {
    /// The key as it is on the wire.
    pub key: &'static str,
    /// What is wrong with the value.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

/// The value of a key that says all by being there. It is written as nothing, and anything is read as it: older tools
/// write `"true"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Present;

impl FromStr for Present {
    type Err = Infallible;

    fn from_str(_: &str) -> Result<Self, Infallible> {
        Ok(Self)
    }
}

impl fmt::Display for Present {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Constants for keys, and `ALL` of them by name. A value is written as `Display` does it, unless
/// another way follows the name.
macro_rules! keys {
    ($($(#[$attribute:meta])* $constant:ident: $type:ty = $name:literal $(, $write:expr)?;)+) => {
        $(
            $(#[$attribute])*
            pub const $constant: $crate::key::Key<$type> =
                $crate::key::Key::new($name, $crate::key::keys!(@write $($write)?));
        )+

        /// Every key of this module.
        pub const ALL: &[&str] = &[$($name),+];
    };
    (@write $write:expr) => { $write };
    (@write) => { ToString::to_string };
}
pub(crate) use keys;

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    /// The keys are well-formed by the rules of Kubernetes, and each is there once.
    pub(crate) fn check_all(keys: &[&str]) {
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "a key is there twice");
        for key in keys {
            let (prefix, name) = key.split_once('/').unwrap_or(("example.com", key));
            assert!(crate::name::ObjectName::new(prefix).is_ok(), "{key}");
            assert!((1..=63).contains(&name.len()), "{key}");
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            assert!(
                name.bytes().all(fits) && !name.starts_with(['-', '_', '.']) && !name.ends_with(['-', '_', '.']),
                "{key}"
            );
        }
    }
}
