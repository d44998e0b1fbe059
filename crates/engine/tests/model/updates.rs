//! Tests the counters of a rule that is updated: the counters since the last update begin again at zero, and
//! the total counters go on.

use dashpot_engine::inject::{GroupId, RuleId, RuleSpec};
use dashpot_engine::{Command, Duration, Engine, Holds, Instant, Op};

use crate::driver::{Ask, Driver};
use crate::machine::DISK;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The number of recorded holds, and the shortest and the longest requested hold.
fn asked(holds: &Holds) -> Option<(u64, u64, u64)> {
    let requested = holds.requested()?;
    Some((requested.count(), requested.min()?, requested.max()?))
}

#[test]
fn holds_of_before_the_update_are_in_no_histogram_of_after_it() {
    let mut driver = Driver::<Engine>::new(1);
    let rules = vec![(RuleId(1), RuleSpec::delay(ms(10), None))];
    let group = GroupId(1);
    driver.order(Command::Inject {
        disk: DISK,
        group,
        rules,
    });
    driver.submit(Ask::new(Op::Read));
    driver.run_until(Instant::ZERO + ms(20));
    // This zio is held during the update, and ends after the rule's old delay.
    driver.submit(Ask::new(Op::Read));
    driver.order(Command::Update(
        RuleId(1),
        Box::new(RuleSpec::delay(ms(1), None)),
    ));
    driver.run_until(Instant::ZERO + ms(25));
    for _ in 0..3 {
        driver.submit(Ask::new(Op::Read));
    }
    driver.run();
    let mut rules = driver.machine.rules(DISK, driver.now);
    let rule = rules.next().expect("the rule");
    let since = &rule.since_update().expect("it was updated").stats;
    let all = rule.all().stats;
    assert_eq!((all.matched, since.matched), (5, 3));
    assert_eq!((all.held, since.held), (5, 3));
    let (short, long) = (ms(1).as_nanos(), ms(10).as_nanos());
    assert_eq!(asked(&since.holds), Some((3, short, short)));
    assert_eq!(asked(&all.holds), Some((5, short, long)));
}
