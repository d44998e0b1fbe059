//! `iolatency`: latencies of disks as a histogram, once per interval.

use dashpot_engine::Duration;
use dashpot_observe::{By, Layer, Past, Schedule};
use dashpot_report::iolatency::{Boundary, Breakdown, IolatencyReport, Style};
use dashpot_rules::ApiAddress;

use super::report::{Format, show};
use crate::cli::{IolatencyArgs, ReportBy};

pub(super) fn iolatency(api: Option<&ApiAddress>, args: &IolatencyArgs) -> anyhow::Result<()> {
    let report = IolatencyReport {
        endless: args.pace.count.is_none(),
        ..report(args, Layer::Disk)
    };
    show(api, &args.device, report, Format::lines(args.json))
}

/// The report over a source that ends by itself.
pub(super) fn report(args: &IolatencyArgs, layer: Layer) -> IolatencyReport {
    let interval = args.pace.interval.unwrap_or(INTERVAL);
    IolatencyReport {
        layer,
        schedule: Schedule::every(interval, args.pace.count),
        endless: false,
        past: args.last.map(|last| Past {
            last,
            each_second: false,
        }),
        queued: args.queued,
        types: args.iotype.clone(),
        by: args.by.map(breakdown),
        boundary: match args.compat {
            Some(_) => Boundary::AsOriginal,
            None => Boundary::AsLabelled,
        },
        style: match args.percentiles {
            true => Style::Percentiles,
            false => Style::Histograms,
        },
        timestamp: args.timestamp,
        wide: args.wide,
    }
}

fn breakdown(by: ReportBy) -> Breakdown {
    match by {
        ReportBy::Device => Breakdown::Device,
        ReportBy::Type => Breakdown::Type,
        ReportBy::Client => Breakdown::By(By::Client),
        ReportBy::Process => Breakdown::By(By::Process),
        ReportBy::Cgroup => Breakdown::By(By::Cgroup),
        ReportBy::Size => Breakdown::By(By::Size),
    }
}

/// The default of the original.
const INTERVAL: Duration = Duration::from_secs(1);
