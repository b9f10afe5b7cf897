//! An embedded Kubernetes API server.
//!
//! [`schema`] says what objects look like, [`builtin`] which kinds there always are, [`status`] and [`field`] how a
//! refusal reads.

pub mod builtin;
pub mod crd;
pub mod decode;
pub mod field;
pub mod jsonpath;
pub mod meta;
pub mod path;
pub mod quantity;
pub mod schema;
pub mod status;
pub mod value;
