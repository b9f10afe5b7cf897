//! An apply that would change what others own.

use http::StatusCode;

use super::managed::Operation;
use crate::field::quote;
use crate::status::{ApiError, Cause};

/// Why a configuration was not applied.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields that the configuration gives other values, and taking them was not asked for.
    #[error("{}", message(.0))]
    Conflicts(Vec<Conflict>),
    /// The configuration is not one that can be applied here at all.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration does not fit the schema, or cannot be merged.
    #[error("{0}")]
    Invalid(String),
}

/// One field that somebody else owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub manager: String,
    /// How the owner came to own it.
    pub operation: Operation,
    /// The version by which the owner wrote it.
    pub api_version: String,
    /// The subresource through which the owner wrote it, or empty.
    pub subresource: String,
    /// The field: `.spec.template.spec.containers[name="a"].image`.
    pub path: String,
}

impl Conflict {
    fn owner(&self) -> String {
        let mut owner = quote(&self.manager);
        if !self.subresource.is_empty() {
            owner += " with subresource ";
            owner += &quote(&self.subresource);
        }
        if self.operation == Operation::Update {
            owner += " using ";
            owner += &self.api_version;
        }
        owner
    }
}

fn message(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", one.owner(), one.path);
    }
    let mut lines: Vec<String> = Vec::new();
    let mut last_owner = String::new();
    // The conflicts of one owner stand together.
    for conflict in conflicts {
        let owner = conflict.owner();
        if lines.is_empty() || owner != last_owner {
            lines.push(format!("conflicts with {owner}:"));
            last_owner = owner;
        }
        lines.push(format!("- {}", conflict.path));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> Self {
        let text = error.to_string();
        match error {
            ApplyError::BadRequest(_) => Self::bad_request(text),
            // A real server has no reason for it either: it passes the error on as it is.
            ApplyError::Invalid(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", text),
            ApplyError::Conflicts(conflicts) => {
                let cause = |conflict: &Conflict| Cause {
                    reason: "FieldManagerConflict".into(),
                    message: format!("conflict with {}", conflict.owner()),
                    field: conflict.path.clone(),
                };
                Self::new(StatusCode::CONFLICT, "Conflict", text).with_causes(conflicts.iter().map(cause).collect())
            }
        }
    }
}
