//! Reads the file of a scenario.

use std::collections::BTreeMap;

use dashpot_engine::Duration;
use serde::Deserialize;
use toml::{Spanned, Value};

use super::step::{Action, Power, Scenario, Step, Survives, Which};
use crate::{
    ParseError, parse_injection, parse_name, parse_new_value, parse_tunable_name, parse_wait,
};

/// The format of a file, which tells whether this program knows its other keys.
#[derive(Deserialize)]
struct Format {
    format: Option<Spanned<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "format")]
    _format: Value,
    about: String,
    #[serde(default)]
    step: Vec<Spanned<FileStep>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileStep {
    after: Option<String>,
    inject: Option<String>,
    label: Option<String>,
    update: Option<String>,
    rule: Option<String>,
    clear: Option<String>,
    #[serde(default)]
    suspend: bool,
    #[serde(default)]
    resume: bool,
    crash: Option<FilePower>,
    keep: Option<FileSurvives>,
    tune: Option<FileTune>,
    mark: Option<String>,
    repeat: Option<Value>,
    step: Option<Vec<Spanned<FileStep>>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FilePower {
    GoOn,
    Off,
    Restart,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FileSurvives {
    None,
    All,
    Random,
}

#[derive(Deserialize)]
struct FileTune {
    pool: Option<String>,
    #[serde(flatten)]
    tunables: BTreeMap<String, Value>,
}

pub(super) fn parse(text: &str) -> Result<Scenario, ParseError> {
    let line = |at: usize| 1 + text[..at.min(text.len())].matches('\n').count();
    let malformed = |error: toml::de::Error| {
        let at = error.span().map_or(1, |span| line(span.start));
        ParseError::new(format!("{at}: {}", error.message()))
    };
    let Format { format } = toml::from_str(text).map_err(malformed)?;
    let Some(format) = format else {
        return Err(ParseError::new(format!(
            "1: no format; add format = {FORMAT}"
        )));
    };
    if format.get_ref().as_integer() != i64::try_from(FORMAT).ok() {
        return Err(ParseError::new(format!(
            "{}: the file has format {}, and this dashpot knows only format {FORMAT} of scenarios: take the \
             dashpot that wrote it",
            line(format.span().start),
            format.get_ref()
        )));
    }
    let file: File = toml::from_str(text).map_err(malformed)?;
    let mut reader = Reader { line, count: 0 };
    let steps = reader.steps(file.step, 0)?;
    if steps.is_empty() {
        return Err(ParseError::new("1: the scenario has no [[step]]"));
    }
    if file.about.len() > ABOUT_MAX || file.about.contains(char::is_control) {
        return Err(ParseError::new(format!(
            "1: about is a line of at most {ABOUT_MAX} bytes"
        )));
    }
    Ok(Scenario {
        about: file.about,
        steps,
    })
}

/// The most bytes that the text about a scenario has.
const ABOUT_MAX: usize = 400;

struct Reader<L> {
    /// The number of the line at a place.
    line: L,
    count: usize,
}

impl<L: Fn(usize) -> usize> Reader<L> {
    fn steps(
        &mut self,
        steps: Vec<Spanned<FileStep>>,
        depth: usize,
    ) -> Result<Vec<Step>, ParseError> {
        let mut read = Vec::new();
        for step in steps {
            let line = (self.line)(step.span().start);
            let placed = |error: ParseError| ParseError::new(format!("{line}: {error}"));
            self.count += 1;
            if self.count > STEPS_MAX {
                return Err(placed(ParseError::new(format!(
                    "a scenario has at most {STEPS_MAX} steps: repeat some"
                ))));
            }
            let step = step.into_inner();
            let after = step.after.as_deref().map_or(Ok(Duration::ZERO), parse_wait);
            let after = after.map_err(placed)?;
            let action = if step.repeat.is_some() || step.step.is_some() {
                self.repeat(step, depth, line)?
            } else {
                step.action().map_err(placed)?
            };
            read.push(Step {
                after,
                action,
                line,
            });
        }
        Ok(read)
    }

    fn repeat(
        &mut self,
        mut step: FileStep,
        depth: usize,
        line: usize,
    ) -> Result<Action, ParseError> {
        let refused = |why: &str| Err(ParseError::new(format!("{line}: {why}")));
        let (Some(times), Some(inner)) = (step.repeat.take(), step.step.take()) else {
            return refused(
                "a loop has both repeat = \"forever\" or a number, and [[step.step]] tables",
            );
        };
        if !matches!(step.action(), Ok(Action::Wait)) {
            return refused(
                "a loop does nothing else: give the other action a [[step]] of its own",
            );
        }
        let times = match (&times, times.as_integer().map(u64::try_from)) {
            (Value::String(word), _) if word == "forever" => None,
            (_, Some(Ok(times @ 1..))) => Some(times),
            _ => return refused("repeat is a number of times from 1, or \"forever\""),
        };
        if depth == DEPTH_MAX {
            return refused("loops are nested too deeply: at most four within each other");
        }
        let steps = self.steps(inner, depth + 1)?;
        if length(&steps) < PASS_MIN {
            return refused("a pass of a loop takes at least 1ms: give one of its steps 'after'");
        }
        Ok(Action::Repeat { times, steps })
    }
}

/// How long one pass of steps takes, at least.
fn length(steps: &[Step]) -> Duration {
    let each = steps.iter().map(|step| match &step.action {
        Action::Repeat { steps, .. } => step.after + length(steps),
        _ => step.after,
    });
    each.fold(Duration::ZERO, |sum, one| sum + one)
}

impl FileStep {
    fn action(self) -> Result<Action, ParseError> {
        let rule_needs_update = self.rule.is_some() && self.update.is_none();
        let label_needs_inject = self.label.is_some() && self.inject.is_none();
        let keep_needs_crash = self.keep.is_some() && self.crash.is_none();
        for (is_alone, why) in [
            (rule_needs_update, "'rule' goes with 'update'"),
            (label_needs_inject, "'label' goes with 'inject'"),
            (keep_needs_crash, "'keep' goes with 'crash'"),
        ] {
            if is_alone {
                return Err(ParseError::new(format!("{why}, which the step lacks")));
            }
        }
        let (label, rule, keep) = (self.label, self.rule, self.keep);
        let actions = [
            self.inject.map(|words| inject(&words, label)),
            self.update.map(|label| update(label, rule.as_deref())),
            self.clear.map(|word| Ok(Action::Clear(which(word)))),
            self.suspend.then_some(Ok(Action::Suspend)),
            self.resume.then_some(Ok(Action::Resume)),
            self.crash.map(|then| Ok(crash(then, keep))),
            self.tune.map(tune),
            self.mark.map(mark),
        ];
        let mut actions = actions.into_iter().flatten();
        match (actions.next(), actions.next()) {
            (Some(action), None) => action,
            (None, _) => Ok(Action::Wait),
            (Some(_), Some(_)) => Err(ParseError::new(
                "a step does one thing: give the other a [[step]] of its own, without 'after'",
            )),
        }
    }
}

fn inject(words: &str, label: Option<String>) -> Result<Action, ParseError> {
    let injection = parse_injection(words)?.unleased()?;
    if injection.with.is_some() {
        return Err(ParseError::new(
            "--with would join a rule that is not the scenario's: give several -D in one step",
        ));
    }
    let label = match (label, &injection.name) {
        (Some(label), _) => Some(parse_name(&label)?),
        (None, name) => name.clone(),
    };
    Ok(Action::Inject { label, injection })
}

fn update(label: String, rule: Option<&str>) -> Result<Action, ParseError> {
    let rule = rule.ok_or_else(|| {
        ParseError::new("the step says which rule to update, but not how: add rule = \"-D 20ms\"")
    })?;
    let rule = Box::new(parse_injection(rule)?.replacement()?);
    Ok(Action::Update { label, rule })
}

fn which(word: String) -> Which {
    match word.as_str() {
        "all" => Which::All,
        _ => Which::Label(word),
    }
}

fn crash(then: FilePower, keep: Option<FileSurvives>) -> Action {
    Action::Crash {
        then: match then {
            FilePower::GoOn => Power::GoesOn,
            FilePower::Off => Power::Off,
            FilePower::Restart => Power::Restart,
        },
        survives: match keep {
            Some(FileSurvives::None) => Survives::None,
            Some(FileSurvives::All) => Survives::All,
            Some(FileSurvives::Random) | None => Survives::Random,
        },
    }
}

fn tune(FileTune { pool, tunables }: FileTune) -> Result<Action, ParseError> {
    let change = |(name, value): (&String, &Value)| {
        let tunable = parse_tunable_name(name)?;
        let words = match value {
            Value::String(words) => words.clone(),
            other => other.to_string(),
        };
        let value = parse_new_value(tunable, &words);
        let value = value.map_err(|error| ParseError::new(format!("{name}: {error}")))?;
        Ok((tunable, value))
    };
    let changes = tunables.iter().map(change).collect::<Result<Vec<_>, _>>()?;
    if changes.is_empty() {
        return Err(ParseError::new(
            "nothing is set; add a tunable: zfs_dirty_data_max = \"64M\"",
        ));
    }
    Ok(Action::Tune { pool, changes })
}

fn mark(text: String) -> Result<Action, ParseError> {
    if text.is_empty() || text.len() > MARK_MAX || text.contains(char::is_control) {
        return Err(ParseError::new(format!(
            "a mark is one line of 1 to {MARK_MAX} bytes"
        )));
    }
    Ok(Action::Mark(text))
}

/// The only format of scenario files so far.
const FORMAT: u64 = 1;
/// The most steps of a file.
const STEPS_MAX: usize = 1_000;
/// The most loops within each other.
const DEPTH_MAX: usize = 4;
/// The shortest pass of a loop.
const PASS_MIN: Duration = Duration::from_millis(1);
/// The longest text of a mark.
const MARK_MAX: usize = 200;
