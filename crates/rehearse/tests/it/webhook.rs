//! The admission of Windlass, when it cannot be asked.

use windlass_rehearse::rehearsal::{Error, Request, Verdict, rehearse};
use windlass_sim::fault::{Fault, Scenario, Span, WebhookFault, When};

use crate::start::{self, TO};

fn update(how: WebhookFault, when: When) -> Request {
    Request { faults: Scenario::default().and(Fault::Webhook { how }, when), ..start::update() }
}

#[test]
fn a_wish_is_not_accepted_while_nobody_can_be_asked_about_it() {
    for how in [WebhookFault::Down, WebhookFault::Slow { by: Span::seconds(30) }] {
        let refused = rehearse(&start::one_and_one().world, &update(how, When::default()));
        let Err(Error::Ask { source, .. }) = refused else { panic!("{how:?} was not noticed") };
        assert!(source.to_string().contains("failed calling webhook"), "{source}");
    }
}

#[test]
fn an_admission_that_answers_late_is_waited_for_up_to_its_time() {
    let slow = WebhookFault::Slow { by: Span::seconds(8) };
    let rehearsal = rehearse(&start::one_and_one().world, &update(slow, When::times(1))).unwrap();
    assert_eq!(rehearsal.verdict, Verdict::Reached { distribution: TO.into() }, "{rehearsal}");
    assert!(rehearsal.text().contains("F33: the webhook answers late"), "{rehearsal}");
}
