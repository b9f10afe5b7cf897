//! A YAML text as a tree that knows where everything stands.

use std::collections::BTreeMap;
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span};

/// How deep a text may be nested. Manifests are not; what is deeper is not read.
const DEEPEST: usize = 100;

/// A text that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tree {
    pub(super) documents: Vec<Node>,
    /// What aliases stand for.
    anchored: BTreeMap<usize, Node>,
    /// How often each of them is used.
    uses: BTreeMap<usize, usize>,
}

/// One value, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// Its bytes in the text: those of a scalar or of an alias; of others only where they begin.
    pub(super) at: Range<usize>,
    anchor: usize,
    pub(super) content: Content,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Scalar { value: String, style: ScalarStyle },
    Map(Vec<(Node, Node)>),
    List(Vec<Node>),
    Alias(usize),
}

/// A value that was looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a> {
    /// The value itself, where it stands.
    pub(super) node: &'a Node,
    /// What it stands for.
    pub(super) meant: &'a Node,
    /// It stands in something that others share.
    pub(super) is_shared: bool,
}

impl Tree {
    /// Reads a text; what stands at which byte is told from `base` on.
    pub(super) fn read(text: &str, base: usize) -> Result<Self, String> {
        let mut reader = Reader { tree: Self::default(), open: Vec::new(), base };
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| error.to_string())?;
            reader.take(event, &span)?;
        }
        Ok(reader.tree)
    }

    /// What a value stands for, if it is an alias.
    fn meant<'a>(&'a self, node: &'a Node) -> &'a Node {
        match node.content {
            Content::Alias(anchor) => self.anchored.get(&anchor).unwrap_or(node),
            _ => node,
        }
    }

    /// The value of a key: its own, or one that was merged in.
    pub(super) fn get<'a>(&'a self, of: Found<'a>, key: &str) -> Option<Found<'a>> {
        let is_alias = matches!(of.node.content, Content::Alias(_));
        let is_shared = of.is_shared || is_alias || self.uses.contains_key(&of.meant.anchor);
        let Content::Map(entries) = &of.meant.content else { return None };
        let own = entries.iter().find(|(name, _)| name.scalar() == Some(key));
        if let Some((_, node)) = own {
            return Some(Found { node, meant: self.meant(node), is_shared });
        }
        let merged = entries.iter().filter(|(name, _)| name.scalar() == Some("<<"));
        let sources = merged.flat_map(|(_, node)| match &self.meant(node).content {
            Content::List(nodes) => nodes.iter().collect(),
            _ => vec![node],
        });
        let mut found = sources.filter_map(|node| self.get(self.start(node), key));
        found.next().map(|found| Found { is_shared: true, ..found })
    }

    /// The value at the end of a path of keys.
    pub(super) fn at<'a>(&'a self, node: &'a Node, path: &[&str]) -> Option<Found<'a>> {
        path.iter().try_fold(self.start(node), |found, key| self.get(found, key))
    }

    /// The text at the end of a path of keys.
    pub(super) fn text<'a>(&'a self, node: &'a Node, path: &[&str]) -> Option<&'a str> {
        self.at(node, path)?.meant.scalar()
    }

    /// The values of a list at the end of a path of keys.
    pub(super) fn list<'a>(&'a self, node: &'a Node, path: &[&str]) -> Vec<&'a Node> {
        match self.at(node, path).map(|found| &found.meant.content) {
            Some(Content::List(nodes)) => nodes.iter().map(|node| self.meant(node)).collect(),
            _ => Vec::new(),
        }
    }

    /// The keys of a map, also of those that were merged in.
    pub(super) fn keys<'a>(&'a self, of: Found<'a>) -> Vec<&'a str> {
        let Content::Map(entries) = &of.meant.content else { return Vec::new() };
        let mut keys: Vec<&str> = Vec::new();
        for (name, node) in entries {
            let more = match name.scalar() {
                Some("<<") => match &self.meant(node).content {
                    Content::List(nodes) => nodes.iter().flat_map(|node| self.keys(self.start(node))).collect(),
                    _ => self.keys(self.start(node)),
                },
                name => name.into_iter().collect(),
            };
            for key in more {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        keys
    }

    /// A value where it stands.
    pub(super) fn start<'a>(&'a self, node: &'a Node) -> Found<'a> {
        Found { node, meant: self.meant(node), is_shared: false }
    }

    /// Whether others stand for what this value says.
    pub(super) fn is_used_elsewhere(&self, node: &Node) -> bool {
        self.uses.contains_key(&node.anchor)
    }

    /// The objects of all documents, those of lists one by one.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Node> {
        self.documents.iter().flat_map(|document| {
            let is_list = self.text(document, &["kind"]).is_some_and(|kind| kind.ends_with("List"));
            let items = if is_list { self.list(document, &["items"]) } else { Vec::new() };
            if items.is_empty() { vec![document] } else { items }
        })
    }
}

impl Node {
    /// Its text, if it is one.
    pub(super) fn scalar(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { value, .. } => Some(value),
            _ => None,
        }
    }

    /// Whether it says that there is nothing.
    pub(super) fn is_null(&self) -> bool {
        let null = ["", "~", "null", "Null", "NULL"];
        matches!(&self.content, Content::Scalar { value, style: ScalarStyle::Plain } if null.contains(&value.as_str()))
    }
}

struct Reader {
    tree: Tree,
    open: Vec<Open>,
    base: usize,
}

struct Open {
    node: Node,
    /// In a map, the key whose value is still to come.
    key: Option<Node>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), String> {
        let at = span.byte_range().ok_or("it does not say where things stand")?;
        let at = at.start + self.base..at.end + self.base;
        let node = |anchor, content| Node { at, anchor, content };
        match event {
            Event::Scalar(value, style, anchor, _) => {
                self.close(node(anchor, Content::Scalar { value: value.into_owned(), style }));
            }
            Event::Alias(anchor) => {
                *self.tree.uses.entry(anchor).or_default() += 1;
                self.close(node(0, Content::Alias(anchor)));
            }
            Event::MappingStart(_, anchor, _) => return self.open(node(anchor, Content::Map(Vec::new()))),
            Event::SequenceStart(_, anchor, _) => return self.open(node(anchor, Content::List(Vec::new()))),
            Event::MappingEnd | Event::SequenceEnd => {
                if let Some(Open { node, .. }) = self.open.pop() {
                    self.close(node);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, node: Node) -> Result<(), String> {
        if self.open.len() >= DEEPEST {
            return Err(format!("it is nested more than {DEEPEST} deep"));
        }
        self.open.push(Open { node, key: None });
        Ok(())
    }

    fn close(&mut self, node: Node) {
        if node.anchor != 0 {
            self.tree.anchored.insert(node.anchor, node.clone());
        }
        let Some(Open { node: parent, key }) = self.open.last_mut() else {
            return self.tree.documents.push(node);
        };
        match (&mut parent.content, key.take()) {
            (Content::Map(entries), Some(key)) => entries.push((key, node)),
            (Content::Map(_), None) => *key = Some(node),
            (Content::List(nodes), _) => nodes.push(node),
            (Content::Scalar { .. } | Content::Alias(_), _) => {}
        }
    }
}
