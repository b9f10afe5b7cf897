//! Parameters of get, list, watch and deletecollection.

use http::StatusCode;

use super::{Query, refuse_options, resource_version};
use crate::continue_token::ContinueToken;
use crate::field::FieldError;
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::ApiError;

/// What a list or a watch shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Which objects, by labels.
    pub label_selector: LabelSelector,
    /// Which objects, by fields. Not yet checked against what the kind offers.
    pub field_selector: FieldSelector,
    /// Changes instead of a list.
    pub watch: bool,
    /// Bookmarks are welcome.
    pub allow_watch_bookmarks: bool,
    /// The version asked for. `None`: the newest. `Some(0)`: whatever is at hand.
    pub resource_version: Option<u64>,
    /// What the version means.
    pub resource_version_match: Option<VersionMatch>,
    /// When a watch ends.
    pub timeout_seconds: Option<i64>,
    /// The length of a page; `None` for everything.
    pub limit: Option<u64>,
    /// Where the page before ended.
    pub continue_token: Option<ContinueToken>,
    /// Whether a watch begins with what is there. `None`: only changes.
    pub send_initial_events: Option<bool>,
}

/// What the resource version of a list means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionMatch {
    /// This version, or an error.
    Exact,
    /// This version or any newer.
    NotOlderThan,
}

/// The options as sent, before the rules between them are applied.
struct Sent<'a> {
    watch: bool,
    version: &'a str,
    version_match: &'a str,
    continue_: &'a str,
    initial_events: Option<bool>,
}

impl ListOptions {
    /// Reads the parameters of a list, a watch or a deletecollection.
    pub fn parse(query: &Query<'_>) -> Result<Self, ApiError> {
        if query.0.is_empty() {
            return Ok(Self::default());
        }
        let text = |key: &str| query.first(key).unwrap_or_default();
        let timeout_seconds = query.number("timeoutSeconds")?;
        let limit = query.number("limit")?;
        let label_selector = LabelSelector::parse(text("labelSelector"))?;
        let field_selector = FieldSelector::parse(text("fieldSelector"))?;
        let mut sent = Sent {
            watch: query.flag("watch").unwrap_or(false),
            version: text("resourceVersion"),
            version_match: text("resourceVersionMatch"),
            continue_: text("continue"),
            initial_events: query.flag("sendInitialEvents"),
        };
        sent.set_defaults();
        refuse_options("ListOptions", &sent.problems())?;
        let continue_token = sent.continue_token()?;
        Ok(Self {
            label_selector,
            field_selector,
            watch: sent.watch,
            allow_watch_bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            resource_version: sent.resource_version()?,
            resource_version_match: match sent.version_match {
                "Exact" => Some(VersionMatch::Exact),
                "NotOlderThan" => Some(VersionMatch::NotOlderThan),
                _ => None,
            },
            timeout_seconds,
            // Zero and less mean "no limit".
            limit: limit.and_then(|l| u64::try_from(l).ok()).filter(|l| *l > 0),
            continue_token,
            send_initial_events: sent.initial_events,
        })
    }
}

impl Sent<'_> {
    /// A watch from nowhere is one that begins with what is there.
    fn set_defaults(&mut self) {
        let from_nowhere = self.watch && matches!(self.version, "" | "0");
        if from_nowhere && self.initial_events.is_none() && self.version_match.is_empty() {
            self.initial_events = Some(true);
            self.version_match = "NotOlderThan";
        }
    }

    fn problems(&self) -> Vec<FieldError> {
        if self.watch { self.watch_problems() } else { self.list_problems() }
    }

    fn list_problems(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut forbid = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
        let field = "resourceVersionMatch";
        if !self.version_match.is_empty() {
            if self.version.is_empty() {
                forbid(field, "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.continue_.is_empty() {
                forbid(field, "resourceVersionMatch is forbidden when continue is provided");
            }
            if !matches!(self.version_match, "Exact" | "NotOlderThan") {
                errors.push(FieldError::not_supported(field, self.version_match, &["Exact", "NotOlderThan", ""]));
            }
            if self.version_match == "Exact" && self.version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden(field, why));
            }
        }
        if self.initial_events.is_some() {
            errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        errors
    }

    fn watch_problems(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let field = "resourceVersionMatch";
        if self.initial_events.is_some() && self.version_match != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(field, why));
        }
        if !self.version_match.is_empty() {
            if self.initial_events.is_none() {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(FieldError::forbidden(field, why));
            }
            if self.version_match != "NotOlderThan" {
                errors.push(FieldError::not_supported(field, self.version_match, &["NotOlderThan"]));
            }
            if !self.continue_.is_empty() {
                let why = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(FieldError::forbidden(field, why));
            }
        }
        errors
    }

    fn continue_token(&self) -> Result<Option<ContinueToken>, ApiError> {
        // A watch knows no pages.
        if self.continue_.is_empty() || self.watch {
            return Ok(None);
        }
        let token = ContinueToken::decode(self.continue_)?;
        if !matches!(self.version, "" | "0") {
            return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
        }
        Ok(Some(token))
    }

    fn resource_version(&self) -> Result<Option<u64>, ApiError> {
        if self.version.is_empty() {
            return Ok(None);
        }
        match resource_version(self.version) {
            Ok(version) => Ok(Some(version)),
            // A real server stumbles here, and answers 500 without a reason.
            Err(why) if self.watch => Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", why)),
            Err(why) => Err(ApiError::bad_request(format!("invalid resource version: {why}"))),
        }
    }
}

/// How an object is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GetOptions {
    /// Not older than this.
    pub resource_version: Option<u64>,
}

impl GetOptions {
    /// Reads the parameters of a get.
    pub fn parse(query: &Query<'_>) -> Result<Self, ApiError> {
        let version = query.first("resourceVersion").filter(|v| !v.is_empty());
        let parsed = version.map(resource_version).transpose();
        // A real server stumbles here, and answers 500 without a reason.
        let resource_version = parsed.map_err(|why| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", why))?;
        Ok(Self { resource_version })
    }
}

/// How much of each object a `Table` carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Its metadata.
    #[default]
    Metadata,
    /// Nothing.
    None,
    /// All of it.
    Object,
}

impl IncludeObject {
    /// Reads the parameter of a `Table`.
    pub fn parse(query: &Query<'_>) -> Result<Self, ApiError> {
        match query.first("includeObject") {
            None | Some("" | "Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::None),
            Some("Object") => Ok(Self::Object),
            Some(other) => {
                let why = "must be 'Metadata', 'Object', 'None', or empty";
                let error = FieldError::invalid("includeObject", other, why);
                Err(ApiError::bad_request(format!("Unable to convert to Table as requested: {error}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ListOptions, ApiError> {
        ListOptions::parse(&Query::parse(text))
    }

    #[track_caller]
    fn refuses(text: &str, code: u16, message: &str) {
        let refusal = parse(text).unwrap_err();
        assert_eq!((refusal.code.as_u16(), refusal.message.as_str()), (code, message), "{text}");
    }

    #[test]
    fn options_are_read() {
        let options = parse("labelSelector=a%3Db&fieldSelector=metadata.name%3Dx&limit=5&resourceVersion=7").unwrap();
        assert_eq!(options.label_selector.to_string(), "a=b");
        assert_eq!(options.field_selector.to_string(), "metadata.name=x");
        assert_eq!((options.limit, options.resource_version, options.watch), (Some(5), Some(7), false));
        assert_eq!(parse("limit=-1").unwrap().limit, None);
        assert_eq!(parse("foo=bar&pretty=true").unwrap(), ListOptions::default());
    }

    #[test]
    fn a_watch_from_nowhere_begins_with_what_is_there() {
        let initial = |text: &str| parse(text).unwrap().send_initial_events;
        assert_eq!(initial("watch=true"), Some(true));
        assert_eq!(initial("watch&resourceVersion=0"), Some(true));
        assert_eq!(initial("watch=1&resourceVersion=5"), None);
        assert_eq!(initial("watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"), Some(false));
        assert_eq!(initial("watch=0"), None);
    }

    #[test]
    fn malformed_options_are_bad_requests() {
        refuses("limit=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax");
        refuses("limit", 400, "strconv.ParseInt: parsing \"\": invalid syntax");
        let overflow = "strconv.ParseInt: parsing \"99999999999999999999\": value out of range";
        refuses("timeoutSeconds=99999999999999999999", 400, overflow);
        refuses("labelSelector=a%3Db,", 400, "found '', expected: identifier after ','");
        refuses("fieldSelector=a", 400, "invalid selector: 'a'; can't understand 'a'");
        let version = "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax";
        refuses("resourceVersion=x", 400, &format!("invalid resource version: {version}"));
        refuses("watch=1&resourceVersion=x", 500, version);
        let both = "specifying resource version is not allowed when using continue";
        let token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiJhIn0";
        refuses(&format!("continue={token}&resourceVersion=5"), 400, both);
        refuses(
            "continue=e30",
            400,
            "invalid continue token: continue key is not valid: server does not recognize this encoded version ",
        );
    }

    #[test]
    fn options_that_contradict_each_other_are_invalid() {
        let invalid = |text: &str, why: &str| {
            refuses(text, 422, &format!("ListOptions.meta.k8s.io \"\" is invalid: {why}"));
        };
        invalid(
            "resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        );
        invalid(
            "resourceVersionMatch=Foo&resourceVersion=1",
            "resourceVersionMatch: Unsupported value: \"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
        );
        invalid(
            "resourceVersionMatch=Exact&resourceVersion=0",
            "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        );
        invalid(
            "continue=abc&resourceVersion=5&resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
        );
        invalid("sendInitialEvents=true", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list");
        invalid(
            "watch=true&resourceVersionMatch=Exact",
            "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
             provided, resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"]",
        );
        invalid(
            "watch=1&sendInitialEvents=true",
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        );
        invalid(
            "watch=1&resourceVersion=5&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
        );
    }

    #[test]
    fn a_table_carries_what_was_asked_for() {
        let check = |text: &str, expected: Result<IncludeObject, &str>| {
            let found = IncludeObject::parse(&Query::parse(text)).map_err(|e| e.message);
            assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|e| *e), "{text}");
        };
        check("", Ok(IncludeObject::Metadata));
        check("includeObject=Object", Ok(IncludeObject::Object));
        check("includeObject=None", Ok(IncludeObject::None));
        let why = "Unable to convert to Table as requested: includeObject: Invalid value: \"X\": must be 'Metadata', 'Object', 'None', or empty";
        check("includeObject=X", Err(why));
    }
}
