//! A tree, as people draw it.

use serde::Serialize;

/// Something, and what it consists of.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    /// What it is: `Machine/my-tkc-0`, or words where it is no object.
    pub name: String,
    /// How it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Its parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Branch>,
}

impl Branch {
    /// A branch without parts.
    pub fn new(name: impl Into<String>, state: impl Into<String>) -> Self {
        Self { name: name.into(), state: state.into(), parts: Vec::new() }
    }

    /// The same with these parts.
    pub fn with(mut self, parts: impl IntoIterator<Item = Self>) -> Self {
        self.parts.extend(parts);
        self
    }

    /// The tree as text: what it is to the left, how it is to the right.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        self.draw("", "", &mut lines);
        let width = lines.iter().map(|(left, _)| left.chars().count()).max().unwrap_or_default();
        let lines = lines.iter().map(|(left, right)| format!("{left:width$}  {right}").trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    fn draw<'a>(&'a self, before: &str, below: &str, lines: &mut Vec<(String, &'a str)>) {
        lines.push((format!("{before}{}", self.name), &self.state));
        for (index, part) in self.parts.iter().enumerate() {
            let (fork, trunk) = if index + 1 == self.parts.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            part.draw(&format!("{below}{fork}"), &format!("{below}{trunk}"), lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hang_below_what_they_are_part_of() {
        let tree = Branch::new("house", "old").with([
            Branch::new("roof", "tight").with([Branch::new("tile", "red"), Branch::new("gutter", "")]),
            Branch::new("door", "open"),
        ]);
        let expected = "\
house         old
├─ roof       tight
│  ├─ tile    red
│  └─ gutter
└─ door       open";
        assert_eq!(tree.text(), expected);
    }
}
