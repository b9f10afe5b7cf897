//! What a cluster carries while somebody creates it: which operation, since when, and when something last moved.
//!
//! Tools of the past read these to tell a creation that goes on from one that nobody has seen move for too long.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use windlass_api::annotation;

/// The annotations of a cluster that is being created from now on.
pub fn operation(now: Timestamp, patience: SignedDuration) -> BTreeMap<String, String> {
    // Written as text: the order of the keys is the one that those tools write.
    let info = format!(
        r#"{{"Operation":"Create","OperationStartTimestamp":{},"OperationTimeout":{}}}"#,
        json!(spelled(now)),
        patience.as_secs()
    );
    BTreeMap::from([(annotation::OPERATION_INFO.name.to_owned(), info), seen(now)])
}

/// The annotation that says when something was last seen to move.
pub fn seen(now: Timestamp) -> (String, String) {
    (annotation::OPERATION_OBSERVED.name.to_owned(), spelled(now))
}

/// A time as Go prints it: `2023-01-10 20:10:30.295742703 +0000 UTC`.
fn spelled(now: Timestamp) -> String {
    let whole = now.strftime("%Y-%m-%d %H:%M:%S");
    let fraction = format!("{:09}", now.subsec_nanosecond());
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{whole}{dot}{fraction} +0000 UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_spelled_as_in_the_seed() {
        let now: Timestamp = "2023-01-10T20:10:30.295742703Z".parse().unwrap();
        let stamps = operation(now, SignedDuration::from_mins(30));
        let info = "{\"Operation\":\"Create\",\"OperationStartTimestamp\":\"2023-01-10 20:10:30.295742703 +0000 UTC\",\
                    \"OperationTimeout\":1800}";
        assert_eq!(stamps["TKGOperationInfo"], info);
        assert_eq!(stamps["TKGOperationLastObservedTimestamp"], "2023-01-10 20:10:30.295742703 +0000 UTC");
        let (_, round) = seen("2023-01-10T20:10:30Z".parse().unwrap());
        assert_eq!(round, "2023-01-10 20:10:30 +0000 UTC");
    }
}
