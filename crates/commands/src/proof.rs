//! `proof`: tells whether rules do what they promise, with their requested and achieved times.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use dashpot_api::{Client, DiskLatency, LatencyHistogram, Rule, Status};
use dashpot_cli::ProofArgs;
use dashpot_doctor::median_oversleep;
use dashpot_engine::histogram::{Histogram, LAYOUT};
use dashpot_export::{complain, complain_lines};
use dashpot_observe::{Percentiles, outlasts};
use dashpot_output::{HtmlFile, print, print_json, save};
use dashpot_text::proof::{Facts, Proof, Tolerance, Verdict};
use dashpot_text::rule;
use dashpot_text::table::{WIDTH, wrapped};

/// The exit status if a check has failed.
pub(crate) const NOT_KEPT: u8 = 3;
/// The exit status if the host makes a verdict impossible.
const CANNOT_TELL: u8 = 4;

/// Prints what rules promised and what they did. With `--check`, the exit code tells whether all promises were kept.
pub fn proof(client: &Client, args: &ProofArgs) -> anyhow::Result<ExitCode> {
    let file = HtmlFile::begin(args.file.html.as_deref(), "live disks")?;
    let rules = chosen(client, args.target.as_deref())?;
    let usual = Tolerance::default();
    let tolerance = Tolerance {
        within: args.within.unwrap_or(usual.within),
        tail: args.tail.unwrap_or(usual.tail),
        min: args.min.unwrap_or(usual.min),
    };
    let proofs = proofs(client, &rules, tolerance)?;
    if args.json {
        print_json(&proofs)?;
    } else {
        print(&text(&proofs))?;
    }
    let forgotten = client.rules_forgotten()?;
    if forgotten > 0 {
        complain(format_args!("dashpot: {}", rule::forgotten(forgotten)));
    }
    let exit = if args.check {
        check(&proofs)
    } else {
        ExitCode::SUCCESS
    };
    save(file, &text(&proofs), &proofs)?;
    Ok(exit)
}

/// The proofs of rules, armed or cleared.
pub(crate) fn proofs(
    client: &Client,
    rules: &[Rule],
    tolerance: Tolerance,
) -> anyhow::Result<Vec<Proof>> {
    let status = client.status(0)?;
    let sleeps = status.shards.iter().any(|shard| !shard.spins);
    let look = Shared {
        client,
        oversleep_ns: sleeps.then(median_oversleep).flatten(),
        armed: client.rules()?,
        status,
        tolerance,
    };
    rules.iter().map(|rule| look.proof(rule)).collect()
}

/// The rules with this id or name, the rules of this disk, or all rules. No rule has the name of a disk.
fn chosen(client: &Client, target: Option<&str>) -> anyhow::Result<Vec<Rule>> {
    let Some(target) = target else {
        return Ok(client.rules()?);
    };
    Ok(if client.has_disk(target)? {
        client.rules_of(target)?
    } else {
        client.rules_named(target)?
    })
}

/// The facts that the proofs of all rules share.
struct Shared<'a> {
    client: &'a Client,
    status: Status,
    armed: Vec<Rule>,
    oversleep_ns: Option<u64>,
    tolerance: Tolerance,
}

impl Shared<'_> {
    fn proof(&self, rule: &Rule) -> anyhow::Result<Proof> {
        // Ask for the disk before asking for the rule. Then a zio that came after the rule's last update is
        // never older than the time since that update.
        let latency = self.client.latency(&rule.disk, None)?;
        let looks = self.client.rule_latency(&rule.id.to_string())?;
        let look = looks.first().context("the daemon has forgotten the rule")?;
        ensure!(
            look.layout == LAYOUT,
            "the daemon's histograms are of layout {}, not {LAYOUT}: is it of another version?",
            look.layout
        );
        let holds = look.present();
        let mut disks = self.status.disks.iter();
        let disk = disks.find(|disk| disk.name == rule.disk);
        let mut shards = self.status.shards.iter();
        Ok(Proof::of(&Facts {
            rule: &look.rule,
            requested: &received(&holds.requested)?,
            achieved: &received(&holds.achieved)?,
            lateness: &received(&holds.lateness)?,
            stopped: &received(&holds.stopped)?,
            beaten_within_group: self.is_beaten_within_group(&look.rule),
            disk: disk.context("the daemon has forgotten the disk")?,
            outside_ns: outside(&latency),
            outlasting_ns: outlasting(&latency, &look.rule)?,
            shard: shards.find(|shard| shard.disks.contains(&rule.disk)),
            host: &self.status.host,
            oversleep_ns: self.oversleep_ns,
            tolerance: self.tolerance,
        }))
    }

    fn is_beaten_within_group(&self, rule: &Rule) -> bool {
        let winner = rule.present().beaten_by;
        let mut armed = self.armed.iter();
        armed.any(|other| Some(other.id) == winner && other.group == rule.group)
    }
}

fn received(sent: &LatencyHistogram) -> anyhow::Result<Histogram> {
    sent.histogram().context("the daemon's histogram")
}

/// The average time that a disk's zios spent outside the disk, not counting the time of suspensions.
fn outside(latency: &DiskLatency) -> u64 {
    let ops = latency.ops.iter();
    let (total, disk, count) = ops.fold((0, 0, 0), |(total, disk, count), op| {
        let (more, of_disk) = (op.total.sum_ns.0, op.disk.sum_ns.0);
        (
            total + more,
            disk + of_disk,
            count + u128::from(op.total.count),
        )
    });
    let inside = disk + u128::from(latency.suspended_ns);
    let mean = u128::saturating_sub(total, inside).checked_div(count);
    mean.map_or(0, |mean| u64::try_from(mean).unwrap_or(u64::MAX))
}

/// How long a rule has held the disk's oldest zio, if this time is longer than the latencies of nearly all
/// ended zios.
fn outlasting(latency: &DiskLatency, rule: &Rule) -> anyhow::Result<Option<u64>> {
    let oldest = latency.oldest.as_ref();
    // The rule's former settings hold a zio that came before the last update, so that zio tells nothing about
    // the present settings.
    let is_present = |age_ns| rule.since_update.is_none() || age_ns <= rule.age_ns;
    let oldest = oldest.filter(|zio| is_present(zio.age_ns));
    let Some(oldest) = oldest.filter(|zio| zio.rule == Some(rule.id)) else {
        return Ok(None);
    };
    let mut ended = Histogram::default();
    for op in &latency.ops {
        ended.merge(&received(&op.total)?);
    }
    let outlasts = outlasts(oldest.age_ns, &Percentiles::of(&ended));
    Ok(outlasts.then_some(oldest.age_ns))
}

fn text(proofs: &[Proof]) -> String {
    if proofs.is_empty() {
        return "no rule is armed: 'dashpot inject DISK -D 10ms:1' arms one\n".to_owned();
    }
    let each: Vec<String> = proofs.iter().map(Proof::to_string).collect();
    each.join("\n")
}

/// The exit status of a check. Names on stderr the rule that decides the status.
fn check(proofs: &[Proof]) -> ExitCode {
    if proofs.is_empty() {
        complain(format_args!("dashpot: nothing is proven: no rule is armed"));
        return ExitCode::from(NOT_KEPT);
    }
    let unclear = |proof: &&Proof| proof.verdict == Verdict::CannotTell;
    let failed = |proof: &&Proof| proof.verdict != Verdict::Kept && !unclear(proof);
    let first_failed = proofs.iter().find(failed);
    let Some(proof) = first_failed.or_else(|| proofs.iter().find(unclear)) else {
        return ExitCode::SUCCESS;
    };
    let why = format!("rule {}: {}: {}", proof.rule.id, proof.verdict, proof.why);
    let why = wrapped(&why, WIDTH - "dashpot: ".len());
    complain_lines(&format!("dashpot: {why}"));
    ExitCode::from(match first_failed {
        Some(_) => NOT_KEPT,
        None => CANNOT_TELL,
    })
}
