//! No decision is made across a gap in what was observed.
//!
//! A machine that could not be read looks like one that is not there, and would be made a second time.

use super::Blocked;
use crate::inventory::Inventory;

/// Refuses to touch machines while something could not be observed.
pub fn no_gaps(inventory: &Inventory) -> Option<Blocked> {
    let gap = inventory.gaps.first()?;
    Some(Blocked::Gap { object: gap.object.clone(), why: gap.why.clone() })
}
