//! Clocks that are wrong.

use jiff::{SignedDuration, Timestamp};
use windlass_sim::actor::Caller;
use windlass_sim::fault::{Fault, Scenario, Skew, Span, When};

use super::{in_world_with, said, seconds};

/// What the clock of the controllers shows after one, two and four minutes, of which the middle two are wrong.
fn check(how: Skew, shown: [&str; 3]) {
    let fault = Fault::WrongClock { caller: Caller::Controllers, how };
    let when = When::between(Span::minutes(1), Span::minutes(3));
    in_world_with(7, Scenario::default().and(fault, when), |world| async move {
        let clock = world.faults().clock(Caller::Controllers, &world.settings().clock);
        let upgrader = world.faults().clock(Caller::Upgrader, &world.settings().clock);
        let mut seen = Vec::new();
        for wait in [30, 90, 120] {
            seconds(wait).await;
            seen.push(clock.now());
            assert_eq!(upgrader.now(), world.settings().clock.now(), "others have the right time");
        }
        let shown: Vec<Timestamp> = shown.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(seen, shown);
        said(&world, "F15: the clock of the controllers shows");
    });
}

#[test]
fn a_clock_is_ahead_behind_too_fast_or_stands_still() {
    let (before, after) = ("2026-01-01T00:00:30Z", "2026-01-01T00:04:00Z");
    let hours = SignedDuration::from_hours;
    check(Skew::Step { by: hours(1) }, [before, "2026-01-01T01:02:00Z", after]);
    check(Skew::Step { by: -hours(24) }, [before, "2025-12-31T00:02:00Z", after]);
    check(Skew::Rate { times: 2.0 }, [before, "2026-01-01T00:03:00Z", after]);
    check(Skew::Rate { times: 0.5 }, [before, "2026-01-01T00:01:30Z", after]);
    check(Skew::Frozen, [before, "2026-01-01T00:01:00Z", after]);
}
