//! Finds the subject of an expression among the known devices and rules.

use dashpot_rules::{ParseError, nearest};

use super::metric::{DeviceMetric, RuleMetric};

/// The names that an expression may contain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Disks and volumes.
    pub(crate) devices: Vec<String>,
    pub(crate) ops: Vec<String>,
    /// Names and ids of rules, armed or cleared.
    pub(crate) rules: Vec<String>,
    /// Whether `rule(NAME)` may name a rule that does not exist yet, because the command may arm it.
    pub(crate) rules_may_come: bool,
}

/// The subject and the metric of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    Device {
        device: String,
        op: Option<String>,
        metric: DeviceMetric,
    },
    Rule {
        rule: String,
        metric: RuleMetric,
    },
}

impl Names {
    /// Finds the subject of `wal.p99`, `wal.flush.p99`, `slow.achieved.p50`, `rule(slow).held`. Names may
    /// contain dots. The first dot that separates a known name from one of its metrics is the separator.
    pub(super) fn subject(&self, text: &str) -> Result<Subject, ParseError> {
        if let Some((name, metric)) = explicit_rule(text) {
            return self.explicit(name, metric);
        }
        let points = text.match_indices('.').map(|(at, _)| text.split_at(at));
        let mut splits = points.map(|(subject, metric)| (subject, &metric[1..]));
        let found = splits
            .clone()
            .find_map(|(subject, metric)| self.find(subject, metric));
        found.ok_or_else(|| match splits.next() {
            None => ParseError::new(format!(
                "'{text}' has no metric: write SUBJECT.METRIC, such as {}.p99",
                self.devices.first().map_or("DISK", String::as_str)
            )),
            Some(_) => self.unknown(text, splits.clone()),
        })
    }

    fn find(&self, subject: &str, metric: &str) -> Option<Subject> {
        if let Some(metric) = DeviceMetric::parse(metric)
            && let Some((device, op)) = self.device_and_op(subject)
            && (op.is_none() || !metric.is_of_whole_device())
        {
            return Some(Subject::Device { device, op, metric });
        }
        let metric = RuleMetric::parse(metric)?;
        let rule = self.rules.iter().find(|rule| *rule == subject)?.clone();
        let is_device = self.device_and_op(subject).is_some();
        (!is_device).then_some(Subject::Rule { rule, metric })
    }

    fn device_and_op(&self, subject: &str) -> Option<(String, Option<String>)> {
        let has = |device: &str| self.devices.iter().any(|known| known == device);
        if has(subject) {
            return Some((subject.to_owned(), None));
        }
        let (device, op) = subject.rsplit_once('.')?;
        let op = self.ops.iter().find(|known| *known == op)?;
        has(device).then(|| (device.to_owned(), Some(op.clone())))
    }

    fn explicit(&self, name: &str, metric: &str) -> Result<Subject, ParseError> {
        let Some(parsed) = RuleMetric::parse(metric) else {
            return Err(no_metric("a rule", metric, &RuleMetric::words()));
        };
        if !self.rules_may_come && !self.rules.iter().any(|rule| rule == name) {
            return Err(no_subject("rule", name, &self.rules));
        }
        Ok(Subject::Rule {
            rule: name.to_owned(),
            metric: parsed,
        })
    }

    /// The error for an expression without a meaning: its subject is known but its metric is not, or
    /// its metric is known but its subject is not.
    fn unknown<'a>(
        &self,
        text: &str,
        splits: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> ParseError {
        let (mut subject, mut metric) = text.split_once('.').unwrap_or((text, ""));
        for (before, after) in splits {
            let is_metric =
                DeviceMetric::parse(after).is_some() || RuleMetric::parse(after).is_some();
            if is_metric && !self.is_known(before) {
                return self.unknown_subject(before);
            }
            if self.is_known(before) {
                (subject, metric) = (before, after);
            }
        }
        match (self.device_and_op(subject), self.is_known(subject)) {
            (Some((_, Some(_))), _)
                if DeviceMetric::parse(metric).is_some_and(DeviceMetric::is_of_whole_device) =>
            {
                ParseError::new(format!(
                    "'{text}': {metric} is a metric of a disk or volume, not of one of its operations"
                ))
            }
            (Some(_), _) => no_metric("a disk or volume", metric, &DeviceMetric::words()),
            (None, true) => no_metric("a rule", metric, &RuleMetric::words()),
            (None, false) => self.unknown_subject(subject),
        }
    }

    fn is_known(&self, subject: &str) -> bool {
        self.device_and_op(subject).is_some() || self.rules.iter().any(|rule| rule == subject)
    }

    fn unknown_subject(&self, subject: &str) -> ParseError {
        if let Some((device, op)) = subject.rsplit_once('.')
            && self.devices.iter().any(|known| known == device)
        {
            return no_subject("operation", op, &self.ops);
        }
        let known: Vec<String> = self.devices.iter().chain(&self.rules).cloned().collect();
        let error = no_subject("disk, volume or rule", subject, &known);
        if self.rules_may_come {
            ParseError::new(format!(
                "{error} (a rule that the command arms is written rule({subject}))"
            ))
        } else {
            error
        }
    }
}

/// Splits `rule(NAME).METRIC` into the name and the metric.
fn explicit_rule(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix("rule(")?.split_once(").")
}

fn no_subject(what: &str, name: &str, known: &[String]) -> ParseError {
    // Never propose an id, because a user who misspelt a name probably did not mean an id.
    let is_name = |known: &&str| known.parse::<u64>().is_err();
    let names = known.iter().map(String::as_str).filter(is_name);
    let remedy = match nearest(name, names) {
        Some(near) => format!("did you mean '{near}'?"),
        None if known.is_empty() => format!("there is no {what}"),
        None => format!("there is {}", known.join(", ")),
    };
    ParseError::new(format!("no {what} '{name}': {remedy}"))
}

fn no_metric(of: &str, word: &str, known: &[String]) -> ParseError {
    let remedy = match nearest(word, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("it has {}", known.join(", ")),
    };
    ParseError::new(format!("no metric '{word}' of {of}: {remedy}"))
}
