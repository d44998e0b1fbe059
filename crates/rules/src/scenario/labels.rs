//! Checks that each step of a scenario finds what it needs: the rules that its label names, a disk that is
//! suspended.
//!
//! What a pass of a loop leaves behind depends only on which steps the loop has, so two passes of each loop show
//! all that can happen.

use std::collections::BTreeMap;

use super::schedule::Schedule;
use super::step::{Action, Scenario, Step, Which};
use crate::{ParseError, nearest};

pub(super) fn check(scenario: &Scenario) -> Result<(), ParseError> {
    let mut state = State::default();
    for (_, step) in Schedule::new(&scenario.steps, 2) {
        state.make(step)?;
    }
    Ok(())
}

/// What a scenario has done so far.
#[derive(Default)]
struct State<'a> {
    /// How many rules each label names.
    labels: BTreeMap<&'a str, usize>,
    is_suspended: bool,
}

impl<'a> State<'a> {
    fn make(&mut self, step: &'a Step) -> Result<(), ParseError> {
        match &step.action {
            Action::Inject {
                label: Some(label),
                injection,
            } => self.add(step, label, injection.rules.len())?,
            Action::Update { label, .. } => match self.find(step, label)? {
                1 => {}
                many => {
                    return Err(step.error(format!(
                        "the label '{label}' names {many} rules, and an update replaces one"
                    )));
                }
            },
            Action::Clear(Which::All) => self.labels.clear(),
            Action::Clear(Which::Label(label)) => {
                self.find(step, label)?;
                self.labels.remove(label.as_str());
            }
            Action::Suspend => self.is_suspended = true,
            Action::Resume if !self.is_suspended => {
                return Err(step.error("the scenario has not suspended the disk"));
            }
            Action::Resume => self.is_suspended = false,
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, step: &Step, label: &'a str, rules: usize) -> Result<(), ParseError> {
        match self.labels.insert(label, rules) {
            None => Ok(()),
            Some(_) => Err(step.error(format!(
                "the label '{label}' is in use: clear its rules first, or give another"
            ))),
        }
    }

    fn find(&self, step: &Step, label: &str) -> Result<usize, ParseError> {
        self.labels.get(label).copied().ok_or_else(|| {
            let near = nearest(label, self.labels.keys().copied());
            let near = near.map_or_else(String::new, |near| format!(": did you mean '{near}'?"));
            step.error(format!(
                "no rule that the scenario has armed by then has the label '{label}'{near}"
            ))
        })
    }
}
