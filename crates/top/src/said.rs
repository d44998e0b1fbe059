//! The lines that tell the user the results of requests, in the same words for every source.

use dashpot_api::Rule;
use dashpot_text::rule::understood;

/// The rules as the source has parsed them.
pub(crate) fn armed(rules: &[Rule]) -> String {
    let each: Vec<String> = rules.iter().map(understood).collect();
    each.concat().trim_end().replace('\n', "; ")
}

pub(crate) fn suspended(disk: &str, in_flight: u32) -> String {
    format!("{disk} is suspended; {in_flight} zios are in flight")
}

pub(crate) fn resumed(disk: &str, waiting: u32) -> String {
    format!("{disk} goes on; {waiting} zios had waited")
}
