//! How the I/Os in a rectangle of a heat map differ from the others: `diff`, with the I/Os inside as the slow ones.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use dashpot_api::Difference;
use dashpot_engine::Duration;
use dashpot_observe::diff::{Diff, Side, Slow};
use dashpot_observe::{Dimension, Knows, Predicates, Statistic, Unit};

use super::{Interval, Ios, SECOND_NS, Wanted};
use crate::answers::Making;
use crate::{Daemon, Refusal, RefusalKind};

/// A rectangle in the heat map of a statistic.
#[derive(Clone, Debug)]
pub(crate) struct Rectangle {
    pub(crate) statistic: Statistic,
    /// The view.
    pub(crate) view_ns: Range<u64>,
    /// The part of it that the rectangle covers.
    pub(crate) inside_ns: Range<u64>,
    /// The numbers that it covers.
    pub(crate) numbers: RangeInclusive<u64>,
}

/// Compares the I/Os of a rectangle with all I/Os in view.
pub(crate) async fn compare(
    daemon: &Arc<Daemon>,
    rectangle: &Rectangle,
    making: &mut Making,
) -> Result<Difference, Refusal> {
    let number = rectangle.number()?;
    let now_ns = daemon.now().as_nanos();
    let view = &rectangle.view_ns;
    let interval = Interval::of(Some(view.start), Some(view.end), SECOND_NS, now_ns)?;
    daemon.collect_to(interval.seconds.end).await;
    let wanted = Wanted {
        layer: rectangle.statistic.layer,
        seconds: interval.seconds,
    };
    let ios = Ios::copy(daemon, &wanted, making).await?;
    let rectangle = rectangle.clone();
    let compared = tokio::task::spawn_blocking(move || rectangle.difference(number, &ios));
    let failed = |_| Refusal::new(RefusalKind::Failed, "the daemon failed: see its log");
    compared.await.map_err(failed)
}

impl Rectangle {
    /// The number on the vertical axis.
    fn number(&self) -> Result<Dimension, Refusal> {
        let (inside, numbers) = (&self.inside_ns, &self.numbers);
        if inside.is_empty() || numbers.is_empty() {
            let error = "the rectangle is empty";
            return Err(Refusal::new(RefusalKind::Unprocessable, error)
                .remedy("begin_ns must be below end_ns, and least at most most"));
        }
        self.statistic.measure().ok_or_else(|| {
            let error = format!("{} has no numbers to draw a rectangle on", self.statistic);
            Refusal::new(RefusalKind::Unprocessable, error)
                .remedy("take a metric that is a number, such as disk.latency")
        })
    }

    fn difference(&self, number: Dimension, ios: &Ios) -> Difference {
        let slow = Slow::Inside(self.inside_ns.clone(), self.bounds(number));
        let mut diff = Diff::new(slow, Knows::Zios);
        let mut time_ns: u64 = 0;
        ios.each(|io| {
            if self.statistic.predicates.select(io) {
                time_ns = time_ns.saturating_add(io.total_ns());
                diff.add(Side::Here, io);
            }
        });
        let lasted = Duration::from_nanos(self.view_ns.end - self.view_ns.start);
        let comparison = diff.compare(lasted, None);
        Difference::of(&comparison, time_ns, ios.since * SECOND_NS)
    }

    /// The numbers of the rectangle as conditions.
    fn bounds(&self, number: Dimension) -> Predicates {
        let unit = match number.unit() {
            Unit::Time => "ns",
            Unit::Bytes | Unit::Count | Unit::Name => "",
        };
        let mut bounds = Predicates::default();
        for (sign, bound) in [(">=", self.numbers.start()), ("<=", self.numbers.end())] {
            if let Ok(bound) = format!("{}{sign}{bound}{unit}", number.word()).parse() {
                bounds.push(bound);
            }
        }
        bounds
    }
}
