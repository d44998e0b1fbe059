//! One expectation: `SUBJECT.METRIC OP VALUE`.

use std::fmt;

use dashpot_rules::ParseError;

use super::metric::Kind;
use super::names::{Names, Subject};

#[derive(Clone, Debug)]
pub(crate) struct Expression {
    /// The text as the user typed it.
    pub(crate) text: String,
    pub(crate) subject: Subject,
    pub(crate) comparison: Comparison,
    /// The value with which the figure is compared: nanoseconds for a time, bytes per second for a rate of
    /// bytes, otherwise a plain number.
    pub(crate) value: f64,
}

/// How a figure compares with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// The longer words come first, so that the parser does not take `<=` for `<`.
const WORDS: [(&str, Comparison); 6] = [
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl Expression {
    pub(crate) fn parse(text: &str, names: &Names) -> Result<Expression, ParseError> {
        let (left, comparison, right) = split(text)?;
        let subject = names.subject(left)?;
        let value = subject.kind().parse(right)?;
        Ok(Expression {
            text: text.trim().to_owned(),
            subject,
            comparison,
            value,
        })
    }
}

impl Subject {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Subject::Device { metric, .. } => metric.kind(),
            Subject::Rule { metric, .. } => metric.kind(),
        }
    }
}

impl Comparison {
    pub(crate) fn holds(self, observed: f64, value: f64) -> bool {
        match self {
            Comparison::Less => observed < value,
            Comparison::LessOrEqual => observed <= value,
            Comparison::Greater => observed > value,
            Comparison::GreaterOrEqual => observed >= value,
            Comparison::Equal => observed == value,
            Comparison::NotEqual => observed != value,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = WORDS.iter();
        let word = words.find(|(_, comparison)| comparison == self);
        f.write_str(word.map_or("", |(word, _)| word))
    }
}

/// The three parts of an expression, without the space around them.
fn split(text: &str) -> Result<(&str, Comparison, &str), ParseError> {
    let Some(at) = text.find(['<', '>', '=', '!']) else {
        return Err(ParseError::new(format!(
            "'{text}' compares nothing: write 'SUBJECT.METRIC < VALUE', in quotes"
        )));
    };
    let (left, rest) = text.split_at(at);
    let mut words = WORDS.iter();
    let Some((word, comparison)) = words.find(|(word, _)| rest.starts_with(word)) else {
        return Err(ParseError::new(format!(
            "'{text}' compares with {:?}: use <, <=, >, >=, == or !=",
            rest.chars().next().unwrap_or_default()
        )));
    };
    let (left, right) = (left.trim(), rest[word.len()..].trim());
    if left.is_empty() || right.is_empty() {
        return Err(ParseError::new(format!(
            "'{text}' lacks one side: write 'SUBJECT.METRIC < VALUE', in quotes"
        )));
    }
    Ok((left, *comparison, right))
}

#[cfg(test)]
#[path = "expression_tests.rs"]
mod tests;
