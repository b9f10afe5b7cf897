//! `windlass sweep`, as it is typed.

use std::process::Command;

/// The exit code, standard output and standard error.
fn sweep(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_windlass")).arg("sweep").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_sweep_says_what_was_tried_and_how_much_of_it_was_covered() {
    let (code, stdout, stderr) = sweep(&["--size", "1+1", "--kinds", "F01", "--trials", "1"]);
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    let row = stdout.lines().find(|line| line.starts_with("F01 ")).unwrap();
    assert!(row.contains("crash-after   1       1     0        1 of "), "{stdout}");
    assert!(stdout.ends_with("✔ 1 trials, none is broken\n"), "{stdout}");
}

#[test]
fn what_cannot_be_swept_is_refused_with_what_can() {
    let check = |arguments: &[&str], words: &str| {
        let (code, stdout, stderr) = sweep(arguments);
        assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    };
    check(&["--kinds", "F99"], "F01, crash-after");
    check(&["--size", "three"], "write it as 3+3");
    check(&["--wish", "world-peace"], "upgrade, create, scale, class or delete");
    check(&["--size", "1+1", "--trial", "earthquake-1"], "there is no trial \"earthquake-1\"");
}
