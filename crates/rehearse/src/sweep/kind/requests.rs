//! What goes wrong between Windlass and the API servers: requests, answers, watches, leaders and clocks.

use jiff::SignedDuration;
use windlass_sim::actor::Caller;
use windlass_sim::fault::{EtcdFault, Fault, Loss, Requests, Skew, Span, WatchEnd, When, Whom};

use super::{Course, Kind, at};
use crate::assembly::access::REMOVAL;
use crate::sweep::plan::{Expect, Plan};

/// What a request may be refused with and be sent again.
const REFUSALS: [u16; 4] = [409, 429, 500, 503];
const LOSSES: [Loss; 3] = [Loss::GatewayTimeout, Loss::Reset, Loss::InternalError];
const ENDS: [WatchEnd; 3] = [WatchEnd::Dropped, WatchEnd::Expired, WatchEnd::Stalled];

/// The kinds.
pub(super) const ALL: [Kind; 11] = [
    at("F04", "refused", "a write is refused once", |course, numbers| {
        let code = pick(REFUSALS, *numbers.first()?);
        let retry_after_seconds = Some(1).filter(|_| code == 429);
        request(course, numbers, |on| Fault::Refusal { on, code, retry_after_seconds })
    }),
    at("F05", "lost-answer", "a write is done, and its sender hears of an error", lost_answer),
    at("F06", "repeated", "a write is delivered twice", |course, numbers| {
        request(course, numbers, |on| Fault::Repetition { on })
    }),
    at("F07", "slow", "requests take up to 20 s for two minutes", |course, numbers| {
        let on = of_sender(course, numbers)?;
        let fault = Fault::Delay { on, least: Span::default(), most: Span::seconds(20) };
        around(course, numbers, 120, fault)
    }),
    at("F08", "watch-ends", "the watches of the controllers are dropped, expire or stall", |course, numbers| {
        let (on, how) = (Requests::default().by(Caller::Controllers), pick(ENDS, *numbers.first()?));
        let fault = Fault::WatchEnds { on, how, after: course.at(*numbers.first()?)? };
        // Those that the controllers begin with: they are a minute old at most when their end is decided.
        Some(Plan::fault(Expect::Same, fault, When::between(Span::default(), Span::minutes(1))))
    }),
    at("F09", "coalesced", "of several changes a watch sees the last one, for a minute", |course, numbers| {
        let on = of_sender(course, numbers)?;
        around(course, numbers, 60, Fault::Coalescing { on, within: Span::seconds(10) })
    }),
    at("F10", "stale", "reads come from a replica that stands still, for a minute", |course, numbers| {
        let fault = Fault::StaleReplica { caller: Caller::Controllers, asked_after: Span::default() };
        around(course, numbers, 60, fault)
    }),
    at("F11", "lag", "watches tell of changes ten seconds late, for a minute", |course, numbers| {
        let on = of_sender(course, numbers)?;
        around(course, numbers, 60, Fault::Lag { on, by: Span::seconds(10) })
    }),
    at("F12", "older-list", "a list is older than what was seen before", |course, numbers| {
        let fault = Fault::StaleReplica { caller: Caller::Controllers, asked_after: Span::seconds(20) };
        around(course, numbers, 80, fault)
    }),
    at("F13", "two-leaders", "controllers stand still, others take over, and the old ones go on", |course, numbers| {
        let fault = Fault::SplitLeadership { takeover: Span::seconds(20), notices_after: Span::seconds(30) };
        around(course, numbers, 60, fault)
    }),
    at("F15", "wrong-clock", "the clock of the controllers is an hour ahead or behind, for five minutes", clock),
];

fn pick<T: Copy, const N: usize>(of: [T; N], number: u64) -> T {
    of[usize::try_from(number % N as u64).unwrap_or_default()]
}

/// What whoever makes this write asks.
fn of_sender(course: &Course<'_>, numbers: &[u64]) -> Option<Requests> {
    Some(Requests::default().by(course.write(*numbers.first()?)?.caller))
}

/// Something happens to the request that this write is.
fn request(course: &Course<'_>, numbers: &[u64], fault: impl FnOnce(Requests) -> Fault) -> Option<Plan> {
    let write = course.write(*numbers.first()?)?;
    let on = Requests::to("write", "*").by(write.caller);
    Some(Plan::fault(Expect::Same, fault(on), When::nth(write.request?)))
}

/// Something begins when this write is made, and lasts for so many seconds.
fn around(course: &Course<'_>, numbers: &[u64], seconds: u64, fault: Fault) -> Option<Plan> {
    let begins = course.at(*numbers.first()?)?;
    Some(Plan::fault(Expect::Same, fault, When::between(begins, begins.and(Span::seconds(seconds)))))
}

/// Of what is asked of etcd only removals can go unanswered.
fn lost_answer(course: &Course<'_>, numbers: &[u64]) -> Option<Plan> {
    let number = *numbers.first()?;
    let write = course.write(number)?;
    if write.request.is_some() {
        return request(course, numbers, |on| Fault::LostAnswer { on, instead: pick(LOSSES, number) });
    }
    let is_removal = |what: &str| what.starts_with(REMOVAL);
    let earlier = course.writes.iter().filter(|other| other.number <= number && is_removal(&other.what));
    let nth = earlier.fold(0, |count, _| count + 1);
    let fault = Fault::Etcd { of: Whom::default(), how: EtcdFault::RemovalUnanswered };
    is_removal(&write.what).then(|| Plan::fault(Expect::Same, fault, When::nth(nth)))
}

fn clock(course: &Course<'_>, numbers: &[u64]) -> Option<Plan> {
    let hours = if numbers.first()?.is_multiple_of(2) { 1 } else { -1 };
    let how = Skew::Step { by: SignedDuration::from_hours(hours) };
    around(course, numbers, 5 * 60, Fault::WrongClock { caller: Caller::Controllers, how })
}
