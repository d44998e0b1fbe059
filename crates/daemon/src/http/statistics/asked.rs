//! The source that answers requests for statistics: a daemon, or the memory of another source.

use std::future::Future;
use std::pin::Pin;

use dashpot_api::{Clock, RememberedSteps, Source};
use dashpot_observe::{Dimension, FinishedIo, Knows, Layer, Metric, Predicates, Statistic};

use super::interval::{Counted, Interval};
use crate::answers::{AnswerBuilder, AnswerMemory};
use crate::http::memory::Wanted;
use crate::{Refusal, RefusalKind};

/// An answer that is being made.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A source of statistics, as it appears to the routes that serve any source.
pub(crate) trait StatisticSource: Send + Sync {
    /// The memory that the source's answers to callers may use.
    fn answers(&self) -> &AnswerMemory;

    fn source(&self) -> Source;

    /// The facts that the source knows about an I/O of this layer; `None` if it has no such I/Os.
    fn knows(&self, layer: Layer) -> Option<Knows>;

    fn clock(&self) -> Clock;

    /// The values of a dimension that are known now.
    fn values(&self, dimension: Dimension) -> Answer<'_, Vec<String>>;

    /// The source's memories of counts, each with its own length of time steps. Also the second from which on
    /// the source remembers every individual I/O.
    fn remembered(&self) -> (Vec<RememberedSteps>, u64);

    /// Counts a statistic over an interval. `making` is charged for the copied data.
    fn count<'a>(
        &'a self,
        statistic: &'a Statistic,
        interval: &'a Interval,
        making: &'a mut AnswerBuilder,
    ) -> Answer<'a, Result<Counted, Refusal>>;

    /// The wanted I/Os. The caller looks at them in a thread of its own.
    fn ios<'a>(
        &'a self,
        wanted: Wanted,
        making: &'a mut AnswerBuilder,
    ) -> Answer<'a, Result<Box<dyn Ios>, Refusal>>;
}

/// Individual I/Os that a source can show one after another.
pub(crate) trait Ios: Send + Sync {
    /// Calls `look` for each I/O, sorted by the second in which the I/O ended. Returns the second from which
    /// on the source had all I/Os.
    fn each(&self, look: &mut dyn FnMut(&FinishedIo)) -> Result<u64, Refusal>;
}

/// The statistic with this name, about facts and layers that the source knows.
pub(crate) fn parse(name: &str, asked: &dyn StatisticSource) -> Result<Statistic, Refusal> {
    let statistic: Statistic = name.parse().map_err(Refusal::from)?;
    if statistic.metric == Metric::Busy {
        let error = format!("{name}: columns of seconds have no busy time");
        let remedy = format!("ask 'dashpot stat {}.busy'", statistic.layer.word());
        return Err(Refusal::new(RefusalKind::Unprocessable, error).remedy(remedy));
    }
    let number = match statistic.metric {
        Metric::Of(number) => Some(number),
        _ => None,
    };
    let knows = knows(&statistic, asked)?;
    check_known(&statistic.predicates, knows)?;
    let mut own = statistic.by.into_iter().chain(number);
    own.try_for_each(|one| known(one, knows))?;
    Ok(statistic)
}

/// The facts that the source knows at the layer of a statistic.
pub(super) fn knows(statistic: &Statistic, asked: &dyn StatisticSource) -> Result<Knows, Refusal> {
    asked.knows(statistic.layer).ok_or_else(|| {
        let has = Layer::ALL
            .into_iter()
            .filter(|one| asked.knows(*one).is_some());
        let has: Vec<&str> = has.map(Layer::word).collect();
        let (has, asked) = (has.join(" or "), statistic.layer.word());
        let error = format!("{statistic}: this source has no layer '{asked}'");
        Refusal::new(RefusalKind::Unprocessable, error).remedy(format!("ask about {has} instead"))
    })
}

/// Refuses conditions on facts that the source does not know.
pub(crate) fn check_known(predicates: &Predicates, knows: Knows) -> Result<(), Refusal> {
    predicates
        .dimensions()
        .try_for_each(|one| known(one, knows))
}

/// Refuses a dimension that this source does not know.
fn known(dimension: Dimension, knows: Knows) -> Result<(), Refusal> {
    if dimension.is_known(knows) {
        return Ok(());
    }
    let (who, remedy) = match knows {
        Knows::Zios => (
            "a daemon does not know",
            "take 'client', or ask 'dashpot stat -k' about the kernel's disks",
        ),
        Knows::Kernel => (
            "the kernel does not tell",
            "take 'process', or ask a daemon about its own disks",
        ),
    };
    let error = format!("{who} the {} of an I/O", dimension.word());
    Err(Refusal::new(RefusalKind::Unprocessable, error).remedy(remedy))
}

/// The refusal after a thread has panicked, and printed its message.
pub(in crate::http) fn panicked(_: tokio::task::JoinError) -> Refusal {
    Refusal::new(RefusalKind::Failed, "the daemon failed: see its log")
}
