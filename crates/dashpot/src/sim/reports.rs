//! Reports over virtual time. Each report shows the same as over a daemon, except that no report covers the
//! time since the start, because there was no I/O before the first interval.

use std::cell::RefCell;

use anyhow::Context;
use dashpot_engine::Instant;
use dashpot_report::ReportKind;
use dashpot_report::asked::Over;
use dashpot_rules::ParseError;
use dashpot_sources::Source;
use serde_json::Value;

use super::ReportWords;
use super::source::SimSource;
use super::stage::Stage;
use crate::reports::{Format, Kept, Showing, files};

/// The output of a report.
pub(super) struct Output<'a> {
    pub(super) words: &'a str,
    pub(super) text: String,
    pub(super) json: Vec<Value>,
}

/// A running report.
struct Running<'w, 's, 'e> {
    words: &'w str,
    source: SimSource<'s, 'e>,
    showing: Showing<Kept>,
    is_over: bool,
}

/// Refuses report options that make no sense for a simulation.
pub(super) fn check(words: &ReportWords) -> Result<(), ParseError> {
    check_kind(&words.kind)
        .map_err(|why| ParseError::new(format!("--report '{}': {why}", words.words)))
}

fn check_kind(kind: &ReportKind) -> Result<(), ParseError> {
    let asked = kind.asked();
    let shared = asked.shared();
    let report = asked.filtered(&Over::Simulation)?;
    let why = match kind {
        _ if shared.devices?.kernel => "-k means the kernel's disks; a simulation has its own",
        _ if Format::of(asked) != Format::Text => {
            "a report takes no --json here: give it to 'dashpot sim' itself"
        }
        _ if report.question().past.is_some() => {
            "--last: a simulation has no past: leave this option out"
        }
        ReportKind::Observe(args) if args.metrics.is_some() => {
            "--metrics: Prometheus scrapes a daemon or 'dashpot observe', not a simulation"
        }
        _ => return Ok(()),
    };
    Err(ParseError::new(why))
}

/// Shows reports over a simulation, and runs it to its end.
pub(super) fn show_all<'w>(
    words: &'w [ReportWords],
    stage: &RefCell<Stage<'_>>,
) -> anyhow::Result<Vec<Output<'w>>> {
    let begin = |words: &'w ReportWords| {
        let refused = || format!("--report '{}'", words.words);
        Running::begin(words, stage).with_context(refused)
    };
    let mut reports = words
        .iter()
        .map(begin)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let going = |report: &&mut Running<'_, '_, '_>| !report.is_over;
    while let Some(next) = reports
        .iter_mut()
        .filter(going)
        .min_by_key(|report| report.source.due())
    {
        next.go_on()?;
    }
    stage.borrow_mut().run_until(Instant::NEVER)?;
    Ok(reports.into_iter().map(Running::into_output).collect())
}

impl<'w, 's, 'e> Running<'w, 's, 'e> {
    fn begin(
        words: &'w ReportWords,
        stage: &'s RefCell<Stage<'e>>,
    ) -> anyhow::Result<Running<'w, 's, 'e>> {
        let asked = words.kind.asked();
        let report = asked.filtered(&Over::Simulation)?;
        let names = asked.shared().devices?.devices;
        let source = SimSource::new(report.question(), &report.schedule(), names, stage)?;
        let mut showing = Showing::new(
            report,
            Kept::new(&words.words),
            files(asked, "a simulation")?,
        );
        showing.open()?;
        Ok(Running {
            words: &words.words,
            source,
            showing,
            is_over: false,
        })
    }

    /// Shows the next interval, or the end.
    fn go_on(&mut self) -> anyhow::Result<()> {
        match self.source.next()? {
            Some(seen) => self.showing.take(&seen),
            None => {
                self.is_over = true;
                self.showing.close(true)
            }
        }
    }

    fn into_output(self) -> Output<'w> {
        let Kept { text, json, .. } = self.showing.into_out();
        Output {
            words: self.words,
            text,
            json,
        }
    }
}
