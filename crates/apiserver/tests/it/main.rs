//! The server as its clients see it.

#[cfg(test)]
mod conformance;
