//! An update, run by the real controllers in a simulated world before it touches anything.
//!
//! ```text
//! World ─┐                      ┌─ rehearse: fork, patch, run to the end ─▶ Rehearsal { verdict, timeline, violations … }
//!        ├─ Assembly ── seam ───┤  report: many of them, told as one; matrix: with each fault at each step
//! controllers, upgrader ────────┘  sweep: the same, broken once at every write ─▶ the same end
//! ```
//!
//! [`assembly`] joins a World and the controllers in one runtime; every request of theirs passes a [`seam`], where it is
//! counted ([`traffic`]) and may be the last thing that its sender did ([`crash`]). [`snapshot`] is a World to start from that
//! was read from any management cluster. [`drive`] is what differs between the sorts of clusters.
//!
//! **Invariant**: the same start, request and seed give the same rehearsal, byte for byte; and a rehearsal opens no socket.

#![deny(missing_docs)]

pub mod assembly;
pub mod crash;
pub mod drive;
pub mod evidence;
pub mod matrix;
pub mod preview;
pub mod rehearsal;
pub mod replay;
pub mod report;
pub mod seam;
pub mod settle;
pub mod shrink;
pub mod snapshot;
pub mod stand_in;
pub mod state;
pub mod sweep;
pub mod traffic;
