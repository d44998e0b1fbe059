//! The past of `--last`, from the daemon's memory, second by second or as one interval. The daemon does
//! not remember the I/Os in flight at the ends of seconds.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use anyhow::{Context, ensure};
use dashpot_api::{Client, Second, SecondLatency, Seconds};
use dashpot_engine::histogram::LAYOUT;
use dashpot_observe::{
    Counts, DeviceInterval, InFlight, Kind, Layer, OpInterval, Past, Seen, Span,
};

use crate::source::Source;
use crate::wall::unix_ns;

/// The remaining intervals of the past, the oldest first.
pub(crate) struct Remembered(VecDeque<Seen>);

impl Remembered {
    /// Asks a daemon for the past I/O of devices of a layer. The answer begins `past.last` ago, or where the
    /// daemon's memory begins.
    pub(crate) fn ask(
        client: &Client,
        names: &[String],
        layer: Layer,
        past: Past,
    ) -> anyhow::Result<Remembered> {
        let told = Memory::ask(client, names, layer, past.last)?;
        Ok(Remembered(if past.each_second {
            told.each_second()?
        } else {
            VecDeque::from([told.whole(past.last)?])
        }))
    }
}

impl Source for Remembered {
    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        Ok(self.0.pop_front())
    }
}

/// The seconds that a daemon remembers.
struct Memory {
    layer: Layer,
    told: Vec<Seconds>,
    /// The beginning of the first complete second.
    first_ns: u64,
    /// The moment of the daemon's answer.
    end_ns: u64,
    /// The offset from the daemon's clock to nanoseconds since 1970.
    ahead_ns: u64,
}

impl Memory {
    fn ask(
        client: &Client,
        names: &[String],
        layer: Layer,
        last: dashpot_engine::Duration,
    ) -> anyhow::Result<Memory> {
        let now_ns = client.clock()?.now_ns;
        let after_ns = now_ns.saturating_sub(last.as_nanos());
        let each = names.iter().map(|name| ask(client, after_ns, name));
        let told = each.collect::<anyhow::Result<Vec<_>>>()?;
        let since_ns = told.iter().map(|one| one.since_ns).max();
        let end_ns = told.iter().map(|one| one.now_ns).max().unwrap_or(now_ns);
        // The answer has the seconds that began after `after_ns`.
        let first = (after_ns / SECOND_NS + 1).max(since_ns.unwrap_or_default() / SECOND_NS);
        Ok(Memory {
            layer,
            told,
            first_ns: first * SECOND_NS,
            end_ns,
            ahead_ns: unix_ns().saturating_sub(end_ns),
        })
    }

    /// All seconds as one interval.
    fn whole(&self, last: dashpot_engine::Duration) -> anyhow::Result<Seen> {
        let span = Span {
            asked_ns: Some(last.as_nanos()),
            ..self.span(self.first_ns, self.end_ns)
        };
        self.seen(span, &self.seconds().collect::<Vec<_>>())
    }

    /// An interval for each second, including seconds without I/O.
    fn each_second(&self) -> anyhow::Result<VecDeque<Seen>> {
        let mut by_start: BTreeMap<u64, Vec<&Second>> = BTreeMap::new();
        for second in self.seconds() {
            by_start.entry(second.start_ns).or_default().push(second);
        }
        let numbers = self.first_ns / SECOND_NS..=self.end_ns / SECOND_NS;
        let each = numbers.map(|number| {
            let start_ns = number * SECOND_NS;
            let seconds = by_start.remove(&start_ns).unwrap_or_default();
            let end_ns = self.end_ns.min(start_ns + SECOND_NS);
            self.seen(self.span(start_ns, end_ns), &seconds)
        });
        each.collect()
    }

    fn span(&self, start_ns: u64, end_ns: u64) -> Span {
        Span {
            start_ns,
            end_ns: end_ns.max(start_ns),
            ..Span::default()
        }
    }

    fn seconds(&self) -> impl Iterator<Item = &Second> {
        self.told.iter().flat_map(Seconds::all)
    }

    /// The I/O of the devices in some seconds.
    fn seen(&self, span: Span, seconds: &[&Second]) -> anyhow::Result<Seen> {
        let elapsed = span.length().elapsed;
        let mut devices: BTreeMap<&str, DeviceInterval> = BTreeMap::new();
        for one in seconds.iter().flat_map(|second| &second.latencies) {
            let device = devices
                .entry(&one.disk)
                .or_insert_with(|| idle(&one.disk, elapsed));
            device.add(op(one)?);
        }
        let devices: Vec<DeviceInterval> = devices.into_values().collect();
        let mut seen = Seen {
            span,
            at_ns: span.end_ns.saturating_add(self.ahead_ns),
            lost: seconds.iter().map(|second| second.dropped).sum(),
            ..Seen::default()
        };
        seen.add(self.layer, devices);
        Ok(seen)
    }
}

/// Asks for the seconds of a device that began after a moment.
fn ask(client: &Client, after_ns: u64, device: &str) -> anyhow::Result<Seconds> {
    let told = client.seconds(after_ns, Some(device))?;
    ensure!(
        told.layout == LAYOUT,
        "the daemon's histograms are of layout {}, not {LAYOUT}: is it of another version?",
        told.layout
    );
    Ok(told)
}

fn idle(device: &str, elapsed: Duration) -> DeviceInterval {
    DeviceInterval {
        device: device.to_owned(),
        elapsed,
        ops: Vec::new(),
        busy: Duration::ZERO,
        depth_time_ns: 0,
        depths: None,
        in_flight: InFlight::default(),
    }
}

/// The I/O of one client with one operation in a second.
fn op(one: &SecondLatency) -> anyhow::Result<OpInterval> {
    let latency = one.latency.histogram().context("the daemon's histogram")?;
    let counts = Counts {
        completed: one.completed,
        bytes: one.bytes,
        disk: Some(Box::new(latency)),
        ..Counts::default()
    };
    let client = Some(one.client.clone());
    Ok(OpInterval::of(Kind::of_word(&one.op), client, counts))
}

const SECOND_NS: u64 = 1_000_000_000;
