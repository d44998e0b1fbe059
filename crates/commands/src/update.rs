//! `update`: replaces a rule.

use dashpot_api::{Client, Update};
use dashpot_cli::UpdateArgs;
use dashpot_output::{print, print_json, usage};
use dashpot_text::rule::understood;

/// Replaces a rule.
pub fn update(client: &Client, args: &UpdateArgs) -> anyhow::Result<()> {
    let rule = args.rule.replacement();
    let rule = rule.unwrap_or_else(|error| usage(&error)).asked();
    let rules = client.update(&args.target, &Update { rule })?;
    if args.json {
        return print_json(&rules);
    }
    print(&rules.iter().map(understood).collect::<String>())
}
