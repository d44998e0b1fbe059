use std::path::Path;

use dashpot_engine::inject::RuleId;
use dashpot_engine::pool::Tunable;
use dashpot_engine::{Command, DiskId, Duration, PoolId, Release, Target};

use crate::simulation::parse;

const LAB: &str = r#"
[disk.a]
store = "null"
rules = ["-D 1ms --name slow"]
[disk.b]
store = "null"
[pool.tank]
disks = ["b"]
"#;

fn commands(text: &str) -> Vec<(Duration, Command)> {
    let lab = parse(&format!("{LAB}{text}"), Path::new(""));
    lab.expect("a scenario").scenario.commands
}

fn refusal(text: &str) -> String {
    let refused = parse(&format!("{LAB}[[at]]\n{text}"), Path::new(""));
    refused.expect_err(text).to_string()
}

#[test]
fn changes_come_in_the_order_of_their_times() {
    let changes = commands(
        r#"
[[at]]
time = "3s"
clear = "late"
[[at]]
time = "1s"
inject = "b -D 5ms --name late"
[[at]]
time = "2s"
suspend = "a"
[[at]]
time = "4s"
resume = "a"
[[at]]
time = "5s"
clear = "all"
"#,
    );
    let [inject, suspend, clear, resume, all] = changes.as_slice() else {
        panic!("five commands: {changes:?}");
    };
    let Command::Inject { disk, rules, .. } = &inject.1 else {
        panic!("a rule: {inject:?}");
    };
    assert_eq!((*disk, rules[0].0), (DiskId(1), RuleId(2)));
    assert_eq!(inject.0, Duration::from_secs(1));
    let suspended = Command::Suspend {
        disk: DiskId(0),
        lasts: None,
        now: true,
    };
    assert_eq!(suspend.1, suspended);
    let cleared = |target| Command::Clear {
        target,
        release: Release::Nothing,
    };
    assert_eq!(clear.1, cleared(Target::Rule(RuleId(2))));
    assert_eq!(resume.1, Command::Resume(DiskId(0)));
    assert_eq!(all.1, cleared(Target::All));
}

#[test]
fn every_rule_that_is_armed_at_some_time_is_known() {
    let late = r#"
[[at]]
time = "2s"
clear = "late"
[[at]]
time = "1s"
inject = "a -D 1ms --name late"
"#;
    let lab = parse(&format!("{LAB}{late}"), Path::new("")).expect("a lab");
    let rules = lab.rules.records();
    let rules = rules.map(|rule| (rule.id.0, rule.name.clone().unwrap_or_default()));
    let rules: Vec<(u32, String)> = rules.collect();
    assert_eq!(rules.last(), Some(&(rules.len() as u32, "late".to_owned())));
}

#[test]
fn tunables_that_limit_each_other_change_together() {
    let changes = commands(
        r#"
[[at]]
time = "1s"
tune = { pool = "tank", zfs_vdev_async_write_min_active = 20, zfs_vdev_async_write_max_active = 30 }
[[at]]
time = "2s"
tune = { pool = "tank", zfs_vdev_async_write_min_active = 1, zfs_vdev_async_write_max_active = 2 }
"#,
    );
    let (min, max) = (Tunable::AsyncWriteMinActive, Tunable::AsyncWriteMaxActive);
    let expected = [(1, (20, 30)), (2, (1, 2))];
    let expected = expected.map(|(second, (least, most))| {
        let command = Command::Tune {
            pool: PoolId(0),
            changes: vec![(min, least), (max, most)],
        };
        (Duration::from_secs(second), command)
    });
    assert_eq!(changes, expected);
}

#[test]
fn mistakes_name_their_line_and_place() {
    for (text, message) in [
        ("clear = \"all\"", "9: [[at]]: no time; add time = \"10s\""),
        (
            "time = 5\nclear = \"all\"",
            "10: [[at]] time: '5' has no unit: did you mean 5s?",
        ),
        (
            "time = \"5s\"",
            "9: [[at]]: nothing is done; add one of tune, inject, clear, suspend, resume",
        ),
        (
            "time = \"5s\"\nclear = \"all\"\nresume = \"a\"",
            "12: [[at]] resume: it does not go with 'clear'; give it an [[at]] of its own",
        ),
        (
            "time = \"5s\"\ncler = \"all\"",
            "11: [[at]] cler: unknown key; did you mean 'clear'?",
        ),
        (
            "time = \"5s\"\nclear = \"fast\"",
            "11: [[at]] clear: no disk is called 'fast', and no rule that is armed at this time: \
             name one of them, or all",
        ),
        (
            "time = \"5s\"\nclear = \"a\"\n[[at]]\ntime = \"6s\"\nclear = \"slow\"",
            "14: [[at]] clear: no disk is called 'slow', and no rule that is armed at this time: \
             name one of them, or all",
        ),
        (
            "time = \"5s\"\nsuspend = \"c\"",
            "11: [[at]] suspend: there is no disk 'c'; did you mean 'a'?",
        ),
        (
            "time = \"5s\"\ninject = \"-D 1ms\"",
            "11: [[at]] inject: '-D 1ms' names no disk, and the lab has several; put one's name \
             first",
        ),
        (
            "time = \"5s\"\ninject = \"a -D 1ms --range 8G..9G\"",
            "11: [[at]] inject: the rule '-D 1ms -T read,write,zero --range 8G..9G': its --range \
             begins at 8G, beyond the end of disk a at 1G; begin it below",
        ),
        (
            "time = \"5s\"\ntune = { zfs_txg_timeout = \"1s\" }",
            "11: [[at]] tune: no pool; add pool = \"NAME\"",
        ),
        (
            "time = \"5s\"\ntune = { pool = \"tank\" }",
            "11: [[at]] tune: nothing is set; add a tunable: zfs_dirty_data_max = \"64M\"",
        ),
        (
            "time = \"5s\"\ntune = { pool = \"tank\", zfs_txg_timeout = \"0s\" }",
            "11: [[at]] tune zfs_txg_timeout: '0s' is out of bounds: give 1s to 1h",
        ),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
    let twice = parse(&format!("at = 1\n{LAB}"), Path::new(""));
    assert_eq!(
        twice.expect_err("no tables").to_string(),
        "1: at: this is of type integer; write a list of tables: [[at]]"
    );
}
