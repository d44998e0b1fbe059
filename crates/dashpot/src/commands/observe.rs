//! `observe`: the kernel's disks, in a table for each interval and for Prometheus.

use std::sync::{Arc, Mutex, PoisonError};

use dashpot_daemon::metrics::{KernelSource, KernelTotals};
use dashpot_engine::Duration;
use dashpot_export::complain;
use dashpot_observe::{Schedule, Seen};
use dashpot_report::observe::ObserveReport;
use dashpot_report::report::Report;
use dashpot_rules::{Address, Listen, ParseError};

use super::output::usage;
use super::private::PrivateDir;
use super::report::{Format, Showing};
use super::scraper::Scraper;
use crate::cli::{DeviceArgs, ObserveArgs, Pace};
use crate::sources::{Source, Target};

pub(super) fn observe(args: &ObserveArgs) -> anyhow::Result<()> {
    let parsed = args
        .split()
        .and_then(|(devices, _)| Ok((devices, report(args)?)));
    let (devices, mut report) = parsed.unwrap_or_else(|error| usage(&error));
    let device = DeviceArgs {
        devices: devices.to_vec(),
        kernel: true,
    };
    let target = Target::find(None, &device)?;
    let totals = Arc::new(Mutex::new(KernelTotals::default()));
    let mut private = None;
    // This comes before the watch begins, so that an address in use is reported at once.
    let _scraper = match &args.metrics {
        Some(listen) => Some(scraper(listen, args, &totals, &mut private)?),
        None => None,
    };
    let source = target.watch(&report.question(), &report.schedule)?;
    let mut counted = Counted { source, totals };
    Showing::new(&mut report, Format::lines(args.json), None).run(&mut counted)
}

pub(super) fn report(args: &ObserveArgs) -> Result<ObserveReport, ParseError> {
    let (_, Pace { interval, count }) = args.split()?;
    Ok(ObserveReport {
        schedule: Schedule::every(interval.unwrap_or(Duration::MAX), count),
        wide: args.wide,
    })
}

/// A source whose intervals are also added to the metrics.
struct Counted<'a> {
    source: Box<dyn Source + 'a>,
    totals: Arc<Mutex<KernelTotals>>,
}

impl Source for Counted<'_> {
    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        let seen = self.source.next()?;
        if let Some(seen) = &seen {
            let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
            totals.add(&seen.disks, seen.lost);
        }
        Ok(seen)
    }
}

fn scraper(
    listen: &Listen,
    args: &ObserveArgs,
    totals: &Arc<Mutex<KernelTotals>>,
    private: &mut Option<PrivateDir>,
) -> anyhow::Result<Scraper> {
    let address = match listen {
        Listen::At(address) => address.clone(),
        Listen::Private => {
            let directory = private.insert(PrivateDir::new()?);
            Address::Unix(directory.path().join("metrics.sock"))
        }
    };
    let scraper = Scraper::start(&address, &args.allow_host, KernelSource(Arc::clone(totals)))?;
    complain(format_args!("metrics  {}", scraper.url));
    Ok(scraper)
}
