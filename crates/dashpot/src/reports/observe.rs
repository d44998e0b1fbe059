//! `observe`: shows the kernel's disks in a table for each interval, and serves their metrics to Prometheus.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use dashpot_api::kernel_recording_link;
use dashpot_cli::KeepArgs;
use dashpot_cli::reports::{DeviceArgs, ObserveArgs, OutputArgs, PeriodArgs};
use dashpot_commands::page::{KernelWatch, Page};
use dashpot_commands::record::Background;
use dashpot_commands::{PrivateDir, Scraper, say_ready};
use dashpot_daemon::metrics::{KernelMetrics, KernelTotals};
use dashpot_engine::Duration;
use dashpot_export::complain;
use dashpot_observe::{Layer, Seen};
use dashpot_report::observe::ObserveReport;
use dashpot_report::report::Report;
use dashpot_rules::{Address, ApiAddress, Listen, ParseError};
use dashpot_sources::{Recorded, Source, Target};

use super::asked::{Over, ReportRequest, needs_recording};

impl ReportRequest for ObserveArgs {
    fn report(&self, over: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        self.page_at.check(self.page, self.metrics.is_some())?;
        needs_recording(over, &self.period)?;
        if matches!(over, Over::Recorded(_)) && Background::asked(&self.background).is_some() {
            return Err(ParseError::new(
                "--record cannot be used with the past of a recording: leave one out",
            ));
        }
        let (_, pace) = self.split()?;
        Ok(Box::new(ObserveReport {
            layer: match over {
                Over::Recorded(recorded) => recorded.layer(),
                Over::Live(_) | Over::Simulation => Layer::Disk,
            },
            schedule: over.schedule(&pace, SECOND),
            wide: self.wide,
        }))
    }

    fn devices(&self) -> Result<DeviceArgs, ParseError> {
        Ok(DeviceArgs::named(self.split()?.0))
    }

    fn period(&self) -> Option<&PeriodArgs> {
        Some(&self.period)
    }

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    /// If a recording has both a daemon's disks and the kernel's, `observe` is about the kernel's.
    fn layers(&self, live: &[Layer], recorded: &Recorded) -> Vec<Layer> {
        if recorded.layers().contains(&Layer::Kernel) {
            vec![Layer::Kernel]
        } else {
            live.to_vec()
        }
    }

    /// `observe` watches the kernel's disks, and never a daemon's.
    fn target(&self, _: Option<&ApiAddress>) -> anyhow::Result<Target> {
        let device = DeviceArgs {
            kernel: true,
            ..self.devices()?
        };
        Target::find(None, &device)
    }

    fn watch<'a>(
        &self,
        target: &'a Target,
        report: &dyn Report,
    ) -> anyhow::Result<Box<dyn Source + 'a>> {
        let totals = Arc::new(Mutex::new(KernelTotals::default()));
        let mut private = None;
        // Begin to listen before the watch begins, so that the user learns at once if the address is in use.
        let scraper = match &self.metrics {
            Some(listen) => Some(scraper(listen, self, &totals, &mut private)?),
            None => None,
        };
        let recording = match Background::asked(&self.background) {
            Some((root, kept)) => Some(record(self, root, kept)?),
            None => None,
        };
        let page = if self.page { Some(page(self)?) } else { None };
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
}

/// The page, and the watch that feeds it.
fn page(args: &ObserveArgs) -> anyhow::Result<(Page, KernelWatch)> {
    let (watch, memory) = KernelWatch::start(args.target(None)?)?;
    let page = Page::start(&args.page_at, memory)?;
    complain(format_args!("page  {}", page.url));
    Ok((page, watch))
}

/// The recording of the same I/Os.
fn record(args: &ObserveArgs, root: &Path, kept: &KeepArgs) -> anyhow::Result<Background> {
    let args = args.clone();
    let find = move || args.target(None);
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

/// The default interval for live disks.
const SECOND: Duration = Duration::from_secs(1);

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
