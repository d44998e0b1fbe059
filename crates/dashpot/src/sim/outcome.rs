//! The results of a simulation.

use std::path::Path;

use dashpot_output::screen::room;
use serde::Serialize;
use serde_json::Value;

use super::SimArgs;
use super::run::Run;
use super::series::Series;
use super::summary::Summary;

/// The result of a lab. JSON: the fields of the summary, and `"reports": [{"report": "txgs",
/// "output": […]}]`.
#[derive(Serialize)]
pub(super) struct Outcome<'a> {
    #[serde(flatten)]
    pub(super) summary: Summary,
    pub(super) reports: Vec<Output<'a>>,
    #[serde(skip)]
    pub(super) series: Series,
}

#[derive(Serialize)]
pub(super) struct Output<'a> {
    pub(super) report: &'a str,
    pub(super) output: Vec<Value>,
    #[serde(skip)]
    pub(super) text: String,
}

impl<'a> Outcome<'a> {
    pub(super) fn of(lab: &Path, run: Run<'a>) -> Outcome<'a> {
        let name = lab.file_stem().unwrap_or(lab.as_os_str());
        Outcome {
            summary: Summary::of(&name.to_string_lossy(), &run),
            series: Series::of(&run.simulation),
            reports: run
                .reports
                .into_iter()
                .map(|report| Output {
                    report: report.words,
                    text: report.text,
                    output: report.json,
                })
                .collect(),
        }
    }

    /// The summary, or the reports of `--report`, with headings if there are several.
    pub(super) fn text(&self, args: &SimArgs, first: bool) -> String {
        let gap = if first { "" } else { "\n" };
        if self.reports.is_empty() {
            return format!("{gap}{}", self.summary.text(room(false)));
        }
        let several = args.labs.len() * self.reports.len() > 1;
        let mut text = gap.to_owned();
        for Output {
            report, text: own, ..
        } in &self.reports
        {
            if several {
                text += &format!("--- {}: {report}\n", self.summary.lab);
            }
            text += own;
        }
        text
    }
}
