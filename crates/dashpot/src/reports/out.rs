//! The places that take a report's pages: standard output and memory.

use dashpot_export::complain_lines;
use dashpot_output::screen::{self, surface_of_simulation};
use dashpot_output::{print, print_drawn, print_json};
use dashpot_report::asked::ReportRequest;
use dashpot_report::report::{Page, Pages, Rows};
use dashpot_text::surface::Surface;
use serde::Serialize;
use serde_json::Value;

use super::flat::{Flat, flat};

/// A place that takes a report's pages.
pub(crate) trait Out {
    /// The present capabilities of the place. The size of a terminal may change.
    fn surface(&self) -> Surface;

    /// Whether the pages are printed as text rather than as JSON or CSV.
    fn is_text(&self) -> bool;

    /// The report's name, if there may be other reports.
    fn whose(&self) -> Option<String> {
        None
    }

    /// Takes the next pages.
    fn put(&mut self, pages: &Pages) -> anyhow::Result<()>;
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    /// A line of JSON for each page.
    JsonLines,
    /// Comma-separated values: one line of column names, and then a line for each row of each page.
    Csv,
    /// Indented JSON, for a report of one interval.
    Json,
}

impl Format {
    /// The format that the user asks for.
    pub(crate) fn of(asked: &dyn ReportRequest) -> Format {
        let output = asked.shared().output;
        match (output.json, output.csv) {
            (true, _) if asked.is_one_document() => Format::Json,
            (true, _) => Format::JsonLines,
            (false, true) => Format::Csv,
            (false, false) => Format::Text,
        }
    }
}

/// Standard output, in a format.
pub(crate) struct Stdout {
    format: Format,
    /// The column names that were printed last, as CSV.
    head: Vec<String>,
}

/// Memory for the pages of a simulation's report. dashpot prints the reports of a simulation only when all of
/// them are complete.
pub(crate) struct Kept {
    words: String,
    surface: Surface,
    pub(crate) text: String,
    pub(crate) json: Vec<Value>,
}

impl Kept {
    /// Keeps the output of the report that `words` asked for.
    pub(crate) fn new(words: &str) -> Kept {
        Kept {
            words: words.to_owned(),
            surface: surface_of_simulation(),
            text: String::new(),
            json: Vec::new(),
        }
    }
}

impl Stdout {
    pub(crate) fn new(format: Format) -> Stdout {
        Stdout {
            format,
            head: Vec::new(),
        }
    }

    /// Prints the rows of a page. If a page has no rows of its own, prints the rows of its JSON.
    fn print_rows(&mut self, page: &dyn Page) -> anyhow::Result<()> {
        if let Some(Rows { head, rows }) = page.rows() {
            let head = head.into_iter().map(str::to_owned).collect();
            return self.print_table(Flat { head, rows });
        }
        let json = page.json().map(serde_json::to_value).transpose()?;
        let tables = json.iter().flat_map(flat);
        tables
            .into_iter()
            .try_for_each(|table| self.print_table(table))
    }

    /// Prints rows. If the last rows had other columns, first prints the names of the columns.
    fn print_table(&mut self, Flat { head, rows }: Flat) -> anyhow::Result<()> {
        let mut csv = csv::WriterBuilder::new()
            .flexible(true)
            .from_writer(Vec::new());
        if self.head != head {
            csv.write_record(&head)?;
            self.head = head;
        }
        for row in &rows {
            csv.write_record(row)?;
        }
        print(&String::from_utf8(csv.into_inner()?)?)
    }
}

impl Out for Stdout {
    fn surface(&self) -> Surface {
        screen::surface(self.is_text())
    }

    fn is_text(&self) -> bool {
        self.format == Format::Text
    }

    fn put(&mut self, pages: &Pages) -> anyhow::Result<()> {
        match self.format {
            Format::Text => print_texts(pages),
            Format::JsonLines => print_lines(pages),
            Format::Csv => {
                let mut pages = pages.iter();
                pages.try_for_each(|page| self.print_rows(&**page))
            }
            Format::Json => match &values(pages).collect::<Vec<_>>()[..] {
                [] => Ok(()),
                [one] => print_json(one),
                several => print_json(&several),
            },
        }
    }
}

impl Out for Kept {
    fn whose(&self) -> Option<String> {
        Some(self.words.clone())
    }

    fn surface(&self) -> Surface {
        self.surface
    }

    fn is_text(&self) -> bool {
        true
    }

    fn put(&mut self, pages: &Pages) -> anyhow::Result<()> {
        for page in pages {
            self.text += &page.to_string();
            let value = page.json().map(serde_json::to_value).transpose()?;
            self.json.extend(value);
        }
        Ok(())
    }
}

fn values(pages: &Pages) -> impl Iterator<Item = impl Serialize + '_> {
    pages.iter().filter_map(|page| page.json())
}

/// Prints lines together, so that thousands of lines a second take only a few system calls.
fn print_texts(pages: &Pages) -> anyhow::Result<()> {
    for of_one_kind in pages.chunk_by(|one, next| one.is_picture() == next.is_picture()) {
        let text: String = of_one_kind.iter().map(ToString::to_string).collect();
        if of_one_kind.first().is_some_and(|page| page.is_picture()) {
            print_drawn(&text)?;
        } else {
            print(&text)?;
        }
    }
    for remark in pages.iter().filter_map(|page| page.remark()) {
        complain_lines(&remark.to_string());
    }
    Ok(())
}

fn print_lines(pages: &Pages) -> anyhow::Result<()> {
    let mut lines = String::new();
    for value in values(pages) {
        lines += &serde_json::to_string(&value)?;
        lines.push('\n');
    }
    print_drawn(&lines)
}
