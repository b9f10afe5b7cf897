//! What was met already. It is only ever asked for one thing, and never for all: its order matters to nobody.
#![allow(clippy::disallowed_types, reason = "a map that nobody goes through has no order")]

/// A map that is asked for one key at a time.
pub type Memory<K, V> = std::collections::HashMap<K, V>;
