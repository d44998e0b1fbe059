//! `reset`: returns to the lab's state.

use crate::failed::check_failures;
use dashpot_api::Client;
use dashpot_cli::ResetArgs;
use dashpot_output::{print, print_json};
use dashpot_text::rule::{listed, understood};

/// Returns the disks to the state of their lab.
pub fn reset(client: &Client, args: &ResetArgs) -> anyhow::Result<()> {
    let reset = client.reset()?;
    if args.json {
        print_json(&reset)?;
        return check_failures(&reset.failed);
    }
    let cleared = match reset.cleared.as_slice() {
        [] => "no rule was armed\n".to_owned(),
        ids => format!("cleared {}\n", listed(ids)),
    };
    let armed: String = reset.armed.iter().map(understood).collect();
    print(&format!("{cleared}every disk goes on\n{armed}"))?;
    check_failures(&reset.failed)
}
