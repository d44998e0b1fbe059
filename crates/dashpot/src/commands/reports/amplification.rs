//! `amplification`: the operations and bytes at each level of pools.

use dashpot_report::amplification::AmplificationReport;
use dashpot_report::report::Report;
use dashpot_rules::{ApiAddress, ParseError};

use super::asked::{Asked, Format, Over, refuse};
use super::iostat::schedule;
use crate::cli::reports::{AmplificationArgs, DeviceArgs};
use crate::sources::Target;

impl Asked for AmplificationArgs {
    fn report(&self, _: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        let (_, pace) = self.pools_and_pace()?;
        Ok(Box::new(AmplificationReport {
            schedule: schedule(&pace),
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
