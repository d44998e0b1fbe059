//! `clear`: removes rules by id, by name, by disk, or all.

use crate::failed::check_failures;
use dashpot_api::{Cleared, Client, ClientError};
use dashpot_cli::ClearArgs;
use dashpot_output::{print, print_json};
use dashpot_text::rule::cleared as cleared_words;

/// Removes rules, and prints their ids.
pub fn clear(client: &Client, args: &ClearArgs) -> anyhow::Result<()> {
    let done = cleared(client, &args.target, args.release)?;
    if args.json {
        print_json(&done)?;
        return check_failures(&done.failed);
    }
    print(&match done.cleared.as_slice() {
        [] if args.release => {
            "no rule was armed; the I/Os that cleared rules held are released\n".to_owned()
        }
        [] => "no rule was armed\n".to_owned(),
        ids => cleared_words(ids, done.held, done.hung) + "\n",
    })?;
    check_failures(&done.failed)
}

/// Clears the rules that `target` names. The target cannot be ambiguous, because no rule has the name of a
/// disk.
fn cleared(client: &Client, target: &str, release: bool) -> Result<Cleared, ClientError> {
    if target == "all" {
        return client.clear_all(release);
    }
    if client.has_disk(target)? {
        client.clear_disk(target, release)
    } else {
        client.clear(target, release)
    }
}
