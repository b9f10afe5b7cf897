//! What is real in a rehearsal, what is a model of it, and what is taken for granted. `docs/fidelity.md` says it in full.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How close something in a rehearsal is to what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// It is the thing itself.
    Real,
    /// It behaves as the thing does, as far as it was modelled.
    Modelled,
    /// It is taken for granted.
    Assumed,
}

/// Something in a rehearsal, and how close it is to what it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fidelity {
    /// How close.
    pub how: How,
    /// What, in few words.
    pub short: String,
    /// What.
    pub what: String,
    /// The section of `docs/fidelity.md` that has more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub see: Option<String>,
}

const DATA: &str = include_str!("../../fidelity.json");

/// All that there is to say.
pub(super) fn all() -> Vec<Fidelity> {
    serde_json::from_str(DATA).unwrap_or_default()
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Real => "real",
            Self::Modelled => "modelled",
            Self::Assumed => "assumed",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_list_has_every_section_of_the_page_and_no_other() {
        let page = include_str!("../../../../docs/fidelity.md");
        let sections: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let list: Vec<Fidelity> = serde_json::from_str(DATA).unwrap();
        let named: BTreeSet<&str> = list.iter().filter_map(|one| one.see.as_deref()).collect();
        assert_eq!(named, sections);
        assert!([How::Real, How::Modelled, How::Assumed].iter().all(|how| list.iter().any(|one| one.how == *how)));
        assert!(list.is_sorted_by_key(|one| one.how));
    }
}
