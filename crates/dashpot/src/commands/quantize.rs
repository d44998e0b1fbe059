//! `quantize`: latencies of disks in powers of two, over one interval.

use dashpot_engine::{Duration, OpSet};
use dashpot_observe::{Layer, Schedule};
use dashpot_report::quantize::QuantizeReport;
use dashpot_rules::ApiAddress;

use super::report::{Format, show};
use crate::cli::QuantizeArgs;

pub(super) fn quantize(api: Option<&ApiAddress>, args: &QuantizeArgs) -> anyhow::Result<()> {
    show(api, &args.device, report(args), Format::document(args.json))
}

pub(super) fn report(args: &QuantizeArgs) -> QuantizeReport {
    QuantizeReport {
        layers: match &args.layers[..] {
            [] => vec![Layer::Disk],
            named => named.to_vec(),
        },
        schedule: Schedule::once(args.lasts.unwrap_or(Duration::MAX)),
        ops: args.op.unwrap_or(OpSet::ALL),
        by_disk: args.by.is_some(),
    }
}
