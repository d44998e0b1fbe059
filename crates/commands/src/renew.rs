//! `renew`: renews the leases of rules.

use dashpot_api::{Client, Renew};
use dashpot_cli::RenewArgs;
use dashpot_engine::Duration;
use dashpot_output::{print, print_json};
use dashpot_text::rule::leased;

/// Renews the leases of rules, and prints when these lapse now.
pub fn renew(client: &Client, args: &RenewArgs) -> anyhow::Result<()> {
    let lease_ns = args.lease.map(Duration::as_nanos);
    let mut rules = Vec::new();
    for target in &args.targets {
        rules.extend(client.renew(target, &Renew { lease_ns })?);
    }
    if args.json {
        return print_json(&rules);
    }
    let lines = rules.iter().filter_map(leased);
    print(&lines.map(|line| line + "\n").collect::<String>())
}
