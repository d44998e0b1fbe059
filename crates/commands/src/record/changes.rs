//! Finds changes to a daemon's rules, scenarios and disks, so that a recording can mark them.

use std::collections::BTreeMap;

use dashpot_api::{Client, Disk, Rule, RuleState, ScenarioRun, ScenarioState};
use dashpot_recording::{CLEARED, Event, RUNNING};
use dashpot_sources::{Target, now_ns};

/// Looks for changes once a second. A rule that is armed and cleared between two looks leaves no mark.
pub(super) struct Changes<'a> {
    client: Option<&'a Client>,
    /// The texts about the rules and about the states of disks, as they were at the last call of `news`.
    known: BTreeMap<Subject, String>,
    look_ns: u64,
}

/// A rule or a disk, whose changes a recording marks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    /// A rule, by its disk and number.
    Rule(String, u32),
    /// The scenario of a disk, by its disk and number.
    Scenario(String, u64),
    Disk(String),
}

/// A change to a rule or to a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) event: Event,
    pub(super) device: String,
    pub(super) text: String,
}

impl<'a> Changes<'a> {
    /// The changes to a target's rules and disks. The kernel's disks have neither rules nor states.
    pub(super) fn of(target: &'a Target) -> Changes<'a> {
        Changes {
            client: match target {
                Target::Daemon { client, .. } => Some(client),
                Target::Pools { .. } | Target::Kernel(..) => None,
            },
            known: BTreeMap::new(),
            look_ns: 0,
        }
    }

    /// The changes since the last call; at the first call, the rules that are armed and the disks that do not
    /// run.
    pub(super) fn news(&mut self) -> Vec<Change> {
        let now_ns = now_ns();
        let Some(client) = self.client.filter(|_| now_ns >= self.look_ns) else {
            return Vec::new();
        };
        self.look_ns = now_ns.saturating_add(LOOK_EVERY_NS);
        // If the daemon does not answer, the source of the I/Os reports that.
        let (Ok(rules), Ok(disks)) = (client.rules(), client.disks()) else {
            return Vec::new();
        };
        // An older daemon has no scenarios.
        let runs = client.scenarios().unwrap_or_default();
        self.compare(said(&rules, &runs, &disks))
    }

    fn compare(&mut self, now: BTreeMap<Subject, String>) -> Vec<Change> {
        let new = now
            .iter()
            .filter(|(key, text)| self.known.get(key) != Some(text));
        let new = new.map(|(key, text)| change(key, text.clone()));
        let gone = self.known.iter().filter(|(key, _)| !now.contains_key(key));
        let gone = gone.map(|(key, text)| match key {
            Subject::Rule(..) | Subject::Scenario(..) => change(key, format!("{text}{CLEARED}")),
            Subject::Disk(_) => change(key, RUNNING.to_owned()),
        });
        let changes = new.chain(gone).collect();
        self.known = now;
        changes
    }
}

/// Texts about the rules that are armed, the last steps of the scenarios that run, and the disks that do not run.
fn said(rules: &[Rule], runs: &[ScenarioRun], disks: &[Disk]) -> BTreeMap<Subject, String> {
    let armed = rules.iter().filter(|rule| rule.state != RuleState::Cleared);
    let rules = armed.map(|rule| (Subject::Rule(rule.disk.clone(), rule.id), words(rule)));
    let running = runs
        .iter()
        .filter(|run| run.state == ScenarioState::Running);
    let scenarios = running.flat_map(|run| {
        let subject = |disk: &String| Subject::Scenario(disk.clone(), run.id);
        run.disks
            .iter()
            .map(move |disk| (subject(disk), step_words(run)))
    });
    let states = disks
        .iter()
        .filter_map(|disk| Some((Subject::Disk(disk.name.clone()), state(disk)?)));
    rules.chain(scenarios).chain(states).collect()
}

fn step_words(run: &ScenarioRun) -> String {
    let step = run.steps.last();
    let step = step.map(|step| format!(" step {}, {}", step.number, step.step));
    format!(
        "scenario {} {}:{}",
        run.id,
        run.name,
        step.unwrap_or_default()
    )
}

fn words(rule: &Rule) -> String {
    let name = rule
        .name
        .as_ref()
        .map_or(String::new(), |name| format!(" '{name}'"));
    let state = match rule.state {
        RuleState::Waiting => " (waiting)",
        RuleState::Ended => " (ended)",
        // The turns of a cycle follow from its words; most of them fall between two looks.
        RuleState::Active | RuleState::Resting | RuleState::Cleared => "",
    };
    format!("rule {}{name} {}{state}", rule.id, rule.rule)
}

/// The state of a disk that does not run.
fn state(disk: &Disk) -> Option<String> {
    match disk {
        Disk {
            failed: Some(why), ..
        } => Some(format!("failed: {why}")),
        Disk {
            faulted: Some(why), ..
        } => Some(format!("faulted: {why}")),
        Disk { off: true, .. } => Some("off".to_owned()),
        Disk {
            suspended: Some(_), ..
        } => Some("suspended".to_owned()),
        _ => None,
    }
}

fn change(subject: &Subject, text: String) -> Change {
    let (event, device) = match subject {
        Subject::Rule(disk, _) | Subject::Scenario(disk, _) => (Event::Rule, disk),
        Subject::Disk(disk) => (Event::State, disk),
    };
    Change {
        event,
        device: device.clone(),
        text,
    }
}

const LOOK_EVERY_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use dashpot_api::ScenarioStep;

    use super::*;

    fn now(said: &[(Subject, &str)]) -> BTreeMap<Subject, String> {
        let said = said.iter().cloned();
        said.map(|(key, text)| (key, text.to_owned())).collect()
    }

    fn texts(changes: &[Change]) -> Vec<(&str, &str)> {
        let text = |change: &'_ Change| (change.event.word(), change.text.clone());
        let texts = changes.iter().map(text);
        texts.map(|(word, text)| (word, &*text.leak())).collect()
    }

    #[test]
    fn each_change_is_told_once() {
        let mut changes = Changes {
            client: None,
            known: BTreeMap::new(),
            look_ns: 0,
        };
        let rule = || Subject::Rule("d".to_owned(), 1);
        let disk = || Subject::Disk("d".to_owned());
        let armed = now(&[(rule(), "rule 1 -D 1ms")]);
        let told = changes.compare(armed.clone());
        assert_eq!(texts(&told), [("rule", "rule 1 -D 1ms")]);
        assert!(changes.compare(armed).is_empty());
        let told = changes.compare(now(&[(rule(), "rule 1 -D 2ms"), (disk(), "suspended")]));
        assert_eq!(
            texts(&told),
            [("rule", "rule 1 -D 2ms"), ("state", "suspended")]
        );
        let told = changes.compare(now(&[]));
        assert_eq!(
            texts(&told),
            [("rule", "rule 1 -D 2ms: cleared"), ("state", "running")]
        );
    }

    #[test]
    fn the_last_step_of_a_scenario_is_told_of_each_of_its_disks() {
        let run = |state, step: Option<&str>| ScenarioRun {
            id: 3,
            name: "brown-out".to_owned(),
            about: String::new(),
            disks: vec!["d".to_owned(), "e".to_owned()],
            state,
            error: None,
            age_ns: 0,
            next_in_ns: None,
            made: 1,
            steps: Vec::from_iter(step.map(|step| ScenarioStep {
                number: 1,
                line: 4,
                at_ns: 0,
                step: step.to_owned(),
            })),
        };
        let said_of = |state, step| said(&[], &[run(state, step)], &[]);
        let told = said_of(ScenarioState::Running, Some("mark the worst"));
        let text = "scenario 3 brown-out: step 1, mark the worst".to_owned();
        let of = |disk: &str| (Subject::Scenario(disk.to_owned(), 3), text.clone());
        assert_eq!(told, BTreeMap::from([of("d"), of("e")]));
        assert!(said_of(ScenarioState::Done, Some("mark the worst")).is_empty());
        let told = said_of(ScenarioState::Running, None);
        assert!(told.values().all(|text| text == "scenario 3 brown-out:"));
    }
}
