//! The built binary, used as a person or a script would.

// `cfg(test)` says nothing new to the compiler; it is how clippy knows that helpers of tests may unwrap.
#[cfg(test)]
mod bench;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod kubectl;
#[cfg(test)]
mod pipelines;
#[cfg(test)]
mod real;
#[cfg(test)]
mod seed_002;
#[cfg(test)]
mod sweep;
#[cfg(test)]
mod up;
