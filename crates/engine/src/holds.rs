//! The holds of one rule: the requested times, the achieved times, and their lateness.
//!
//! Most rules hold every zio for a constant time, so the achieved time is this constant plus the lateness.
//! The engine therefore records only the lateness, as long as all holds have the same service time, and
//! computes the other times when a caller asks for them.

use alloc::boxed::Box;

use crate::histogram::Histogram;
use crate::time::Duration;

/// The requested and the achieved times of the zios that a rule has held.
#[derive(Clone, Debug, Default)]
pub struct Holds {
    lateness: Option<Box<Histogram>>,
    /// The lateness of holds that were late mostly because the host had stopped the driver.
    stopped: Option<Box<Histogram>>,
    asked: Requested,
}

/// The service times that have been requested so far.
#[derive(Clone, Debug, Default)]
enum Requested {
    #[default]
    Nothing,
    Always(Duration),
    Various(Box<Various>),
}

#[derive(Clone, Debug)]
struct Various {
    requested: Histogram,
    achieved: Histogram,
}

impl Holds {
    /// Records a hold that had the service time `service` and ended late by `late`.
    #[inline]
    pub(crate) fn record(&mut self, service: Duration, late: Duration) {
        match self.asked {
            Requested::Always(constant) if constant == service => {}
            _ => self.record_service(service, late),
        }
        let lateness = self.lateness.get_or_insert_default();
        lateness.record(late.as_nanos());
    }

    /// Records the service time of the first hold, or of any hold once service times have differed. If this
    /// function were inlined, every hold would reserve stack for two histograms.
    #[inline(never)]
    fn record_service(&mut self, service: Duration, late: Duration) {
        let various = match &mut self.asked {
            Requested::Nothing => {
                self.asked = Requested::Always(service);
                return;
            }
            Requested::Always(_) => {
                self.asked = Requested::Various(self.various());
                return self.record_service(service, late);
            }
            Requested::Various(various) => various,
        };
        various.requested.record(service.as_nanos());
        various.achieved.record((service + late).as_nanos());
    }

    /// Records that the last recorded hold was late mostly because of a stop of the driver.
    #[cold]
    pub(crate) fn record_stopped(&mut self, late: Duration) {
        let stopped = self.stopped.get_or_insert_default();
        stopped.record(late.as_nanos());
    }

    /// Adds the holds of other zios.
    pub(crate) fn merge(&mut self, other: &Holds) {
        self.asked = match (&self.asked, &other.asked) {
            (asked, Requested::Nothing) | (Requested::Nothing, asked) => asked.clone(),
            (Requested::Always(constant), Requested::Always(same)) if constant == same => {
                Requested::Always(*constant)
            }
            _ => {
                let mut various = self.various();
                let more = other.various();
                various.requested.merge(&more.requested);
                various.achieved.merge(&more.achieved);
                Requested::Various(various)
            }
        };
        for (mine, more) in [
            (&mut self.lateness, &other.lateness),
            (&mut self.stopped, &other.stopped),
        ] {
            if let Some(more) = more {
                mine.get_or_insert_default().merge(more);
            }
        }
    }

    /// The histograms of requested and achieved times, as if the service time had varied from the first
    /// hold on.
    fn various(&self) -> Box<Various> {
        Box::new(Various {
            requested: self.requested().unwrap_or_default(),
            achieved: self.achieved().unwrap_or_default(),
        })
    }

    /// The requested service times, without the wait for a lane; `None` if there were no holds.
    pub fn requested(&self) -> Option<Histogram> {
        let lateness = self.lateness()?;
        Some(match &self.asked {
            Requested::Nothing => return None,
            Requested::Always(service) => Histogram::of(service.as_nanos(), lateness.count()),
            Requested::Various(various) => various.requested.clone(),
        })
    }

    /// The achieved times, without the wait for a lane; `None` if there were no holds. As long as all holds
    /// had the same service time, the achieved times are computed from the lateness. The count, the extremes
    /// and the sums in nanoseconds are then exact, but a value may be counted one bucket off.
    pub fn achieved(&self) -> Option<Histogram> {
        let lateness = self.lateness()?;
        Some(match &self.asked {
            Requested::Nothing => return None,
            Requested::Always(service) => lateness.shifted(service.as_nanos()),
            Requested::Various(various) => various.achieved.clone(),
        })
    }

    /// How late the holds ended.
    pub fn lateness(&self) -> Option<&Histogram> {
        self.lateness.as_deref()
    }

    /// The lateness of holds that were late mostly because of stops of the driver
    /// ([`crate::Input::Stopped`]). These holds are in [`Holds::lateness`], too.
    pub fn stopped(&self) -> Option<&Histogram> {
        self.stopped.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::Holds;
    use crate::histogram::Histogram;
    use crate::random::Random;
    use crate::time::Duration;

    /// Records holds that end late by up to 50 µs, with the service times that `service` returns. Compares
    /// these holds with histograms in which each time is recorded.
    fn compare(service: impl Fn(u64) -> u64) {
        let mut random = Random::new(17);
        let mut holds = Holds::default();
        let (mut requested, mut achieved) = (Histogram::default(), Histogram::default());
        for n in 0..1_000 {
            let (service, late) = (service(n), random.below(50_000));
            holds.record(Duration::from_nanos(service), Duration::from_nanos(late));
            requested.record(service);
            achieved.record(service + late);
            assert_eq!(holds.requested().as_ref(), Some(&requested));
            let got = holds.achieved().unwrap();
            let sums = |all: &Histogram| (all.count(), all.min(), all.max(), all.sum());
            assert_eq!(sums(&got), sums(&achieved));
            assert_eq!(got.sum_of_squares(), achieved.sum_of_squares());
            assert_eq!(got.mean_micros(), achieved.mean_micros());
            assert_eq!(got.stddev_micros(), achieved.stddev_micros());
        }
        // A computed value may be one bucket off, so allow the width of a bucket on either side.
        let (p50, got) = (achieved.quantile(500_000), holds.achieved().unwrap());
        let error = got.quantile(500_000).unwrap().abs_diff(p50.unwrap());
        assert!(error * 40 <= p50.unwrap(), "{error} ns of {p50:?}");
    }

    #[test]
    fn a_constant_is_worked_out() {
        compare(|_| 10_000_000);
    }

    #[test]
    fn one_that_changes_is_recorded_from_then_on() {
        compare(|n| if n < 500 { 10_000_000 } else { 12_000_000 });
    }

    #[test]
    fn what_varies_is_recorded() {
        compare(|n| 1_000_000 * (1 + n % 7));
    }

    /// Holds that ended late by up to 50 µs, with the service times of each phase in turn.
    fn holds(phases: &[&[u64]]) -> Holds {
        let mut random = Random::new(17);
        let mut all = Holds::default();
        for phase in phases {
            let mut holds = Holds::default();
            for ms in *phase {
                let late = Duration::from_nanos(random.below(50_000));
                holds.record(Duration::from_millis(*ms), late);
            }
            holds.record_stopped(Duration::from_micros(7));
            all.merge(&holds);
        }
        all
    }

    #[test]
    fn holds_of_two_phases_add_up() {
        let figures = |all: Option<Histogram>| all.map(|all| (all.count(), all.sum(), all.max()));
        for (one, other) in [
            (&[][..], &[][..]),
            (&[], &[10, 10]),
            (&[10, 10], &[]),
            (&[10, 10], &[10]),
            (&[10, 10], &[20]),
            (&[10, 20], &[20]),
            (&[10], &[20, 10]),
        ] {
            let (all, merged) = (holds(&[&[one, other].concat()]), holds(&[one, other]));
            assert_eq!(merged.requested(), all.requested(), "{one:?} {other:?}");
            assert_eq!(
                figures(merged.achieved()),
                figures(all.achieved()),
                "{one:?} {other:?}"
            );
            assert_eq!(merged.lateness(), all.lateness(), "{one:?} {other:?}");
            assert_eq!(
                merged.stopped().map(Histogram::count),
                Some(2),
                "{one:?} {other:?}"
            );
        }
    }

    #[test]
    fn without_holds_there_is_nothing() {
        let holds = Holds::default();
        assert!(holds.requested().is_none() && holds.achieved().is_none());
    }
}
