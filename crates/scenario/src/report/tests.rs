//! Lines and reports of verdicts.

use super::*;
use crate::error::Error;

fn report() -> (Report, Vec<String>) {
    let mut report = Report::default();
    let unreadable = Error::of("c.yaml", "can't be read <\u{1}>");
    let failure = crate::expect::Failure {
        path: "b.yaml".into(),
        line: 7,
        expected: "worker: call e1 completed".into(),
        happened: "skipped & \"gone\"".into(),
        timeline: vec!["> 1.0 worker".into()],
    };
    let failed = told(vec![failure], &["a remark".into()]);
    let case = |path: &str, name: &str, exit, text| Case {
        path: path.into(),
        name: name.into(),
        exit,
        is_checked: true,
        text,
    };
    let cases = [
        case("a.yaml", "holds", Exit::Holds, String::new()),
        case("b.yaml", "fails", Exit::Fails, failed),
        Case::unreadable(Path::new("c.yaml"), &unreadable),
    ];
    let printed = cases.into_iter().map(|case| report.add(case)).collect();
    (report, printed)
}

#[test]
fn each_scenario_has_a_line_and_the_closing_line_counts_them() {
    let (report, printed) = report();
    assert_eq!(printed[0], "ok    a.yaml: holds\n");
    assert!(printed[1].starts_with(
        "FAIL  b.yaml: fails\n  b.yaml:7\n    expected: worker: call e1 completed\n    happened: "
    ));
    assert!(printed[1].contains("> 1.0 worker") && printed[1].ends_with("note: a remark\n"));
    assert!(printed[2].starts_with("ERROR c.yaml\nc.yaml: can't be read"));
    assert_eq!(report.closing(), "1 passed, 2 failed\n");
    assert_eq!(report.exit(), Exit::Unreadable);
}

#[test]
fn the_junit_report_escapes_what_xml_reserves() {
    let xml = report().0.junit();
    assert!(xml.contains("tests=\"3\" failures=\"1\" errors=\"1\""));
    assert!(xml.contains("<testcase classname=\"a.yaml\" name=\"holds\"/>"));
    assert!(xml.contains("skipped &amp; &quot;gone&quot;"));
    assert!(xml.contains("can't be read &lt;\u{fffd}&gt;"));
}
