//! The messages of Kubernetes, read from `messages.txt` when the first body in protobuf comes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// All messages.
pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(include_str!("messages.txt")));

pub(super) struct Table {
    messages: Vec<Message>,
    /// By `apiVersion` and kind.
    kinds: BTreeMap<(&'static str, &'static str), usize>,
}

#[derive(Default)]
pub(super) struct Message {
    /// By number.
    pub(super) fields: Vec<Field>,
    /// Written as the last of its fields that is there.
    pub(super) transparent: bool,
}

pub(super) struct Field {
    number: u64,
    /// The name in JSON.
    pub(super) name: &'static str,
    pub(super) label: Label,
    pub(super) type_: Type,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    /// One, dropped when it is zero.
    Dropped,
    /// One, kept when it is there.
    Kept,
    /// A list.
    Repeated,
    /// A map of strings.
    Map,
    /// A message whose fields are fields of this one.
    Inline,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    String,
    Boolean,
    Integer,
    Double,
    Bytes,
    Time,
    MicroTime,
    Json,
    Quantity,
    IntOrString,
    Message(usize),
}

impl Message {
    pub(super) fn field(&self, number: u64) -> Option<&Field> {
        self.fields.binary_search_by_key(&number, |f| f.number).ok().and_then(|i| self.fields.get(i))
    }
}

impl Table {
    pub(super) fn message(&self, index: usize) -> &Message {
        static NOTHING: Message = Message { fields: Vec::new(), transparent: false };
        self.messages.get(index).unwrap_or(&NOTHING)
    }

    /// The message of a kind. Options of requests belong to every group.
    pub(super) fn kind(&self, api_version: &str, kind: &str) -> Option<&Message> {
        let index = self.kinds.get(&(api_version, kind)).or_else(|| match kind {
            "DeleteOptions" | "Status" => self.kinds.get(&("meta.k8s.io/v1", kind)),
            _ => None,
        });
        index.and_then(|i| self.messages.get(*i))
    }

    fn read(text: &'static str) -> Self {
        let mut table = Self { messages: Vec::new(), kinds: BTreeMap::new() };
        let mut indexes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let (mut package, mut api_version) = ("", "");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(heading) = line.strip_prefix('@') {
                (package, api_version) = heading.split_once(' ').unwrap_or((heading, ""));
                continue;
            }
            let Some((head, fields)) = line.split_once(':') else { continue };
            let name = head.trim_end_matches(['=', '~']);
            let index = index_of(&mut indexes, package, name);
            if head.ends_with('=') {
                table.kinds.insert((api_version, name), index);
            }
            let fields = fields.split(',').filter_map(|field| read_field(field, package, &mut indexes)).collect();
            let message = Message { fields, transparent: head.ends_with('~') };
            if table.messages.len() < indexes.len() {
                table.messages.resize_with(indexes.len(), Message::default);
            }
            if let Some(slot) = table.messages.get_mut(index) {
                *slot = message;
            }
        }
        table
    }
}

/// The place of a message, which may be mentioned before it is described.
fn index_of(
    indexes: &mut BTreeMap<(&'static str, &'static str), usize>,
    package: &'static str,
    name: &'static str,
) -> usize {
    let next = indexes.len();
    *indexes.entry((package, name)).or_insert(next)
}

fn read_field(
    text: &'static str,
    package: &'static str,
    indexes: &mut BTreeMap<(&'static str, &'static str), usize>,
) -> Option<Field> {
    let mut words = text.split_ascii_whitespace();
    let (number, name, type_) = (words.next()?.parse().ok()?, words.next()?, words.next()?);
    let (label, type_) = match type_.as_bytes().first()? {
        b'*' => (Label::Repeated, &type_[1..]),
        b'%' => (Label::Map, &type_[1..]),
        b'?' | b'!' => (Label::Kept, &type_[1..]),
        _ => (Label::Dropped, type_),
    };
    let label = if name == "<" { Label::Inline } else { label };
    let type_ = match type_ {
        "s" => Type::String,
        "b" => Type::Boolean,
        "i" => Type::Integer,
        "d" => Type::Double,
        "y" => Type::Bytes,
        "T" => Type::Time,
        "U" => Type::MicroTime,
        "J" => Type::Json,
        "Q" => Type::Quantity,
        "X" => Type::IntOrString,
        message => {
            let (package, name) = message.split_once('.').unwrap_or((package, message));
            Type::Message(index_of(indexes, package, name))
        }
    };
    Some(Field { number, name, label, type_ })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_that_is_mentioned_is_described() {
        let described = TABLE.messages.iter().filter(|m| !m.fields.is_empty()).count();
        // These have no fields.
        let empty = include_str!("messages.txt").lines().filter(|l| l.ends_with(": ")).count();
        assert_eq!(described + empty, TABLE.messages.len());
        assert!(described > 400, "{described}");
    }

    #[test]
    fn fields_are_found_by_number() {
        for message in &TABLE.messages {
            assert!(message.fields.is_sorted_by_key(|f| f.number));
        }
        let pod = TABLE.kind("v1", "Pod").unwrap();
        assert_eq!(pod.field(2).map(|f| f.name), Some("spec"));
        assert!(pod.field(99).is_none());
    }
}
