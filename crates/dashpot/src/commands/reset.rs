//! `reset`: returns to the lab's state.

use dashpot_api::Client;

use super::clear::listed;
use super::failed::check;
use super::inject::understood;
use super::output::{print, print_json};
use crate::cli::ResetArgs;

pub(crate) fn reset(client: &Client, args: &ResetArgs) -> anyhow::Result<()> {
    let reset = client.reset()?;
    if args.json {
        print_json(&reset)?;
        return check(&reset.failed);
    }
    let cleared = match reset.cleared.as_slice() {
        [] => "no rule was armed\n".to_owned(),
        ids => format!("cleared {}\n", listed(ids)),
    };
    let armed: String = reset.armed.iter().map(understood).collect();
    print(&format!("{cleared}every disk goes on\n{armed}"))?;
    check(&reset.failed)
}
