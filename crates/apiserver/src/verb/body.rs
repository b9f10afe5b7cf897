//! An object in a request's body, in whatever encoding it comes, and the refusal of one that cannot be read.

use http::header;
use serde_json::Value;

use super::Call;
use super::write::Decoded;
use crate::decode;
use crate::json_syntax;
use crate::kind::Kind;
use crate::negotiate::{self, BodyType};
use crate::protobuf::{self, ProtobufError};
use crate::status::ApiError;

/// Reads an object from a request's body.
pub(crate) fn object(call: &Call) -> Result<Decoded, ApiError> {
    let bytes = &call.body;
    let (object, oddities) = match negotiate::body_type(call.header(header::CONTENT_TYPE))? {
        BodyType::Json => decode::json(bytes).map_err(|why| unrecognized(&call.kind, bytes, &parse_error(&why)))?,
        BodyType::Yaml => decode::yaml(bytes).map_err(|why| unrecognized(&call.kind, bytes, &why))?,
        BodyType::Protobuf => match protobuf::decode(bytes) {
            Ok(object) => (object, Vec::new()),
            Err(why @ ProtobufError::UnknownKind { .. }) => return Err(no_protobuf(&why)),
            Err(ProtobufError::Malformed(why)) => return Err(unrecognized(&call.kind, bytes, &why)),
        },
    };
    if !object.is_object() {
        let found = json_syntax::type_name(&object);
        let wanted =
            r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        let why = format!("json: cannot unmarshal {found} into Go value of type {wanted}");
        return Err(unrecognized(&call.kind, bytes, &parse_error(&why)));
    }
    Ok(Decoded { object, oddities })
}

/// Reads whatever a body has, for requests whose body is not an object of the path's kind.
pub(crate) fn value(content_type: Option<&str>, bytes: &[u8]) -> Result<Value, ApiError> {
    match negotiate::body_type(content_type)? {
        BodyType::Json => decode::json(bytes).map(|(value, _)| value).map_err(ApiError::bad_request),
        BodyType::Yaml => decode::yaml(bytes).map(|(value, _)| value).map_err(ApiError::bad_request),
        BodyType::Protobuf => protobuf::decode(bytes).map_err(|why| ApiError::bad_request(why.to_string())),
    }
}

fn parse_error(why: &str) -> String {
    format!("couldn't get version/kind; json parse error: {why}")
}

fn no_protobuf(why: &ProtobufError) -> ApiError {
    let mut refusal = ApiError::unsupported_media_type(&[negotiate::JSON, negotiate::YAML]);
    refusal.message = format!("{}: {why}", refusal.message);
    refusal
}

/// 400: nobody can tell what the body is.
pub(crate) fn unrecognized(kind: &Kind, bytes: &[u8], why: &str) -> ApiError {
    let name = &kind.kind;
    let beginning = beginning(bytes);
    ApiError::bad_request(format!("the object provided is unrecognized (must be of type {name}): {why} ({beginning})"))
}

/// The beginning of a body: as text if it looks like JSON, else as hexadecimal digits.
fn beginning(bytes: &[u8]) -> String {
    const SHOWN_BYTES: usize = 30;
    let more = if bytes.len() > SHOWN_BYTES { " ..." } else { "" };
    let shown = &bytes[..bytes.len().min(SHOWN_BYTES)];
    match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => {
            let digits: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}{more}", digits.concat())
        }
    }
}
