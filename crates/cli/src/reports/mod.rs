//! The reports: commands about disks, which `sim --report` also accepts. The options of a report are those of
//! the tool that it imitates.

mod amplification;
mod heatmap;
mod iolatency;
mod iostat;
mod observe;
mod quantize;
mod snoop;
mod stat;
mod txgs;
mod words;
mod zpool_iostat;

use clap::Subcommand;

pub use amplification::AmplificationArgs;
pub use heatmap::HeatmapArgs;
pub use iolatency::IolatencyArgs;
pub use iostat::IostatArgs;
pub use observe::ObserveArgs;
pub use quantize::QuantizeArgs;
pub use snoop::SnoopArgs;
pub use stat::StatArgs;
pub use txgs::TxgsArgs;
pub use words::{DeviceArgs, HtmlArgs, IoArgs, OutputArgs, Pace, PeriodArgs};
pub use zpool_iostat::ZpoolIostatArgs;

/// The table of all reports, with the options of each.
#[derive(Clone, Debug, Subcommand)]
pub enum ReportKind {
    Iolatency(IolatencyArgs),
    Iostat(IostatArgs),
    Quantize(QuantizeArgs),
    Heatmap(HeatmapArgs),
    Snoop(SnoopArgs),
    Stat(StatArgs),
    Observe(ObserveArgs),
    Amplification(AmplificationArgs),
    ZpoolIostat(ZpoolIostatArgs),
    Txgs(TxgsArgs),
}

impl ReportKind {
    /// The names of all reports.
    pub(super) fn names() -> Vec<String> {
        let table = ReportKind::augment_subcommands(clap::Command::new("reports"));
        let names = table
            .get_subcommands()
            .map(|report| report.get_name().to_owned());
        names.collect()
    }
}
