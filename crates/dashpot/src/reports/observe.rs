//! `observe`: shows the kernel's disks in a table for each interval, and serves their metrics to Prometheus.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use dashpot_api::kernel_recording_link;
use dashpot_cli::KeepArgs;
use dashpot_cli::reports::DeviceArgs;
use dashpot_commands::page::{KernelWatch, Page};
use dashpot_commands::record::Background;
use dashpot_commands::{PrivateDir, Scraper, say_ready};
use dashpot_daemon::metrics::{KernelMetrics, KernelTotals};
use dashpot_export::complain;
use dashpot_observe::Seen;
use dashpot_report::asked::ReportRequest;
use dashpot_report::observe::ObserveArgs;
use dashpot_report::report::Report;
use dashpot_rules::{Address, Listen};
use dashpot_sources::{Source, Target};

/// `observe` watches the kernel's disks, and never a daemon's.
pub(super) fn target(devices: DeviceArgs) -> anyhow::Result<Target> {
    let kernels = DeviceArgs {
        kernel: true,
        ..devices
    };
    Target::find(None, &kernels)
}

/// Watches the disks, and also starts what the options ask for.
pub(super) fn watch<'a>(
    args: &ObserveArgs,
    target: &'a Target,
    report: &dyn Report,
) -> anyhow::Result<Box<dyn Source + 'a>> {
    let totals = Arc::new(Mutex::new(KernelTotals::default()));
    let mut private = None;
    // Begin to listen before the watch begins, so that the user learns at once if the address is in use.
    let scraper = match &args.metrics {
        Some(listen) => Some(scraper(listen, args, &totals, &mut private)?),
        None => None,
    };
    let recording = match Background::asked(&args.background) {
        Some((root, kept)) => Some(record(args, root, kept)?),
        None => None,
    };
    let page = if args.page { Some(page(args)?) } else { None };
    let source = target.watch(&report.question(), &report.schedule())?;
    say_ready();
    Ok(Box::new(Counted {
        source,
        totals,
        _scraper: scraper,
        _private: private,
        _recording: recording,
        _page: page,
    }))
}

/// The page, and the watch that feeds it.
fn page(args: &ObserveArgs) -> anyhow::Result<(Page, KernelWatch)> {
    let (watch, memory) = KernelWatch::start(target(args.shared().devices?)?)?;
    let page = Page::start(&args.page_at, memory)?;
    complain(format_args!("page  {}", page.url));
    Ok((page, watch))
}

/// The recording of the same I/Os.
fn record(args: &ObserveArgs, root: &Path, kept: &KeepArgs) -> anyhow::Result<Background> {
    let args = args.clone();
    let find = move || target(args.shared().devices?);
    Background::start(root, kept, kernel_recording_link(), find)
}

/// A source whose intervals are also added to the metrics.
struct Counted<'a> {
    source: Box<dyn Source + 'a>,
    totals: Arc<Mutex<KernelTotals>>,
    _scraper: Option<Scraper>,
    _private: Option<PrivateDir>,
    _recording: Option<Background>,
    _page: Option<(Page, KernelWatch)>,
}

impl Source for Counted<'_> {
    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        let seen = self.source.next()?;
        if let Some(seen) = &seen {
            let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
            totals.add(&seen.disks, &seen.gone, seen.lost);
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
    let scraper = Scraper::start(
        &address,
        &args.page_at.allow_host,
        KernelMetrics(Arc::clone(totals)),
    )?;
    complain(format_args!("metrics  {}", scraper.url));
    Ok(scraper)
}
