//! `clear`: removes rules by id, by name, by disk, or all.

use dashpot_api::{Cleared, Client, ClientError};

use super::failed::check;
use super::output::{print, print_json};
use crate::cli::ClearArgs;

pub(crate) fn clear(client: &Client, args: &ClearArgs) -> anyhow::Result<()> {
    let done = cleared(client, &args.target, args.release)?;
    if args.json {
        print_json(&done)?;
        return check(&done.failed);
    }
    print(&match done.cleared.as_slice() {
        [] if args.release => {
            "no rule was armed; the I/Os that cleared rules held are released\n".to_owned()
        }
        [] => "no rule was armed\n".to_owned(),
        ids => format!("cleared {}\n", listed(ids)),
    })?;
    check(&done.failed)
}

/// How a message names some rules: `rule 3`, `rules 1, 2`.
pub(crate) fn listed(ids: &[u32]) -> String {
    let numbers: Vec<String> = ids.iter().map(u32::to_string).collect();
    let noun = if ids.len() == 1 { "rule" } else { "rules" };
    format!("{noun} {}", numbers.join(", "))
}

/// Clears the rules that `target` names. The target cannot be ambiguous, because no rule has the name of a
/// disk.
fn cleared(client: &Client, target: &str, release: bool) -> Result<Cleared, ClientError> {
    if target == "all" {
        return client.clear_all(release);
    }
    match client.has_disk(target)? {
        true => client.clear_disk(target, release),
        false => client.clear(target, release),
    }
}
