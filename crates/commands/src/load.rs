//! `load`: sends I/O to a disk over NBD, and reports throughput and latencies.

use std::sync::atomic::Ordering;

use anyhow::bail;
use dashpot_cli::LoadArgs;
use dashpot_engine::{Op, Ratio};
use dashpot_load::{DRAIN_MAX, LoadConfig, LoadReport, OpReport, Pace, run};
use dashpot_observe::{Percentiles, is_enough};
use dashpot_output::screen::room;
use dashpot_output::{print, print_json, progress_bar, usage};
use dashpot_rules::{ParseError, thousands};
use dashpot_text::table::{Column, table_within, time_or_dash};
use hdrhistogram::Histogram;
use hdrhistogram::iterators::IterationValue;
use serde::Serialize;

use crate::signals::stop_on_signals;

/// Runs the load until its time is over, or until a signal.
pub fn load(args: &LoadArgs) -> anyhow::Result<()> {
    let config = config(args)?;
    let interrupted = stop_on_signals()?;
    let progress = progress_bar();
    let report = run(&config, |report| {
        progress.set_message(progress_line(report));
        interrupted.load(Ordering::Relaxed)
    });
    progress.finish_and_clear();
    let report = report?;
    if args.json {
        print_json(&Summary::of(&report))?;
    } else {
        print(&text(&report))?;
    }
    verdict(report)
}

/// Fails if the load ended early, requests were not answered, reads gave wrong data, or all requests of an
/// operation failed.
fn verdict(report: LoadReport) -> anyhow::Result<()> {
    let wrong = report.ops.iter().map(|op| op.wrong).sum::<u64>();
    if let Some(broken) = report.broken {
        return Err(anyhow::Error::new(broken).context("the load ended early"));
    }
    if report.unanswered > 0 {
        let unanswered = match report.unanswered {
            1 => "1 request was".to_owned(),
            many => format!("{} requests were", thousands(many.into())),
        };
        bail!(
            "{unanswered} not answered during the load or in the {DRAIN_MAX} after it, and no \
             latency contains them: 'dashpot list' shows the rules that held them; \
             'dashpot status --inflight' shows where requests wait, while a load runs"
        );
    }
    if wrong > 0 {
        bail!(
            "--verify: {wrong} reads gave neither zeroes nor what this load wrote: either the disk lost \
             or mixed up data, or it held other data before"
        );
    }
    let all_failed = |op: &OpReport| op.errors > 0 && op.errors == op.latency.len();
    match asked(&report).find(|(_, op)| all_failed(op)) {
        Some((op, failed)) => bail!(
            "all {} requests to {} were answered with an error: 'dashpot list' has the \
             rules, 'dashpot status' says what is read-only",
            failed.errors,
            op.name()
        ),
        None => Ok(()),
    }
}

fn config(args: &LoadArgs) -> anyhow::Result<LoadConfig> {
    let burst = args.burst.unwrap_or((1, 1));
    let pace = match (args.rate, args.burst) {
        (Some(rate), _) => Pace::Open { rate, burst },
        (None, Some(burst)) => Pace::ClosedBursts { burst },
        (None, None) => Pace::Closed,
    };
    // By default, a whole burst can be in flight at once, and in an open loop no request has to wait for the
    // reply to another.
    let depth = args.depth.unwrap_or(match pace {
        Pace::Closed => 1,
        Pace::ClosedBursts { burst } => burst.1,
        Pace::Open { .. } => OPEN_DEPTH,
    });
    let (writes_ppm, flushes_ppm) = (ppm(args.write), ppm(args.flush));
    if writes_ppm + flushes_ppm > 1_000_000 {
        usage(&ParseError::new(
            "--write and --flush together are above 100%: lower one of them",
        ));
    }
    Ok(LoadConfig {
        address: args.uri.address.clone(),
        export: args.uri.export.clone(),
        connections: args.connections,
        depth,
        block: args.block,
        writes_ppm,
        flushes_ppm,
        sequential: args.sequential,
        pace,
        lasts: args.time,
        busy: args.busy,
        verify: args.verify,
        seed: args.seed,
    })
}

fn ppm(share: Option<Ratio>) -> u32 {
    let ppm =
        |share: Ratio| u128::from(share.numerator()) * 1_000_000 / u128::from(share.denominator());
    share.map_or(0, |share| ppm(share) as u32)
}

fn progress_line(report: &LoadReport) -> String {
    let n: u64 = report.ops.iter().map(|op| op.latency.len()).sum();
    let busiest = report.ops.iter().max_by_key(|op| op.latency.len());
    let p50 = busiest.map(|op| op.latency.value_at_quantile(0.5));
    format!(
        "{n} requests, {:.0}/s, p50 {}",
        per_second(n, report),
        time_or_dash(p50)
    )
}

fn per_second(n: u64, report: &LoadReport) -> f64 {
    n as f64 * 1e9 / report.elapsed.as_nanos().max(1) as f64
}

/// The operations that the load issued, with their figures.
fn asked(report: &LoadReport) -> impl Iterator<Item = (Op, &OpReport)> {
    let ops = [Op::Read, Op::Write, Op::Flush].into_iter();
    let of = |op: Op| report.op(op).map(|report| (op, report));
    ops.filter_map(of).filter(|(_, op)| !op.latency.is_empty())
}

fn text(report: &LoadReport) -> String {
    let columns = [
        Column::Text("op"),
        Column::Figure("n"),
        Column::Figure("iops"),
        Column::Figure("MiB/s"),
        Column::Figure("errors"),
        Column::Figure("min"),
        Column::Figure("p50"),
        Column::Figure("p90"),
        Column::Figure("p99"),
        Column::Figure("p99.9"),
        Column::Figure("max"),
    ];
    let row = |(op, of): (Op, &OpReport)| {
        let latency = percentiles(&of.latency);
        let mut row = vec![
            op.name().to_owned(),
            latency.n.to_string(),
            format!("{:.0}", per_second(latency.n, report)),
            format!("{:.1}", per_second(of.bytes, report) / f64::from(1 << 20)),
            of.errors.to_string(),
        ];
        let of_n = [
            latency.p50_ns,
            latency.p90_ns,
            latency.p99_ns,
            latency.p99_9_ns,
        ];
        row.push(time_or_dash(of.least.map(|least| least.as_nanos())));
        row.extend(of_n.map(time_or_dash));
        row.push(time_or_dash(latency.max_ns));
        row
    };
    table_within(room(false), &columns, asked(report).map(row))
}

/// JSON: `{"elapsed_ns": …, "unanswered": 0, "ops": [{"op": "read", "iops": …, "bytes_per_second": …,
/// "errors": 0, "wrong": 0, "min_ns": …, "mean_ns": …, "latency": {"n": …, "p50_ns": …, …}, "histogram":
/// [{"upto_ns": …, "count": …}, …]}]}`. A bucket counts the values above the `upto_ns` of the bucket before
/// it, up to its own `upto_ns`.
#[derive(Serialize)]
struct Summary {
    elapsed_ns: u64,
    unanswered: u32,
    ops: Vec<OpSummary>,
}

#[derive(Serialize)]
struct OpSummary {
    op: &'static str,
    iops: f64,
    bytes_per_second: f64,
    errors: u64,
    wrong: u64,
    min_ns: Option<u64>,
    mean_ns: u64,
    latency: Percentiles,
    histogram: Vec<Bucket>,
}

#[derive(Serialize)]
struct Bucket {
    upto_ns: u64,
    count: u64,
}

impl Summary {
    fn of(report: &LoadReport) -> Summary {
        let summary = |(op, of): (Op, &OpReport)| OpSummary {
            op: op.name(),
            iops: per_second(of.latency.len(), report),
            bytes_per_second: per_second(of.bytes, report),
            errors: of.errors,
            wrong: of.wrong,
            min_ns: of.least.map(|least| least.as_nanos()),
            mean_ns: of.latency.mean() as u64,
            latency: percentiles(&of.latency),
            histogram: of.latency.iter_recorded().map(bucket).collect(),
        };
        Summary {
            elapsed_ns: report.elapsed.as_nanos(),
            unanswered: report.unanswered,
            ops: asked(report).map(summary).collect(),
        }
    }
}

fn bucket(value: IterationValue<u64>) -> Bucket {
    Bucket {
        upto_ns: value.value_iterated_to(),
        count: value.count_since_last_iteration(),
    }
}

/// The percentiles, each with four significant digits. A percentile is missing if there were too few requests
/// for it.
fn percentiles(latency: &Histogram<u64>) -> Percentiles {
    let at = |ppm: u32| {
        let quantile = f64::from(ppm) / 1e6;
        is_enough(latency.len(), ppm).then(|| latency.value_at_quantile(quantile))
    };
    Percentiles {
        n: latency.len(),
        p50_ns: at(500_000),
        p90_ns: at(900_000),
        p95_ns: at(950_000),
        p99_ns: at(990_000),
        p99_9_ns: at(999_000),
        max_ns: (!latency.is_empty()).then(|| latency.max()),
    }
}

/// The default depth of an open loop.
const OPEN_DEPTH: u32 = 100_000;
