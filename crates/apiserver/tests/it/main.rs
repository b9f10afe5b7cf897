//! The server as its clients see it.

#[cfg(test)]
mod admission;
#[cfg(test)]
mod conformance;
