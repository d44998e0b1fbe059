//! `proof`: whether rules do what they say, each with what it asked for beside what was achieved.

use anyhow::{Context, bail, ensure};
use dashpot_engine::histogram::{Histogram, LAYOUT};

use super::output::{print, print_json};
use crate::api::types::{Disk, DiskLatency, LatencyHistogram, Rule, RuleLatency, Status};
use crate::cli::ProofArgs;
use crate::client::{Client, segment};
use crate::doctor::median_oversleep;
use crate::report::proof::{Facts, Proof, Verdict, WIDTH, wrapped};

pub(crate) fn proof(client: &Client, args: &ProofArgs) -> anyhow::Result<()> {
    let rules = chosen(client, args.target.as_deref())?;
    let status: Status = client.get("/v1/status?oldest=0")?;
    let oversleep_ns = status.shards.iter().any(|shard| !shard.spins);
    let oversleep_ns = oversleep_ns.then(median_oversleep).flatten();
    let proofs = rules
        .iter()
        .map(|rule| one(client, &status, rule, oversleep_ns))
        .collect::<anyhow::Result<Vec<Proof>>>()?;
    if args.json {
        print_json(&proofs)?;
    } else {
        print(&text(&proofs))?;
    }
    if args.check { check(&proofs) } else { Ok(()) }
}

/// The rules of an id, a name or a disk, or all. No rule has the name of a disk.
fn chosen(client: &Client, target: Option<&str>) -> anyhow::Result<Vec<Rule>> {
    let Some(target) = target else {
        return Ok(client.get("/v1/rules")?);
    };
    let disks: Vec<Disk> = client.get("/v1/disks?oldest=0")?;
    let is_disk = disks.iter().any(|disk| disk.name == target);
    let segment = segment(target);
    Ok(client.get(&if is_disk {
        format!("/v1/disks/{segment}/rules")
    } else {
        format!("/v1/rules/{segment}")
    })?)
}

fn one(
    client: &Client,
    status: &Status,
    rule: &Rule,
    oversleep_ns: Option<u64>,
) -> anyhow::Result<Proof> {
    let path = format!("/v1/rules/{}/latency", rule.id);
    let looks: Vec<RuleLatency> = client.get(&path)?;
    let look = looks.first().context("the daemon has forgotten the rule")?;
    ensure!(
        look.layout == LAYOUT,
        "the daemon's histograms are of layout {}, not {LAYOUT}: is it of another version?",
        look.layout
    );
    let mut disks = status.disks.iter();
    let disk = disks.find(|disk| disk.name == rule.disk);
    let mut shards = status.shards.iter();
    Ok(Proof::of(&Facts {
        rule: &look.rule,
        requested: &received(&look.requested)?,
        achieved: &received(&look.achieved)?,
        lateness: &received(&look.lateness)?,
        disk: disk.context("the daemon has forgotten the disk")?,
        outside_ns: outside(client, &rule.disk)?,
        shard: shards.find(|shard| shard.disks.contains(&rule.disk)),
        host: &status.host,
        oversleep_ns,
    }))
}

fn received(sent: &LatencyHistogram) -> anyhow::Result<Histogram> {
    sent.histogram().context("the daemon's histogram")
}

/// What the zios of a disk took on average beside the disk.
fn outside(client: &Client, disk: &str) -> anyhow::Result<u64> {
    let path = format!("/v1/disks/{}/latency", segment(disk));
    let latency: DiskLatency = client.get(&path)?;
    let ops = latency.ops.iter();
    let (total, disk, count) = ops.fold((0, 0, 0), |(total, disk, count), op| {
        let (more, of_disk) = (op.total.sum_ns.0, op.disk.sum_ns.0);
        (
            total + more,
            disk + of_disk,
            count + u128::from(op.total.count),
        )
    });
    let mean = u128::saturating_sub(total, disk).checked_div(count);
    Ok(mean.map_or(0, |mean| u64::try_from(mean).unwrap_or(u64::MAX)))
}

fn text(proofs: &[Proof]) -> String {
    if proofs.is_empty() {
        return "no rule is armed: 'dashpot inject DISK -D 10ms:1' arms one\n".to_owned();
    }
    let each: Vec<String> = proofs.iter().map(Proof::to_string).collect();
    each.join("\n")
}

/// Fails unless every rule was kept, and names the first that was not.
fn check(proofs: &[Proof]) -> anyhow::Result<()> {
    if proofs.is_empty() {
        bail!("nothing is proven: no rule is armed");
    }
    let failed = proofs.iter().find(|proof| proof.verdict != Verdict::Kept);
    match failed {
        Some(proof) => {
            let why = format!("rule {} is {}: {}", proof.rule.id, proof.verdict, proof.why);
            bail!(wrapped(&why, WIDTH - "dashpot: ".len()))
        }
        None => Ok(()),
    }
}
