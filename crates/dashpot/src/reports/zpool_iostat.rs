//! `zpool-iostat`: pools as OpenZFS's zpool iostat shows them.

use dashpot_cli::reports::{DeviceArgs, OutputArgs, ZpoolIostatArgs};
use dashpot_report::report::Report;
use dashpot_report::zpool_iostat::{View, ZpoolIostatReport};
use dashpot_rules::ParseError;

use super::asked::{Over, ReportRequest};
use super::iostat::schedule;

impl ReportRequest for ZpoolIostatArgs {
    fn report(&self, _: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        let (_, pace) = self.pools.and_pace()?;
        Ok(Box::new(ZpoolIostatReport {
            schedule: schedule(&pace),
            view: match (self.waits, self.sizes) {
                (true, _) => View::Latencies,
                (_, true) => View::Sizes,
                _ => View::Lines {
                    latency: self.latency,
                    queues: self.queues,
                },
            },
            wide: self.wide,
            titled: false,
        }))
    }

    fn devices(&self) -> Result<DeviceArgs, ParseError> {
        Ok(DeviceArgs::named(self.pools.and_pace()?.0))
    }

    fn output(&self) -> &OutputArgs {
        &self.output
    }
}
