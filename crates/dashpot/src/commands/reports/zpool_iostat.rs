//! `zpool-iostat`: pools as OpenZFS's zpool iostat shows them.

use dashpot_report::report::Report;
use dashpot_report::zpool_iostat::{View, ZpoolIostatReport};
use dashpot_rules::{ApiAddress, ParseError};

use super::asked::{Asked, Format, Over, refuse};
use super::iostat::schedule;
use crate::cli::reports::{DeviceArgs, ZpoolIostatArgs};
use crate::sources::Target;

impl Asked for ZpoolIostatArgs {
    fn report(&self, _: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        let (_, pace) = self.pools_and_pace()?;
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
        Ok(DeviceArgs::named(self.pools_and_pace()?.0))
    }

    fn format(&self) -> Format {
        Format::lines(self.json)
    }

    fn target(&self, api: Option<&ApiAddress>) -> anyhow::Result<Target> {
        Target::of_pools(api, refuse(self.pools_and_pace()).0)
    }
}
