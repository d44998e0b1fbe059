use std::path::Path;

use dashpot_engine::inject::RuleId;
use dashpot_engine::{Command, DiskId, Duration, PoolId, Release, Target};
use dashpot_rules::scenario::parse_scenario;

use crate::change::Misread;
use crate::simulation::read;
use crate::staged::Staged;

const LAB: &str = r#"
[disk.a]
store = "null"
size = "1G"
rules = ["-D 1ms --name slow"]
[disk.b]
store = "null"
size = "1G"
[pool.tank]
disks = ["b"]
[[at]]
time = "2s"
inject = "a -D 3ms"
"#;

/// The commands of the lab with a scenario of these steps on these disks, in 100 s.
fn commands(steps: &str, disks: &[&str]) -> Result<Vec<(Duration, Command)>, String> {
    let text = format!("format = 1\nabout = \"x\"\n{steps}");
    let staged = Staged {
        name: "s.toml".to_owned(),
        scenario: parse_scenario(&text).expect("a scenario"),
        disks: disks.iter().map(|name| (*name).to_owned()).collect(),
        lasts: Some(Duration::from_secs(100)),
    };
    match read(LAB, Path::new(""), Some(&staged)) {
        Ok(lab) => Ok(lab.scenario.commands),
        Err(Misread::Scenario(error)) => Err(error.to_string()),
        Err(Misread::Lab(error)) => panic!("{error}"),
    }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The ids of the rules that a command arms.
fn armed(command: &Command) -> Vec<u32> {
    match command {
        Command::Inject { rules, .. } => rules.iter().map(|(id, _)| id.0).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn steps_are_commands_at_their_times_between_those_of_the_lab() {
    let steps = r#"
        [[step]]
        inject = "-D 5ms"
        label = "first"
        [[step]]
        after = "3s"
        update = "first"
        rule = "-D 7ms"
        [[step]]
        suspend = true
        [[step]]
        after = "1s"
        inject = "--hang"
        [[step]]
        after = "1s"
    "#;
    let made = commands(steps, &["a"]).unwrap();
    let times: Vec<Duration> = made.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [0, 2, 3, 3, 4, 5, 5, 5].map(at));
    // Ids grow with time: 1 is the rule of the lab at the start, 3 its rule at 2 s.
    assert_eq!(
        [&made[0], &made[1], &made[4]].map(|(_, command)| armed(command)),
        [[2], [3], [4]]
    );
    assert!(matches!(&made[2].1, Command::Update(RuleId(2), _)));
    assert!(matches!(
        &made[3].1,
        Command::Suspend {
            disk: DiskId(0),
            now: true,
            ..
        }
    ));
    // The end undoes what the scenario has made, and nothing else.
    let clear = |id| Command::Clear {
        target: Target::Rule(RuleId(id)),
        release: Release::Hung,
    };
    let end: Vec<Command> = made[5..]
        .iter()
        .map(|(_, command)| command.clone())
        .collect();
    assert_eq!(end, [clear(2), clear(4), Command::Resume(DiskId(0))]);
}

#[test]
fn a_loop_goes_on_until_the_end_of_the_simulation() {
    let steps = r#"
        [[step]]
        repeat = "forever"
        [[step.step]]
        after = "30s"
        inject = "-D 5ms"
        label = "slow"
        [[step.step]]
        after = "1s"
        clear = "slow"
    "#;
    let made = commands(steps, &["a", "b"]).unwrap();
    let times: Vec<Duration> = made.iter().map(|(time, _)| *time).collect();
    let pairs = [2, 30, 30, 31, 31, 61, 61, 62, 62, 92, 92, 93, 93];
    assert_eq!(times, pairs.map(at));
}

#[test]
fn a_tunable_is_restored() {
    let steps = r#"
        [[step]]
        tune = { zfs_txg_timeout = "1s" }
        [[step]]
        after = "1s"
        tune = { pool = "tank", zfs_txg_timeout = "2s" }
        [[step]]
        after = "1s"
    "#;
    let made = commands(steps, &["b"]).unwrap();
    let set = |(_, command): &(Duration, Command)| match command {
        Command::Tune { pool, changes } => Some((*pool, changes[0].1)),
        _ => None,
    };
    let set: Vec<_> = made.iter().filter_map(set).collect();
    assert_eq!(set, [1, 2, 5].map(|seconds| (PoolId(0), seconds)));
}

#[test]
fn what_does_not_suit_the_lab_is_refused_with_the_scenario_s_line() {
    let crash = "[[step]]\ncrash = \"off\"";
    let tune = "[[step]]\ntune = { zfs_txg_timeout = \"1s\" }";
    let beyond = "[[step]]\ninject = \"-D 1ms --range 2G..3G\"";
    let named = "[[step]]\ninject = \"-D 1ms --name slow\"";
    for (steps, disks, refused) in [
        (
            crash,
            &["a"][..],
            "s.toml:3: a simulation has no power cuts",
        ),
        (tune, &["a"], "s.toml:3: a disk belongs to no pool"),
        (beyond, &["a"], "s.toml:3: the rule '-D 1ms"),
        (named, &["a"], "s.toml:3: the name 'slow' is taken"),
        (crash, &["x"], "there is no disk 'x'"),
        (crash, &[], "the lab has several disks"),
    ] {
        let error = commands(steps, disks).unwrap_err();
        assert!(error.starts_with(refused), "{error}");
    }
    let endless = "[[step]]\nrepeat = \"forever\"\n[[step.step]]\nafter = \"1ms\"";
    assert_eq!(commands(endless, &["a"]).unwrap().len(), 1);
}
