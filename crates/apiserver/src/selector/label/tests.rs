use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn check(text: &str, canonical: &str) {
    let selector = LabelSelector::parse(text).unwrap();
    assert_eq!(selector.to_string(), canonical, "{text}");
}

#[track_caller]
fn refuses(text: &str, why: &str) {
    assert_eq!(LabelSelector::parse(text).unwrap_err().to_string(), why, "{text}");
}

#[track_caller]
fn selects(text: &str, labels: &[(&str, &str)], expected: bool) {
    assert_eq!(LabelSelector::parse(text).unwrap().matches(labels), expected, "{text} on {labels:?}");
}

#[test]
fn the_canonical_form_sorts_keys_and_values() {
    check("", "");
    check("x=a,y=b,z=c", "x=a,y=b,z=c");
    check("z==c,x!=a", "x!=a,z==c");
    check("x in (b,a,b)", "x in (a,b)");
    check("x notin ()", "x notin ()");
    check("x in (,a)", "x in (,a)");
    check("x in (a,)", "x in (,a)");
    check("x in (a,,b)", "x in (,a,b)");
    check("x,!y", "x,!y");
    check("x=", "x=");
    check("x=,y=b", "x=,y=b");
    check("x>1,z<5", "x>1,z<5");
    check(" x  in ( a , b ) ", "x in (a,b)");
    check("in in (in,notin)", "in in (in,notin)");
    check("a.b/c=d", "a.b/c=d");
}

#[test]
fn what_cannot_be_read_is_refused_in_the_words_of_a_real_server() {
    let name = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
        character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    refuses("a=b,", "found '', expected: identifier after ','");
    refuses("=", "found '=', expected: !, identifier, or 'end of string'");
    refuses("a!b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt");
    refuses("a in x", "unable to parse requirement: found 'x' expected: '('");
    refuses("a in (x", "unable to parse requirement: found '', expected: ',' or ')'");
    refuses("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier");
    refuses("a in (,=", "unable to parse requirement: found '=', expected: ',', or identifier");
    refuses("-a=b", &format!("unable to parse requirement: <nil>: Invalid value: \"-a\": name part {name}"));
    refuses("/a", "unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be non-empty");
    refuses(
        "a>x",
        "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
    );
    refuses("a===b", "unable to parse requirement: found '=', expected: identifier");
    refuses("!", "unable to parse requirement: found '', expected: identifier");
    refuses("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
    refuses(",a", "found ',', expected: !, identifier, or 'end of string'");
    refuses("a=b=c", "found '=', expected: ',' or 'end of string'");
    refuses("!a in (x)", "found 'in', expected: ',' or 'end of string'");
    let format = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
        and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
        '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    refuses("a=-b", &format!("unable to parse requirement: values[0][a]: Invalid value: \"-b\": {format}"));
}

#[test]
fn requirements_select_by_value_and_presence() {
    selects("a=1", &[("a", "1")], true);
    selects("a=1", &[("a", "2")], false);
    selects("a!=1", &[], true);
    selects("a!=1", &[("a", "1")], false);
    selects("a", &[("a", "")], true);
    selects("!a", &[("a", "")], false);
    selects("a>5", &[("a", "6")], true);
    selects("a>5", &[("a", "x")], false);
    selects("a<5", &[], false);
    selects("a<5", &[("a", "4")], true);
    selects("a=1,b=2", &[("a", "1")], false);
    selects("", &[], true);
}

#[test]
fn a_selector_object_reads_as_the_same_requirements() {
    let object = json!({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [
        {"key": "c", "operator": "In", "values": ["y", "x"]}, {"key": "d", "operator": "NotIn", "values": ["z"]},
        {"key": "e", "operator": "Exists"}, {"key": "f", "operator": "DoesNotExist"}]});
    let selector = LabelSelector::from_object(Some(&object)).unwrap();
    assert_eq!(selector.to_string(), "a=1,b=2,c in (x,y),d notin (z),e,!f");
    assert!(LabelSelector::from_object(Some(&json!({}))).unwrap().is_everything());
    assert_eq!(LabelSelector::from_object(None).unwrap(), LabelSelector::nothing());
    assert!(!LabelSelector::nothing().matches(&json!({})));
}

#[test]
fn a_selector_object_that_makes_no_sense_is_refused() {
    let check = |expression: Value, why: &str| {
        let object = json!({"matchExpressions": [expression]});
        assert_eq!(LabelSelector::from_object(Some(&object)).unwrap_err().to_string(), why);
    };
    check(json!({"key": "a", "operator": "Gt"}), "\"Gt\" is not a valid label selector operator");
    check(
        json!({"key": "a", "operator": "In"}),
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
    );
    check(
        json!({"key": "a", "operator": "Exists", "values": ["x"]}),
        "values: Invalid value: [\"x\"]: values set must be empty for exists and does not exist",
    );
}

#[test]
fn the_only_possible_value_of_a_label_is_known() {
    let selector = LabelSelector::parse("a=1,b in (2),c in (3,4),d!=5").unwrap();
    assert_eq!(["a", "b", "c", "d", "e"].map(|k| selector.exact(k)), [Some("1"), Some("2"), None, None, None]);
}

fn key() -> impl Strategy<Value = String> {
    "([a-z]{1,3}/)?[a-c]"
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let values = proptest::collection::btree_set("[a-c]?|[0-9]", 1..4);
    (key(), 0..9_u8, values, -9..9_i64).prop_map(|(key, operator, values, number)| {
        let values: Vec<String> = values.into_iter().collect();
        let (operator, values) = match operator {
            0 => (Operator::In, values),
            1 => (Operator::NotIn, values),
            2 => (Operator::Equals, values[..1].to_vec()),
            3 => (Operator::DoubleEquals, values[..1].to_vec()),
            4 => (Operator::NotEquals, values[..1].to_vec()),
            5 => (Operator::GreaterThan, vec![number.abs().to_string()]),
            6 => (Operator::LessThan, vec![number.abs().to_string()]),
            7 => (Operator::Exists, vec![]),
            _ => (Operator::DoesNotExist, vec![]),
        };
        Requirement { key, operator, values }
    })
}

fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    proptest::collection::btree_map(key(), "[a-c]?|[0-9]", 0..5)
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[-a-c=!(),<> /0-9]{0,20}|.{0,20}") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()).unwrap(), selector);
        }
    }

    #[test]
    fn the_canonical_form_reads_as_the_same_selector(all in proptest::collection::vec(requirement(), 0..5)) {
        let selector = LabelSelector::from_requirements(all);
        prop_assert_eq!(LabelSelector::parse(&selector.to_string()).unwrap(), selector);
    }

    #[test]
    fn in_and_notin_are_complements(key in key(), values in proptest::collection::vec("[a-c]?|[0-9]", 1..4), labels in labels()) {
        let inside = Requirement::new(key.clone(), Operator::In, values.clone()).unwrap();
        let outside = Requirement::new(key, Operator::NotIn, values).unwrap();
        prop_assert_ne!(inside.matches(&labels), outside.matches(&labels));
    }

    #[test]
    fn text_and_object_select_the_same(wanted in labels(), labels in labels()) {
        let text: Vec<String> = wanted.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let text = LabelSelector::parse(&text.join(",")).unwrap();
        let object = LabelSelector::from_object(Some(&json!({"matchLabels": wanted}))).unwrap();
        prop_assert_eq!(text.matches(&labels), object.matches(&labels));
        prop_assert_eq!(object.matches(&labels), wanted.iter().all(|(k, v)| labels.get(k) == Some(v)));
    }
}
