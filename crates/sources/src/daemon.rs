//! The disks, volumes and pools of a daemon, through its API. An interval is the difference between two
//! snapshots.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use dashpot_api::{
    By as Breakdown, Client, ClientError, DiskLatency, LatencyHistogram, OpLatency, PoolLatency,
    STARTED_AGAIN,
};
use dashpot_engine::histogram::{BadBucket, Histogram, LAYOUT};
use dashpot_engine::{DepthTimes, Duration as ZioTime};
use dashpot_observe::{
    Counts, DeviceInterval, Dimension, FinishedIo, InFlight, Intervals, Kind, Layer, OpInterval,
    Predicates, Question, Schedule, Seen, Span, size_class, size_name,
};
use dashpot_rules::parse_size;

use crate::counted::oldest;
use crate::ios::{Devices, Texts, in_flight_of};
use crate::pools;
use crate::signals::Signals;
use crate::source::Source;
use crate::wall::unix_ns;

/// Takes snapshots of disks, volumes and pools.
pub(crate) struct DaemonSource<'a> {
    client: &'a Client,
    watched: Watched,
    asked: Counters,
    /// The conditions on I/Os. All of them are about devices and operations, because the counters know no
    /// other facts.
    predicates: Predicates,
    /// Whether the question needs events. The daemon may drop events, so the source reports how many it
    /// dropped.
    misses_dropped: bool,
    signals: Signals,
    /// The intervals, on the daemon's clock, which may be another machine's.
    intervals: Intervals,
    last: Look,
    told: Moment,
}

/// The names of the devices and pools that the source watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    pub(crate) disks: Vec<String>,
    pub(crate) volumes: Vec<String>,
    pub(crate) pools: Vec<String>,
}

/// The counters that a question needs.
#[derive(Clone, Copy)]
struct Counters {
    breakdown: Option<Breakdown>,
    /// Whether the question is only about failed I/Os.
    only_failed: bool,
}

/// The counters at one moment.
struct Look {
    disks: Vec<DiskLatency>,
    volumes: Vec<DiskLatency>,
    pools: Vec<PoolLatency>,
}

/// A moment of the daemon's clock, and the same moment of this program's clock.
#[derive(Clone, Copy)]
struct Moment {
    at_ns: u64,
    when: Instant,
}

impl<'a> DaemonSource<'a> {
    /// Takes a snapshot of these devices once per interval from now on.
    pub(crate) fn new(
        client: &'a Client,
        watched: Watched,
        question: &Question,
        schedule: &Schedule,
    ) -> anyhow::Result<DaemonSource<'a>> {
        let asked = Counters {
            breakdown: question.by.and_then(counted),
            only_failed: question.counts_failed(),
        };
        let last = Look::take(client, &watched, asked)?;
        let told = Moment::new(last.latest().unwrap_or_default());
        Ok(DaemonSource {
            client,
            signals: Signals::new(client)?,
            intervals: schedule.begin(told.at_ns),
            watched,
            asked,
            predicates: question.predicates.clone(),
            misses_dropped: question.by.is_some() || question.has_store(),
            last,
            told,
        })
    }

    /// The I/O since the last snapshot.
    fn go_on(&mut self, span: Span, now: Look) -> anyhow::Result<Seen> {
        let last = std::mem::replace(&mut self.last, now);
        let now = &self.last;
        let pools = last.pools.iter().zip(&now.pools);
        // Only events can be dropped: the counters of the data path count every I/O.
        let lost = if self.misses_dropped {
            now.dropped().saturating_sub(last.dropped())
        } else {
            0
        };
        Ok(Seen {
            span,
            at_ns: unix_ns(),
            disks: self.selected(Layer::Disk, all_between(&last.disks, &now.disks)?),
            volumes: self.selected(Layer::Volume, all_between(&last.volumes, &now.volumes)?),
            pools: pools
                .map(|(earlier, later)| pools::between(earlier, later))
                .collect::<anyhow::Result<_>>()?,
            lost,
            stopped: stopped(&last.disks, &now.disks).max(stopped(&last.volumes, &now.volumes)),
            ..Seen::default()
        })
    }

    /// The I/O that meets the conditions.
    fn selected(&self, layer: Layer, devices: Vec<DeviceInterval>) -> Vec<DeviceInterval> {
        if self.predicates.is_empty() || devices.is_empty() {
            return devices;
        }
        let known = self.predicates.beside(Dimension::Error);
        let in_flight: Vec<FinishedIo> = self
            .in_flight(layer, &devices)
            .into_iter()
            .filter(|io| self.predicates.select(io))
            .collect();
        let select = |device: DeviceInterval| {
            let io = |kind| FinishedIo::bare(layer, device.device.as_str().into(), kind);
            let ops = device.ops.iter().filter(|op| known.select(&io(op.kind)));
            DeviceInterval {
                ops: ops.cloned().collect(),
                in_flight: oldest(&in_flight, &device.device),
                ..device
            }
        };
        devices.into_iter().map(select).collect()
    }

    /// The oldest I/Os in flight on these devices.
    fn in_flight(&self, layer: Layer, devices: &[DeviceInterval]) -> Vec<FinishedIo> {
        let names = devices.iter().map(|one| (one.device.clone(), layer));
        let names: Devices = names.collect();
        let mut texts = Texts::default();
        // If the daemon does not answer, the next reading fails.
        in_flight_of(self.client, &names, &mut texts, self.told.now_ns()).unwrap_or_default()
    }
}

impl Source for DaemonSource<'_> {
    fn since_start(&mut self) -> anyhow::Result<Option<Seen>> {
        let all = |looks: &[DiskLatency]| looks.iter().map(since_start).collect();
        let disks: anyhow::Result<_> = all(&self.last.disks);
        let volumes: anyhow::Result<_> = all(&self.last.volumes);
        let pools = self.last.pools.iter().map(pools::since_start);
        Ok(Some(Seen {
            pools: pools.collect::<anyhow::Result<_>>()?,
            ..Seen::since_start(disks?, volumes?, unix_ns())
        }))
    }

    /// An interval ends with the daemon's answer, however late the answer comes.
    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        while let Some(due_ns) = self.intervals.due_ns() {
            let rest = due_ns.saturating_sub(self.told.now_ns());
            let rest = Duration::from_nanos(rest);
            let is_stopped = self.signals.wait(self.client, rest)?;
            let now = Look::take(self.client, &self.watched, self.asked)?;
            self.told = Moment::new(now.latest().unwrap_or(self.told.now_ns()));
            let at_ns = self.told.at_ns;
            // If the daemon's clock is slower than this machine's, the interval may not have ended yet.
            if let Some(span) = self.intervals.end_or_close(at_ns, is_stopped) {
                return self.go_on(span, now).map(Some);
            }
        }
        Ok(None)
    }
}

/// The breakdown in the API's terms; `None` if only events can answer it, because the daemon has no counters
/// for it.
pub(crate) fn counted(by: Dimension) -> Option<Breakdown> {
    match by {
        Dimension::Client => Some(Breakdown::Client),
        Dimension::Size => Some(Breakdown::Size),
        _ => None,
    }
}

impl Look {
    /// Asks for the present counters.
    fn take(client: &Client, watched: &Watched, asked: Counters) -> anyhow::Result<Look> {
        let pool = |pool: &String| {
            let latency = client.pool_latency(pool)?;
            check_layout(&latency.layout)?;
            Ok(latency)
        };
        let disk = |name: &String| checked(client.latency(name, asked.breakdown), asked);
        let volume = |name: &String| checked(client.volume_latency(name, asked.breakdown), asked);
        Ok(Look {
            disks: watched
                .disks
                .iter()
                .map(disk)
                .collect::<anyhow::Result<_>>()?,
            volumes: watched
                .volumes
                .iter()
                .map(volume)
                .collect::<anyhow::Result<_>>()?,
            pools: watched
                .pools
                .iter()
                .map(pool)
                .collect::<anyhow::Result<_>>()?,
        })
    }

    fn devices(&self) -> impl Iterator<Item = &DiskLatency> {
        self.disks.iter().chain(&self.volumes)
    }

    fn dropped(&self) -> u64 {
        self.devices().map(|look| look.dropped).sum()
    }

    fn latest(&self) -> Option<u64> {
        let pools = self.pools.iter().map(|look| look.at_ns);
        self.devices().map(|look| look.at_ns).chain(pools).max()
    }
}

/// Prepares the daemon's answer: names sizes as ranges and, if the question is only about failed I/Os, keeps
/// only these. Fails if the daemon's histograms have a different layout from ours.
fn checked(
    answer: Result<DiskLatency, ClientError>,
    asked: Counters,
) -> anyhow::Result<DiskLatency> {
    let mut latency = answer?;
    check_layout(&latency.layout)?;
    if asked.breakdown == Some(Breakdown::Size) {
        let names = latency.ops.iter_mut().filter_map(|op| op.by.as_mut());
        names.for_each(|name| *name = size_range(name));
    }
    if asked.only_failed {
        latency.ops = latency.ops.into_iter().map(failed).collect();
    }
    Ok(latency)
}

/// The counters of an operation's failed I/Os. The daemon does not count the latencies of failed I/Os, and a
/// failed I/O moves no bytes.
fn failed(op: OpLatency) -> OpLatency {
    OpLatency {
        completed: op.failed,
        bytes: 0,
        total: LatencyHistogram::default(),
        disk: LatencyHistogram::default(),
        store: None,
        ..op
    }
}

fn check_layout(layout: &str) -> anyhow::Result<()> {
    ensure!(
        layout == LAYOUT,
        "the daemon's histograms are of layout {layout}, not {LAYOUT}: is it of another version?"
    );
    Ok(())
}

/// The name of a range of sizes. The daemon names a range by its smallest size.
fn size_range(least: &str) -> String {
    size_name(parse_size(least).map_or(0, size_class))
}

/// How long the host kept the shards of these disks from running between two snapshots. Of the times of
/// several shards, this is the longest.
fn stopped(earlier: &[DiskLatency], later: &[DiskLatency]) -> Duration {
    let pairs = earlier.iter().zip(later);
    let each = pairs.map(|(earlier, later)| {
        let stopped_ns = later.shard_stopped_ns;
        stopped_ns.saturating_sub(earlier.shard_stopped_ns)
    });
    Duration::from_nanos(each.max().unwrap_or_default())
}

impl Moment {
    fn new(at_ns: u64) -> Moment {
        Moment {
            at_ns,
            when: Instant::now(),
        }
    }

    /// An estimate of the present time on the daemon's clock.
    fn now_ns(&self) -> u64 {
        let since = self.when.elapsed().as_nanos();
        let since = u64::try_from(since).unwrap_or(u64::MAX);
        self.at_ns.saturating_add(since)
    }
}

fn since_start(later: &DiskLatency) -> anyhow::Result<DeviceInterval> {
    let elapsed_ns = later.at_ns.saturating_sub(later.since_ns);
    interval(later, None, Duration::from_nanos(elapsed_ns))
}

/// The I/O of each device between two snapshots.
fn all_between(
    earlier: &[DiskLatency],
    later: &[DiskLatency],
) -> anyhow::Result<Vec<DeviceInterval>> {
    let pairs = earlier.iter().zip(later);
    pairs
        .map(|(earlier, later)| between(earlier, later))
        .collect()
}

/// The I/O of a disk or a volume between two snapshots.
pub fn between(earlier: &DiskLatency, later: &DiskLatency) -> anyhow::Result<DeviceInterval> {
    ensure!(later.since_ns == earlier.since_ns, STARTED_AGAIN);
    let elapsed_ns = later.at_ns.saturating_sub(earlier.at_ns);
    interval(later, Some(earlier), Duration::from_nanos(elapsed_ns))
}

fn interval(
    later: &DiskLatency,
    earlier: Option<&DiskLatency>,
    elapsed: Duration,
) -> anyhow::Result<DeviceInterval> {
    let op = |op: &OpLatency| {
        let before = earlier.map(|earlier| before(op, later, earlier));
        op_interval(op, &before.unwrap_or_default())
    };
    let busy_before = earlier.map_or(0, |earlier| earlier.busy_ns);
    let depth_before = earlier.map_or(0, |earlier| earlier.depth_time_ns.0);
    let ops = later.ops.iter().map(op);
    Ok(DeviceInterval {
        device: later.disk.clone(),
        elapsed,
        ops: ops.collect::<anyhow::Result<_>>()?,
        busy: Duration::from_nanos(later.busy_ns.saturating_sub(busy_before)),
        depth_time_ns: later.depth_time_ns.0.saturating_sub(depth_before),
        depths: Some(match earlier {
            Some(earlier) => depths(later).since(&depths(earlier)),
            None => depths(later),
        }),
        in_flight: in_flight(later),
    })
}

fn depths(look: &DiskLatency) -> DepthTimes {
    let times = look.depth_times.iter();
    let times = times.map(|time| (time.depth, ZioTime::from_nanos(time.time_ns)));
    times.collect()
}

/// The counts of an operation before the interval, to be subtracted from the later counts. For `other`, these
/// are the earlier counts of `other` and of each client that had its own entry then and is part of `other`
/// now.
fn before<'a>(op: &OpLatency, later: &DiskLatency, earlier: &'a DiskLatency) -> Vec<&'a OpLatency> {
    let is_same = |one: &OpLatency, other: &OpLatency| one.op == other.op && one.by == other.by;
    // A smaller count shows that a new client has taken the name of an earlier client.
    let goes_on =
        |old: &OpLatency, new: &OpLatency| is_same(old, new) && old.completed <= new.completed;
    let is_added = |old: &OpLatency| !later.ops.iter().any(|new| goes_on(old, new));
    let is_others = op.by.as_deref() == Some("other");
    let same_op = earlier.ops.iter().filter(|old| old.op == op.op);
    same_op
        .filter(|old| goes_on(old, op) || (is_others && is_added(old)))
        .collect()
}

fn op_interval(later: &OpLatency, before: &[&OpLatency]) -> anyhow::Result<OpInterval> {
    let sum = |of: fn(&OpLatency) -> u64| before.iter().map(|op| of(op)).sum();
    let difference = |of: fn(&OpLatency) -> Option<&LatencyHistogram>| {
        let latencies = difference(of(later), before.iter().filter_map(|op| of(op)));
        latencies.context("the daemon's histogram")
    };
    let counts = Counts {
        completed: later.completed.saturating_sub(sum(|op| op.completed)),
        bytes: later.bytes.saturating_sub(sum(|op| op.bytes)),
        total: difference(|op| Some(&op.total))?,
        disk: difference(|op| Some(&op.disk))?,
        store: difference(|op| op.store.as_ref())?,
        ..Counts::default()
    };
    let kind = Kind::of_word(&later.op);
    Ok(OpInterval::of(kind, later.by.clone(), counts))
}

fn in_flight(look: &DiskLatency) -> InFlight {
    let oldest = look.oldest.as_ref();
    InFlight {
        zios: Some(u64::from(look.in_flight)),
        oldest_ns: oldest.map(|zio| zio.age_ns),
        device: oldest.map(|_| look.disk.clone()),
        wait: oldest.map(|zio| zio.wait.clone()),
        wait_ns: oldest.map(|zio| zio.wait_ns),
        rule: oldest.and_then(|zio| zio.rule),
    }
}

fn difference<'a>(
    later: Option<&LatencyHistogram>,
    before: impl Iterator<Item = &'a LatencyHistogram>,
) -> Result<Option<Box<Histogram>>, BadBucket> {
    let Some(later) = later else { return Ok(None) };
    let mut sum = Histogram::default();
    for sent in before {
        sum.merge(&sent.histogram()?);
    }
    Ok(Some(Box::new(later.histogram()?.since(&sum))))
}

#[cfg(test)]
mod tests;
