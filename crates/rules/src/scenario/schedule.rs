//! The order of a scenario's steps, with their times.

use dashpot_engine::Duration;

use super::step::{Action, Scenario, Step};

/// The steps of a scenario in their order, each with its time from the beginning.
#[derive(Clone, Debug)]
pub struct Schedule<'a> {
    now: Duration,
    /// The loops around the next step, the outermost first.
    loops: Vec<Loop<'a>>,
    /// The most passes of a loop.
    most: u64,
}

#[derive(Clone, Debug)]
struct Loop<'a> {
    steps: &'a [Step],
    next: usize,
    /// How many passes are left after this one; `None` for an endless loop.
    left: Option<u64>,
}

impl Scenario {
    /// The steps in their order, each with its time from the beginning. A scenario that repeats steps for ever has
    /// no last one.
    pub fn schedule(&self) -> Schedule<'_> {
        Schedule::new(&self.steps, u64::MAX)
    }

    /// Each step of the file once, in the file's order.
    pub fn each_step(&self) -> Schedule<'_> {
        Schedule::new(&self.steps, 1)
    }
}

impl<'a> Schedule<'a> {
    pub(super) fn new(steps: &'a [Step], most: u64) -> Schedule<'a> {
        let once = Loop {
            steps,
            next: 0,
            left: Some(0),
        };
        Schedule {
            now: Duration::ZERO,
            loops: vec![once],
            most,
        }
    }

    fn passes(&self, times: Option<u64>) -> Option<u64> {
        match times {
            None if self.most == u64::MAX => None,
            times => Some(times.unwrap_or(u64::MAX).min(self.most) - 1),
        }
    }
}

impl<'a> Iterator for Schedule<'a> {
    type Item = (Duration, &'a Step);

    fn next(&mut self) -> Option<(Duration, &'a Step)> {
        loop {
            let around = self.loops.last_mut()?;
            let steps: &'a [Step] = around.steps;
            let Some(step) = steps.get(around.next) else {
                match &mut around.left {
                    Some(0) => drop(self.loops.pop()),
                    Some(left) => (*left, around.next) = (*left - 1, 0),
                    None => around.next = 0,
                }
                continue;
            };
            around.next += 1;
            self.now += step.after;
            let Action::Repeat { times, steps } = &step.action else {
                return Some((self.now, step));
            };
            let left = self.passes(*times);
            self.loops.push(Loop {
                steps,
                next: 0,
                left,
            });
        }
    }
}
