//! Statistics: questions by name, `LAYER.METRIC[condition]...[breakdown]`.
//!
//! The form is that of Oracle's ZFS Storage Appliance Analytics: `disk.ops[op=write][latency>=10ms][client]`.

use std::fmt;
use std::str::FromStr;

use dashpot_engine::histogram::Histogram;
use dashpot_rules::{ParseError, nearest};

use super::dimension::Dimension;
use super::finished::FinishedIo;
use super::interval::OpInterval;
use super::kind::Kind;
use super::layer::Layer;
use super::predicate::{Predicate, Predicates};
use super::question::{Question, Subject};
use super::value::Unit;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistic {
    /// The layer: disks, volumes, calls that sync, or the kernel's disks in a recording.
    pub layer: Layer,
    pub metric: Metric,
    /// The I/Os that count.
    pub predicates: Predicates,
    /// The breakdown.
    pub by: Option<Dimension>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The number of I/Os.
    Ops,
    /// The total size of the I/Os, in bytes.
    Bytes,
    /// The number of I/Os that failed.
    Errors,
    /// The share of the time in which a device had I/O in flight.
    Busy,
    /// The distribution of a number that each I/O has.
    Of(Dimension),
}

impl Metric {
    /// The metrics that are not dimensions.
    pub const PLAIN: [Metric; 4] = [Metric::Ops, Metric::Bytes, Metric::Errors, Metric::Busy];

    /// The metric's word in the name of a statistic.
    pub fn word(self) -> &'static str {
        match self {
            Metric::Ops => "ops",
            Metric::Bytes => "bytes",
            Metric::Errors => "errors",
            Metric::Busy => "busy",
            Metric::Of(dimension) => dimension.word(),
        }
    }

    /// The metric's meaning, in a few words.
    pub fn meaning(self) -> &'static str {
        match self {
            Metric::Ops => "the number of I/Os",
            Metric::Bytes => "the bytes that they moved",
            Metric::Errors => "the number of I/Os that failed",
            Metric::Busy => "the share of time with I/O in flight",
            Metric::Of(dimension) => dimension.meaning(),
        }
    }

    /// All metrics, including the dimensions that are numbers.
    pub fn all() -> impl Iterator<Item = Metric> {
        let numbers = Dimension::ALL.into_iter().filter(|one| is_measure(*one));
        Metric::PLAIN.into_iter().chain(numbers.map(Metric::Of))
    }

    fn parse(word: &str) -> Result<Metric, ParseError> {
        let found = Metric::all().find(|metric| metric.word() == word);
        found.ok_or_else(|| {
            let words: Vec<&str> = Metric::all().map(Metric::word).collect();
            let remedy = match nearest(word, words.iter().copied()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("take one of {}", words.join(", ")),
            };
            ParseError::new(format!("there is no metric '{word}': {remedy}"))
        })
    }
}

/// Whether a dimension's values are amounts, so that their distribution makes sense. Ids are not amounts.
fn is_measure(dimension: Dimension) -> bool {
    match dimension.unit() {
        Unit::Bytes | Unit::Time => true,
        Unit::Count => dimension == Dimension::Depth,
        Unit::Name => false,
    }
}

impl Statistic {
    /// The statistic's question to a source.
    pub fn question(&self) -> Question {
        if self.metric == Metric::Busy {
            return Question::of(Subject::Averages(self.layer));
        }
        Question {
            by: self.breakdown(),
            measure: self
                .measure()
                .filter(|number| *number != Dimension::Latency),
            counts_only: self.measure().is_none(),
            queued: self.measure() == Some(Dimension::Total),
            predicates: self.selected(),
            ..Question::latencies(&[self.layer])
        }
    }

    /// The distribution of the statistic's number among the I/Os of an operation.
    pub fn numbers<'a>(&self, op: &'a OpInterval) -> Option<&'a Histogram> {
        let numbers = match self.measure()? {
            Dimension::Latency => &op.counts.disk,
            _ => &op.counts.measured,
        };
        numbers.as_deref()
    }

    /// The breakdown. A statistic of a number, such as the latency, that names no breakdown is broken down by
    /// classes of this number. Busy time is always broken down by device, because the busy times of devices
    /// do not add up.
    pub fn breakdown(&self) -> Option<Dimension> {
        match self.metric {
            Metric::Of(number) => self.by.or(Some(number)),
            Metric::Busy => Some(Dimension::Device),
            _ => self.by,
        }
    }

    /// Whether the statistic is about single devices: it is broken down by device, or its conditions name one.
    pub fn names_devices(&self) -> bool {
        self.breakdown() == Some(Dimension::Device) || self.predicates.names_a_device()
    }

    /// Whether the conditions, all of which must be about devices, select the device with this name.
    pub fn selects_device(&self, name: &str) -> bool {
        let io = FinishedIo::bare(self.layer, name.into(), Kind::Other);
        self.predicates.select(&io)
    }

    /// The number whose distribution the statistic shows.
    pub fn measure(&self) -> Option<Dimension> {
        match self.metric {
            Metric::Of(number) => Some(number),
            _ => None,
        }
    }

    /// The conditions. If the metric is errors, they include the condition that the I/O failed.
    fn selected(&self) -> Predicates {
        let mut selected = self.predicates.clone();
        if self.metric == Metric::Errors {
            selected.push(Predicate::any(Dimension::Error));
        }
        selected
    }

    /// The statistic in English: `Disk I/Os with op write and latency at least 10ms, by client`.
    pub fn title(&self) -> String {
        let ios = match self.layer {
            Layer::Fs => "sync calls".to_owned(),
            Layer::Kernel => "I/Os of the kernel's disks".to_owned(),
            layer => format!("{} I/Os", layer.word()),
        };
        let subject = match self.metric {
            Metric::Ops => ios,
            Metric::Bytes => format!("bytes of {ios}"),
            Metric::Errors => format!("failed {ios}"),
            Metric::Busy if self.layer == Layer::Kernel => {
                "busy time of the kernel's disks".to_owned()
            }
            Metric::Busy => format!("busy time of {}s", self.layer.word()),
            Metric::Of(number) => format!("{} of {ios}", number.word()),
        };
        let with = if self.predicates.is_empty() {
            String::new()
        } else {
            format!(" with {}", self.predicates.phrase())
        };
        let by = self.by.map(|by| format!(", by {}", by.word()));
        capitalized(&(subject + &with + &by.unwrap_or_default()))
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (layer, metric) = (self.layer.word(), self.metric.word());
        write!(f, "{layer}.{metric}{}", self.predicates)?;
        match self.by {
            Some(by) => write!(f, "[{}]", by.word()),
            None => Ok(()),
        }
    }
}

impl FromStr for Statistic {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Statistic, ParseError> {
        let (head, parts) = text.split_at(text.find('[').unwrap_or(text.len()));
        let (layer, metric) = head.split_once('.').ok_or_else(|| {
            ParseError::new("write a layer and a metric with a '.' between them, such as disk.ops")
        })?;
        let mut statistic = Statistic {
            layer: parse_layer(layer)?,
            metric: Metric::parse(metric)?,
            predicates: Predicates::default(),
            by: None,
        };
        for part in brackets(parts)? {
            statistic.add(part)?;
        }
        statistic.check()
    }
}

impl Statistic {
    /// Adds a condition or the breakdown.
    fn add(&mut self, part: &str) -> Result<(), ParseError> {
        if part.contains(['=', '<', '>', '!']) {
            self.predicates.push(part.parse()?);
            return Ok(());
        }
        let by = Dimension::parse(part)?;
        match self.by.replace(by) {
            None => Ok(()),
            Some(first) => Err(ParseError::new(format!(
                "[{}] and [{}]: a statistic has one breakdown: make the other a condition, \
                 such as [{0}=...]",
                first.word(),
                by.word()
            ))),
        }
    }

    /// Returns the statistic unchanged if a source can answer it.
    ///
    /// # Errors
    ///
    /// The metric does not allow this breakdown or these conditions.
    pub fn check(self) -> Result<Statistic, ParseError> {
        match (self.metric, self.by) {
            (Metric::Busy, _) => {
                self.check_busy()?;
                Ok(self)
            }
            (Metric::Of(Dimension::Offset), Some(by)) => {
                let by = by.word();
                Err(ParseError::new(format!(
                    "[{by}]: percentiles of offsets say nothing: take {}.ops[{by}], or leave [{by}] out",
                    self.layer.word()
                )))
            }
            _ => Ok(self),
        }
    }

    /// Refuses conditions on I/Os, because a device is busy while it has I/O of any kind in flight.
    fn check_busy(&self) -> Result<(), ParseError> {
        if self.layer == Layer::Fs {
            return Err(ParseError::new(
                "fs.busy: a device is busy, not a call: take disk.busy",
            ));
        }
        let mut asked = self.predicates.dimensions().chain(self.by);
        match asked.find(|one| *one != Dimension::Device) {
            None => Ok(()),
            Some(other) => Err(ParseError::new(format!(
                "'{}': busy time is known of each device as a whole: take {}.busy, with conditions on \
                 'device' only",
                other.word(),
                self.layer.word()
            ))),
        }
    }
}

fn parse_layer(word: &str) -> Result<Layer, ParseError> {
    match word {
        "disk" => Ok(Layer::Disk),
        "volume" => Ok(Layer::Volume),
        "fs" => Ok(Layer::Fs),
        "kernel" => Ok(Layer::Kernel),
        "store" => Err(ParseError::new(
            "a store's times are a metric of its disk: write disk.store",
        )),
        _ => Err(ParseError::new(format!(
            "there is no layer '{word}': take disk, volume, fs or kernel"
        ))),
    }
}

/// The parts between brackets: `[a][b]`.
fn brackets(text: &str) -> Result<Vec<&str>, ParseError> {
    let mut rest = text;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let part = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let Some((part, after)) = part else {
            return Err(ParseError::new(format!(
                "'{rest}': write each condition and the breakdown in brackets, such as [op=write][client]"
            )));
        };
        parts.push(part);
        rest = after;
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_printed_alike_and_have_their_english() {
        for (name, title) in [
            ("disk.ops", "Disk I/Os"),
            (
                "disk.ops[op=write][latency>=10ms][client]",
                "Disk I/Os with op write and latency at least 10ms, by client",
            ),
            (
                "disk.bytes[device=vda][process]",
                "Bytes of disk I/Os with device vda, by process",
            ),
            ("volume.ops[size]", "Volume I/Os, by size"),
            ("disk.latency[rule]", "Latency of disk I/Os, by rule"),
            ("fs.latency[process]", "Latency of sync calls, by process"),
            ("volume.errors[error]", "Failed volume I/Os, by error"),
            ("disk.busy", "Busy time of disks"),
            (
                "volume.busy[device=tank/*][device]",
                "Busy time of volumes with device tank/*, by device",
            ),
        ] {
            let statistic: Statistic = name.parse().expect(name);
            assert_eq!(statistic.to_string(), name);
            assert_eq!(statistic.title(), title);
        }
    }

    #[test]
    fn a_number_is_broken_down_by_its_own_classes_unless_asked_otherwise() {
        let of = |name: &str| name.parse::<Statistic>().expect(name).question();
        let latency = of("disk.latency");
        assert_eq!(latency.by, Some(Dimension::Latency));
        assert_eq!(
            (latency.measure, of("disk.size").measure),
            (None, Some(Dimension::Size))
        );
        assert_eq!(of("disk.latency[client]").by, Some(Dimension::Client));
        assert!(of("disk.ops").is_plain());
        let errors = of("disk.errors[client]").predicates;
        assert_eq!(errors.to_string(), "[error=*]");
    }

    #[test]
    fn busy_devices_are_asked_for_as_iostat_asks_and_selected_by_name() {
        let busy: Statistic = "disk.busy[device=vd*]".parse().expect("a statistic");
        assert_eq!(
            busy.question(),
            Question::of(Subject::Averages(Layer::Disk))
        );
        assert_eq!(busy.breakdown(), Some(Dimension::Device));
        assert!(busy.selects_device("vda") && !busy.selects_device("sda"));
    }

    #[test]
    fn mistakes_name_the_part_and_the_remedy() {
        for (name, message) in [
            (
                "ops",
                "write a layer and a metric with a '.' between them, such as disk.ops",
            ),
            (
                "disc.ops",
                "there is no layer 'disc': take disk, volume, fs or kernel",
            ),
            (
                "store.latency",
                "a store's times are a metric of its disk: write disk.store",
            ),
            (
                "disk.latancy",
                "there is no metric 'latancy': did you mean 'latency'?",
            ),
            (
                "disk.ops[client][size]",
                "[client] and [size]: a statistic has one breakdown: make the other a condition, such as \
                 [client=...]",
            ),
            (
                "disk.ops[client",
                "'[client': write each condition and the breakdown in brackets, such as [op=write][client]",
            ),
            (
                "disk.ops[clint]",
                "there is no 'clint': did you mean 'client'?",
            ),
            (
                "disk.offset[client]",
                "[client]: percentiles of offsets say nothing: take disk.ops[client], or leave [client] out",
            ),
            (
                "disk.busy[op=write]",
                "'op': busy time is known of each device as a whole: take disk.busy, with conditions on \
                 'device' only",
            ),
            (
                "volume.busy[client]",
                "'client': busy time is known of each device as a whole: take volume.busy, with conditions on \
                 'device' only",
            ),
            (
                "fs.busy",
                "fs.busy: a device is busy, not a call: take disk.busy",
            ),
            (
                "disk.pid",
                "there is no metric 'pid': take one of ops, bytes, errors, busy, size, offset, depth, latency, \
                 total, recv, throttle, queue, suspend, store, hold, late, reply",
            ),
        ] {
            let refused = name.parse::<Statistic>().expect_err(name);
            assert_eq!(refused.to_string(), message, "{name}");
        }
    }
}
