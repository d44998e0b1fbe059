//! `reset`: back to what the lab says.

use super::clear::listed;
use super::failed::check;
use super::inject::understood;
use super::output::print;
use crate::api::types::RulesReset;
use crate::client::Client;

pub(crate) fn reset(client: &Client) -> anyhow::Result<()> {
    let reset: RulesReset = client.post("/v1/reset", &())?;
    let cleared = match reset.cleared.as_slice() {
        [] => String::new(),
        ids => format!("cleared {}\n", listed(ids)),
    };
    let armed: String = reset.armed.iter().map(understood).collect();
    print(&format!("{cleared}{armed}"))?;
    check(&reset.failed)
}
