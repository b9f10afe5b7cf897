//! The server as its clients see it.

#[cfg(test)]
mod admission;
#[cfg(test)]
mod carrier;
#[cfg(test)]
mod client;
#[cfg(test)]
mod concurrency;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod differential;
#[cfg(feature = "durable")]
#[cfg(test)]
mod durable;
#[cfg(test)]
mod extension;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod limits;
#[cfg(feature = "durable")]
#[cfg(test)]
mod linear;
#[cfg(test)]
mod mutated;
#[cfg(test)]
mod random;
#[cfg(test)]
mod watching;
