//! What differs from one run to the next is hidden: ages, times, uids, versions, ports, random endings, folders.

use std::path::Path;

use regex::Regex;

/// What is replaced.
pub struct Mask {
    rules: Vec<(Regex, &'static str)>,
    /// A column of ages.
    age_header: Regex,
    age: Regex,
    /// The ids of updates and of sets of machines, which depend on a uid.
    id: Regex,
    /// What is between two columns.
    gap: Regex,
    folder: String,
}

impl Mask {
    /// `folder` is where commands run.
    pub fn new(folder: &Path) -> Self {
        let rules = [
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
            (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000)", "<time>"),
            (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "<time>"),
            (r"(?m)^(Age: +)\S+", "${1}0s"),
            (r"\(x(\d+) over \w+\)", "(x$1 over 0s)"),
            (r#"(?i)("?resource ?version"?: *"?)\d+"#, "${1}<version>"),
            (r"(https://127\.0\.0\.1):\d+", "${1}:<port>"),
            // The alphabet of generated names: no vowels, nothing that looks like another character. As long as it was.
            (r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-xxxxx"),
            (r"/kubectl-edit-\d+", "/kubectl-edit"),
            (r"/(LIVE|MERGED)-\d+/", "/$1/"),
            // Newer clients are warned of nothing, older ones of the distance to the server.
            (r"(?m)^WARNING: version difference between client .*\n", ""),
            // Clients of 1.34 and newer say from which namespace.
            (r"(?m)^(.* deleted) from \S+ namespace", "$1"),
            // What an update may do is told apart by a digest, in which the uid of the cluster is.
            (r"sha256:[0-9a-f]{64}", "sha256:<digest>"),
            // The id of an update, where no name has it.
            (r#"((?:upgrade|update)-id"?: "?)\d{5,20}"#, "${1}<id>"),
            (r"\((\d+[smhd])+ so far\)", "(0s so far)"),
            // What a few rehearsals of what was just read take.
            (r"(Time: )P50 \S+, P90 [^,]+,", "${1}P50 <time>, P90 <time>,"),
            (r"(?m)[ \t]+$", ""),
        ];
        let rules = rules.map(|(pattern, with)| (Regex::new(pattern).unwrap(), with)).into_iter().collect();
        let age_header = Regex::new(r"(?:^|\s)(AGE|LAST SEEN|FIRST SEEN|DURATION|TOOK|Age)(?:  |$)").unwrap();
        let age = Regex::new(r"^(<invalid>|(\d+[smhdy])+)( +|$)").unwrap();
        let id = Regex::new(r"-\d{7,20}\b").unwrap();
        let gap = Regex::new(r"(\S) {2,}").unwrap();
        Self { rules, age_header, age, id, gap, folder: folder.display().to_string() }
    }

    /// Hides it, and the blanks at the ends of lines.
    pub fn hide(&self, output: &str) -> String {
        let mut hidden = self.ages(&output.replace(&self.folder, "<dir>"));
        for (pattern, with) in &self.rules {
            hidden = pattern.replace_all(&hidden, *with).into_owned();
        }
        hidden = self.ids(&hidden);
        let text = hidden.trim_end_matches('\n').len();
        hidden.truncate(text);
        hidden
    }

    /// Ids are not always as long, and what stands beside them in columns moves with them.
    fn ids(&self, output: &str) -> String {
        if !self.id.is_match(output) {
            return output.to_owned();
        }
        self.gap.replace_all(&self.id.replace_all(output, "-<id>"), "$1   ").into_owned()
    }

    /// Every age is `0s`, and as wide as it was: columns stay where they are.
    fn ages(&self, output: &str) -> String {
        let mut columns: Vec<usize> = Vec::new();
        let mut out = String::new();
        for line in output.lines() {
            if line.is_empty() || self.age_header.is_match(line) {
                let headers = self.age_header.captures_iter(line).filter_map(|header| header.get(1));
                // In letters: what stands before may have signs of several bytes.
                columns = headers.map(|header| line[..header.start()].chars().count()).collect();
            }
            let mut line = line.to_owned();
            for &letters in &columns {
                let column = line.char_indices().nth(letters).map_or(line.len(), |(column, _)| column);
                let Some(found) = line.get(column..).and_then(|cell| self.age.find(cell)) else { continue };
                let width = found.len();
                line.replace_range(column..column + width, &format!("{:width$}", "0s"));
            }
            out.push_str(&line);
            out.push('\n');
        }
        out
    }
}

#[test]
fn what_changes_is_hidden_and_what_does_not_is_kept() {
    #[track_caller]
    fn check(output: &str, hidden: &str) {
        assert_eq!(Mask::new(Path::new("/scratch/x")).hide(output), hidden);
    }
    check(
        "NAME   AGE   LABELS\na      13s   x=1\nb      2s    30s\n",
        "NAME   AGE   LABELS\na      0s    x=1\nb      0s    30s",
    );
    check("NAME  DATA   AGE\na     1      1m13s", "NAME  DATA   AGE\na     1      0s");
    check("NAME   AGE\n✔ a    7s", "NAME   AGE\n✔ a    0s");
    check("LAST SEEN   TYPE\n7s          Normal\n", "LAST SEEN   TYPE\n0s          Normal");
    check("Name:  a\nAge:   7s\nFor:   7s", "Name:  a\nAge:   0s\nFor:   7s");
    check(
        "  Age             From\n  ----            ----\n  3s (x2 over 5s)  me\n",
        "  Age             From\n  ----            ----\n  0s (x2 over 0s)  me",
    );
    check("timeout: 30s", "timeout: 30s");
    check(
        "  resourceVersion: \"17\"\n  uid: 01234567-89ab-cdef-0123-456789abcdef",
        "  resourceVersion: \"<version>\"\n  uid: <uid>",
    );
    check("creationTimestamp: \"2026-11-15T09:41:16Z\"", "creationTimestamp: \"<time>\"");
    check("pod/web-b2xkz created, of web-class", "pod/web-xxxxx created, of web-class");
    check("NAME                       AGE\nm-0-12345678901234567890   1s", "NAME   AGE\nm-0-<id>   0s");
    check("/scratch/x/a.yaml at https://127.0.0.1:4321", "<dir>/a.yaml at https://127.0.0.1:<port>");
}
