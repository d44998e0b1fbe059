//! `amplification`: the operations and bytes at each level of pools.

use dashpot_cli::reports::{AmplificationArgs, DeviceArgs, OutputArgs};
use dashpot_report::amplification::AmplificationReport;
use dashpot_report::report::Report;
use dashpot_rules::ParseError;

use super::asked::{Over, ReportRequest};
use super::iostat::schedule;

impl ReportRequest for AmplificationArgs {
    fn report(&self, _: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        let (_, pace) = self.pools.and_pace()?;
        Ok(Box::new(AmplificationReport {
            schedule: schedule(&pace),
        }))
    }

    fn devices(&self) -> Result<DeviceArgs, ParseError> {
        Ok(DeviceArgs::named(self.pools.and_pace()?.0))
    }

    fn output(&self) -> &OutputArgs {
        &self.output
    }
}
