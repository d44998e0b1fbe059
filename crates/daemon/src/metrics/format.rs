//! The two text formats. Prometheus asks for OpenMetrics. Other scrapers receive the older format. In both
//! formats, the samples of a counter have a name with `_total`. In the older format, its HELP and TYPE lines
//! have this name, too.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The format that a scraper wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    OpenMetrics,
    Plain,
}

impl Format {
    /// The format that the header `Accept` asks for.
    pub(super) fn accepted(accept: &str) -> Format {
        if accept.contains("application/openmetrics-text") {
            Format::OpenMetrics
        } else {
            Format::Plain
        }
    }

    /// The content type of the format.
    pub(super) fn name(self) -> &'static str {
        match self {
            Format::OpenMetrics => OPEN_METRICS,
            Format::Plain => PLAIN,
        }
    }
}

/// All metrics of a collector, as OpenMetrics text.
pub(super) fn open_metrics(collector: impl Collector) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("dashpot");
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// Converts OpenMetrics text to the older format.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut help = "";
    for line in text.lines() {
        if line.starts_with("# HELP ") {
            help = line;
        } else if let Some(words) = line.strip_prefix("# TYPE ") {
            plain.push_str(&description(help, words));
        } else if !line.starts_with("# ") {
            plain.push_str(line);
            plain.push('\n');
        }
    }
    plain
}

/// The lines that describe a metric in the older format. `help` is the metric's help line, and `words` are
/// its `NAME TYPE`. These lines have the name that the samples have, and a type that the older format knows.
fn description(help: &str, words: &str) -> String {
    let (name, kind) = words.split_once(' ').unwrap_or((words, ""));
    let (suffix, kind) = match kind {
        "counter" => ("_total", kind),
        "info" => ("_info", "gauge"),
        _ => ("", kind),
    };
    let help = help.strip_prefix("# HELP ").unwrap_or(help);
    let help = help.strip_prefix(name).unwrap_or(help);
    format!("# HELP {name}{suffix}{help}\n# TYPE {name}{suffix} {kind}\n")
}

#[cfg(test)]
mod tests {
    use super::{Format, plain};

    #[test]
    fn a_scraper_gets_what_it_asks_for() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
        assert_eq!(Format::accepted(prometheus), Format::OpenMetrics);
        for other in ["", "*/*", "text/plain;version=0.0.4"] {
            assert_eq!(Format::accepted(other), Format::Plain);
        }
    }

    #[test]
    fn counters_are_described_by_their_whole_names() {
        let open = "# HELP a_seconds Time.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\n\
            a_seconds_total{b=\"# TYPE\"} 1.5\n# HELP c What.\n# TYPE c info\nc_info 1\n\
            # HELP d_bytes Now.\n# TYPE d_bytes gauge\nd_bytes 3\n# EOF\n";
        let old = "# HELP a_seconds_total Time.\n# TYPE a_seconds_total counter\n\
            a_seconds_total{b=\"# TYPE\"} 1.5\n# HELP c_info What.\n# TYPE c_info gauge\nc_info 1\n\
            # HELP d_bytes Now.\n# TYPE d_bytes gauge\nd_bytes 3\n";
        assert_eq!(plain(open), old);
    }
}
