//! No machine is touched beside a pool of workers that has given up moving.
//!
//! A drain that a budget forbids, a machine that never boots: more machines would only be more of the same. As soon as the pool
//! moves again, or is at rest, whatever the reason, the update goes on by itself.

use jiff::{SignedDuration, Timestamp};

use super::Blocked;
use crate::inventory::{Inventory, Pool};

/// After so long without a move the update of a pool has failed. Four times what a single machine is given.
pub(crate) const GIVES_UP_AFTER: SignedDuration = SignedDuration::from_mins(60);

/// Refuses to go on beside a pool that has not moved for an hour of a rollout.
pub fn pool_moves(inventory: &Inventory, now: Timestamp) -> Option<Blocked> {
    inventory.pools.iter().find_map(|(name, pool)| {
        let since = gave_up(pool, now)?;
        Some(Blocked::PoolStalled { pool: name.clone(), since })
    })
}

/// When a pool moved for the last time, if it has given up.
pub(crate) fn gave_up(pool: &Pool, now: Timestamp) -> Option<Timestamp> {
    pool.moved_at.filter(|moved_at| !pool.is_at_rest() && now.duration_since(*moved_at) >= GIVES_UP_AFTER)
}
