//! The admission of Windlass, when it cannot be asked.

use std::time::Duration;

use super::kind::{Fault, WebhookFault};
use super::{Bite, Faults};

/// How long an API server waits for a webhook, unless it is told otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// What comes of asking a webhook that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unasked {
    /// After so long.
    pub after: Duration,
    /// Why there is no answer; it answers after all without one.
    pub why: Option<&'static str>,
}

impl Faults {
    /// What comes of asking the webhook, if something is wrong with it.
    pub fn webhook(&self) -> Option<Unasked> {
        let live = self.live()?;
        live.open().find_map(|(index, injection)| {
            let Fault::Webhook { how } = injection.fault else { return None };
            if !live.strikes(index, &injection.when) {
                return None;
            }
            let (unasked, text) = match how {
                WebhookFault::Down => {
                    let why = Some("connection refused");
                    (Unasked { after: Duration::ZERO, why }, "the webhook is asked, and nobody listens")
                }
                WebhookFault::Slow { by } if by.0 < PATIENCE => {
                    (Unasked { after: by.0, why: None }, "the webhook answers late")
                }
                WebhookFault::Slow { .. } => {
                    let why = Some("context deadline exceeded");
                    (Unasked { after: PATIENCE, why }, "the webhook answers too late")
                }
            };
            live.say(index, &Bite { place: "management", cluster: "", object: "webhook", text });
            Some(unasked)
        })
    }
}
