//! The way to a workload cluster, when it is blocked or leads astray.

use std::io;
use std::time::Duration;

use http::Response;
use windlass_apiserver::Body;
use windlass_apiserver::status::ApiError;

use super::kind::{Fault, LoadBalancerFault, Silence};
use super::layer::{PATIENCE, refusal};
use super::request::Asked;
use super::{Bite, Faults, Span};
use crate::actor::Caller;
use crate::workload::Workload;

/// How long an address is nowhere that moves to another host: about what it takes until everybody has heard of it.
const MOVE: Duration = Duration::from_secs(10);

/// What comes of a request to a workload cluster.
pub(crate) enum Passage {
    /// Nobody hears of it.
    Blocked {
        /// After so long.
        after: Duration,
        /// What is heard instead.
        error: io::Error,
    },
    /// It is answered by somebody who does nothing else.
    Answered(Response<Body>),
    /// It goes through; if it is a watch, it is cut off after this time.
    Free(Option<Duration>),
}

impl Faults {
    /// What comes of a request to a workload cluster.
    pub(crate) fn passage(&self, workload: &Workload, asked: &Asked) -> Passage {
        let Some(live) = self.live() else { return Passage::Free(None) };
        let cluster = workload.name().to_string();
        if asked.writes && workload.is_out_of_space() {
            let message = "etcdserver: mvcc: database space exceeded";
            let error = ApiError::new(http::StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
            return Passage::Answered(windlass_apiserver::body::refusal(&error));
        }
        for (index, injection) in live.open() {
            let when = &injection.when;
            let say = |text: &str| {
                let (place, object) = (&*cluster, &format!("{} {}", asked.verb, asked.resource));
                live.say_once(index, &Bite { place, cluster: place, object, text: &format!("{asked}: {text}") });
            };
            match &injection.fault {
                // Who asks is not known here, so that a fault that names somebody is for nobody.
                Fault::Unreachable { clusters, on, how }
                    if clusters.matches(&cluster)
                        && on.caller.is_none()
                        && on.matches(Caller::User, asked)
                        && live.strikes(index, when) =>
                {
                    say(in_words(*how));
                    return silence(*how);
                }
                Fault::LoadBalancer { clusters, how: LoadBalancerFault::DeadBackend }
                    if clusters.matches(&cluster) && !workload.dead_backends().is_empty() =>
                {
                    // Connections go to the living and to the dead in turn.
                    let number = live.strikes(index, when).then(|| live.state().meant.get(&index).copied()).flatten();
                    if number.is_some_and(|number| number % 2 == 1) {
                        say("the load balancer leads to a machine that is gone");
                        return silence(Silence::Refused);
                    }
                }
                Fault::LoadBalancer { clusters, how: LoadBalancerFault::Moves }
                    if clusters.matches(&cluster) && live.clock.now() < live.at(when.after.and(Span(MOVE))) =>
                {
                    live.count(index);
                    say("the address of the API is on its way to another host");
                    return silence(Silence::Refused);
                }
                _ => {}
            }
        }
        Passage::Free(if asked.verb == "watch" { self.moves_in(&cluster) } else { None })
    }

    /// When the address of a cluster's API moves next, or it is blocked for good: its watches end then.
    fn moves_in(&self, cluster: &str) -> Option<Duration> {
        let live = self.live()?;
        let breaks = |fault: &Fault| match fault {
            Fault::LoadBalancer { clusters, how: LoadBalancerFault::Moves } => clusters.matches(cluster),
            Fault::Unreachable { clusters, on, .. } => clusters.matches(cluster) && *on == super::Requests::default(),
            _ => false,
        };
        let breaking = live.scenario.faults.iter().filter(|injection| breaks(&injection.fault));
        breaking.map(|injection| live.until(injection.when.after)).filter(|left| !left.is_zero()).min()
    }
}

/// White space, which may stand before every answer, and nothing else.
fn endless() -> Response<Body> {
    /// Slow enough that an hour of it fits into memory.
    const PAUSE: Duration = Duration::from_millis(500);
    let blanks = futures::stream::unfold((), |()| async {
        tokio::time::sleep(PAUSE).await;
        Some((bytes::Bytes::from_static(b" "), ()))
    });
    let mut response = Response::new(Body::frames(blanks));
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

fn in_words(how: Silence) -> &'static str {
    match how {
        Silence::Refused => "nobody listens",
        Silence::Timeout => "nobody answers",
        Silence::Endless => "the answer goes on for ever",
        Silence::UnknownAuthority => "the certificate of the API is by an unknown authority",
        Silence::Unauthorized => "the credentials are not good any more",
    }
}

fn silence(how: Silence) -> Passage {
    let (kind, after) = match how {
        Silence::Refused => (io::ErrorKind::ConnectionRefused, Duration::ZERO),
        Silence::Timeout => (io::ErrorKind::TimedOut, PATIENCE),
        Silence::UnknownAuthority => (io::ErrorKind::InvalidData, Duration::ZERO),
        Silence::Unauthorized => return Passage::Answered(refusal(401, None)),
        Silence::Endless => return Passage::Answered(endless()),
    };
    let text = match how {
        Silence::Refused => "connection refused",
        Silence::Timeout => "no answer in time",
        Silence::UnknownAuthority | Silence::Unauthorized | Silence::Endless => {
            "invalid peer certificate: UnknownIssuer"
        }
    };
    Passage::Blocked { after, error: io::Error::new(kind, text) }
}
