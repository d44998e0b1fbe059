//! The request that a zinject command line makes, or why it is refused.

use dashpot_engine::Errno;
use dashpot_engine::inject::{Damage, Effect, RuleSpec};

use super::getopt::{GetoptError, Words, getopt};
use super::guid::Device;
use super::options::{
    Delay, DeviceError, Frequency, IoType, parse_delay, parse_error, parse_frequency, parse_iotype,
};
use super::refusal::Refusal;
use crate::TypedRule;
use crate::rule::damage_words;

/// The list of letters that zinject itself passes to getopt (OpenZFS 2.4).
const LETTERS: &str = "aA:b:C:d:D:E:f:Fg:qhIc:t:T:l:mr:s:e:uL:p:P:";

/// The request of a command line.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A request to print all handlers.
    List,
    /// A request to print the help.
    Help,
    /// A request to remove handlers.
    Cancel(Cancel),
    /// A request to add a handler.
    Add(Box<Add>),
}

/// The handlers to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// All handlers.
    All,
    /// The handler with this id.
    One(u32),
}

/// A handler to add.
#[derive(Clone, Debug, PartialEq)]
pub struct Add {
    /// The name of the pool: any word.
    pub pool: String,
    /// The disk.
    pub device: Device,
    /// The type to print back.
    pub iotype: IoType,
    /// The rule to arm. All rules that zinject arms on a disk are one group.
    pub rule: TypedRule,
    /// Whether to print only the new id.
    pub quiet: bool,
}

/// Parses the words after `zinject`.
pub fn parse(words: &[String]) -> Result<Request, Refusal> {
    if words.is_empty() {
        return Ok(Request::List);
    }
    if words.iter().any(|word| word == "--help") {
        return Ok(Request::Help);
    }
    let words = getopt(words, LETTERS).map_err(|error| getopt_refusal(&error))?;
    if words.options.iter().any(|(letter, _)| *letter == 'h') {
        return Ok(Request::Help);
    }
    if let Some((_, id)) = words.options.iter().find(|(letter, _)| *letter == 'c') {
        return parse_cancel(id, &words).map(Request::Cancel);
    }
    let options = Options::read(&words)?;
    options
        .add(&words.operands)
        .map(|add| Request::Add(Box::new(add)))
}

/// The options of a handler to add.
#[derive(Debug, Default)]
struct Options {
    device: Option<Device>,
    delay: Option<Delay>,
    error: Option<DeviceError>,
    iotype: IoType,
    frequency: Option<Frequency>,
    quiet: bool,
}

impl Options {
    fn read(words: &Words) -> Result<Options, Refusal> {
        let mut options = Options::default();
        for (letter, value) in &words.options {
            match letter {
                'd' => options.device = Some(Device::parse(value)),
                'D' => options.delay = Some(parse_delay(value)?),
                'e' => options.error = Some(parse_error(value)?),
                'T' => options.iotype = parse_iotype(value)?,
                'f' => options.frequency = Some(parse_frequency(value)?),
                'q' => options.quiet = true,
                // In ZFS, "fail fast" exempts opens and retries from the error. A disk of dashpot has
                // neither, so the option changes nothing.
                'F' => {}
                other => return Err(refused_option(*other)),
            }
        }
        Ok(options)
    }

    fn add(self, operands: &[String]) -> Result<Add, Refusal> {
        let rule = self.rule()?;
        let Some(device) = self.device else {
            return Err(Refusal::usage(
                2,
                "nothing to do: give -d DEVICE with -D or -e, or -c",
            ));
        };
        let [pool] = operands else {
            return Err(Refusal::usage(
                2,
                format!(
                    "-d needs one pool name after the options, such as tank; the command has {}",
                    operands.len()
                ),
            ));
        };
        let (pool, iotype, quiet) = (pool.clone(), self.iotype, self.quiet);
        Ok(Add {
            pool,
            device,
            iotype,
            rule,
            quiet,
        })
    }

    /// The rule. The words of the rule show the frequency as the user typed it, not as zinject rounds it.
    fn rule(&self) -> Result<TypedRule, Refusal> {
        let mut spec = self.spec()?;
        spec.chance = self.frequency.map(|frequency| frequency.typed);
        let latency = self.delay.map(|delay| delay.latency.to_string());
        let mut rule = TypedRule::new(spec, &latency.unwrap_or_default());
        rule.spec.chance = self.frequency.map(|frequency| frequency.stored);
        Ok(rule)
    }

    /// With -D, zinject ignores -e. Without -D and -e, zinject injects a default error, which dashpot does
    /// not have.
    fn spec(&self) -> Result<RuleSpec, Refusal> {
        if let Some(delay) = self.delay {
            let plain = RuleSpec::delay(delay.latency, Some(delay.lanes));
            let ops = self.iotype.delayed_ops().ok_or_else(|| {
                Refusal::usage(
                    1,
                    format!(
                        "delay type '{}' is not possible: it must be read, write or all",
                        self.iotype.name()
                    ),
                )
            })?;
            return Ok(RuleSpec { ops, ..plain });
        }
        let error = match (self.error, &self.device) {
            (Some(error), _) => error,
            (None, Some(_)) => parse_error("nxio")?,
            (None, None) => DeviceError::Io,
        };
        let damage = match error {
            DeviceError::Io | DeviceError::IoPrefail => {
                let effect = Effect::Fail {
                    errno: Errno::Io,
                    work: error == DeviceError::Io,
                    delay: None,
                };
                let ops = self.iotype.ops();
                return Ok(RuleSpec {
                    ops,
                    ..RuleSpec::new(effect)
                });
            }
            DeviceError::Noop => Damage::Drop,
            DeviceError::Corrupt => Damage::Flip,
        };
        let ops = self.iotype.damaged_ops(damage).ok_or_else(|| {
            Refusal::failure(format!(
                "{} cannot hit I/O of type '{}': noop is for write, trim or all, and corrupt for read, write or all",
                damage_words(damage),
                self.iotype.name()
            ))
        })?;
        Ok(RuleSpec {
            ops,
            ..RuleSpec::new(Effect::Damage(damage))
        })
    }
}

fn parse_cancel(id: &str, words: &Words) -> Result<Cancel, Refusal> {
    if words.options.len() > 1 || !words.operands.is_empty() {
        return Err(Refusal::usage(
            2,
            "-c goes with no other option and no pool",
        ));
    }
    if id == "all" {
        return Ok(Cancel::All);
    }
    id.parse().map(Cancel::One).map_err(|_| {
        Refusal::usage(
            1,
            format!("invalid handler id '{id}': give a number or 'all'"),
        )
    })
}

fn getopt_refusal(error: &GetoptError) -> Refusal {
    match error {
        GetoptError::Unknown('-') => Refusal::usage(
            2,
            "long options come before zinject's own options, which have one letter each",
        ),
        GetoptError::Unknown(letter) => Refusal::usage(2, format!("invalid option '-{letter}'")),
        GetoptError::NoValue(letter) => {
            Refusal::usage(1, format!("option '-{letter}' needs a value"))
        }
    }
}

/// A refusal that says why an option of zinject makes no sense for a block device.
fn refused_option(letter: char) -> Refusal {
    let reason = match letter {
        'A' => "sets the state of a vdev, and a disk has none: use -e io, or dashpot suspend",
        'a' => "flushes ZFS's ARC, and there is none",
        'b' | 'l' | 't' => "names a block of a ZFS object, and a disk has no objects",
        'r' => "names a range of a ZFS object: use dashpot inject --range",
        'C' => "chooses copies of a ZFS block, and a disk has one",
        'E' => "delays a stage of ZFS's pipeline: use -D",
        'I' => "loses writes on purpose: serve a lossy store instead",
        'g' | 's' => "is the duration of -I or -P: use dashpot inject --for",
        'L' => "fails ZFS's labels: use dashpot inject --range",
        'm' => "mounts a ZFS file system again",
        'p' => "panics the ZFS kernel module",
        'P' => "delays the import or export of a pool, and dashpot's pools have neither",
        'u' => "unloads a pool, and dashpot's pools are not loaded",
        _ => "is not known here",
    };
    Refusal::usage(1, format!("option '-{letter}' {reason}"))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
