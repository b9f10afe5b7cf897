//! Where our server answers otherwise than a real one, and why.
//!
//! ```text
//! ### crud: A second create of a name is refused
//! step 2
//! because nobody has asked for it
//! < 409
//! what ours answers
//! ```

use super::script::{Expect, expectation};

/// One known difference.
pub struct Difference {
    pub script: String,
    pub title: String,
    /// Counted from 1.
    pub step: usize,
    pub expect: Expect,
}

/// Reads `differences.txt`.
pub fn parse(text: &str) -> Result<Vec<Difference>, String> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let starts = (0..lines.len()).filter(|&at| lines[at].starts_with("### "));
    starts.map(|at| difference(&lines[at..]).map_err(|why| format!("differences.txt:{}: {why}", at + 1))).collect()
}

fn difference(lines: &[String]) -> Result<Difference, String> {
    let (script, title) = lines[0][4..].split_once(": ").ok_or("write `### file: title`")?;
    let step = lines.get(1).and_then(|line| line.strip_prefix("step ")?.parse().ok()).ok_or("write `step N` below")?;
    if !lines.get(2).is_some_and(|line| line.starts_with("because ")) {
        return Err("write `because …` below the step".to_owned());
    }
    let expect = expectation(lines.get(3..).unwrap_or_default())?;
    Ok(Difference { script: script.to_owned(), title: title.to_owned(), step, expect })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_its_step_and_its_reason() {
        let text = "A remark.\n\n### crud: Names: once\nstep 2\nbecause of this\n< 409\nours\n\n";
        let found = parse(text).unwrap();
        assert_eq!((found[0].script.as_str(), found[0].title.as_str(), found[0].step), ("crud", "Names: once", 2));
        assert_eq!((found[0].expect.code, found[0].expect.text.as_str()), (Some(409), "ours"));
    }

    #[test]
    fn a_difference_without_a_reason_is_refused() {
        let error = parse("### crud: t\nstep 1\n< 200\n").err().unwrap();
        assert_eq!(error, "differences.txt:1: write `because …` below the step");
    }
}
