//! Workers that get nowhere.

use windlass_sim::fault::{Fault, MachineFault, Span, When, Whom};

use super::{End, Row, check, fault};

#[test]
fn a_worker_that_boots_after_all_ends_the_upgrade() {
    let never = Fault::Machine { of: Whom::named("*-workers-*"), how: MachineFault::NeverBoots };
    let scenario = fault("a worker does not boot", never, When::default().lasting(Span::minutes(30)));
    check(&Row { id: "F20", size: (1, 1), scenario, end: End::Reached, tolerated: &[], because: &["pool default"] });
}
