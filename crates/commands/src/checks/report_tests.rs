use proptest::prelude::*;

use super::{ANNOTATIONS, Injected, PAGE_MOST, Report};
use crate::checks::Outcome;

fn report(checks: Vec<Outcome>, rules: Vec<Injected>) -> Report {
    Report {
        schema: 1,
        dashpot: "1.2.3",
        command: vec!["sh".to_owned(), "-c".to_owned(), "exit 1 | cat".to_owned()],
        succeeded: false,
        status: Some(3),
        duration_ns: Some(1_234_567_890),
        checks,
        rules,
        rules_forgotten: 0,
        unheld: Vec::new(),
        disks: Vec::new(),
    }
}

fn rule(why_nothing: Option<&str>) -> Injected {
    Injected {
        id: 1,
        name: Some("slow".to_owned()),
        disk: "db".to_owned(),
        rule: "-D 20ms -T flush".to_owned(),
        cleared: false,
        matched: 3,
        injected: 2,
        held: 2,
        overrun: 0,
        late: 0,
        failed: 0,
        damaged: 0,
        why_nothing: why_nothing.map(str::to_owned),
    }
}

#[test]
fn junit_has_a_case_for_each_and_counts_them() {
    let checks = vec![
        Outcome::for_test("db.p99 < 1ms", true, "0.5ms (n=9)"),
        Outcome::for_test("db.flush.p99 < 1ms", false, "no flush seen"),
    ];
    let text = report(checks, vec![rule(None), rule(Some("nothing matched"))]).junit();
    assert!(
        text.contains("tests=\"5\" failures=\"2\" errors=\"0\" skipped=\"1\""),
        "{text}"
    );
    assert!(
        text.contains("name=\"db.p99 &lt; 1ms\"><system-out>0.5ms (n=9)"),
        "{text}"
    );
    assert!(
        text.contains("<failure message=\"no flush seen\"/>"),
        "{text}"
    );
    assert!(
        text.contains("<skipped message=\"nothing matched\"/>"),
        "{text}"
    );
    assert!(text.contains("matched 3, injected 2"), "{text}");
}

#[test]
fn at_most_ten_annotations_with_the_first_failure_first() {
    let many = |count: usize| {
        let checks = (0..count).map(|at| Outcome::for_test(&format!("c{at} < 1%"), false, "a\nb"));
        report(checks.collect(), Vec::new()).annotations()
    };
    assert_eq!(many(1), ["::error title=dashpot check::c0 < 1%25: a%0Ab"]);
    assert_eq!(many(ANNOTATIONS).len(), ANNOTATIONS);
    let lines = many(ANNOTATIONS + 5);
    assert_eq!(lines.len(), ANNOTATIONS);
    assert!(
        lines[0].contains("c0 ") && lines[9].contains("6 more checks do not hold"),
        "{lines:?}"
    );
    let held = Outcome::for_test("a", true, "1");
    assert!(report(vec![held], Vec::new()).annotations().is_empty());
}

#[test]
fn a_long_page_is_cut_between_lines() {
    let checks =
        (0..20_000).map(|at| Outcome::for_test(&format!("check-{at}"), false, &"é".repeat(40)));
    let page = report(checks.collect(), Vec::new()).markdown();
    assert!(page.len() < PAGE_MOST + 100 && page.ends_with("see summary.json.\n"));
    let lines: Vec<&str> = page.lines().collect();
    assert!(
        lines[lines.len() - 4].ends_with(" |"),
        "{:?}",
        &lines[lines.len() - 4..]
    );
}

proptest! {
    /// No name and no observation may break out of its cell, its attribute or its line.
    #[test]
    fn every_text_stays_in_its_place(check in any::<String>(), observed in any::<String>()) {
        let report = report(vec![Outcome::for_test(&check, false, &observed)], Vec::new());
        let junit = report.junit();
        prop_assert_eq!(junit.lines().count(), 7);
        prop_assert_eq!(junit.matches("<failure message=\"").count(), 2);
        prop_assert_eq!(junit.matches('"').count() % 2, 0);
        prop_assert_eq!(report.annotations().concat().lines().count(), 1);
        let page = report.markdown();
        let row = page.lines().find(|line| line.contains("FAIL")).unwrap_or_default();
        prop_assert_eq!(row.replace("\\|", "").matches('|').count(), 4, "{}", row);
    }
}
