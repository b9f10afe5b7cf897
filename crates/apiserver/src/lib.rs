//! An embedded Kubernetes API server.
//!
//! [`schema`] says what objects look like, [`builtin`] which kinds there always are, [`status`] and [`field`] how a
//! refusal reads.

pub mod age;
pub mod builtin;
pub mod field;
pub mod quantity;
pub mod schema;
pub mod status;
