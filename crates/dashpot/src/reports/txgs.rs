//! `txgs`: the transaction groups of pools.

use dashpot_cli::reports::{DeviceArgs, OutputArgs, TxgsArgs};
use dashpot_report::report::Report;
use dashpot_report::txgs::TxgsReport;
use dashpot_rules::ParseError;

use super::asked::{Over, ReportRequest};

impl ReportRequest for TxgsArgs {
    fn report(&self, _: Over<'_>) -> Result<Box<dyn Report>, ParseError> {
        Ok(Box::new(TxgsReport { wide: self.wide }))
    }

    fn devices(&self) -> Result<DeviceArgs, ParseError> {
        Ok(DeviceArgs::named(self.pool.as_slice()))
    }

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn is_one_document(&self) -> bool {
        true
    }
}
