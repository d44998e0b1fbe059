//! Runs a report: takes the intervals of a source, and prints the pages.

use std::io::Write;

use anyhow::Context;
use dashpot_observe::{Past, Seen};
use dashpot_output::screen::surface_of_file;
use dashpot_output::{Draft, HtmlFile};
use dashpot_report::report::{Pages, Report, Tells};
use dashpot_sources::Source;
use dashpot_text::surface::Surface;

use super::notes::Notes;
use super::out::Out;

/// The files to which the report is also written.
#[derive(Default)]
pub(crate) struct Files {
    /// The file for the report's picture, if the report has one.
    pub(crate) svg: Option<Draft>,
    /// The file for the whole report.
    pub(crate) html: Option<HtmlFile>,
}

/// A running report.
pub(crate) struct Showing<O> {
    report: Box<dyn Report>,
    out: O,
    files: Files,
    beside: Notes,
    /// Whether an interval has been shown.
    has_begun: bool,
}

impl<O: Out> Showing<O> {
    /// Prepares to show a report. `out` and `files` take its pages.
    pub(crate) fn new(report: Box<dyn Report>, out: O, files: Files) -> Showing<O> {
        // Only a report as text can mention the length of an interval itself. For JSON and CSV, a message on
        // stderr mentions it.
        let tells = report.tells();
        let tells = Tells {
            length: tells.length && out.is_text(),
            ..tells
        };
        let past = report.question().past;
        let each = !past.is_some_and(|Past { each_second, .. }| each_second);
        Showing {
            beside: Notes::new(tells, out.whose(), each),
            report,
            out,
            files,
            has_begun: false,
        }
    }

    /// Shows all intervals of a source.
    pub(crate) fn run(mut self, source: &mut dyn Source) -> anyhow::Result<()> {
        self.open()?;
        let watched = self.take_all(source);
        // If the daemon ended or a device vanished, the report still shows the earlier intervals.
        if watched.is_ok() || self.has_begun {
            self.close(watched.is_ok())?;
        }
        watched
    }

    /// Shows the pages before the first interval.
    pub(crate) fn open(&mut self) -> anyhow::Result<()> {
        let pages = self.report.open(&self.surface());
        self.put(&pages)
    }

    fn surface(&self) -> Surface {
        match self.files.html {
            Some(_) => surface_of_file(),
            None => self.out.surface(),
        }
    }

    fn put(&mut self, pages: &Pages) -> anyhow::Result<()> {
        if let Some(html) = &mut self.files.html {
            add(html, pages)?;
        }
        self.out.put(pages)
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
    pub(crate) fn take(&mut self, seen: &Seen) -> anyhow::Result<()> {
        let pages = self.report.take(seen, &self.surface());
        if let Some(html) = &mut self.files.html {
            html.count_lost(seen.lost);
        }
        self.put(&pages)?;
        self.beside.say(seen, &self.report.not_in_sums(seen));
        self.has_begun = true;
        Ok(())
    }

    /// Shows the pages after the last interval, and the picture. `is_whole` is false if the source failed
    /// before its end.
    pub(crate) fn close(&mut self, is_whole: bool) -> anyhow::Result<()> {
        let svg = self.report.svg();
        if let (Some(draft), Some(svg)) = (self.files.svg.take(), &svg) {
            write_svg(draft, svg)?;
        }
        let pages = self.report.close(is_whole, &self.surface());
        self.put(&pages)?;
        match self.files.html.take() {
            Some(html) => html.publish(svg, is_whole, self.beside.notes()),
            None => Ok(()),
        }
    }

    /// Returns the place that has taken the report's pages.
    pub(crate) fn into_out(self) -> O {
        self.out
    }
}

/// Adds pages to the HTML file.
fn add(html: &mut HtmlFile, pages: &Pages) -> anyhow::Result<()> {
    for page in pages {
        if html.is_full() {
            html.leave_out();
            continue;
        }
        let mut text = page.to_string();
        if let Some(remark) = page.remark() {
            text.push_str(&remark);
            text.push('\n');
        }
        html.add(&text, page.json().map(serde_json::to_value).transpose()?);
    }
    Ok(())
}

/// Puts a picture into its file.
fn write_svg(mut draft: Draft, svg: &str) -> anyhow::Result<()> {
    draft.out.write_all(svg.as_bytes()).context("--svg")?;
    draft.publish()
}
