//! The specification of a rule, as the user gives it before the rule is armed (zinject: `zinject_record_t`).

use alloc::string::String;
use core::fmt;

use super::damage::Damage;
use super::service::Service;
use super::when::{CycleError, When};
use crate::random::Ratio;
use crate::time::Duration;
use crate::zio::{Errno, OpSet};

/// The maximum number of lanes of one rule, which is zinject's limit.
pub const LANES_MAX: u32 = 65_534;

/// The maximum number of rules on one disk.
pub const RULES_MAX: usize = 1_024;

/// The specification of a rule: its effect, and the zios that it matches.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleSpec {
    pub effect: Effect,
    /// The rate, in bytes per second, of the disk's one serial server, which zios pass after their lanes.
    pub bandwidth: Option<u64>,
    /// The operations that the rule matches.
    pub ops: OpSet,
    /// The share of matching zios that the rule injects into; `None` for all.
    pub chance: Option<Ratio>,
    /// Which of the matching zios the rule may take, by their number. The count begins when the rule is armed,
    /// and again when an update changes this part of the rule.
    pub count: Count,
    /// A range of the disk, as the bytes `start..end`. The rule matches only zios that touch one of these
    /// bytes.
    pub range: Option<(u64, u64)>,
    /// A glob that the client's name must match.
    pub client: Option<String>,
    pub when: When,
    /// Whether the store works before or after the rule holds the zio.
    pub mode: Mode,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Holds a zio.
    Delay(Delay),
    /// Fails a zio.
    Fail {
        /// The error.
        errno: Errno,
        /// Whether the store still does the work (zinject's `io`), or is not asked.
        work: bool,
        /// The hold before the zio fails; `None` if it fails at once.
        delay: Option<Delay>,
    },
    /// Holds a zio until the rule ends, or until a command releases the zio.
    Hang,
    /// Damages the data of a zio.
    Damage(Damage),
    /// Has no effect of its own, so only the rule's bandwidth slows zios down.
    Pass,
}

/// The hold of one zio.
#[derive(Clone, Debug, PartialEq)]
pub struct Delay {
    /// How long a lane serves the zio.
    pub service: Service,
    /// The maximum number of zios that are served at a time; `None` for no maximum.
    pub lanes: Option<u32>,
    /// How the time changes while the rule applies; `None` if it does not. The service is then the last time.
    pub ramp: Option<Ramp>,
}

/// A time that grows or shrinks steadily, from when its rule begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// The first time.
    pub from: Duration,
    /// How long it takes until the last time is reached.
    pub lasts: Duration,
    /// Whether the ramp then begins again. If not, the last time stays.
    pub repeats: bool,
}

impl Ramp {
    /// The time `elapsed` after the beginning of a ramp to the time `to`.
    pub fn at(self, to: Duration, elapsed: Duration) -> Duration {
        let (all, elapsed) = (self.lasts.as_nanos(), elapsed.as_nanos());
        let done = match self.repeats {
            true => elapsed % all,
            false => elapsed.min(all),
        };
        let share = |span: Duration| {
            let part = u128::from(span.as_nanos()) * u128::from(done) / u128::from(all);
            Duration::from_nanos(part as u64)
        };
        if to >= self.from {
            self.from + share(to - self.from)
        } else {
            self.from - share(self.from - to)
        }
    }
}

impl Delay {
    /// A delay that does not change.
    pub fn new(service: Service, lanes: Option<u32>) -> Delay {
        Delay {
            service,
            lanes,
            ramp: None,
        }
    }
}

impl Effect {
    /// The hold that the effect gives a zio.
    pub fn delay(&self) -> Option<&Delay> {
        match self {
            Effect::Delay(delay) => Some(delay),
            Effect::Fail { delay, .. } => delay.as_ref(),
            Effect::Hang | Effect::Damage(_) | Effect::Pass => None,
        }
    }
}

/// The matching zios that a rule injects into, by their number: after the first `skip`, every `every`th, and of
/// these the first `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    pub skip: u64,
    pub every: u64,
    /// `None` for no end.
    pub first: Option<u64>,
}

impl Default for Count {
    fn default() -> Count {
        Count::ALL
    }
}

impl Count {
    /// All matching zios.
    pub const ALL: Count = Count {
        skip: 0,
        every: 1,
        first: None,
    };

    /// The first `count` matching zios.
    pub const fn first(count: u64) -> Count {
        Count {
            first: Some(count),
            ..Count::ALL
        }
    }

    /// Every `nth` matching zio: the Nth, the 2Nth, and so on.
    pub const fn every(nth: u64) -> Count {
        Count {
            every: nth,
            ..Count::ALL
        }
    }

    /// Whether the rule may take the zio with this number, counted from 1.
    #[inline]
    pub fn takes(self, number: u64) -> bool {
        let Some(after) = number.checked_sub(self.skip) else {
            return false;
        };
        after > 0
            && after.is_multiple_of(self.every)
            && self.first.is_none_or(|first| after / self.every <= first)
    }

    /// Whether the rule takes no zio after the first `number`.
    pub fn is_over(self, number: u64) -> bool {
        self.first
            .is_some_and(|first| number.saturating_sub(self.skip) / self.every >= first)
    }
}

/// Whether the store works before the hold or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The store works first; the rule then holds the completion until the target (zinject).
    Floor,
    /// The zio is held before the store works (dm-delay): a held write is not yet on the disk.
    Add,
}

/// The reason that a rule cannot be armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// The number of lanes is not between 1 and [`LANES_MAX`].
    Lanes(u32),
    /// The bandwidth is zero.
    Bandwidth,
    /// The range is empty.
    Range,
    /// The count asks for the first 0 zios, or for every 0th zio.
    Count,
    /// The cycle cannot be kept.
    Cycle(CycleError),
    /// The ramp takes no time.
    Ramp,
    /// The rule matches no operation.
    Ops,
    /// The rule names operations that its damage cannot hit.
    Damage,
    /// The rule has no effect: no delay, no error, no bandwidth.
    Nothing,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::Lanes(n) => write!(f, "{n} lanes: a delay has 1 to {LANES_MAX} lanes"),
            SpecError::Bandwidth => f.write_str("with a bandwidth of 0 no I/O would ever end"),
            SpecError::Range => f.write_str("the range is empty: its start must be before its end"),
            SpecError::Count => f.write_str("first and every must be at least 1"),
            SpecError::Cycle(CycleError::On) => f.write_str(
                "a cycle is the time in which the rule applies, and a longer period: --cycle 5s/30s",
            ),
            SpecError::Cycle(CycleError::Jitter) => f.write_str(
                "the jitter is longer than the rule rests: at most the period less the time in which it applies",
            ),
            SpecError::Ramp => f.write_str("a ramp takes longer than 0s"),
            SpecError::Ops => f.write_str("the rule names no operation"),
            SpecError::Damage => f.write_str("the rule's damage cannot hit all of its operations"),
            SpecError::Nothing => f.write_str("the rule has no effect: give it a delay"),
        }
    }
}

impl RuleSpec {
    /// A rule with this effect on all reads, writes and zeroes.
    pub fn new(effect: Effect) -> RuleSpec {
        RuleSpec {
            effect,
            bandwidth: None,
            ops: OpSet::DATA,
            chance: None,
            count: Count::ALL,
            range: None,
            client: None,
            when: When::default(),
            mode: Mode::Floor,
        }
    }

    /// A constant delay.
    pub fn delay(service: Duration, lanes: Option<u32>) -> RuleSpec {
        RuleSpec::new(Effect::Delay(Delay::new(Service::Constant(service), lanes)))
    }

    /// The maximum number of zios that the rule serves at a time; `None` for no maximum.
    pub fn lanes(&self) -> Option<u32> {
        self.effect.delay()?.lanes
    }

    /// Whether the rule holds a zio before or after the store's work. If the zio is to fail without that work,
    /// the rule holds it before.
    pub(crate) fn hold_mode(&self) -> Mode {
        match self.effect {
            Effect::Fail { work: false, .. } => Mode::Add,
            Effect::Fail { work: true, .. } => Mode::Floor,
            _ => self.mode,
        }
    }

    /// Refuses specifications that the engine cannot carry out.
    pub fn check(&self) -> Result<(), SpecError> {
        if let Some(lanes) = self.lanes()
            && (lanes == 0 || lanes > LANES_MAX)
        {
            return Err(SpecError::Lanes(lanes));
        }
        let ramp = self.effect.delay().and_then(|delay| delay.ramp);
        if ramp.is_some_and(|ramp| ramp.lasts == Duration::ZERO) {
            return Err(SpecError::Ramp);
        }
        if self.bandwidth == Some(0) {
            return Err(SpecError::Bandwidth);
        }
        if self.range.is_some_and(|(start, end)| start >= end) {
            return Err(SpecError::Range);
        }
        if self.count.every == 0 || self.count.first == Some(0) {
            return Err(SpecError::Count);
        }
        if let Some(cycle) = self.when.cycle {
            cycle.check().map_err(SpecError::Cycle)?;
        }
        if self.ops == OpSet::EMPTY {
            return Err(SpecError::Ops);
        }
        if let Effect::Damage(damage) = self.effect
            && !damage.ops().contains(self.ops)
        {
            return Err(SpecError::Damage);
        }
        if self.effect == Effect::Pass && self.bandwidth.is_none() {
            return Err(SpecError::Nothing);
        }
        Ok(())
    }
}
