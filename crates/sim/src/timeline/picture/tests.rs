//! What is in a picture. How it looks has to be looked at: `WINDLASS_UPDATE=1` writes `update.svg` beside this file anew.

use super::{cut, escaped};
use crate::timeline::script::{OLD, Script};

const UPDATE: &str = include_str!("update.svg");

#[test]
fn an_update_is_drawn_as_it_was_looked_at() {
    let mut script = Script::running(3);
    let before = script.recorder.writes();
    script.upgrade(3);
    let svg = script.recorder.timeline_since(before).svg();
    if std::env::var_os("WINDLASS_UPDATE").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/timeline/picture/update.svg"), &svg).unwrap();
        return;
    }
    assert_eq!(svg, UPDATE);
}

#[test]
fn there_is_a_line_for_each_stage_and_each_machine() {
    let mut script = Script::running(1);
    script.upgrade(1);
    let svg = script.recorder.timeline().svg();
    for name in ["packages", "control plane", "workers", "cp-0", "cp-0-1", "w-0", "w-1", "ClusterUpdate my-tkc-1"] {
        assert!(svg.contains(&format!(">{name}</text>")), "{name} has no line");
    }
    assert!(svg.contains("my-tkc: pool pool</text>"), "machines of a pool stand together");
}

#[test]
fn what_is_wrong_is_marked() {
    let mut script = Script::running(1);
    assert!(!svg(&script).contains("<path class=\"violation\" d=\"M"), "nothing is wrong yet");
    script.power("cp-0", OLD, false);
    assert!(svg(&script).contains("<title>E1: 0 of 1 voters of etcd are healthy, and 1 are needed</title>"));
}

/// The picture without its legend.
fn svg(script: &Script) -> String {
    let svg = script.recorder.timeline().svg();
    let legend = svg.rfind(">stage</text>").unwrap();
    svg[..legend].to_owned()
}

#[test]
fn nothing_happened_is_a_picture_too() {
    let svg = Script::new().recorder.timeline().svg();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
}

#[test]
fn names_are_cut_at_their_beginning_and_texts_escaped() {
    assert_eq!(cut("short"), "short");
    let long = format!("{}-0-1", "x".repeat(60));
    assert!(cut(&long).starts_with('…') && cut(&long).ends_with("-0-1"));
    assert_eq!(escaped("<a & \"b\">\u{7}"), "&lt;a &amp; &quot;b&quot;&gt; ");
}

#[test]
fn letters_show_when_a_machine_comes_and_when_another_goes() {
    let mut script = Script::running(1);
    let before = script.recorder.writes();
    script.upgrade(1);
    let chart = script.recorder.timeline_since(before).chart(80);
    let line = |name: &str| {
        let found = chart.lines().find(|line| line.trim_start().starts_with(&format!("{name} ")));
        found.unwrap_or_else(|| panic!("{name} has no line in\n{chart}"))
    };
    assert!(line("packages").contains('━'), "{chart}");
    assert!(line("cp-0").contains('▓') && !line("cp-0").ends_with('█'), "{chart}");
    assert!(line("cp-0-1").contains('░') && line("cp-0-1").ends_with('█'), "{chart}");
    assert!(chart.lines().rev().skip(1).all(|line| line.chars().count() <= 80), "{chart}");
    assert!(chart.lines().all(|line| line.trim_end() == line), "{chart}");
}
