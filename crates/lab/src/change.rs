//! `[[at]]`: changes of a lab during its simulation, written like the daemon's commands.
//!
//! dashpot reads changes in the order of their times, not in the order of the file. A rule must be
//! armed before it is cleared, and the bounds of a tunable depend on the other tunables at that
//! time.

use dashpot_daemon::Registry;
use dashpot_engine::inject::RuleId;
use dashpot_engine::{Command, DiskId, Duration, PoolId, Release, Target};
use dashpot_rules::{ParseError, PoolSpec, parse_disk_injection, parse_wait};
use dashpot_sim::scenario::DiskSpec;

use crate::key::{Key, names};
use crate::place::place_of;
use crate::section::Section;
use crate::staged::{Stage, Staged, Staging};
use crate::state::State;
use crate::tunable::{self, set_tunables};

pub(crate) const TIME_KEYS: [Key; 1] = [Key {
    name: "time",
    kind: "time",
    example: "\"10s\"",
    default: "none: it must be given",
    meaning: "When the change is made, from the start of the simulation.",
}];
pub(crate) const ACTION_KEYS: [Key; 5] = [
    Key {
        name: "tune",
        kind: "table",
        example: "{ pool = \"tank\", zfs_dirty_data_max = \"64M\" }",
        default: "none",
        meaning: "Sets tunables of a pool, by the keys of its table.",
    },
    Key {
        name: "inject",
        kind: "rule",
        example: "\"c1t1d0 -D 50ms:1 --name slow\"",
        default: "none",
        meaning: "Arms a rule, in the words of `dashpot inject`. The disk can be left out if there is only one.",
    },
    Key {
        name: "clear",
        kind: "name",
        example: "\"slow\"",
        default: "none",
        meaning: "Clears the rules with this name or id, the rules of a disk, or `all`.",
    },
    Key {
        name: "suspend",
        kind: "disk",
        example: "\"c1t1d0\"",
        default: "none",
        meaning: "Holds all new I/O of a disk, until `resume`.",
    },
    Key {
        name: "resume",
        kind: "disk",
        example: "\"c1t1d0\"",
        default: "none",
        meaning: "Ends `suspend`.",
    },
];

/// The changes of a lab, and their times.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) commands: Vec<(Duration, Command)>,
    /// The place of each `[[at]]` in the file, and its time.
    pub(crate) places: Vec<(Duration, String)>,
}

/// Why the changes cannot be read.
pub(crate) enum Misread {
    /// The lab has a mistake.
    Lab(ParseError),
    /// The scenario does not suit the lab.
    Scenario(ParseError),
}

impl From<ParseError> for Misread {
    fn from(error: ParseError) -> Misread {
        Misread::Lab(error)
    }
}

/// A change of the lab itself, or of a scenario.
enum Change<'a> {
    Lab(Section<'a>),
    Scenario(Staging<'a>),
}

/// Reads the changes of the lab, and their times. `registry` has the rules that are armed at the start. Adds
/// rules that are armed later to `ever_armed`. The lab's changes come before those of the scenario at the same time.
pub(crate) fn read_changes(
    file: &Section<'_>,
    disks: &[DiskSpec],
    pools: &[PoolSpec],
    registry: Registry,
    ever_armed: &mut Registry,
    staged: Option<(&Staged, Duration)>,
) -> Result<Changes, Misread> {
    let timed = file.table_list("at")?.into_iter().map(|section| {
        let time = section.value("time", parse_wait)?;
        let time = time.ok_or_else(|| no_time(&section))?;
        Ok((time, Change::Lab(section)))
    });
    let mut timed = timed.collect::<Result<Vec<_>, ParseError>>()?;
    let mut state = State {
        disks,
        disk_names: disks.iter().map(|disk| disk.name.as_str()).collect(),
        pool_names: pools.iter().map(|pool| pool.name.as_str()).collect(),
        tunables: pools.iter().map(|pool| pool.tunables.clone()).collect(),
        registry,
        ever_armed,
    };
    let mut stage = None;
    if let Some((staged, lasts)) = staged {
        let steps = staged.steps(lasts).map_err(Misread::Scenario)?;
        timed.extend(
            steps
                .into_iter()
                .map(|(at, step)| (at, Change::Scenario(step))),
        );
        stage = Some(Stage::new(staged, &state, pools).map_err(Misread::Scenario)?);
    }
    timed.sort_by_key(|(time, _)| *time);
    let mut changes = Changes::default();
    for (time, change) in &timed {
        let commands = match (change, &mut stage) {
            (Change::Lab(section), _) => {
                changes.places.push((*time, section.place()));
                state.read(section)?
            }
            (Change::Scenario(step), Some(stage)) => {
                stage.make(step, &mut state).map_err(Misread::Scenario)?
            }
            (Change::Scenario(_), None) => Vec::new(),
        };
        let commands = commands.into_iter().map(|command| (*time, command));
        changes.commands.extend(commands);
    }
    Ok(changes)
}

fn no_time(section: &Section<'_>) -> ParseError {
    section.error(section.start(), "", "no time; add time = \"10s\"")
}

impl State<'_> {
    fn read(&mut self, section: &Section<'_>) -> Result<Vec<Command>, ParseError> {
        section.refuse_unknown(&names(&[&TIME_KEYS, &ACTION_KEYS]))?;
        let actions = names(&[&ACTION_KEYS]);
        let mut named = actions.iter().copied().filter(|key| section.has(key));
        let Some(action) = named.next() else {
            let text = format!("nothing is done; add one of {}", actions.join(", "));
            return Err(section.error(section.start(), "", &text));
        };
        if let Some(other) = named.next() {
            let text = format!("it does not go with '{action}'; give it an [[at]] of its own");
            return section.refuse(other, &text);
        }
        if let Some(table) = section.table("tune")? {
            let start = section.span_of("tune").unwrap_or_default();
            return self.tune(&section.below("[[at]] tune", start, table));
        }
        let commands = section.value(action, |word| match action {
            "inject" => self.inject(word),
            "clear" => self.clear(word),
            "suspend" => Ok(vec![Command::Suspend {
                disk: self.disk_id(word)?,
                lasts: None,
                now: true,
            }]),
            _ => Ok(vec![Command::Resume(self.disk_id(word)?)]),
        })?;
        Ok(commands.unwrap_or_default())
    }

    fn tune(&mut self, section: &Section<'_>) -> Result<Vec<Command>, ParseError> {
        section.refuse_unknown(&[vec!["pool"], tunable::names()].concat())?;
        let pool = section.value("pool", |word| place_of("pool", word, &self.pool_names))?;
        let misplaced = |text| section.error(section.start(), "", text);
        let pool = pool.ok_or_else(|| misplaced("no pool; add pool = \"NAME\""))?;
        let changes = set_tunables(section, &mut self.tunables[pool])?;
        if changes.is_empty() {
            let text = "nothing is set; add a tunable: zfs_dirty_data_max = \"64M\"";
            return Err(misplaced(text));
        }
        Ok(vec![Command::Tune {
            pool: PoolId(pool as u32),
            changes,
        }])
    }

    fn inject(&mut self, words: &str) -> Result<Vec<Command>, ParseError> {
        let parsed = parse_disk_injection(words)?;
        let disk = match (&parsed.disk, self.disks) {
            (Some(name), _) => place_of("disk", name, &self.disk_names)?,
            (None, [_]) => 0,
            (None, _) => {
                return Err(ParseError::new(format!(
                    "'{words}' names no disk, and the lab has several; put one's name first"
                )));
            }
        };
        let (inject, _) = self.arm(disk, parsed.injection.unleased()?)?;
        Ok(inject.into_iter().collect())
    }

    /// The commands that clear the rules that `word` names: all rules (`all`), the rules of a disk, or a rule
    /// by its id or name.
    fn clear(&mut self, word: &str) -> Result<Vec<Command>, ParseError> {
        let disk = self.disk_names.iter().position(|name| *name == word);
        let of_disk = |at: usize| word == "all" || disk == Some(at);
        let all = self.registry.records().filter(|rule| of_disk(rule.disk));
        let all: Vec<RuleId> = all.map(|rule| rule.id).collect();
        let (targets, gone) = match (word, disk) {
            ("all", _) => (vec![Target::All], all),
            (_, Some(disk)) => (vec![Target::Disk(DiskId(disk as u32))], all),
            _ => {
                let named = self.rules(word)?;
                (named.iter().copied().map(Target::Rule).collect(), named)
            }
        };
        self.registry.remove(&gone);
        let clear = |target| Command::Clear {
            target,
            release: Release::Nothing,
        };
        Ok(targets.into_iter().map(clear).collect())
    }

    fn rules(&self, word: &str) -> Result<Vec<RuleId>, ParseError> {
        let found = self.registry.find(word).map_err(|_| {
            ParseError::new(format!(
                "no disk is called '{word}', and no rule that is armed at this time: name one of \
                 them, or all"
            ))
        })?;
        Ok(found.iter().map(|rule| rule.id).collect())
    }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
