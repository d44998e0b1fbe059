//! Reports turn numbers into text and JSON. They do no I/O and read no clock. A report is one file: its options,
//! its question, its columns, text, JSON and CSV; [`ReportKind`] has them all.
//!
//! Each report is a value. If a report is named after another tool, its `Display` equals that tool's table,
//! byte for byte, except for the differences that the report's module names. The `Serialize` of a report is
//! the output of `--json`, and each type's documentation describes the shape of its JSON. In these
//! descriptions, a word without quotes, such as `percentiles` or `in flight`, stands for a value of that
//! kind. Percentiles come with the number of zios, and are `null` if there are too few zios.
//!
//! All reports use the same JSON keys, whatever the original tool calls a figure. The keys of times end with
//! `_ns`, the keys of rates with `_per_s`, and the keys of shares with `_percent`; times are whole
//! nanoseconds. The key of the watched device is `device`. A row includes both of its ends, `from_ns` and
//! `to_ns`. `at_ns` and `start_ns` are counted from 1970; in a simulation, from its beginning.

// In help, `[1]` is a default, not a link.
#![allow(rustdoc::broken_intra_doc_links)]

pub mod amplification;
pub mod asked;
mod breakdown;
pub mod diff;
mod figures;
mod filtered;
pub mod heatmap;
pub mod iolatency;
pub mod iostat;
mod left_out;
pub mod observe;
pub mod quantize;
pub mod report;
pub mod snoop;
pub mod stat;
pub mod stats;
pub mod txgs;
pub mod zpool_iostat;

use clap::Subcommand;

use self::asked::ReportRequest;

/// Defines the table of all reports.
macro_rules! reports {
    ($($kind:ident($args:ty),)+) => {
        /// A report, with its options: a command about disks, which `sim --report` also accepts.
        #[derive(Clone, Debug, Subcommand)]
        pub enum ReportKind {
            $($kind($args),)+
        }

        impl ReportKind {
            /// The report, and the user's choices about it.
            pub fn asked(&self) -> &dyn ReportRequest {
                match self {
                    $(ReportKind::$kind(args) => args,)+
                }
            }
        }
    };
}

reports! {
    Iolatency(iolatency::IolatencyArgs),
    Iostat(iostat::IostatArgs),
    Quantize(quantize::QuantizeArgs),
    Heatmap(heatmap::HeatmapArgs),
    Snoop(snoop::SnoopArgs),
    Stat(stat::StatArgs),
    Observe(observe::ObserveArgs),
    Amplification(amplification::AmplificationArgs),
    ZpoolIostat(zpool_iostat::ZpoolIostatArgs),
    Txgs(txgs::TxgsArgs),
}

impl ReportKind {
    /// The names of all reports.
    pub fn names() -> Vec<String> {
        let table = ReportKind::augment_subcommands(clap::Command::new("reports"));
        let names = table
            .get_subcommands()
            .map(|report| report.get_name().to_owned());
        names.collect()
    }
}
