//! An embedded Kubernetes API server.
//!
//! [`schema`] says what objects look like, [`builtin`] which kinds there always are, [`status`] and [`field`] how a
//! refusal reads. What a request says is read by [`negotiate`], [`query`], [`selector`], [`continue_token`] and [`protobuf`];
//! [`patch`] changes objects in place.

pub mod builtin;
pub mod continue_token;
pub mod field;
pub mod json_syntax;
pub mod negotiate;
pub mod patch;
pub mod protobuf;
pub mod query;
pub mod schema;
pub mod selector;
pub mod status;
