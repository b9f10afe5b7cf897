//! The embedded management cluster, put together: today its API server.

use jiff::Timestamp;
use windlass_apiserver::{ApiServer, Options};

/// The wall clock, which the embedded cluster runs on in `up`.
#[allow(clippy::disallowed_methods, reason = "the binary is where real time is injected")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The API server behind the listener. Two runs should not give two objects the same uid, so the seed is the time of the start.
pub fn management(start: Timestamp) -> ApiServer {
    let seed = u64::try_from(start.as_microsecond()).unwrap_or_default();
    ApiServer::new(Options { now: std::sync::Arc::new(now), seed, ..Options::default() })
}
