//! An answer that can be looked at and changed.

use futures::StreamExt;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt, Either};
use kube::client::Body as Received;
use serde_json::Value;
use windlass_apiserver::status::ApiError;
use windlass_apiserver::{Body, body};

/// What comes back: as it came, or made here.
pub(super) type Answer = Response<Either<Received, Body>>;

/// What it says, and the same answer again. A watch says nothing.
pub(super) async fn read(answer: Answer) -> Result<(Value, Answer), kube::Error> {
    let (mut parts, body) = answer.into_parts();
    let bytes = match body {
        Either::Left(received) => received.collect_bytes().await?,
        Either::Right(made) => match made.collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(never) => match never {},
        },
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    let value = serde_json::from_slice(&bytes).unwrap_or_default();
    Ok((value, Response::from_parts(parts, Either::Right(Body::whole(bytes)))))
}

/// The same answer, saying something else.
pub(super) fn saying(answer: Answer, value: &Value) -> Answer {
    answer.map(|_| Either::Right(Body::whole(value.to_string().into_bytes())))
}

/// An object, found.
pub(super) fn found(object: &Value) -> Answer {
    body::json(StatusCode::OK, object).map(Either::Right)
}

/// A refusal that nobody argues with.
pub(super) fn refused() -> Answer {
    let error = ApiError::new(StatusCode::FORBIDDEN, "Forbidden", "no answer is taken for a refusal");
    body::refusal(&error).map(Either::Right)
}

/// The answer of a watch that is never told anything.
pub(super) fn silent(answer: Answer) -> Answer {
    answer.map(|_| Either::Right(Body::frames(futures::stream::pending())))
}

/// The same answer, read in another way. Nobody cuts what is said in the middle: a watch tells whole events.
pub(super) fn rewritten(answer: Answer, read: fn(&str) -> String) -> Answer {
    let (mut parts, body) = answer.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let frames = body.into_data_stream().filter_map(|frame| std::future::ready(frame.ok()));
    let read = frames.map(move |frame| read(&String::from_utf8_lossy(&frame)).into());
    Response::from_parts(parts, Either::Right(Body::frames(read)))
}

/// The answer of a watch, until an event says enough; from then on nothing comes any more.
pub(super) fn until(answer: Answer, is_enough: fn(&str) -> bool) -> Answer {
    answer.map(|body| {
        let frames = body.into_data_stream().filter_map(|frame| std::future::ready(frame.ok()));
        let told = frames.scan(false, move |over, frame| {
            let is_over = *over;
            *over |= is_enough(&String::from_utf8_lossy(&frame));
            std::future::ready((!is_over).then_some(frame))
        });
        Either::Right(Body::frames(told.chain(futures::stream::pending())))
    })
}
