//! An embedded Kubernetes API server.
//!
//! [`schema`] says what objects look like, [`builtin`] which kinds there always are, [`status`] and [`field`] how a
//! refusal reads, [`apply`] who owns which field.

pub mod apply;
pub mod builtin;
pub mod field;
pub mod schema;
pub mod status;
