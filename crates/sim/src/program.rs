//! What runs in the pods of the management cluster: functions of this process.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use windlass_api::name::NamespacedName;

use crate::log::Log;

/// What a container was told to do.
#[derive(Debug, Clone)]
pub struct Container {
    /// The pod that it is in.
    pub pod: NamespacedName,
    /// The program and its arguments, with `$(VARIABLES)` expanded.
    pub command: Vec<String>,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// Where it writes what people read with `kubectl logs`.
    pub log: Log,
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// 0 if all went well.
    pub code: i32,
    /// What it said last; it becomes the termination message.
    pub message: String,
}

/// Runs containers. Dropping the future is what killing the process would be.
pub trait Programs: Send + Sync {
    /// Runs a container to its end.
    fn run(&self, container: Container) -> BoxFuture<'static, Exit>;

    /// Posts a body to a server that runs in the management cluster, as HTTPS would. Nobody listens unless somebody says so.
    fn post(&self, url: String, _body: Vec<u8>) -> BoxFuture<'static, Result<Reply, Unheard>> {
        Box::pin(std::future::ready(Err(Unheard { url, why: "connection refused".to_owned() })))
    }
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// 200 if all went well.
    pub code: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// No server answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Post \"{url}\": {why}")]
pub struct Unheard {
    /// Where it was looked for.
    pub url: String,
    /// What went wrong.
    pub why: String,
}
