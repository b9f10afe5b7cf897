//! Parameters of create, update and patch.

use super::{Query, refuse_options};
use crate::field::{FieldError, Problem, is_printable};
use crate::negotiate::PatchType;
use crate::status::ApiError;

/// The longest name of a field manager.
const MANAGER_BYTES_MAX: usize = 128;

/// How a write is carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Everything but the write.
    pub dry_run: bool,
    /// Who owns the fields that are written; see [`manager_or_user_agent`] for when nobody is named.
    pub field_manager: Option<String>,
    /// What happens to fields that nobody knows.
    pub field_validation: FieldValidation,
    /// Whether an apply takes fields from others.
    pub force: bool,
}

/// What happens to unknown and duplicate fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped, and the client is told.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

impl WriteOptions {
    /// Reads the parameters of a create.
    pub fn create(query: &Query<'_>) -> Result<Self, ApiError> {
        Self::parse(query, "CreateOptions", Vec::new())
    }

    /// Reads the parameters of an update.
    pub fn update(query: &Query<'_>) -> Result<Self, ApiError> {
        Self::parse(query, "UpdateOptions", Vec::new())
    }

    /// Reads the parameters of a patch.
    pub fn patch(query: &Query<'_>, patch: PatchType) -> Result<Self, ApiError> {
        let mut errors = Vec::new();
        match patch {
            PatchType::Apply => {
                if query.first("fieldManager").unwrap_or_default().is_empty() {
                    errors.push(FieldError::required("fieldManager", "is required for apply patch"));
                }
            }
            PatchType::Json | PatchType::Merge | PatchType::Strategic => {
                if query.flag("force").is_some() {
                    errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
                }
            }
        }
        let options = Self::parse(query, "PatchOptions", errors)?;
        Ok(Self { force: query.flag("force").unwrap_or(false), ..options })
    }

    fn parse(query: &Query<'_>, kind: &str, mut errors: Vec<FieldError>) -> Result<Self, ApiError> {
        let manager = query.first("fieldManager").filter(|m| !m.is_empty());
        manager_problems(manager.unwrap_or_default(), "fieldManager", &mut errors);
        let dry_run = query.dry_run(&mut errors);
        let field_validation = match query.first("fieldValidation") {
            None | Some("" | "Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let allowed = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported("fieldValidation", other, &allowed));
                FieldValidation::Warn
            }
        };
        refuse_options(kind, &errors)?;
        Ok(Self { dry_run, field_manager: manager.map(str::to_owned), field_validation, force: false })
    }
}

/// What is wrong with the name of a field manager.
pub(crate) fn manager_problems(manager: &str, path: &str, errors: &mut Vec<FieldError>) {
    if manager.len() > MANAGER_BYTES_MAX {
        let why = format!("may not be more than {MANAGER_BYTES_MAX} bytes");
        errors.push(FieldError::new(Problem::TooLong, path, "".into(), why));
    }
    for (i, c) in manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let why = format!("invalid character U+{:04X} (at position {i})", u32::from(c));
        errors.push(FieldError::invalid(path, manager, why));
    }
}

/// Who owns the fields of a write: the manager that was named, or what the user agent calls itself before the slash.
pub fn manager_or_user_agent(manager: Option<&str>, user_agent: &str) -> String {
    if let Some(manager) = manager {
        return manager.to_owned();
    }
    let mut name = String::new();
    for c in user_agent.split('/').next().unwrap_or_default().chars().filter(|c| is_printable(*c)) {
        if name.len() + c.len_utf8() > MANAGER_BYTES_MAX {
            break;
        }
        name.push(c);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses(text: &str, why: &str) {
        let refusal = WriteOptions::create(&Query::parse(text)).unwrap_err();
        let message = format!("CreateOptions.meta.k8s.io \"\" is invalid: {why}");
        assert_eq!((refusal.message, refusal.code.as_u16()), (message, 422), "{text}");
    }

    #[test]
    fn options_are_read() {
        let query = Query::parse("dryRun=All&dryRun=All&fieldManager=me&fieldValidation=Strict&force=true");
        let expected = WriteOptions {
            dry_run: true,
            field_manager: Some("me".into()),
            field_validation: FieldValidation::Strict,
            force: true,
        };
        assert_eq!(WriteOptions::patch(&query, PatchType::Apply), Ok(expected));
        assert_eq!(WriteOptions::update(&Query::default()), Ok(WriteOptions::default()));
    }

    #[test]
    fn options_that_make_no_sense_are_invalid() {
        refuses("dryRun=Foo", "dryRun: Unsupported value: [\"Foo\"]: supported values: \"All\"");
        refuses("dryRun=All&dryRun=Foo", "dryRun: Unsupported value: [\"All\",\"Foo\"]: supported values: \"All\"");
        refuses("dryRun=", "dryRun: Unsupported value: [\"\"]: supported values: \"All\"");
        refuses("fieldManager=%07x", "fieldManager: Invalid value: \"\\ax\": invalid character U+0007 (at position 0)");
        refuses(
            "fieldManager=a%E2%80%8Bb",
            "fieldManager: Invalid value: \"a\\u200bb\": invalid character U+200B (at position 1)",
        );
        refuses(&format!("fieldManager={}", "x".repeat(129)), "fieldManager: Too long: may not be more than 128 bytes");
        refuses(
            "fieldValidation=Foo",
            "fieldValidation: Unsupported value: \"Foo\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
        );
    }

    #[test]
    fn apply_names_its_manager_and_only_apply_may_force() {
        let check = |text: &str, patch, why: Option<&str>| {
            let message = WriteOptions::patch(&Query::parse(text), patch).err().map(|e| e.message);
            let expected = why.map(|why| format!("PatchOptions.meta.k8s.io \"\" is invalid: {why}"));
            assert_eq!(message, expected, "{text}");
        };
        check("fieldManager=me&force=true", PatchType::Apply, None);
        check("", PatchType::Apply, Some("fieldManager: Required value: is required for apply patch"));
        check("force=true", PatchType::Merge, Some("force: Forbidden: may not be specified for non-apply patch"));
        check("", PatchType::Json, None);
    }

    #[test]
    fn a_write_without_a_manager_is_owned_by_the_user_agent() {
        let check = |manager, user_agent: &str, expected: &str| {
            assert_eq!(manager_or_user_agent(manager, user_agent), expected);
        };
        check(Some("me"), "kubectl/v1.36", "me");
        check(None, "kubectl/v1.36 (linux)", "kubectl");
        check(None, "a\u{7}b", "ab");
        check(None, &"x".repeat(200), &"x".repeat(128));
        check(None, "", "");
    }
}
