//! The options of `proof`.

use clap::Args;
use dashpot_rules::{Allowance, parse_allowance};

use crate::reports::HtmlArgs;

/// Prove what rules injected: requested, achieved, and how far off
#[derive(Args, Debug)]
#[command(after_help = "\
Figures count from the arming of a rule. The daemon remembers a cleared rule
until 'reset'. A rule is kept if it held its zios as asked, and if their latency
is off by at most the tolerances. Each tolerance is a share of the delay, a
time, or the larger of both. 'As asked' means that rules of other groups decided
at most 10 % of the zios (so a rule such as -f 5% is allowed), and that the
store was slower than the rule for at most 1 %.

With --check the exit status is 0 if all rules are kept, 3 if one is not or has
held too few, and 4 if this host does not allow a verdict: it kept dashpot from
running, and without the I/Os that were due then the rule would have been kept.

Examples: every rule; fail a CI step unless the rule 'slow' was kept
  dashpot proof
  dashpot proof slow --check --within 10%,1ms")]
pub struct ProofArgs {
    /// Only this rule, or the rules of this disk
    #[arg(value_name = "ID|NAME|DISK")]
    pub target: Option<String>,
    /// Unless every rule is kept, print the reason, and exit with 3 or 4
    #[arg(long)]
    pub check: bool,
    /// Allow at most this error of the median [5%,500us]
    #[arg(long, value_name = "PCT,TIME", value_parser = parse_allowance)]
    pub within: Option<Allowance>,
    /// Allow at most this error of p99 [20%,40ms]
    #[arg(long, value_name = "PCT,TIME", value_parser = parse_allowance)]
    pub tail: Option<Allowance>,
    /// Judge rules that have held at least this many I/Os [30]
    #[arg(long, value_name = "N")]
    pub min: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The HTML file.
    #[command(flatten)]
    pub file: HtmlArgs,
}
