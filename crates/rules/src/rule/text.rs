//! Rules in one string, from a lab file, `-r` or the API.

use lexopt::{Arg, Parser};

use super::draft::RuleDraft;
use super::option::{RULE_OPTIONS, RuleOption};
use super::{DiskInjection, Injection};
use crate::ParseError;
use crate::name::nearest;

/// Parses `[DISK] -D 10ms:1 …`.
pub fn parse_disk_injection(text: &str) -> Result<DiskInjection, ParseError> {
    let words = shlex::split(text)
        .ok_or_else(|| ParseError::new(format!("'{text}' has a quote that does not end")))?;
    let mut read = Read::default();
    read.all(&mut Parser::from_args(words))?;
    Ok(DiskInjection {
        disk: read.disk,
        injection: read.draft.injection()?,
    })
}

/// Parses `-D 10ms:1 …`, without a disk.
pub fn parse_injection(text: &str) -> Result<Injection, ParseError> {
    let DiskInjection { disk, injection } = parse_disk_injection(text)?;
    match disk {
        Some(word) => Err(ParseError::new(format!(
            "'{word}' in '{text}' is not an option of a rule, and the disk is named already"
        ))),
        None => Ok(injection),
    }
}

/// A parser of a rule's words, and what it has read so far.
#[derive(Default)]
struct Read {
    disk: Option<String>,
    draft: RuleDraft,
    given: Vec<&'static RuleOption>,
}

impl Read {
    fn all(&mut self, words: &mut Parser) -> Result<(), ParseError> {
        while let Some(arg) = words.next().map_err(|error| refused(&error))? {
            match arg {
                Arg::Value(word) if self.disk.is_none() => {
                    self.disk = Some(word.to_string_lossy().into_owned());
                }
                Arg::Value(word) => return Err(unexpected(&word.to_string_lossy())),
                Arg::Short(letter) => {
                    let option = find(|option| option.short == Some(letter));
                    let option = option.ok_or_else(|| unexpected(&format!("-{letter}")))?;
                    self.option(option, words)?;
                }
                Arg::Long(word) => {
                    let option = find(|option| option.long == Some(word));
                    let option = option.ok_or_else(|| unexpected(&format!("--{word}")))?;
                    self.option(option, words)?;
                }
            }
        }
        Ok(())
    }

    fn option(
        &mut self,
        option: &'static RuleOption,
        words: &mut Parser,
    ) -> Result<(), ParseError> {
        self.check_others(option)?;
        self.given.push(option);
        if option.value_name.is_none() {
            return option.read("", &mut self.draft);
        }
        let shown = option.shown();
        let none = |_| {
            ParseError::new(format!(
                "a value is required for '{shown}' but none was supplied"
            ))
        };
        let value = words.value().map_err(none)?;
        let value = value.to_string_lossy();
        option.read(&value, &mut self.draft).map_err(|error| {
            ParseError::new(format!("invalid value '{value}' for '{shown}': {error}"))
        })
    }

    /// Refuses an option that was given before, or that cannot be combined with another option that was
    /// given.
    fn check_others(&self, option: &RuleOption) -> Result<(), ParseError> {
        let shown = option.shown();
        for given in &self.given {
            if given.id == option.id && !option.repeats {
                return Err(ParseError::new(format!(
                    "the argument '{shown}' cannot be used multiple times"
                )));
            }
            if given.excludes.contains(&option.id) || option.excludes.contains(&given.id) {
                return Err(ParseError::new(format!(
                    "the argument '{}' cannot be used with '{shown}'",
                    given.shown()
                )));
            }
        }
        Ok(())
    }
}

fn find(is_meant: impl Fn(&RuleOption) -> bool) -> Option<&'static RuleOption> {
    RULE_OPTIONS.iter().find(|option| is_meant(option))
}

fn unexpected(word: &str) -> ParseError {
    let known = RULE_OPTIONS.iter().filter_map(|option| option.long);
    let near = word
        .strip_prefix("--")
        .and_then(|word| nearest(word, known));
    let tip = near.map_or_else(String::new, |near| {
        format!(" tip: a similar argument exists: '--{near}'")
    });
    ParseError::new(format!("unexpected argument '{word}' found{tip}"))
}

/// The error if `lexopt` refuses the words. It does so only if they give a value to a switch that takes none.
fn refused(error: &lexopt::Error) -> ParseError {
    ParseError::new(error.to_string())
}
