//! The infrastructure provider: what a cluster needs once, and machines.

pub(super) mod cluster;
pub(super) mod machine;
