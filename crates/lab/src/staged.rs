//! A scenario on the disks of a lab: the commands that its steps are in a simulation.

use std::collections::BTreeMap;

use dashpot_engine::inject::RuleId;
use dashpot_engine::pool::Tunable;
use dashpot_engine::{Command, DiskId, Duration, PoolId, Release, Target};
use dashpot_rules::scenario::{Action, Scenario, Step, Which};
use dashpot_rules::{Injection, ParseError, PoolSpec, TypedRule};

use crate::place::place_of;
use crate::state::State;

/// A scenario, and the disks on which it is made.
#[derive(Clone, Debug)]
pub struct Staged {
    /// The file or the name of the scenario, for errors.
    pub name: String,
    pub scenario: Scenario,
    /// The names of the disks. There may be none if the lab has exactly one disk.
    pub disks: Vec<String>,
    /// How long the simulation lasts; `None` for the lab's time.
    pub lasts: Option<Duration>,
}

/// What comes at a time of a scenario.
pub(crate) enum Staging<'a> {
    Step(&'a Step),
    /// The scenario has ended, and is undone.
    End,
}

/// What a scenario has made so far, and not undone yet.
pub(crate) struct Stage<'a> {
    staged: &'a Staged,
    disks: Vec<usize>,
    /// The pool of each of the lab's disks.
    pools: BTreeMap<usize, usize>,
    /// The rules, each with its label.
    rules: Vec<(Option<&'a str>, RuleId)>,
    is_suspended: bool,
    /// The tunables, by pool and name, each with its value before the scenario and its value now.
    tuned: BTreeMap<(usize, &'static str), (Tunable, u64, u64)>,
}

impl Staged {
    /// The steps before `until`, each with its time.
    pub(crate) fn steps(
        &self,
        until: Duration,
    ) -> Result<Vec<(Duration, Staging<'_>)>, ParseError> {
        let mut steps = Vec::new();
        let mut last = Duration::ZERO;
        for (at, step) in self.scenario.schedule() {
            if at >= until {
                return Ok(steps);
            }
            if steps.len() == STEPS_MAX {
                let why = format!("it makes more than {STEPS_MAX} steps in {until}");
                return Err(self.error(&step.error(why)));
            }
            last = at;
            steps.push((at, Staging::Step(step)));
        }
        steps.push((last, Staging::End));
        Ok(steps)
    }

    /// An error, with the scenario's name before the line.
    fn error(&self, error: &ParseError) -> ParseError {
        ParseError::new(format!("{}:{error}", self.name))
    }
}

impl<'a> Stage<'a> {
    pub(crate) fn new(
        staged: &'a Staged,
        state: &State<'_>,
        pools: &[PoolSpec],
    ) -> Result<Stage<'a>, ParseError> {
        let named = staged.disks.iter().map(|name| state.disk(name));
        let disks = match (&staged.disks[..], state.disks) {
            ([], [_]) => vec![0],
            ([], _) => {
                return Err(ParseError::new(format!(
                    "the lab has several disks: name some for the scenario, '{} DISK'",
                    staged.name
                )));
            }
            _ => named.collect::<Result<_, _>>()?,
        };
        let pools = pools.iter().enumerate();
        let of_disks = pools.flat_map(|(at, pool)| pool.disks().map(move |disk| (disk, at)));
        Ok(Stage {
            staged,
            disks,
            pools: of_disks.collect(),
            rules: Vec::new(),
            is_suspended: false,
            tuned: BTreeMap::new(),
        })
    }

    /// The commands of a step.
    pub(crate) fn make(
        &mut self,
        staging: &Staging<'a>,
        state: &mut State<'_>,
    ) -> Result<Vec<Command>, ParseError> {
        match staging {
            Staging::End => Ok(self.undo(state)),
            Staging::Step(step) => self
                .step(step, state)
                .map_err(|error| self.staged.error(&step.error(error))),
        }
    }

    fn step(&mut self, step: &'a Step, state: &mut State<'_>) -> Result<Vec<Command>, ParseError> {
        match &step.action {
            Action::Wait | Action::Mark(_) | Action::Repeat { .. } => Ok(Vec::new()),
            Action::Inject { label, injection } => self.inject(label.as_deref(), injection, state),
            Action::Update { label, rule } => Ok(self.update(label, rule, state)),
            Action::Clear(which) => Ok(self.clear(which, state)),
            Action::Suspend => Ok(self.suspend()),
            Action::Resume => Ok(self.resume()),
            Action::Crash { .. } => Err(ParseError::new(
                "a simulation has no power cuts: leave the step out",
            )),
            Action::Tune { pool, changes } => self.tune(pool.as_deref(), changes, state),
        }
    }

    fn inject(
        &mut self,
        label: Option<&'a str>,
        injection: &Injection,
        state: &mut State<'_>,
    ) -> Result<Vec<Command>, ParseError> {
        let mut commands = Vec::new();
        for disk in &self.disks {
            let (command, ids) = state.arm(*disk, injection.clone())?;
            commands.extend(command);
            self.rules.extend(ids.into_iter().map(|id| (label, id)));
        }
        Ok(commands)
    }

    fn update(&self, label: &str, rule: &TypedRule, state: &mut State<'_>) -> Vec<Command> {
        let ours = self.rules.iter().filter(|(of, _)| *of == Some(label));
        let update = |(_, id): &(Option<&str>, RuleId)| {
            state.registry.replace(*id, rule.clone());
            Command::Update(*id, Box::new(rule.spec.clone()))
        };
        ours.map(update).collect()
    }

    /// Clears rules, and completes the zios that they hang.
    fn clear(&mut self, which: &Which, state: &mut State<'_>) -> Vec<Command> {
        let is_meant = |label: Option<&str>| match which {
            Which::All => true,
            Which::Label(wanted) => label == Some(wanted),
        };
        let gone = self.rules.extract_if(.., |(label, _)| is_meant(*label));
        let gone: Vec<RuleId> = gone.map(|(_, id)| id).collect();
        state.registry.remove(&gone);
        let clear = |id| Command::Clear {
            target: Target::Rule(id),
            release: Release::Hung,
        };
        gone.into_iter().map(clear).collect()
    }

    fn suspend(&mut self) -> Vec<Command> {
        self.is_suspended = true;
        let suspend = |disk: &usize| Command::Suspend {
            disk: DiskId(*disk as u32),
            lasts: None,
            now: true,
        };
        self.disks.iter().map(suspend).collect()
    }

    fn resume(&mut self) -> Vec<Command> {
        if !std::mem::take(&mut self.is_suspended) {
            return Vec::new();
        }
        let resume = |disk: &usize| Command::Resume(DiskId(*disk as u32));
        self.disks.iter().map(resume).collect()
    }

    fn tune(
        &mut self,
        pool: Option<&str>,
        changes: &[(Tunable, u64)],
        state: &mut State<'_>,
    ) -> Result<Vec<Command>, ParseError> {
        let mut pools = match pool {
            Some(name) => vec![place_of("pool", name, &state.pool_names)?],
            None => {
                let pools = self.disks.iter().map(|disk| self.pools.get(disk).copied());
                pools.collect::<Option<Vec<_>>>().ok_or_else(|| {
                    ParseError::new("a disk belongs to no pool: tune = { pool = \"NAME\", … }")
                })?
            }
        };
        pools.sort_unstable();
        pools.dedup();
        for pool in &pools {
            let tunables = &mut state.tunables[*pool];
            let before = tunables.clone();
            let set = tunables.set_all(changes.iter().copied());
            set.map_err(|error| ParseError::new(error.to_string()))?;
            for (tunable, set) in changes.iter().copied() {
                let tuned = self.tuned.entry((*pool, tunable.info().name));
                let tuned = tuned.or_insert((tunable, before.get(tunable), set));
                tuned.2 = set;
            }
        }
        let tune = |pool| Command::Tune {
            pool: PoolId(pool as u32),
            changes: changes.to_vec(),
        };
        Ok(pools.into_iter().map(tune).collect())
    }

    /// Undoes what the scenario has made, as a daemon does.
    fn undo(&mut self, state: &mut State<'_>) -> Vec<Command> {
        let mut commands = self.clear(&Which::All, state);
        commands.extend(self.resume());
        for (pool, tunables) in state.tunables.iter_mut().enumerate() {
            let of_pool = self.tuned.iter().filter(|((of, _), _)| *of == pool);
            let ours = of_pool.map(|(_, tuned)| *tuned);
            let ours = ours.filter(|(tunable, _, set)| tunables.get(*tunable) == *set);
            let changes: Vec<_> = ours.map(|(tunable, before, _)| (tunable, before)).collect();
            // If the lab has set other tunables since, the old values may not go with those. Then they stay.
            if !changes.is_empty() && tunables.set_all(changes.iter().copied()).is_ok() {
                let pool = PoolId(pool as u32);
                commands.push(Command::Tune { pool, changes });
            }
        }
        commands
    }
}

/// The most steps of a scenario in a simulation.
const STEPS_MAX: usize = 1_000_000;

#[cfg(test)]
#[path = "staged_tests.rs"]
mod tests;
