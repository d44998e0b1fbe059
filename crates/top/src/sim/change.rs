//! Changes to a watched simulation. Changes take effect at the current moment of the simulation.

use dashpot_api::Rule;
use dashpot_engine::inject::RuleId;
use dashpot_engine::{Answer, Command, DiskId, Duration, Instant, Release, Target};
use dashpot_lab::check_range;
use dashpot_rules::{Injection, parse_injection};
use dashpot_sim::Violation;
use dashpot_text::rule::cleared;

use super::Sim;
use crate::ask::Ask;
use crate::said;

/// A text about what was done, or the reason why the simulation refused the request.
type Outcome = Result<String, String>;

impl Sim {
    /// Carries out a request. Returns a text about what was done.
    pub(super) fn carry_out(&mut self, ask: &Ask) -> Result<Outcome, Violation> {
        if self.is_over() {
            return Ok(Err("the simulation has ended".to_owned()));
        }
        match ask {
            Ask::Arm { disk, words } => self.arm(disk, words),
            Ask::Update { rule, words } => self.update(RuleId(*rule), words),
            Ask::Clear { rule } => self.clear(RuleId(*rule)),
            Ask::Suspend { disk } => self.suspend(disk),
            Ask::Resume { disk } => self.resume(disk),
            Ask::Every(_) => Ok(Ok(String::new())),
        }
    }

    fn arm(&mut self, disk: &str, words: &str) -> Result<Outcome, Violation> {
        let (disk, injection) = match self.injection(disk, words) {
            Ok(checked) => checked,
            Err(why) => return Ok(Err(why)),
        };
        self.forget_cleared();
        let plan = match self.rules.plan(disk, injection, None) {
            Ok(plan) => plan,
            Err(refusal) => return Ok(Err(refusal.to_string())),
        };
        let Some(group) = plan.group() else {
            return Ok(Ok(String::new()));
        };
        let inject = Command::Inject {
            disk: DiskId(disk as u32),
            group,
            rules: plan.rules(),
        };
        let ids: Vec<RuleId> = plan.records.iter().map(|record| record.id).collect();
        Ok(self.tell(inject)?.map(|_| {
            self.rules.commit(plan);
            self.armed(&ids)
        }))
    }

    /// The rules to arm, and the index of their disk.
    fn injection(&self, disk: &str, words: &str) -> Result<(usize, Injection), String> {
        if let Some(at) = self.arms_last() {
            return Err(format!(
                "the lab itself arms rules until {at}, and later rules need higher ids: arm yours after that"
            ));
        }
        let place = self.place(disk)?;
        let injection = self.checked(place, words)?;
        Ok((place, injection))
    }

    /// Parses the words of a rule, and checks that its range begins on the disk.
    fn checked(&self, disk: usize, words: &str) -> Result<Injection, String> {
        let injection = parse_injection(words).and_then(Injection::unleased);
        let injection = injection.map_err(|error| error.to_string())?;
        let disk = &self.scenario().disks[disk];
        check_range(&injection, &disk.name, disk.size).map_err(|error| error.to_string())?;
        Ok(injection)
    }

    /// The time at which the lab arms its last rule, if that time is still to come.
    fn arms_last(&self) -> Option<Duration> {
        let to_come = self.scenario().commands.iter();
        let to_come = to_come.filter(|(at, _)| Instant::ZERO + *at > self.now());
        let arms = to_come.filter(|(_, command)| matches!(command, Command::Inject { .. }));
        arms.map(|(at, _)| *at).max()
    }

    /// Frees the names of rules that the lab has cleared.
    fn forget_cleared(&mut self) {
        let gone = self
            .rules
            .records()
            .filter(|record| self.rule(record).is_none());
        let gone: Vec<RuleId> = gone.map(|record| record.id).collect();
        self.rules.remove(&gone);
    }

    fn update(&mut self, rule: RuleId, words: &str) -> Result<Outcome, Violation> {
        let known = self.rules.records().find(|record| record.id == rule);
        let Some(disk) = known.map(|record| record.disk) else {
            return Ok(Err(format!("there is no rule {}", rule.0)));
        };
        let typed = self.checked(disk, words);
        let typed = typed.and_then(|typed| typed.replacement().map_err(|error| error.to_string()));
        let typed = match typed {
            Ok(typed) => typed,
            Err(why) => return Ok(Err(why)),
        };
        let update = Command::Update(rule, Box::new(typed.spec.clone()));
        Ok(self.tell(update)?.map(|_| {
            self.rules.replace(rule, typed);
            self.armed(&[rule])
        }))
    }

    fn clear(&mut self, rule: RuleId) -> Result<Outcome, Violation> {
        let clear = Command::Clear {
            target: Target::Rule(rule),
            release: Release::Nothing,
        };
        Ok(self.tell(clear)?.map(|answer| {
            self.rules.remove(&[rule]);
            match answer {
                Answer::Cleared(_, left) => cleared(&[rule.0], left.held, left.hung),
                _ => String::new(),
            }
        }))
    }

    /// Suspends a disk without waiting for the zios in flight. The screen shows when they have ended.
    fn suspend(&mut self, name: &str) -> Result<Outcome, Violation> {
        let suspend = |disk| Command::Suspend {
            disk,
            lasts: None,
            now: true,
        };
        self.tell_disk(name, suspend, |answer| match answer {
            Answer::Suspended { in_flight } => said::suspended(name, in_flight),
            _ => String::new(),
        })
    }

    fn resume(&mut self, name: &str) -> Result<Outcome, Violation> {
        self.tell_disk(name, Command::Resume, |answer| match answer {
            Answer::Resumed { waiting } => said::resumed(name, waiting),
            _ => String::new(),
        })
    }

    fn tell_disk(
        &mut self,
        name: &str,
        command: impl FnOnce(DiskId) -> Command,
        said: impl FnOnce(Answer) -> String,
    ) -> Result<Outcome, Violation> {
        match self.place(name) {
            Ok(disk) => Ok(self.tell(command(DiskId(disk as u32)))?.map(said)),
            Err(why) => Ok(Err(why)),
        }
    }

    fn place(&self, disk: &str) -> Result<usize, String> {
        let mut disks = self.scenario().disks.iter();
        let place = disks.position(|one| one.name == disk);
        place.ok_or_else(|| format!("there is no disk '{disk}'"))
    }

    fn tell(&mut self, command: Command) -> Result<Result<Answer, String>, Violation> {
        let place = self.simulation.tell(command)?;
        let mut answers = self.simulation.answers().iter().rev();
        let answer = answers.find(|(at, _)| *at == place);
        Ok(match answer {
            Some((_, answer)) => answer.clone().map_err(|error| error.to_string()),
            None => Ok(Answer::Done),
        })
    }

    fn armed(&self, ids: &[RuleId]) -> String {
        let records = self.rules.records();
        let records = records.filter(|record| ids.contains(&record.id));
        let rules: Vec<Rule> = records.filter_map(|record| self.rule(record)).collect();
        said::armed(&rules)
    }
}
