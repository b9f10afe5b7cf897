//! An embedded Kubernetes API server.
//!
//! [`schema`] says what objects look like, [`builtin`] which kinds there always are, [`status`] and [`field`] how a
//! refusal reads, [`apply`] who owns which field.

pub mod apply;
pub mod age;
pub mod builtin;
pub mod decode;
pub mod field;
pub mod meta;
pub mod path;
pub mod quantity;
pub mod continue_token;
pub mod field;
pub mod json_syntax;
pub mod negotiate;
pub mod patch;
pub mod query;
pub mod quantity;
pub mod schema;
pub mod selector;
pub mod status;
pub mod store;
pub mod value;
