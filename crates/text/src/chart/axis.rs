//! Axes: they map values to places, and choose which values are labelled.

/// A linear axis from 0.
pub(super) struct Linear {
    /// The value at the end of the axis.
    end: f64,
    step: f64,
    from: f64,
    to: f64,
}

/// A logarithmic axis over whole decades.
pub(super) struct Log {
    first: i32,
    last: i32,
    from: f64,
    to: f64,
}

impl Linear {
    /// An axis from 0 to `most` or a little more, drawn between two places.
    pub(super) fn new(most: f64, ticks: f64, from: f64, to: f64) -> Linear {
        let most = if most > 0.0 { most } else { 1.0 };
        let step = nice_step(most / ticks);
        Linear {
            end: (most / step).ceil() * step,
            step,
            from,
            to,
        }
    }

    /// An axis from 0 to exactly `end`, drawn between two places.
    pub(super) fn up_to(end: f64, ticks: f64, from: f64, to: f64) -> Linear {
        let end = if end > 0.0 { end } else { 1.0 };
        let step = nice_step(end / ticks);
        Linear {
            end,
            step,
            from,
            to,
        }
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        self.from + (self.to - self.from) * (value / self.end).clamp(0.0, 1.0)
    }

    /// The values that are labelled, with their labels.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let count = (self.end / self.step + 1e-9) as usize;
        let decimals = usize::from(self.step < 1.0) + usize::from(self.step < 0.1);
        let tick = |at: usize| {
            let value = self.step * at as f64;
            (value, format!("{value:.decimals$}"))
        };
        (0..=count).map(tick).collect()
    }
}

impl Log {
    /// An axis of whole decades that contain `least` and `most`, both above 0, drawn between two places.
    pub(super) fn new(least: f64, most: f64, from: f64, to: f64) -> Log {
        let first = libm::floor(libm::log10(least)) as i32;
        let last = (libm::ceil(libm::log10(most) - 1e-9) as i32).max(first + 1);
        Log {
            first,
            last,
            from,
            to,
        }
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let decades = f64::from(self.last - self.first);
        let part = (libm::log10(value) - f64::from(self.first)) / decades;
        self.from + (self.to - self.from) * part.clamp(0.0, 1.0)
    }

    pub(super) fn decades(&self) -> impl Iterator<Item = f64> {
        (self.first..=self.last).map(|decade| libm::pow(10.0, f64::from(decade)))
    }
}

/// The smallest number of the form 1, 2 or 5 times a power of ten that is at least `least`.
fn nice_step(least: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(least)));
    let steps = [1.0, 2.0, 5.0].map(|step| step * power);
    let fits = |step: &f64| *step >= least * (1.0 - 1e-9);
    steps.into_iter().find(fits).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::{Linear, Log};

    fn names(axis: &Linear) -> Vec<String> {
        axis.ticks().into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn a_linear_axis_has_round_steps() {
        let axis = Linear::new(437.0, 5.0, 100.0, 0.0);
        assert_eq!(names(&axis), ["0", "100", "200", "300", "400", "500"]);
        assert!((axis.place(250.0) - 50.0).abs() < 1e-9);
        assert_eq!(
            names(&Linear::new(0.9, 5.0, 0.0, 1.0)),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            names(&Linear::new(0.0, 2.0, 0.0, 1.0)),
            ["0.0", "0.5", "1.0"]
        );
        assert_eq!(
            names(&Linear::up_to(7.5, 4.0, 0.0, 1.0)),
            ["0", "2", "4", "6"]
        );
    }

    #[test]
    fn a_logarithmic_axis_has_whole_decades() {
        let axis = Log::new(7e5, 4.5e9, 0.0, 50.0);
        assert_eq!(
            axis.decades().collect::<Vec<_>>(),
            [1e5, 1e6, 1e7, 1e8, 1e9, 1e10]
        );
        assert!((axis.place(1e7) - 20.0).abs() < 1e-9);
        // If the highest value is a power of ten, the axis ends there.
        assert_eq!(Log::new(1.0, 1e3, 0.0, 1.0).decades().count(), 4);
        assert_eq!(Log::new(5.0, 5.0, 0.0, 1.0).decades().count(), 2);
    }
}
