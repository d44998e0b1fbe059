//! Scenarios: rules in time. A scenario is a file of steps, which a daemon makes on its disks one after another,
//! and a simulation on its own.

mod builtin;
mod file;
mod labels;
mod schedule;
mod step;

use crate::ParseError;

pub use builtin::{BUILT_IN, BuiltIn};
pub use schedule::Schedule;
pub use step::{Action, Power, Scenario, Step, Survives, Which};

/// Parses the file of a scenario. An error begins with the number of its line.
pub fn parse_scenario(text: &str) -> Result<Scenario, ParseError> {
    let scenario = file::parse(text)?;
    labels::check(&scenario)?;
    Ok(scenario)
}

#[cfg(test)]
mod tests;
