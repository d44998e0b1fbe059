//! Finds how the I/Os in a rectangle of a heat map differ from all I/Os in view. The comparison is that
//! of `diff`; the I/Os in the rectangle take the role of the slow I/Os.

use std::ops::{Range, RangeInclusive};

use dashpot_api::Difference;
use dashpot_engine::Duration;
use dashpot_observe::diff::{Diff, Side, Slow};
use dashpot_observe::{Dimension, Knows, Predicates, Statistic, Unit};

use super::asked::{Ios, StatisticSource, knows, panicked};
use super::{Interval, SECOND_NS};
use crate::answers::AnswerBuilder;
use crate::http::memory::Wanted;
use crate::{Refusal, RefusalKind};

/// A rectangle in the heat map of a statistic.
#[derive(Clone, Debug)]
pub(crate) struct Rectangle {
    pub(crate) statistic: Statistic,
    /// The time in view.
    pub(crate) view_ns: Range<u64>,
    /// The part of the view's time that the rectangle covers.
    pub(crate) inside_ns: Range<u64>,
    /// The numbers that the rectangle covers.
    pub(crate) numbers: RangeInclusive<u64>,
}

/// Compares the I/Os of a rectangle with all I/Os in view.
pub(crate) async fn compare(
    asked: &dyn StatisticSource,
    rectangle: &Rectangle,
    making: &mut AnswerBuilder,
) -> Result<Difference, Refusal> {
    let number = rectangle.number()?;
    let now_ns = asked.clock().now_ns;
    let view = &rectangle.view_ns;
    let interval = Interval::whole(view, now_ns)?;
    let wanted = Wanted {
        names_devices: rectangle.statistic.names_devices(),
        layer: rectangle.statistic.layer,
        seconds: interval.seconds,
    };
    let ios = asked.ios(wanted, making).await?;
    let (rectangle, knows) = (rectangle.clone(), knows(&rectangle.statistic, asked)?);
    let compared = tokio::task::spawn_blocking(move || rectangle.difference(number, &*ios, knows));
    compared.await.map_err(panicked)?
}

impl Rectangle {
    /// The bounds of the rectangle's numbers, as conditions.
    pub(crate) fn conditions(&self) -> Result<Predicates, Refusal> {
        Ok(self.bounds(self.number()?))
    }

    /// The number that the vertical axis shows.
    fn number(&self) -> Result<Dimension, Refusal> {
        let (inside, numbers) = (&self.inside_ns, &self.numbers);
        if inside.is_empty() || numbers.is_empty() {
            let error = "the rectangle is empty";
            return Err(Refusal::new(RefusalKind::Unprocessable, error)
                .remedy("begin_ns must be below end_ns, and least must not exceed most"));
        }
        self.statistic.measure().ok_or_else(|| {
            let error = format!("{} has no numbers to draw a rectangle on", self.statistic);
            Refusal::new(RefusalKind::Unprocessable, error)
                .remedy("take a metric that is a number, such as disk.latency")
        })
    }

    fn difference(
        &self,
        number: Dimension,
        ios: &dyn Ios,
        knows: Knows,
    ) -> Result<Difference, Refusal> {
        let slow = Slow::Inside(self.inside_ns.clone(), self.bounds(number));
        let mut diff = Diff::new(slow, knows);
        let mut time_ns: u64 = 0;
        let since = ios.each(&mut |io| {
            if self.statistic.predicates.select(io) {
                time_ns = time_ns.saturating_add(io.total_ns());
                diff.add(Side::Here, io);
            }
        })?;
        let lasted = Duration::from_nanos(self.view_ns.end - self.view_ns.start);
        let comparison = diff.compare(lasted, None);
        Ok(Difference::of(&comparison, time_ns, since * SECOND_NS))
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
