//! An embedded Kubernetes API server.
//!
//! [`ApiServer`] is a tower service without a socket: give it requests, or make a client of it; [`listen`] puts it behind HTTPS.
//! A request is read by [`request`], [`query`] and [`negotiate`], carried out by a verb, and committed to the [`store`].
//! [`schema`] says what objects look like, [`builtin`] which kinds there always are, [`kind`] which there are right now,
//! `durable` keeps a store on a disk, [`status`] and [`field`] how a refusal reads, [`apply`] who owns which field.

pub mod admission;
mod age;
pub mod apply;
pub mod auth;
pub mod body;
pub mod builtin;
pub mod carrier;
#[cfg(feature = "cel")]
mod cel;
pub mod continue_token;
pub mod conversion;
mod crd;
pub mod decode;
mod discovery;
#[cfg(feature = "durable")]
pub mod durable;
pub mod field;
pub mod identity;
mod json_syntax;
pub mod jsonpath;
pub mod kind;
mod lifecycle;
#[cfg(feature = "listen")]
pub mod listen;
mod load;
pub mod meta;
mod metrics;
pub mod negotiate;
mod openapi;
pub mod patch;
pub mod path;
mod present;
pub mod private;
pub mod protobuf;
pub mod quantity;
pub mod query;
pub mod request;
mod respond;
pub mod reviews;
pub mod schema;
pub mod selector;
mod server;
pub mod status;
pub mod store;
pub mod subresource;
pub mod time;
pub mod value;
mod verb;

pub use body::Body;
pub use load::Limits;
pub use server::{ApiServer, Now, Options};
