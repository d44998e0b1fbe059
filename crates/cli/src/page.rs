//! The page without a daemon: `view`, and the options of `observe --page` and `sim --page`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use dashpot_rules::{Listen, ParseError, parse_listen};

use crate::no_api::NoApi;

/// Show a recording in the browser, with heat maps and comparison
#[derive(Args, Debug)]
#[command(after_help = "\
view prints the address of the page, with its token. If the recording is still
being made, the page follows it. Ctrl-C ends the page.

Example:
  dashpot view today.rec")]
pub struct ViewArgs {
    /// The recording
    #[arg(value_name = "REC")]
    pub recording: PathBuf,
    /// The address and the host names of the page.
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    _no_api: NoApi,
}

/// The address and the host names of a page.
#[derive(Args, Clone, Debug, Default)]
pub struct PageArgs {
    /// Where the page listens [tcp:127.0.0.1:0: a free port]
    #[arg(long, value_name = "ADDR", value_parser = parse_listen)]
    pub listen: Option<Listen>,
    /// Answer requests to this host name, too
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
}

impl PageArgs {
    /// The address at which to listen.
    pub fn listen(&self) -> Listen {
        let any = || parse_listen("tcp:127.0.0.1:0");
        self.listen
            .clone()
            .or_else(|| any().ok())
            .unwrap_or(Listen::Private)
    }

    /// Refuses options of the page if the user did not ask for a page.
    pub fn check(&self, is_page: bool, is_other: bool) -> Result<(), ParseError> {
        match (is_page, &self.listen, &self.allow_host[..]) {
            (false, Some(_), _) => Err(ParseError::new(
                "--listen is an option of the page: add --page",
            )),
            (false, None, [_, ..]) if !is_other => Err(ParseError::new(
                "--allow-host is an option of the page: add --page",
            )),
            _ => Ok(()),
        }
    }
}

/// The speed of a simulation, as a multiple of real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// This many times as fast as real time.
    Times(u32),
    /// As fast as the host can.
    Max,
}

impl Speed {
    /// The virtual time, in nanoseconds, that a simulation may reach after this much real time; `None` if
    /// nothing bounds it.
    pub fn at(self, elapsed: Duration) -> Option<u64> {
        let times = match self {
            Speed::Times(times) => u128::from(times),
            Speed::Max => return None,
        };
        Some(u64::try_from(elapsed.as_nanos() * times).unwrap_or(u64::MAX))
    }
}

/// Parses `10`, or `max`.
pub fn parse_speed(words: &str) -> Result<Speed, ParseError> {
    match words.parse() {
        Ok(times @ 1..=1_000_000) => Ok(Speed::Times(times)),
        _ if words == "max" => Ok(Speed::Max),
        _ => Err(ParseError::new(format!(
            "'{words}' is no speed: give 1 for the wall clock's, 10 for ten times that, up to 1000000, or max"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_factor_or_max() {
        assert_eq!(parse_speed("60"), Ok(Speed::Times(60)));
        assert_eq!(parse_speed("max"), Ok(Speed::Max));
        for words in ["0", "-1", "1.5", "10x", "", "1000001"] {
            assert!(parse_speed(words).is_err(), "{words}");
        }
        let second = Duration::from_secs(1);
        assert_eq!(Speed::Times(60).at(second), Some(60_000_000_000));
        assert_eq!(Speed::Max.at(second), None);
    }
}
