//! Runs a report over a source, and prints its pages to standard output.

use std::io::Write;

use anyhow::Context;
use dashpot_export::complain;
use dashpot_observe::{Past, Seen};
use dashpot_report::report::{Page, Pages, Report, Tells};
use dashpot_rules::ApiAddress;
use serde::Serialize;

use super::beside::Beside;
use super::draft::Draft;
use super::output::{print, print_drawn, print_json, print_json_line, usage};
use super::screen;
use crate::cli::DeviceArgs;
use crate::sources::{Source, Target};

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    /// A line of JSON for each page.
    JsonLines,
    /// Indented JSON, for a report of one interval.
    Json,
}

impl Format {
    /// The format of a report with several intervals.
    pub(super) fn lines(json: bool) -> Format {
        match json {
            true => Format::JsonLines,
            false => Format::Text,
        }
    }

    /// The format of a report with one interval.
    pub(super) fn document(json: bool) -> Format {
        match json {
            true => Format::Json,
            false => Format::Text,
        }
    }
}

/// Runs a report over disks of a daemon or of the kernel.
pub(super) fn show(
    api: Option<&ApiAddress>,
    device: &DeviceArgs,
    mut report: impl Report,
    format: Format,
) -> anyhow::Result<()> {
    let target = Target::find(api, device)?;
    show_over(&target, &mut report, format, None)
}

/// Runs a report over disks that have been found. If it can be a picture, writes that to a file,
/// too.
pub(super) fn show_over(
    target: &Target,
    report: &mut dyn Report,
    format: Format,
    svg: Option<Draft>,
) -> anyhow::Result<()> {
    let question = report.question();
    target
        .check(&question)
        .unwrap_or_else(|error| usage(&error));
    let mut source = target.watch(&question, &report.schedule())?;
    Showing::new(report, format, svg).run(&mut *source)
}

/// A running report.
pub(super) struct Showing<'a> {
    report: &'a mut dyn Report,
    format: Format,
    svg: Option<Draft>,
    beside: Beside,
    /// Whether an interval has been shown.
    has_begun: bool,
}

impl<'a> Showing<'a> {
    pub(super) fn new(
        report: &'a mut dyn Report,
        format: Format,
        svg: Option<Draft>,
    ) -> Showing<'a> {
        // JSON has fields for what is missing, but a user at the terminal would not see them.
        let tells = report.tells();
        let tells = Tells {
            length: tells.length && format == Format::Text,
            ..tells
        };
        let past = report.question().past;
        let each = !past.is_some_and(|Past { each_second, .. }| each_second);
        Showing {
            report,
            format,
            svg,
            beside: Beside::new(tells, each),
            has_begun: false,
        }
    }

    /// Shows all intervals of a source.
    pub(super) fn run(mut self, source: &mut dyn Source) -> anyhow::Result<()> {
        let pages = self.report.open(&self.surface());
        self.print(&pages)?;
        let watched = self.take_all(source);
        // Intervals from before a daemon's end or a device's disappearance are shown, too.
        if watched.is_ok() || self.has_begun {
            self.finish(watched.is_ok())?;
        }
        watched
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

    fn take(&mut self, seen: &Seen) -> anyhow::Result<()> {
        let pages = self.report.take(seen, &self.surface());
        self.print(&pages)?;
        self.beside.say(seen);
        self.has_begun = true;
        Ok(())
    }

    fn finish(&mut self, is_whole: bool) -> anyhow::Result<()> {
        if let (Some(draft), Some(svg)) = (self.svg.take(), self.report.svg()) {
            write_svg(draft, &svg)?;
        }
        let pages = self.report.close(is_whole, &self.surface());
        self.print(&pages)
    }

    /// The present capabilities of standard output. Its size may have changed.
    fn surface(&self) -> dashpot_report::surface::Surface {
        screen::surface(self.format == Format::Text)
    }

    fn print(&self, pages: &Pages) -> anyhow::Result<()> {
        match self.format {
            Format::Text => pages.iter().try_for_each(|page| print_text(&**page)),
            Format::JsonLines => values(pages).try_for_each(|value| print_json_line(&value)),
            Format::Json => match &values(pages).collect::<Vec<_>>()[..] {
                [] => Ok(()),
                [one] => print_json(one),
                several => print_json(&several),
            },
        }
    }
}

fn values(pages: &Pages) -> impl Iterator<Item = impl Serialize + '_> {
    pages.iter().filter_map(|page| page.json())
}

fn print_text(page: &dyn Page) -> anyhow::Result<()> {
    let text = page.to_string();
    match page.is_picture() {
        true => print_drawn(&text)?,
        false => print(&text)?,
    }
    if let Some(remark) = page.remark() {
        complain(format_args!("{remark}"));
    }
    Ok(())
}

/// Puts a picture into its file.
pub(super) fn write_svg(mut draft: Draft, svg: &str) -> anyhow::Result<()> {
    draft.out.write_all(svg.as_bytes()).context("--svg")?;
    draft.publish()
}
