//! Any statistic in columns of whole seconds that are over.
//!
//! Counts and latencies by device, operation and client come from the collector's memory of seconds, which goes
//! back for an hour. All others are counted from the single zios that the collector remembers. Both copy the
//! data that they need during a look, and count it afterwards, because the collector cannot empty the rings
//! during a look.

mod expect;
mod interval;
mod ios;
mod parts;
mod rectangle;
mod seconds;
mod watch;

use std::sync::Arc;

use dashpot_observe::{Dimension, Knows, Metric, Predicates, Statistic};

use crate::answers::Making;
use crate::{Daemon, Refusal, RefusalKind};

pub(crate) use expect::expect;
pub(crate) use interval::{Counted, Interval, SECOND_NS, unit_word};
pub(crate) use ios::{Ios, Wanted, converted};
pub(crate) use rectangle::{Rectangle, compare};
pub(crate) use watch::Watched;

/// Counts a statistic over an interval. `making` is charged for what is copied.
pub(crate) async fn count(
    daemon: &Arc<Daemon>,
    statistic: &Statistic,
    interval: &Interval,
    making: &mut Making,
) -> Result<Counted, Refusal> {
    daemon.collect_to(interval.seconds.end).await;
    let mut counted = match seconds::has(statistic) {
        true => seconds::count(daemon, statistic, interval, making).await?,
        false => ios::count(daemon, statistic, interval, making).await?,
    };
    let dropped = daemon.collected(|view| {
        let dropped = view.dropped_by_second(None);
        dropped
            .filter(|(second, _)| interval.seconds.contains(second))
            .collect::<Vec<_>>()
    });
    for (second, dropped) in dropped {
        let column = counted.columns.entry(interval.column(second)).or_default();
        column.dropped += dropped;
    }
    for (second, column) in &mut counted.columns {
        column.start_ns = second * SECOND_NS;
    }
    counted.since = counted.since.max(daemon.started().as_nanos() / SECOND_NS);
    Ok(counted)
}

/// The statistic with this name, about facts that are known of zios.
pub(crate) fn parse(name: &str) -> Result<Statistic, Refusal> {
    let statistic: Statistic = name.parse().map_err(Refusal::from)?;
    let number = match statistic.metric {
        Metric::Of(number) => Some(number),
        _ => None,
    };
    check_known(&statistic.predicates)?;
    statistic.by.into_iter().chain(number).try_for_each(known)?;
    Ok(statistic)
}

/// Refuses conditions on facts that no zio has.
pub(crate) fn check_known(predicates: &Predicates) -> Result<(), Refusal> {
    predicates.dimensions().try_for_each(known)
}

/// Refuses a dimension that only the kernel's disks have.
fn known(dimension: Dimension) -> Result<(), Refusal> {
    if dimension.is_known(Knows::Zios) {
        return Ok(());
    }
    let error = format!("a daemon does not know the {} of an I/O", dimension.word());
    Err(Refusal::new(RefusalKind::Unprocessable, error)
        .remedy("take 'client', or ask 'dashpot stat -k' about the kernel's disks"))
}
