//! The verbs, one file each, and what they share: the call, and how an answer is shown.

pub(crate) mod body;
pub(crate) mod call;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod patch;
pub(crate) mod read;
pub(crate) mod update;
pub(crate) mod watch;
pub(crate) mod write;

pub(crate) use call::Call;
