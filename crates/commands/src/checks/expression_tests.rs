//! Tests what expressions mean, and the messages about expressions that cannot be parsed.

use proptest::prelude::*;

use super::super::metric::{DeviceMetric, Figure, RuleMetric};
use super::{Comparison, Expression, Names, Subject};

fn names() -> Names {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Names {
        devices: owned(&["wal", "tank/db.1", "slow"]),
        ops: owned(&["read", "write", "flush", "sync"]),
        rules: owned(&["1", "tail", "2", "slow"]),
        rules_may_come: false,
    }
}

fn refused(text: &str) -> String {
    Expression::parse(text, &names()).unwrap_err().to_string()
}

/// The subject of an expression in words: `device wal`, `flush of wal`, `rule slow`.
fn meant(text: &str) -> String {
    match Expression::parse(text, &names()).unwrap().subject {
        Subject::Device {
            device, op: None, ..
        } => format!("device {device}"),
        Subject::Device {
            device,
            op: Some(op),
            ..
        } => format!("{op} of {device}"),
        Subject::Rule { rule, .. } => format!("rule {rule}"),
    }
}

#[test]
fn disks_operations_and_rules_are_told_apart() {
    for (text, subject) in [
        ("wal.p99 < 30ms", "device wal"),
        ("wal.flush.p99.9<30ms", "flush of wal"),
        ("wal.sync.p99 < 50ms", "sync of wal"),
        ("tank/db.1.max <= 1s", "device tank/db.1"),
        ("tank/db.1.read.iops >= 10.5", "read of tank/db.1"),
        ("tail.held >= 100", "rule tail"),
        ("tail.achieved.p50 > 20ms", "rule tail"),
        ("2.late == 0", "rule 2"),
        ("slow.failed == 0", "device slow"),
        ("rule(slow).failed == 0", "rule slow"),
    ] {
        assert_eq!(meant(text), subject, "{text}");
    }
}

#[test]
fn values_have_the_unit_of_what_they_are_compared_with() {
    let value = |text| Expression::parse(text, &names()).unwrap().value;
    assert_eq!(value("wal.mean < 1.5ms"), 1_500_000.0);
    assert_eq!(value("wal.bytes_per_s > 2M"), f64::from(2 << 20));
    assert_eq!(value("wal.iops > 0.5"), 0.5);
    assert_eq!(
        refused("wal.p99 < 30"),
        "'30' has no unit: did you mean 30ms?"
    );
    assert_eq!(
        refused("wal.count > 3ms"),
        "'3ms' is not a count: write a whole number, without a unit"
    );
    assert!(refused("wal.iops > 3ms").contains("is not a rate"));
}

#[test]
fn what_is_unknown_is_refused_with_what_is_near() {
    for (text, why) in [
        (
            "wol.p99 < 1ms",
            "no disk, volume or rule 'wol': did you mean 'wal'?",
        ),
        (
            "wal.p98 < 1ms",
            "no metric 'p98' of a disk or volume: did you mean 'p90'?",
        ),
        (
            "wal.fsync.p99 < 1ms",
            "no operation 'fsync': did you mean 'sync'?",
        ),
        (
            "tail.heldd > 1",
            "no metric 'heldd' of a rule: did you mean 'held'?",
        ),
        // A rule has the id 2, but the remedy must not propose an id in place of a name.
        ("rule(s).held > 1", "no rule 's': there is 1, tail, 2, slow"),
        (
            "rule(tial).held > 1",
            "no rule 'tial': did you mean 'tail'?",
        ),
        (
            "wal.read.in_flight < 1",
            "'wal.read.in_flight': in_flight is a metric of a disk or volume, not of one of its operations",
        ),
        (
            "wal < 1ms",
            "'wal' has no metric: write SUBJECT.METRIC, such as wal.p99",
        ),
        (
            "wal.p99",
            "'wal.p99' compares nothing: write 'SUBJECT.METRIC < VALUE', in quotes",
        ),
        (
            "wal.p99 = 1ms",
            "'wal.p99 = 1ms' compares with '=': use <, <=, >, >=, == or !=",
        ),
        (
            "wal.p99 <",
            "'wal.p99 <' lacks one side: write 'SUBJECT.METRIC < VALUE', in quotes",
        ),
    ] {
        assert_eq!(refused(text), why, "{text}");
    }
}

#[test]
fn a_rule_that_a_command_arms_is_named_as_one() {
    let names = Names {
        rules_may_come: true,
        ..names()
    };
    assert!(Expression::parse("rule(later).held > 1", &names).is_ok());
    let error = Expression::parse("later.held > 1", &names).unwrap_err();
    assert!(
        error.to_string().ends_with("is written rule(later))"),
        "{error}"
    );
}

fn comparison() -> impl Strategy<Value = Comparison> {
    prop::sample::select(super::WORDS.map(|(_, comparison)| comparison).to_vec())
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in ".{0,40}") {
        let _ = Expression::parse(&text, &names());
    }

    #[test]
    fn what_is_put_together_comes_apart(
        disk in prop::sample::select(names().devices),
        metric in prop::sample::select(DeviceMetric::words()),
        comparison in comparison(),
        space in " {0,2}",
    ) {
        let kind = DeviceMetric::parse(&metric).unwrap().kind();
        let value = match kind {
            super::Kind::Time => "7us",
            super::Kind::BytesPerSecond => "7M",
            super::Kind::Count | super::Kind::PerSecond => "7",
        };
        let text = format!("{disk}.{metric}{space}{comparison}{space}{value}");
        let parsed = Expression::parse(&text, &names()).unwrap();
        prop_assert_eq!(parsed.comparison, comparison);
        let Subject::Device { device: found, metric: got, .. } = parsed.subject else {
            panic!("{text} is of a device");
        };
        prop_assert_eq!((found, Some(got)), (disk, DeviceMetric::parse(&metric)));
    }

    #[test]
    fn comparisons_are_those_of_numbers(a in 0_u32..9, b in 0_u32..9) {
        let (x, y) = (f64::from(a), f64::from(b));
        prop_assert_eq!(Comparison::Less.holds(x, y), a < b);
        prop_assert_eq!(Comparison::LessOrEqual.holds(x, y), a <= b);
        prop_assert_eq!(Comparison::Greater.holds(x, y), a > b);
        prop_assert_eq!(Comparison::GreaterOrEqual.holds(x, y), a >= b);
        prop_assert_eq!(Comparison::Equal.holds(x, y), a == b);
        prop_assert_eq!(Comparison::NotEqual.holds(x, y), a != b);
    }
}

#[test]
fn every_metric_of_a_rule_has_its_name() {
    assert!(
        RuleMetric::words()
            .iter()
            .all(|word| RuleMetric::parse(word).is_some())
    );
    let p99 = DeviceMetric::parse("p99");
    assert_eq!(p99, Some(DeviceMetric::Latency(Figure::Quantile(990_000))));
}
