use dashpot_engine::Duration;
use proptest::prelude::*;

use super::{Action, BUILT_IN, BuiltIn, Scenario, Schedule, Step, parse_scenario};

fn parse(text: &str) -> Result<Scenario, String> {
    parse_scenario(text).map_err(|error| error.to_string())
}

/// A file with these steps.
fn file(steps: &str) -> String {
    format!("format = 1\nabout = \"x\"\n{steps}")
}

fn refusal(steps: &str) -> String {
    parse(&file(steps)).expect_err(steps)
}

/// The scenario's first steps, each with its time in seconds.
fn first(text: &str, count: usize) -> Vec<(u64, String)> {
    let scenario = parse(text).expect(text);
    let steps = scenario.schedule().take(count);
    let each = steps.map(|(at, step)| (at.as_nanos() / 1_000_000_000, step.action.to_string()));
    each.collect()
}

fn seconds(at: u64, action: &str) -> (u64, String) {
    (at, action.to_owned())
}

#[test]
fn steps_come_in_their_order_and_loops_repeat_theirs() {
    let steps = r#"
        [[step]]
        inject = "-D 10ms --name slow"
        [[step]]
        after = "10s"
        repeat = 2
        [[step.step]]
        after = "1s"
        update = "slow"
        rule = "-D 20ms -T read"
        [[step.step]]
        after = "2s"
        suspend = true
        [[step.step]]
        resume = true
        [[step]]
        after = "5s"
        clear = "slow"
    "#;
    let expected = [
        seconds(0, "slow: inject -D 10ms -T read,write,zero"),
        seconds(11, "slow: update -D 20ms -T read"),
        seconds(13, "suspend"),
        seconds(13, "resume"),
        seconds(14, "slow: update -D 20ms -T read"),
        seconds(16, "suspend"),
        seconds(16, "resume"),
        seconds(21, "slow: clear"),
    ];
    assert_eq!(first(&file(steps), 100), expected);
}

#[test]
fn an_endless_loop_goes_on() {
    let steps = r#"
        [[step]]
        repeat = "forever"
        [[step.step]]
        after = "1s"
        mark = "tick"
    "#;
    let ticks = first(&file(steps), 1_000);
    assert_eq!(ticks.last(), Some(&seconds(1_000, "mark tick")));
    assert_eq!(parse(&file(steps)).unwrap().each_step().count(), 1);
}

#[test]
fn a_format_that_is_not_known_is_refused_by_its_number() {
    let refused = parse("format = 2\nnew = true").unwrap_err();
    assert!(
        refused.starts_with("1: the file has format 2,"),
        "{refused}"
    );
    assert!(refused.contains("knows only format 1"), "{refused}");
    let refused = parse("about = \"x\"").unwrap_err();
    assert_eq!(refused, "1: no format; add format = 1");
    assert!(parse("format = \"1\"\nabout = \"x\"").is_err());
}

#[test]
fn a_mistake_is_refused_with_its_line() {
    for (steps, refused) in [
        ("[[step]]\nfoo = 1", "4: unknown field `foo`"),
        ("[[step]]\ninject = \"-D 10\"", "3: invalid value '10'"),
        ("", "1: the scenario has no [[step]]"),
        (
            "[[step]]\nmark = \"a\"\n[[step]]\nsuspend = true\nresume = true",
            "5: a step does one thing",
        ),
        ("[[step]]\nlabel = \"a\"", "3: 'label' goes with 'inject'"),
        (
            "[[step]]\nrule = \"-D 1ms\"",
            "3: 'rule' goes with 'update'",
        ),
        (
            "[[step]]\nresume = true",
            "3: the scenario has not suspended the disk",
        ),
        (
            "[[step]]\nupdate = \"a\"",
            "3: the step says which rule to update",
        ),
        (
            "[[step]]\ninject = \"-D 1ms --lease 1m\"",
            "3: the rule lasts as long as what arms it",
        ),
        (
            "[[step]]\ninject = \"-D 1ms --with 1\"",
            "3: --with would join a rule",
        ),
        (
            "[[step]]\nrepeat = 0\n[[step.step]]\nafter = \"1s\"",
            "3: repeat is a number",
        ),
        ("[[step]]\nrepeat = 5", "3: a loop has both"),
        (
            "[[step]]\nrepeat = 5\n[[step.step]]\nmark = \"a\"",
            "3: a pass of a loop takes",
        ),
        (
            "[[step]]\nmark = \"x\"\nrepeat = 5\n[[step.step]]\nafter = \"1s\"",
            "3: a loop does nothing else",
        ),
        (
            "[[step]]\ntune = { zfs_delay_scael = 1 }",
            "3: no tunable 'zfs_delay_scael'",
        ),
        ("[[step]]\ntune = { pool = \"tank\" }", "3: nothing is set"),
        ("[[step]]\ncrash = \"maybe\"", "4: unknown variant `maybe`"),
        ("[[step]]\nmark = \"\"", "3: a mark is one line"),
    ] {
        let error = refusal(steps);
        assert!(error.starts_with(refused), "{steps}: {error}");
    }
}

#[test]
fn a_label_names_rules_from_their_arming_until_they_are_cleared() {
    let inject = "[[step]]\ninject = \"-D 1ms\"\nlabel = \"slow\"\n";
    let clear = "[[step]]\nclear = \"slow\"\n";
    let update = "[[step]]\nupdate = \"slow\"\nrule = \"-D 2ms\"\n";
    for fine in [
        [inject, clear, inject].concat(),
        [inject, "[[step]]\nclear = \"all\"\n", inject].concat(),
        [inject, update, update].concat(),
    ] {
        parse(&file(&fine)).unwrap();
    }
    assert!(refusal(&[inject, inject].concat()).starts_with("6: the label 'slow' is in use"));
    let unknown = "[[step]]\nclear = \"slwo\"\n";
    let refused = refusal(&[inject, unknown].concat());
    assert!(refused.ends_with("did you mean 'slow'?"), "{refused}");
    assert!(refusal(&[inject, clear, update].concat()).starts_with("8: no rule"));
    let two = inject.replace("-D 1ms", "-D 1ms -D 2ms");
    assert!(refusal(&[&two, update].concat()).starts_with("6: the label 'slow' names 2 rules"));
    // The second pass of a loop finds the rules of the first.
    let loops = "[[step]]\nrepeat = 2\n[[step.step]]\nafter = \"1s\"\ninject = \"-D 1ms\"\nlabel = \"slow\"\n";
    assert!(refusal(loops).starts_with("5: the label 'slow' is in use"));
    parse(&file(&[loops, "[[step.step]]\nclear = \"slow\""].concat())).unwrap();
}

#[test]
fn the_built_in_scenarios_are_scenarios() {
    for BuiltIn { name, text } in BUILT_IN {
        let scenario = parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            !scenario.about.is_empty() && scenario.about.len() <= 110,
            "{name}"
        );
        assert!(scenario.schedule().take(100).count() > 2, "{name}");
    }
    assert!(BuiltIn::find("brown-out").is_some() && BuiltIn::find("brownout").is_none());
}

/// Steps in loops, as deep as a file may nest them.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = |after: u64, action| Step {
        after: Duration::from_nanos(after),
        action,
        line: 0,
    };
    let mark = (0..5_u64, 0..9_u64)
        .prop_map(move |(after, number)| step(after, Action::Mark(number.to_string())));
    let one = mark.prop_recursive(3, 20, 4, move |inner| {
        let inner = prop::collection::vec(inner, 0..4);
        (0..5_u64, 1..4_u64, inner).prop_map(move |(after, times, steps)| {
            let times = Some(times);
            step(after, Action::Repeat { times, steps })
        })
    });
    prop::collection::vec(one, 0..5)
}

/// The schedule of steps, made in the plainest way.
fn naive(steps: &[Step], now: &mut u64, into: &mut Vec<(u64, String)>) {
    for step in steps {
        *now += step.after.as_nanos();
        match &step.action {
            Action::Repeat { times, steps } => {
                (0..times.unwrap()).for_each(|_| naive(steps, now, into));
            }
            action => into.push((*now, action.to_string())),
        }
    }
}

proptest! {
    #[test]
    fn a_schedule_is_that_of_the_plainest_way(steps in steps()) {
        let mut expected = Vec::new();
        naive(&steps, &mut 0, &mut expected);
        let schedule = Schedule::new(&steps, u64::MAX);
        let made: Vec<_> = schedule.map(|(at, step)| (at.as_nanos(), step.action.to_string())).collect();
        prop_assert_eq!(made, expected);
    }
}
