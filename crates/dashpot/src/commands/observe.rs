//! `observe`: the kernel's disks, in a table for each interval and for Prometheus.

use std::sync::{Arc, Mutex, PoisonError};

use dashpot_daemon::metrics::{KernelSource, KernelTotals};
use dashpot_engine::Duration;
use dashpot_export::complain;
use dashpot_observe::{DeviceInterval, Question};
use dashpot_rules::{Address, Listen};

use super::lengths::Lengths;
use super::output::{print, print_json_line, usage};
use super::private::PrivateDir;
use super::scraper::Scraper;
use super::screen::room;
use super::vanished::warn_of_vanished;
use super::wall::unix_ns_before;
use crate::cli::{DeviceArgs, ObserveArgs, Pace};
use crate::sources::{Target, Watch};
use dashpot_report::observe::{Line, Observation};

pub(crate) fn observe(args: &ObserveArgs) -> anyhow::Result<()> {
    let (devices, Pace { interval, count }) = args.split().unwrap_or_else(|error| usage(&error));
    let device = DeviceArgs {
        devices: devices.to_vec(),
        kernel: true,
    };
    let target = Target::find(None, &device)?;
    let interval = interval.unwrap_or(Duration::MAX);
    let totals = Arc::new(Mutex::new(KernelTotals::default()));
    let mut private = None;
    // Before the watch begins: a place that is taken is to be said at once.
    let _scraper = match &args.metrics {
        Some(listen) => Some(scraper(listen, args, &totals, &mut private)?),
        None => None,
    };
    let mut lengths = Lengths::default();
    let mut watch = Watch::new(&target, &Question::default(), interval, count)?;
    while let Some(intervals) = watch.next()? {
        let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.add(&intervals, watch.lost());
        drop(totals);
        show(&intervals, &watch, &mut lengths, args)?;
        warn_of_vanished(watch.vanished());
    }
    lengths.sum_up();
    Ok(())
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

fn show(
    intervals: &[DeviceInterval],
    watch: &Watch<'_>,
    lengths: &mut Lengths,
    args: &ObserveArgs,
) -> anyhow::Result<()> {
    let length = watch.length(intervals);
    let observation = Observation {
        at_ns: unix_ns_before(watch.age()),
        length,
        devices: intervals.iter().map(Line::of).collect(),
        lost: watch.lost(),
        unmatched: watch.unmatched(),
    };
    if args.json {
        print_json_line(&observation)?;
        lengths.warn(&length);
        return Ok(());
    }
    lengths.count(&length);
    print(&observation.text(room(args.wide), args.wide))
}
