//! An embedded Kubernetes API server.
//!
//! [`schema`] says what objects look like, [`builtin`] which kinds there always are, [`status`] and [`field`] how a
//! refusal reads.

pub mod auth;
pub mod builtin;
pub mod field;
#[cfg(feature = "listen")]
pub mod listen;
pub mod schema;
pub mod status;
