//! Runs a report: it takes the intervals of a source, and prints the pages.

use std::io::Write;

use anyhow::Context;
use dashpot_observe::{Past, Seen};
use dashpot_report::report::{Report, Tells};

use super::beside::Beside;
use super::out::Out;
use crate::commands::draft::Draft;
use crate::sources::Source;

/// A running report.
pub(in crate::commands) struct Showing<O> {
    report: Box<dyn Report>,
    out: O,
    svg: Option<Draft>,
    beside: Beside,
    /// Whether an interval has been shown.
    has_begun: bool,
}

impl<O: Out> Showing<O> {
    /// A report, and the place for its pages. If it can be a picture, the picture goes to a file, too.
    pub(in crate::commands) fn new(
        report: Box<dyn Report>,
        out: O,
        svg: Option<Draft>,
    ) -> Showing<O> {
        // JSON has fields for missing figures, but a user at the terminal would not see them.
        let tells = report.tells();
        let tells = Tells {
            length: tells.length && out.is_text(),
            ..tells
        };
        let past = report.question().past;
        let each = !past.is_some_and(|Past { each_second, .. }| each_second);
        Showing {
            beside: Beside::new(tells, out.whose(), each),
            report,
            out,
            svg,
            has_begun: false,
        }
    }

    /// Shows all intervals of a source.
    pub(in crate::commands) fn run(mut self, source: &mut dyn Source) -> anyhow::Result<()> {
        self.open()?;
        let watched = self.take_all(source);
        // If the daemon ended or a device vanished, the report still shows the intervals before that.
        if watched.is_ok() || self.has_begun {
            self.close(watched.is_ok())?;
        }
        watched
    }

    /// Shows the pages before the first interval.
    pub(in crate::commands) fn open(&mut self) -> anyhow::Result<()> {
        let pages = self.report.open(&self.out.surface());
        self.out.put(&pages)
    }

    fn take_all(&mut self, source: &mut dyn Source) -> anyhow::Result<()> {
        if self.report.schedule().since_start
            && let Some(seen) = source.since_start()?
        {
            self.take(&seen)?;
        }
        while let Some(seen) = source.next()? {
            self.take(&seen)?;
        }
        self.beside.sum_up();
        Ok(())
    }

    /// Shows an interval.
    pub(in crate::commands) fn take(&mut self, seen: &Seen) -> anyhow::Result<()> {
        let pages = self.report.take(seen, &self.out.surface());
        self.out.put(&pages)?;
        self.beside.say(seen);
        self.has_begun = true;
        Ok(())
    }

    /// Shows the pages after the last interval, and the picture. `is_whole` is false if the source failed
    /// before its end.
    pub(in crate::commands) fn close(&mut self, is_whole: bool) -> anyhow::Result<()> {
        if let (Some(draft), Some(svg)) = (self.svg.take(), self.report.svg()) {
            write_svg(draft, &svg)?;
        }
        let pages = self.report.close(is_whole, &self.out.surface());
        self.out.put(&pages)
    }

    /// The place of its pages, at the end.
    pub(in crate::commands) fn into_out(self) -> O {
        self.out
    }
}

/// Puts a picture into its file.
fn write_svg(mut draft: Draft, svg: &str) -> anyhow::Result<()> {
    draft.out.write_all(svg.as_bytes()).context("--svg")?;
    draft.publish()
}
