//! The HTML file of a report.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use dashpot_rules::thousands;
use dashpot_sources::{shown_moment, unix_ns};
use dashpot_text::html::Document;
use serde::Serialize;
use serde_json::Value;

use crate::draft::Draft;

/// A file that takes the pages of a report while the report runs. The file is complete when the
/// report ends.
pub struct HtmlFile {
    draft: Draft,
    document: Document,
    bytes: usize,
    begun_ns: u64,
    /// The lost events; `None` for a report of a single moment, which watches no events.
    lost: Option<u64>,
    source: &'static str,
}

impl HtmlFile {
    /// Checks that the file can be written.
    pub fn begin(place: Option<&Path>, source: &'static str) -> anyhow::Result<Option<HtmlFile>> {
        let Some(place) = place else {
            return Ok(None);
        };
        let document = Document {
            command: command_line(),
            ..Document::default()
        };
        Ok(Some(HtmlFile {
            draft: Draft::create("--html", place)?,
            document,
            bytes: 0,
            begun_ns: unix_ns(),
            lost: None,
            source,
        }))
    }

    /// Counts the lost events of an interval, because the pages of the interval may not show them.
    pub fn count_lost(&mut self, lost: u64) {
        *self.lost.get_or_insert(0) += lost;
    }

    /// Whether the file takes no more pages, because it would become too large for a browser.
    pub fn is_full(&self) -> bool {
        self.bytes > BYTES_MAX
    }

    /// Counts a page that the file does not take.
    pub fn leave_out(&mut self) {
        self.document.left_out += 1;
    }

    /// Adds a page to the file.
    pub fn add(&mut self, text: &str, json: Option<Value>) {
        self.bytes += text.len();
        self.document.text += text;
        if let Some(value) = json {
            self.bytes += value.to_string().len();
            self.document.pages.push(value);
        }
    }

    /// Writes the file. The notes are what a reader of the figures has to know.
    pub fn publish(
        mut self,
        svg: Option<String>,
        is_whole: bool,
        notes: &[String],
    ) -> anyhow::Result<()> {
        let facts = &mut self.document.facts;
        facts.push(("source", self.source.to_owned()));
        if let Ok(host) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
            facts.push(("host", host.trim().to_owned()));
        }
        facts.push(("begun", shown_moment(self.begun_ns)));
        facts.push(("saved", shown_moment(unix_ns())));
        facts.push(("pages", thousands(self.document.pages.len() as u64)));
        if let Some(lost) = self.lost {
            facts.push(("events lost", thousands(lost)));
        }
        facts.extend(notes.iter().map(|note| ("note", note.clone())));
        if !is_whole {
            let words = "the source has failed: the report ends before its time";
            facts.push(("end", words.to_owned()));
        }
        let program = concat!("dashpot ", env!("CARGO_PKG_VERSION"));
        facts.push(("program", program.to_owned()));
        self.document.svg = svg;
        let html = self.document.html();
        let written = self.draft.out.write_all(html.as_bytes());
        written.context("--html")?;
        self.draft.publish()
    }
}

/// Writes the file of a report of a single moment, if the user wants it.
pub fn save<T: Serialize>(file: Option<HtmlFile>, text: &str, pages: &[T]) -> anyhow::Result<()> {
    let Some(mut file) = file else {
        return Ok(());
    };
    let pages = pages.iter().map(serde_json::to_value);
    file.document.pages = pages.collect::<Result<_, _>>()?;
    text.clone_into(&mut file.document.text);
    file.publish(None, true, &[])
}

/// The command line of this program, quoted for a shell, without the option that names the file.
fn command_line() -> String {
    let mut words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let Some(at) = words.iter().position(|word| word == "--html") {
        words.drain(at..(at + 2).min(words.len()));
    }
    words.retain(|word| !word.starts_with("--html="));
    words.insert(0, "dashpot".to_owned());
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

/// Once the pages of a file exceed this size, in bytes, the file takes no more pages.
const BYTES_MAX: usize = 16 << 20;
