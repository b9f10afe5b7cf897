//! The server as its clients see it.

#[cfg(test)]
mod admission;
#[cfg(test)]
mod client;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod extension;
