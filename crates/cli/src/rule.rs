//! The options of a rule on the command line, generated from their table.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use dashpot_rules::{Injection, ParseError, RULE_OPTIONS, RuleDraft, RuleOption, TypedRule};

/// The options of a rule.
#[derive(Clone, Debug)]
pub struct RuleArgs(RuleDraft);

impl RuleArgs {
    /// The rules that the options describe.
    pub fn injection(&self) -> Result<Injection, ParseError> {
        self.0.injection()
    }

    /// The rule that the options describe, as the replacement of another rule.
    pub fn replacement(&self) -> Result<TypedRule, ParseError> {
        self.injection()?.replacement()
    }
}

impl Args for RuleArgs {
    fn augment_args(command: Command) -> Command {
        RULE_OPTIONS.iter().map(arg).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        RuleArgs::augment_args(command)
    }
}

impl FromArgMatches for RuleArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<RuleArgs, clap::Error> {
        let mut rule = RuleArgs(RuleDraft::default());
        rule.update_from_arg_matches(matches)?;
        Ok(rule)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for option in &RULE_OPTIONS {
            for value in values(option, matches) {
                let read = option.read(value, &mut self.0);
                read.map_err(|error| {
                    clap::Error::raw(clap::error::ErrorKind::ValueValidation, error)
                })?;
            }
        }
        Ok(())
    }
}

/// The values of an option. A switch has one empty value.
fn values<'a>(option: &RuleOption, matches: &'a ArgMatches) -> Vec<&'a str> {
    match option.value_name {
        Some(_) => {
            let values = matches.get_many::<String>(option.id).unwrap_or_default();
            values.map(String::as_str).collect()
        }
        None => Vec::from_iter(matches.get_flag(option.id).then_some("")),
    }
}

fn arg(option: &'static RuleOption) -> Arg {
    let mut arg = Arg::new(option.id)
        .help(option.help)
        .conflicts_with_all(option.excludes);
    if let Some(short) = option.short {
        arg = arg.short(short);
    }
    if let Some(long) = option.long {
        arg = arg.long(long);
    }
    let Some(value_name) = option.value_name else {
        return arg.action(ArgAction::SetTrue);
    };
    let action = if option.repeats {
        ArgAction::Append
    } else {
        ArgAction::Set
    };
    let arg = arg.action(action).value_name(value_name);
    let arg = arg.allow_hyphen_values(option.takes_hyphens);
    if option.choices.is_empty() {
        arg.value_parser(move |value: &str| checked(option, value))
    } else {
        arg.value_parser(PossibleValuesParser::new(option.choices))
            .hide_possible_values(true)
    }
}

/// Checks that the option can read the value. `update_from_arg_matches` parses it again, together with the
/// other options.
fn checked(option: &RuleOption, value: &str) -> Result<String, ParseError> {
    option.read(value, &mut RuleDraft::default())?;
    Ok(value.to_owned())
}
