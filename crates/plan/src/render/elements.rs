//! How two lists differ, in few words: what only one of them has, and what else is in an element that has the same name in both.

use serde_json::Value;

use super::cover;
use crate::diff;

/// Of each side so many elements are shown, and the others counted.
const ELEMENTS_MAX: usize = 3;
/// An element that is longer is cut. Images with a registry, a tag and a digest are not.
const LETTERS_MAX: usize = 160;
/// What is shown before the first letter that differs, where both of a pair are cut.
const LETTERS_BEFORE: usize = 20;

/// What differs between a list that is there and one that we would like to have. Elements of both are the same if theirs covers
/// ours, wherever they stand.
pub(super) fn differences(live: &[Value], desired: &[Value]) -> String {
    let (mut gone, mut new) = (live.iter().collect::<Vec<_>>(), Vec::new());
    for ours in desired {
        match gone.iter().position(|theirs| diff::agrees(ours, theirs)) {
            Some(same) => drop(gone.remove(same)),
            None => new.push(ours),
        }
    }
    if gone.is_empty() && new.is_empty() {
        return format!("the same {} elements in another order", desired.len());
    }
    let stay = live.len() - gone.len();
    let named = take_named(&mut gone, &mut new);
    let mut parts: Vec<String> = named.iter().take(ELEMENTS_MAX).cloned().collect();
    parts.extend(more(named.len()));
    if !gone.is_empty() || !new.is_empty() {
        let texts = [&gone, &new].map(|side| side.iter().map(|element| text(element)).collect::<Vec<_>>());
        parts.push(format!("{} -> {}", side(&texts[0], &texts[1]), side(&texts[1], &texts[0])));
    }
    match stay {
        0 => {}
        1 => parts.push("beside 1 that stays".to_owned()),
        stay => parts.push(format!("beside {stay} that stay")),
    }
    parts.join(", ")
}

/// All elements of a list that stands alone.
pub(super) fn listed(elements: &[Value]) -> String {
    side(&elements.iter().map(text).collect::<Vec<_>>(), &[])
}

/// Takes the elements out that have the same name on both sides, and no other element has it, and says what differs in each.
fn take_named(gone: &mut Vec<&Value>, new: &mut Vec<&Value>) -> Vec<String> {
    let mut told = Vec::new();
    for name in new.iter().filter_map(|ours| name(ours)).map(str::to_owned).collect::<Vec<_>>() {
        let [Some(before), Some(after)] = [only(gone, &name), only(new, &name)] else { continue };
        let (theirs, ours) = (gone.remove(before), new.remove(after));
        told.extend(cover::differences(ours, theirs).into_iter().map(|line| format!("[name={name}].{line}")));
    }
    told
}

/// Where the only element of that name is.
fn only(elements: &[&Value], wanted: &str) -> Option<usize> {
    let mut found = elements.iter().enumerate().filter(|(_, element)| name(element) == Some(wanted));
    let (place, _) = found.next()?;
    found.next().is_none().then_some(place)
}

fn name(element: &Value) -> Option<&str> {
    element.get("name")?.as_str()
}

fn text(element: &Value) -> String {
    match element {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// One side: its elements, each cut so that what tells it from its opposite is seen.
fn side(elements: &[String], opposite: &[String]) -> String {
    if elements.is_empty() {
        return "nothing".to_owned();
    }
    let shown = elements.iter().enumerate().take(ELEMENTS_MAX);
    let mut shown: Vec<String> =
        shown.map(|(place, text)| cut(text, opposite.get(place).map(String::as_str))).collect();
    shown.extend(more(elements.len()));
    format!("[{}]", shown.join(", "))
}

/// How many are not shown.
fn more(all: usize) -> Option<String> {
    (all > ELEMENTS_MAX).then(|| format!("and {} more", all - ELEMENTS_MAX))
}

fn cut(text: &str, opposite: Option<&str>) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= LETTERS_MAX {
        return text.to_owned();
    }
    let alike = opposite.map_or(0, |other| letters.iter().zip(other.chars()).take_while(|(a, b)| **a == *b).count());
    let from = alike.saturating_sub(LETTERS_BEFORE).min(letters.len() - LETTERS_MAX);
    let shown: String = letters.iter().skip(from).take(LETTERS_MAX).collect();
    let (before, after) = (from > 0, from + LETTERS_MAX < letters.len());
    format!("{}{shown}{}", if before { "…" } else { "" }, if after { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(live: &Value, desired: &Value, expected: &str) {
        let [live, desired] = [live, desired].map(|list| list.as_array().unwrap());
        assert_eq!(differences(live, desired), expected);
    }

    #[test]
    fn the_elements_that_differ_are_shown() {
        check(&json!(["--v=1"]), &json!(["--v=2"]), "[--v=1] -> [--v=2]");
        check(&json!(["a", "--v=1", "b"]), &json!(["a", "--v=2", "b"]), "[--v=1] -> [--v=2], beside 2 that stay");
        check(&json!(["a"]), &json!(["a", 7, true]), "nothing -> [7, true], beside 1 that stays");
        check(&json!(["a", "b"]), &json!(["b"]), "[a] -> nothing, beside 1 that stays");
        check(&json!(["a", "b"]), &json!(["b", "a"]), "the same 2 elements in another order");
        check(&json!(["a", "a"]), &json!(["a"]), "[a] -> nothing, beside 1 that stays");
        let theirs = json!([{"port": 1, "added": "by others"}]);
        check(&theirs, &json!([{"port": 1}, {"port": 2}]), r#"nothing -> [{"port":2}], beside 1 that stays"#);
    }

    #[test]
    fn of_an_element_with_a_name_it_is_shown_what_differs_in_it() {
        let rules = |port: u32| json!([{"name": "a", "port": port}, {"name": "b"}]);
        check(&rules(1), &rules(2), "[name=a].port: 1 -> 2, beside 1 that stays");
        let (one, both) = (json!([{"name": "a"}]), json!([{"name": "a", "x": 1}, {"name": "c"}]));
        check(&one, &both, r#"[name=a].x: nothing -> 1, nothing -> [{"name":"c"}]"#);
        // Whose name it is cannot be told.
        let twice = json!([{"name": "a", "x": 1}, {"name": "a", "x": 2}]);
        check(&one, &twice, r#"[{"name":"a"}] -> [{"name":"a","x":1}, {"name":"a","x":2}]"#);
    }

    #[test]
    fn no_list_is_too_long_for_a_line() {
        let many = |first: u32| json!((first..first + 9).collect::<Vec<_>>());
        check(&many(0), &many(10), "[0, 1, 2, and 6 more] -> [10, 11, 12, and 6 more]");
        assert_eq!(listed(many(0).as_array().unwrap()), "[0, 1, 2, and 6 more]");
        let long = |end: &str| json!([format!("{}{end}", "x".repeat(500))]);
        let tail = format!("…{}", "x".repeat(LETTERS_MAX - 1));
        check(&long("1"), &long("2"), &format!("[{tail}1] -> [{tail}2]"));
        let named =
            |value: u32| json!((0..9).map(|name| json!({"name": name.to_string(), "x": value})).collect::<Vec<_>>());
        check(&named(1), &named(2), "[name=0].x: 1 -> 2, [name=1].x: 1 -> 2, [name=2].x: 1 -> 2, and 6 more");
    }
}
