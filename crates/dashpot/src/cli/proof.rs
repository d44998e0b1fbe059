//! `proof`.

use clap::Args;

/// Prove what rules injected: requested, achieved, and how late
#[derive(Args, Debug)]
#[command(after_help = "\
Counted since a rule was armed. A rule is kept if the median lateness of what it
held is at most what dashpot promises, and at most 1 % was too slow to be held.

Examples: every rule; fail a CI step unless the rule 'slow' was kept
  dashpot proof
  dashpot proof slow --check")]
pub(crate) struct ProofArgs {
    /// Only this rule, or the rules of this disk
    #[arg(value_name = "ID|NAME|DISK")]
    pub(crate) target: Option<String>,
    /// Exit with 1, and the reason, unless every rule is kept
    #[arg(long)]
    pub(crate) check: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
