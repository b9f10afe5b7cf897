//! Requests and answers of a client that go wrong: refused, lost, delivered twice, late, or answered from the past.

use std::error::Error;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::Either;
use kube::client::Body as Sent;
use tower::Service;
use windlass_apiserver::status::ApiError;
use windlass_apiserver::{ApiServer, Body, body};

use super::kind::{Fault, Loss};
use super::request::{Asked, Place};
use super::watch::{self, Spoiled};
use super::{Bite, Faults, Live};
use crate::actor::Caller;

/// How long a client waits for an answer before it gives up: kube's own default is about as long.
pub(super) const PATIENCE: Duration = Duration::from_secs(295);

/// A service whose requests and answers go wrong as a scenario says. To be put in front of an API server only where there is a
/// scenario.
#[derive(Clone)]
pub struct Faulty<S> {
    inner: S,
    faults: Faults,
    client: Client,
}

/// Who asks, and where.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) caller: Caller,
    pub(super) place: Place,
    /// The workload cluster, as `namespace/name`; `management` otherwise.
    pub(super) name: String,
}

impl Client {
    /// The cluster that its requests are about, as far as this is known.
    pub(super) fn cluster(&self) -> &str {
        if self.place == Place::Workload { &self.name } else { "" }
    }
}

impl<S> Faulty<S> {
    /// The API server of a place (`management`, or the workload cluster as `namespace/name`), as a caller reaches it.
    pub fn new(inner: S, faults: Faults, caller: Caller, place: Place, name: &str) -> Self {
        Self { inner, faults, client: Client { caller, place, name: name.to_owned() } }
    }
}

type BoxError = Box<dyn Error + Send + Sync>;

impl<S, B> Service<Request<Sent>> for Faulty<S>
where
    S: Service<Request<Sent>, Response = Response<B>, Error: Into<BoxError>, Future: Send + 'static>,
    S: Clone + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Either<B, Body>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        let asked = Asked::of(self.client.place, &request);
        let treatment = self.faults.treatment(&self.client, &asked);
        let (mut inner, faults, client) = (self.inner.clone(), self.faults.clone(), self.client.clone());
        Box::pin(async move {
            for _ in 0..treatment.yields {
                tokio::task::yield_now().await;
            }
            wait(treatment.before).await;
            if let Some(refusal) = treatment.refusal {
                return Ok(refusal.map(Either::Right));
            }
            let (parts, body) = request.into_parts();
            let again =
                body.try_clone().filter(|_| treatment.twice).map(|body| Request::from_parts(parts.clone(), body));
            let request = Request::from_parts(parts, body);
            let spoiled = faults.spoiled(&client, &asked);
            let answer = match treatment.replica {
                Some(mut replica) => match replica.call(request).await {
                    Ok(answer) => answer.map(Either::Right),
                    Err(never) => match never {},
                },
                None => inner.call(request).await.map_err(Into::into)?.map(Either::Left),
            };
            let answer = match again {
                Some(again) => inner.call(again).await.map_err(Into::into)?.map(Either::Left),
                None => answer,
            };
            wait(treatment.after).await;
            match treatment.loss {
                Some(loss) if answer.status().is_success() => lost(loss).await.map(|answer| answer.map(Either::Right)),
                _ => Ok(spoil(answer, spoiled)),
            }
        })
    }
}

/// A watch that is going to be spoiled.
fn spoil<B>(answer: Response<Either<B, Body>>, spoiled: Option<Spoiled>) -> Response<Either<B, Body>>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    match spoiled {
        Some(spoiled) if answer.status().is_success() => answer.map(|body| Either::Right(watch::spoil(body, spoiled))),
        _ => answer,
    }
}

async fn wait(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}

/// What is heard instead of an answer.
pub(super) async fn lost(loss: Loss) -> Result<Response<Body>, BoxError> {
    match loss {
        Loss::InternalError => Ok(refusal(500, None)),
        Loss::GatewayTimeout => Ok(refusal(504, None)),
        Loss::Reset => Err(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer").into()),
        Loss::Timeout => {
            tokio::time::sleep(PATIENCE).await;
            Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time").into())
        }
    }
}

/// An answer that refuses, in the words of an API server.
pub(super) fn refusal(code: u16, retry_after_seconds: Option<u32>) -> Response<Body> {
    let (reason, message) = match code {
        401 => ("Unauthorized", "Unauthorized"),
        409 => {
            ("Conflict", "the object has been modified; please apply your changes to the latest version and try again")
        }
        422 => ("Invalid", "the object is invalid"),
        429 => ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => ("Timeout", "the request timed out before it was answered"),
        _ => ("InternalError", "an error on the server has prevented the request from succeeding"),
    };
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut error = ApiError::new(code, reason, message);
    error.details.retry_after_seconds = retry_after_seconds.unwrap_or_default();
    body::refusal(&error)
}

/// What is done to a request and its answer.
#[derive(Default)]
pub(super) struct Treatment {
    yields: u64,
    before: Duration,
    refusal: Option<Response<Body>>,
    twice: bool,
    replica: Option<ApiServer>,
    after: Duration,
    loss: Option<Loss>,
}

/// Tasks that are ready are overtaken by no more than so many turns of others.
const YIELDS_MAX: u64 = 8;

impl Faults {
    /// What is done to a request.
    pub(super) fn treatment(&self, client: &Client, asked: &Asked) -> Treatment {
        let mut treatment = Treatment::default();
        let Some(live) = self.live() else { return treatment };
        let Client { caller, place, .. } = client;
        for (index, injection) in live.open() {
            let when = &injection.when;
            let say = |text: &str| {
                let (place, object) = (&*client.name, asked.to_string());
                live.say(index, &Bite { place, cluster: client.cluster(), object: &object, text });
            };
            match &injection.fault {
                Fault::Refusal { on, code, retry_after_seconds }
                    if on.matches(*caller, asked) && live.strikes(index, when) =>
                {
                    say(&format!("{asked} of the {caller} is refused with {code}"));
                    treatment.refusal = Some(refusal(*code, *retry_after_seconds));
                }
                Fault::LeaseLost {} if asked.writes && asked.resource == "leases" && live.strikes(index, when) => {
                    say(&format!("{asked} of the {caller} is not answered"));
                    treatment.refusal = Some(refusal(504, None));
                }
                Fault::LostAnswer { on, instead } if on.matches(*caller, asked) && live.strikes(index, when) => {
                    say(&format!("the answer to {asked} of the {caller} is lost"));
                    treatment.loss = Some(*instead);
                }
                Fault::Repetition { on }
                    if on.matches(*caller, asked) && asked.verb != "watch" && live.strikes(index, when) =>
                {
                    say(&format!("{asked} of the {caller} is delivered twice"));
                    treatment.twice = true;
                }
                Fault::Delay { on, least, most } if on.matches(*caller, asked) && live.strikes(index, when) => {
                    treatment.slow_down(live.delay(index, [least.0, most.0], client, asked));
                }
                Fault::StaleReplica { caller: whose, asked_after }
                    if whose == caller
                        && !asked.writes
                        && *place == Place::Management
                        && live.at(when.after.and(*asked_after)) <= live.clock.now() =>
                {
                    treatment.replica = live.replicas().get(&index).cloned();
                    if treatment.replica.is_some() {
                        live.count(index);
                        let text = format!("the {caller} read from a replica that stands still");
                        let object = caller.as_str();
                        live.say_once(index, &Bite { place: "management", cluster: "", object, text: &text });
                    }
                }
                Fault::AnyOrder {} => {
                    let number = live.strikes(index, when).then(|| live.state().meant.get(&index).copied()).flatten();
                    let drawn = |number: u64| live.stream(index, &format!("turn {number}")).below(YIELDS_MAX);
                    treatment.yields += number.map(drawn).unwrap_or_default();
                }
                _ => {}
            }
        }
        treatment
    }
}

impl Treatment {
    /// A part of a delay on the way there, the rest on the way back: commits and answers are both reordered.
    fn slow_down(&mut self, [there, back]: [Duration; 2]) {
        self.before += there;
        self.after += back;
    }
}

impl Live {
    /// How long a request takes longer, there and back.
    fn delay(&self, index: usize, [least, most]: [Duration; 2], client: &Client, asked: &Asked) -> [Duration; 2] {
        let number = self.state().meant.get(&index).copied().unwrap_or_default();
        let mut chance = self.stream(index, &format!("delay {number}"));
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let drawn = chance.range(millis(least)..millis(most).saturating_add(1));
        let there = chance.below(drawn.saturating_add(1));
        let text = &format!("{asked} of the {} takes {drawn} ms longer", client.caller);
        let object = &format!("{} {}", asked.verb, asked.resource);
        self.say_once(index, &Bite { place: &client.name, cluster: client.cluster(), object, text });
        [there, drawn - there].map(Duration::from_millis)
    }
}
