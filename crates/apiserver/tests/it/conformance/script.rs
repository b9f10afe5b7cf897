//! How a conformance file is written down, and written back when it is recorded anew.
//!
//! ```text
//! ### A second create of a name is refused
//! # A remark.
//! needs controllers
//! only embedded: the reason why a real API server cannot run this case
//!
//! > POST /api/v1/namespaces/$NS/configmaps
//! > Accept: application/json
//! metadata: {name: a}
//! < 201 .metadata.name
//! .metadata.name: a
//! ```
//!
//! Lines with `>` are what is done (the first says what, the others are headers or `until`), then comes a body, then `<` with the
//! status code and what to show of the answer, then the answer. A blank line ends it. `tests/conformance/README.md` has the whole language.

use std::ops::Range;

/// One `.txt` file.
pub struct Script {
    pub name: String,
    pub lines: Vec<String>,
    pub cases: Vec<Case>,
}

/// A sequence of requests that shows one behaviour.
#[derive(Debug, Default, PartialEq)]
pub struct Case {
    pub title: String,
    pub line: usize,
    /// Why only our server can run it.
    pub only_embedded: Option<String>,
    pub marks: Vec<Mark>,
    pub steps: Vec<Step>,
    /// Whether a namespace must be made for it.
    pub namespaced: bool,
}

/// What a case needs.
#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Mark {
    /// A real server needs its controllers (garbage collection, namespace deletion).
    Controllers,
    /// It is about clients that come from outside.
    Listener,
    /// It waits for what happens once a minute. On a paused clock it does not wait.
    Slow,
}

impl Mark {
    fn read(line: &str) -> Option<Self> {
        match line {
            "needs controllers" => Some(Self::Controllers),
            "needs a listener" => Some(Self::Listener),
            "slow" => Some(Self::Slow),
            _ => None,
        }
    }
}

impl Case {
    pub fn is(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }

    /// Whether it runs on a server with controllers.
    pub fn controlled(&self) -> bool {
        self.is(Mark::Controllers) || self.only_embedded.is_some()
    }
}

#[derive(Debug, PartialEq)]
pub struct Step {
    pub line: usize,
    pub action: Action,
    pub expect: Option<Expect>,
}

#[derive(Debug, PartialEq)]
pub enum Action {
    Request(Request),
    /// Starts a watch that later steps read from.
    Watch {
        name: String,
        request: Request,
    },
    /// Takes frames from a watch: so many, or all until it ends.
    Frames {
        name: String,
        count: Option<usize>,
    },
    /// Keeps a value of the last answer for later steps.
    Let {
        name: String,
        path: String,
    },
    /// Compares two resource versions.
    Check {
        left: String,
        relation: Relation,
        right: String,
    },
    /// Puts a webhook behind `$HOOK/NAME`.
    Hook {
        name: String,
        body: String,
    },
    /// Shows what a webhook was asked last.
    Asked {
        name: String,
    },
    /// Creates a `CustomResourceDefinition` and waits until it is served.
    Crd {
        kind: String,
        scope: &'static str,
        body: String,
    },
}

#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Relation {
    Less,
    Equal,
}

#[derive(Debug, PartialEq, Clone)]
pub struct Request {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub until: Option<Until>,
}

/// What a repeated request waits for.
#[derive(Debug, PartialEq, Clone)]
pub enum Until {
    Code(u16),
    Present(String),
    Absent(String),
    Equals(String, String),
}

/// What is shown of an answer, and what is to be seen.
#[derive(Debug, PartialEq, Clone)]
pub struct Expect {
    /// The number of the `<` line.
    pub line: usize,
    pub code: Option<u16>,
    /// Paths into the answer, `@header`s, or `-` for nothing; none of them: all of it.
    pub select: Vec<String>,
    /// The numbers of the lines of `text`.
    pub range: Range<usize>,
    pub text: String,
}

impl Expect {
    /// The `<` line of an answer with this code.
    pub fn head(&self, code: Option<u16>) -> String {
        let mut head = "<".to_owned();
        for word in code.map(|code| code.to_string()).iter().chain(&self.select) {
            head.push(' ');
            head.push_str(word);
        }
        head
    }
}

const MEDIA: [(&str, &str); 4] = [
    ("APPLY", "application/apply-patch+yaml"),
    ("MERGE", "application/merge-patch+json"),
    ("STRATEGIC", "application/strategic-merge-patch+json"),
    ("JSONPATCH", "application/json-patch+json"),
];

impl Script {
    /// Reads a file's text; an error names the line.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut reader = Reader { lines: &lines, at: 0 };
        let mut cases = Vec::new();
        while reader.at < lines.len() {
            let line = reader.at;
            match lines[line].strip_prefix("### ") {
                Some(title) => {
                    reader.at += 1;
                    let case =
                        reader.case(title, line).map_err(|why| format!("{name}.txt:{}: {why}", reader.at + 1))?;
                    cases.push(case);
                }
                None => reader.at += 1,
            }
        }
        Ok(Self { name: name.to_owned(), lines, cases })
    }

    /// The file's text with new answers: for each, the expectation that it replaces, the code and the lines.
    pub fn rewritten(&self, mut answers: Vec<(&Expect, Option<u16>, String)>) -> String {
        answers.sort_by_key(|(expect, ..)| expect.line);
        let mut out: Vec<String> = Vec::new();
        let mut next = 0;
        for (expect, code, text) in answers {
            out.extend_from_slice(&self.lines[next..expect.line]);
            out.push(expect.head(code));
            out.extend(text.lines().map(str::to_owned));
            next = expect.range.end;
        }
        out.extend_from_slice(&self.lines[next..]);
        out.join("\n") + "\n"
    }
}

struct Reader<'a> {
    lines: &'a [String],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&str> {
        self.lines.get(self.at).map(String::as_str)
    }

    fn case(&mut self, title: &str, line: usize) -> Result<Case, String> {
        let mut case = Case { title: title.to_owned(), line, ..Case::default() };
        while let Some(text) = self.peek() {
            if text.starts_with("### ") {
                break;
            } else if let Some(why) = text.strip_prefix("only embedded: ") {
                case.only_embedded = Some(why.to_owned());
                self.at += 1;
            } else if let Some(mark) = Mark::read(text) {
                case.marks.push(mark);
                self.at += 1;
            } else if text.starts_with("> ") {
                case.steps.push(self.step()?);
            } else if text.is_empty() || text.starts_with('#') {
                self.at += 1;
            } else {
                return Err(format!("neither a step nor a remark: {text:?}"));
            }
        }
        case.namespaced = self.lines[line..self.at].iter().any(|line| line.contains("$NS"));
        Ok(case)
    }

    fn step(&mut self) -> Result<Step, String> {
        let line = self.at;
        let mut doing = Vec::new();
        while let Some(text) = self.peek().and_then(|text| text.strip_prefix("> ")) {
            doing.push(text.to_owned());
            self.at += 1;
        }
        let mut body = String::new();
        while let Some(text) = self.peek().filter(|text| !is_head(text) && !text.is_empty()) {
            body.push_str(text);
            body.push('\n');
            self.at += 1;
        }
        let expect = self.expect()?;
        let action = action(&doing, body)?;
        let wants =
            matches!(action, Action::Request(_) | Action::Watch { .. } | Action::Frames { .. } | Action::Asked { .. });
        match (wants, &expect) {
            (true, None) => Err("a step without an answer; write a line with <".to_owned()),
            (false, Some(_)) => Err("this step has no answer".to_owned()),
            _ => Ok(Step { line, action, expect }),
        }
    }

    pub fn expect(&mut self) -> Result<Option<Expect>, String> {
        let Some(head) = self.peek().filter(|text| is_head(text)) else { return Ok(None) };
        let mut words = head[1..].split_whitespace().map(str::to_owned).peekable();
        let code = words.next_if(|word| word.parse::<u16>().is_ok()).and_then(|word| word.parse().ok());
        let select: Vec<String> = words.collect();
        if let Some(odd) = select.iter().find(|word| !word.starts_with(['.', '@']) && *word != "-") {
            return Err(format!("not a path, a header or `-`: {odd:?}"));
        }
        let line = self.at;
        self.at += 1;
        let start = self.at;
        while self.peek().is_some_and(|text| !text.is_empty()) {
            self.at += 1;
        }
        let text = self.lines[start..self.at].join("\n");
        Ok(Some(Expect { line, code, select, range: start..self.at, text }))
    }
}

fn is_head(text: &str) -> bool {
    text == "<" || text.starts_with("< ")
}

/// The expectation in a block of lines that starts with `<`.
pub fn expectation(lines: &[String]) -> Result<Expect, String> {
    Reader { lines, at: 0 }.expect()?.ok_or_else(|| "no line with <".to_owned())
}

fn action(doing: &[String], body: String) -> Result<Action, String> {
    let words: Vec<&str> = doing[0].split_whitespace().collect();
    match words.as_slice() {
        ["WATCH", name, target] => {
            let request = request("GET", target, &doing[1..], body)?;
            Ok(Action::Watch { name: (*name).to_owned(), request })
        }
        ["FRAMES", name, "end"] => Ok(Action::Frames { name: (*name).to_owned(), count: None }),
        ["FRAMES", name, count] => {
            let count = count.parse().map_err(|_| format!("not a number of frames: {count}"))?;
            Ok(Action::Frames { name: (*name).to_owned(), count: Some(count) })
        }
        ["LET", name, "=", path] => Ok(Action::Let { name: (*name).to_owned(), path: (*path).to_owned() }),
        ["CHECK", left, relation, right] => {
            let relation = match *relation {
                "<" => Relation::Less,
                "==" => Relation::Equal,
                other => return Err(format!("not a relation: {other}")),
            };
            Ok(Action::Check { left: (*left).to_owned(), relation, right: (*right).to_owned() })
        }
        ["HOOK", name] => Ok(Action::Hook { name: (*name).to_owned(), body }),
        ["ASKED", name] => Ok(Action::Asked { name: (*name).to_owned() }),
        ["CRD", kind] => Ok(Action::Crd { kind: (*kind).to_owned(), scope: "Namespaced", body }),
        ["CRD", kind, "Cluster"] => Ok(Action::Crd { kind: (*kind).to_owned(), scope: "Cluster", body }),
        [method, target] if target.starts_with('/') => Ok(Action::Request(request(method, target, &doing[1..], body)?)),
        _ => Err(format!("not an action: {:?}", doing[0])),
    }
}

fn request(method: &str, target: &str, more: &[String], body: String) -> Result<Request, String> {
    let mut request =
        Request { method: method.to_owned(), target: target.to_owned(), headers: Vec::new(), body, until: None };
    if let Some((_, media)) = MEDIA.iter().find(|(word, _)| *word == method) {
        "PATCH".clone_into(&mut request.method);
        request.headers.push(("content-type".to_owned(), (*media).to_owned()));
    }
    for line in more {
        if let Some(condition) = line.strip_prefix("until ") {
            request.until = Some(until(condition)?);
        } else if let Some((name, value)) = line.split_once(": ") {
            request.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        } else {
            return Err(format!("neither a header nor `until`: {line:?}"));
        }
    }
    Ok(request)
}

fn until(condition: &str) -> Result<Until, String> {
    if let Ok(code) = condition.parse() {
        return Ok(Until::Code(code));
    }
    if let Some(path) = condition.strip_prefix('!') {
        return Ok(Until::Absent(path.to_owned()));
    }
    match condition.split_once(" == ") {
        Some((path, value)) => Ok(Until::Equals(path.to_owned(), value.to_owned())),
        None if condition.starts_with('.') => Ok(Until::Present(condition.to_owned())),
        None => Err(format!("not a condition: {condition:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
A topic.

### A name can be used once
# A remark.

> POST /api/v1/namespaces/$NS/configmaps
> Accept: text/plain
metadata: {name: a}
< 201 .metadata.name
.metadata.name: a

> LET RV = .metadata.resourceVersion

> WATCH w /api/v1/namespaces/$NS/configmaps?watch=1
< 200

> FRAMES w 2
<
old

### An object goes away by itself
needs controllers
only embedded: the collector is another program

> GET /readyz
> until .status.phase == Gone
< 404 -
";

    fn parsed() -> Script {
        Script::parse("topic", TEXT).unwrap()
    }

    #[test]
    fn a_file_is_cases_and_a_case_is_steps() {
        let script = parsed();
        let titles: Vec<&str> = script.cases.iter().map(|case| case.title.as_str()).collect();
        assert_eq!(titles, ["A name can be used once", "An object goes away by itself"]);
        assert_eq!(script.cases[0].steps.len(), 4);
        assert!(script.cases[0].namespaced && !script.cases[1].namespaced);
        assert!(script.cases[1].is(Mark::Controllers) && script.cases[0].marks.is_empty());
        assert_eq!(script.cases[1].only_embedded.as_deref(), Some("the collector is another program"));
    }

    #[test]
    fn a_request_has_headers_a_body_and_an_answer() {
        let script = parsed();
        let step = &script.cases[0].steps[0];
        let Action::Request(request) = &step.action else { panic!("{:?}", step.action) };
        assert_eq!((request.method.as_str(), request.body.as_str()), ("POST", "metadata: {name: a}\n"));
        assert_eq!(request.headers, [("accept".to_owned(), "text/plain".to_owned())]);
        let expect = step.expect.as_ref().unwrap();
        assert_eq!((expect.code, expect.text.as_str()), (Some(201), ".metadata.name: a"));
        let Action::Request(last) = &script.cases[1].steps[0].action else { panic!() };
        assert_eq!(last.until, Some(Until::Equals(".status.phase".into(), "Gone".into())));
    }

    #[test]
    fn recording_replaces_answers_and_nothing_else() {
        let script = parsed();
        let steps = &script.cases[0].steps;
        let answers = vec![
            (steps[3].expect.as_ref().unwrap(), None, "new\nframes".to_owned()),
            (steps[0].expect.as_ref().unwrap(), Some(409), ".metadata.name: b".to_owned()),
        ];
        let expected = TEXT
            .replace("< 201 .metadata.name\n.metadata.name: a", "< 409 .metadata.name\n.metadata.name: b")
            .replace("<\nold", "<\nnew\nframes");
        assert_eq!(script.rewritten(answers), expected);
    }

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        let check = |text: &str, error: &str| assert_eq!(Script::parse("f", text).err().as_deref(), Some(error));
        check("### t\n\n> GET /x\n\n", "f.txt:4: a step without an answer; write a line with <");
        check("### t\n> JUMP\n< 200\n", "f.txt:4: not an action: \"JUMP\"");
        check("### t\nhello\n", "f.txt:2: neither a step nor a remark: \"hello\"");
        check("### t\n> GET /x\n< 200 name\n", "f.txt:3: not a path, a header or `-`: \"name\"");
        check("### t\n> GET /x\n> until maybe\n< 200\n", "f.txt:5: not a condition: \"maybe\"");
    }
}
