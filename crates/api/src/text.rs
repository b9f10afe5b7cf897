//! What all checked texts share: how they are quoted in a complaint, and how they travel through serde.

use thiserror::Error;

/// The most of a refused text that a complaint repeats: twice what the longest name in common use has. Input may be of
/// any size; what is said about it may not.
const QUOTED_MAX_CHARS: usize = 128;

/// A refused text as a complaint repeats it.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX_CHARS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
    }
}

/// Makes types travel as the text that `Display` writes, and arrive through the checks of `FromStr`.
macro_rules! travels_as_text {
    ($($type:ty),+ $(,)?) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string"})
            }
        }
    )+};
}
pub(crate) use travels_as_text;

/// An enum whose variants are the words on the wire, spelled the same unless another spelling follows.
macro_rules! words {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$doc:meta])* $word:ident $(= $spelling:literal)?,)+ }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$doc])* $word,)+
        }

        impl $name {
            /// Every word that there is.
            pub const ALL: &[Self] = &[$(Self::$word),+];

            /// The word as it is on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $crate::text::words!(@spelling $word $($spelling)?),)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::text::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let known = Self::ALL.iter().copied().find(|word| word.as_str() == text);
                known.ok_or_else(|| {
                    let accepted: Vec<&str> = Self::ALL.iter().map(|word| word.as_str()).collect();
                    $crate::text::UnknownWord::new(text, &accepted)
                })
            }
        }

        $crate::text::travels_as_text!($name);
    };
    (@spelling $word:ident $spelling:literal) => { $spelling };
    (@spelling $word:ident) => { stringify!($word) };
}
pub(crate) use words;

/// A word that is not among those that have a meaning here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{quoted} is not known here; accepted are {accepted}")]
pub struct UnknownWord {
    quoted: String,
    accepted: String,
}

impl UnknownWord {
    pub(crate) fn new(text: &str, accepted: &[&str]) -> Self {
        Self { quoted: quoted(text), accepted: accepted.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use crate::condition::{ConditionStatus, ConditionType};
    use crate::reason::{DeletionReason, PausedReason, Reason, TopologyReason};

    fn check(word: &str, text: &str) {
        assert_eq!(word, text);
        assert!(text.starts_with(|first: char| first.is_ascii_uppercase()) && text.chars().all(char::is_alphanumeric));
    }

    #[test]
    fn words_are_in_pascal_case_and_lead_back() {
        for word in ConditionType::ALL {
            check(&word.as_str().parse::<ConditionType>().unwrap().to_string(), word.as_str());
        }
        for word in Reason::ALL {
            check(&word.as_str().parse::<Reason>().unwrap().to_string(), word.as_str());
        }
        for word in TopologyReason::ALL {
            check(&word.as_str().parse::<TopologyReason>().unwrap().to_string(), word.as_str());
        }
        for word in DeletionReason::ALL {
            check(&word.as_str().parse::<DeletionReason>().unwrap().to_string(), word.as_str());
        }
        for word in PausedReason::ALL {
            check(&word.as_str().parse::<PausedReason>().unwrap().to_string(), word.as_str());
        }
        check(&ConditionType::UpdatesAvailable.to_string(), "UpdatesAvailable");
    }

    #[test]
    fn a_word_without_a_meaning_here_is_refused_with_those_that_have_one() {
        let refusal = "Maybe".parse::<ConditionStatus>().unwrap_err();
        assert_eq!(refusal.to_string(), r#""Maybe" is not known here; accepted are True, False, Unknown"#);
        assert!(serde_json::from_str::<ConditionStatus>(r#""true""#).is_err());
    }
}
