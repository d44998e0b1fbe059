//! The disks of a daemon, watched through its API: an interval is the difference of two looks.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use dashpot_engine::histogram::{Histogram, LAYOUT};

use super::interval::{DeviceInterval, OpInterval};
use super::pace::Pace;
use super::question::{By, Question};
use crate::api::types::{Disk, DiskLatency, LatencyHistogram, OpLatency};
use crate::client::{Client, segment};
use crate::commands::warn_of_failed;
use crate::report::in_flight::{InFlight, Mention};

/// Looks at disks in turn.
pub(crate) struct DaemonWatch<'a> {
    client: &'a Client,
    paths: Vec<String>,
    pace: Pace<'a>,
    last: Vec<DiskLatency>,
}

impl<'a> DaemonWatch<'a> {
    /// Looks at all disks, or at those that are named, once per interval from now on.
    pub(super) fn new(
        client: &'a Client,
        names: &[String],
        question: &Question,
        interval: dashpot_engine::Duration,
        count: Option<u64>,
    ) -> anyhow::Result<DaemonWatch<'a>> {
        let query = query(question.by)?;
        let path = |name: &String| format!("/v1/disks/{}/latency{query}", segment(name));
        let paths: Vec<String> = names_of(client, names)?.iter().map(path).collect();
        let last = look(client, &paths)?;
        Ok(DaemonWatch {
            client,
            pace: Pace::new(client, latest(&last), interval.as_nanos(), count)?,
            paths,
            last,
        })
    }

    /// What disks have done since they are served.
    pub(super) fn since_start(&self) -> anyhow::Result<Vec<DeviceInterval>> {
        self.last.iter().map(DeviceInterval::since_start).collect()
    }

    /// Of which zios in flight the report of the interval that ended last speaks.
    pub(super) fn mention(&self) -> Mention {
        if self.pace.is_over() {
            Mention::All
        } else {
            Mention::WholeInterval
        }
    }

    /// Waits until the next interval has ended; `None` if the last one has.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<Vec<DeviceInterval>>> {
        if !self.pace.wait(latest(&self.last)) {
            return Ok(None);
        }
        let now = look(self.client, &self.paths)?;
        let pairs = self.last.iter().zip(&now);
        let intervals = pairs
            .map(|(earlier, later)| DeviceInterval::between(earlier, later))
            .collect::<anyhow::Result<_>>()?;
        self.last = now;
        Ok(Some(intervals))
    }

    /// Nothing that is counted on the data path is lost.
    pub(super) fn lost(&self) -> u64 {
        0
    }
}

/// The disks to look at: those named, or all that are served.
fn names_of(client: &Client, names: &[String]) -> anyhow::Result<Vec<String>> {
    if !names.is_empty() {
        return Ok(names.to_vec());
    }
    let disks: Vec<Disk> = client.get("/v1/disks?oldest=0")?;
    warn_of_failed(&disks);
    let serving = disks.into_iter().filter(|disk| disk.failed.is_none());
    Ok(serving.map(|disk| disk.name).collect())
}

/// The breakdown as the API has it.
fn query(by: Option<By>) -> anyhow::Result<&'static str> {
    match by {
        None => Ok(""),
        Some(By::Client) => Ok("?by=client"),
        Some(By::Size) => Ok("?by=size"),
        Some(By::Process | By::Cgroup) => {
            bail!("a daemon knows clients, not processes: ask for --by client")
        }
    }
}

fn look(client: &Client, paths: &[String]) -> anyhow::Result<Vec<DiskLatency>> {
    let look = |path: &String| {
        let latency: DiskLatency = client.get(path)?;
        ensure!(
            latency.layout == LAYOUT,
            "the daemon's histograms are of layout {}, not {LAYOUT}: is it of another version?",
            latency.layout
        );
        Ok(latency)
    };
    paths.iter().map(look).collect()
}

fn latest(looks: &[DiskLatency]) -> u64 {
    looks
        .iter()
        .map(|look| look.at_ns)
        .max()
        .unwrap_or_default()
}

impl DeviceInterval {
    fn since_start(later: &DiskLatency) -> anyhow::Result<DeviceInterval> {
        let elapsed_ns = later.at_ns.saturating_sub(later.since_ns);
        DeviceInterval::new(later, None, Duration::from_nanos(elapsed_ns))
    }

    fn between(earlier: &DiskLatency, later: &DiskLatency) -> anyhow::Result<DeviceInterval> {
        ensure!(
            later.since_ns == earlier.since_ns,
            "the daemon was started again; so is what it counts"
        );
        let elapsed_ns = later.at_ns.saturating_sub(earlier.at_ns);
        DeviceInterval::new(later, Some(earlier), Duration::from_nanos(elapsed_ns))
    }

    fn new(
        later: &DiskLatency,
        earlier: Option<&DiskLatency>,
        elapsed: Duration,
    ) -> anyhow::Result<DeviceInterval> {
        let op = |(at, op): (usize, &OpLatency)| {
            let before = earlier.and_then(|earlier| earlier.ops.get(at));
            OpInterval::new(op, before)
        };
        let busy_before = earlier.map_or(0, |earlier| earlier.busy_ns);
        let depth_before = earlier.map_or(0, |earlier| earlier.depth_time_ns.0);
        let ops = later.ops.iter().enumerate().map(op);
        Ok(DeviceInterval {
            device: later.disk.clone(),
            elapsed,
            ops: ops.collect::<anyhow::Result<_>>()?,
            busy: Duration::from_nanos(later.busy_ns.saturating_sub(busy_before)),
            depth_time_ns: later.depth_time_ns.0.saturating_sub(depth_before),
            in_flight: in_flight(later),
        })
    }
}

impl OpInterval {
    fn new(later: &OpLatency, earlier: Option<&OpLatency>) -> anyhow::Result<OpInterval> {
        let completed_before = earlier.map_or(0, |op| op.completed);
        let bytes_before = earlier.map_or(0, |op| op.bytes);
        Ok(OpInterval {
            op: later.op.clone(),
            rwbs: None,
            by: None,
            completed: later.completed.saturating_sub(completed_before),
            bytes: later.bytes.saturating_sub(bytes_before),
            total: difference(&later.total, earlier.map(|op| &op.total))?,
            disk: difference(&later.disk, earlier.map(|op| &op.disk))?,
            store: None,
        })
    }
}

fn in_flight(look: &DiskLatency) -> InFlight {
    let oldest = look.oldest.as_ref();
    InFlight {
        zios: u64::from(look.in_flight),
        oldest_ns: oldest.map(|zio| zio.age_ns),
        disk: oldest.map(|_| look.disk.clone()),
        wait: oldest.map(|zio| zio.wait.clone()),
        rule: oldest.and_then(|zio| zio.rule),
    }
}

fn difference(
    later: &LatencyHistogram,
    earlier: Option<&LatencyHistogram>,
) -> anyhow::Result<Histogram> {
    let histogram = |sent: &LatencyHistogram| sent.histogram().context("the daemon's histogram");
    let later = histogram(later)?;
    match earlier {
        Some(earlier) => Ok(later.since(&histogram(earlier)?)),
        None => Ok(later),
    }
}

#[cfg(test)]
mod tests {
    use super::DeviceInterval;
    use crate::api::types::{DiskLatency, LatencyHistogram, OpLatency, Wide};
    use dashpot_engine::histogram::Histogram;

    /// A disk that was asked for `reads` reads of 4 KiB, each of 10 ms, one at a time.
    fn look(since_ns: u64, reads: u64) -> DiskLatency {
        let mut latencies = Histogram::default();
        (0..reads).for_each(|_| latencies.record(10_000_000));
        let sent = LatencyHistogram::of(&latencies);
        let read = OpLatency {
            by: None,
            op: "read".to_owned(),
            completed: reads,
            failed: 0,
            bytes: reads * 4_096,
            total: sent.clone(),
            disk: sent,
            lateness: LatencyHistogram::default(),
            store: None,
        };
        DiskLatency {
            disk: "d".to_owned(),
            layout: dashpot_engine::histogram::LAYOUT.to_owned(),
            since_ns,
            at_ns: since_ns + reads * 10_000_000,
            busy_ns: reads * 10_000_000,
            depth_time_ns: Wide(u128::from(reads) * 10_000_000),
            in_flight: 0,
            oldest: None,
            dropped: 0,
            ops: vec![read],
        }
    }

    #[test]
    fn an_interval_is_the_difference_of_two_looks() {
        let interval = DeviceInterval::between(&look(7, 30), &look(7, 80)).unwrap();
        let read = &interval.ops[0];
        assert_eq!((read.completed, read.bytes), (50, 50 * 4_096));
        assert_eq!((read.disk.count(), read.disk.sum()), (50, 500_000_000));
        assert_eq!(
            (interval.elapsed, interval.busy.as_millis()),
            (interval.busy, 500)
        );
        assert_eq!(interval.depth_time_ns, 500_000_000);
        let whole = DeviceInterval::since_start(&look(7, 80)).unwrap();
        assert_eq!(
            (whole.ops[0].completed, whole.elapsed.as_millis()),
            (80, 800)
        );
    }

    #[test]
    fn two_daemons_make_no_interval() {
        assert!(DeviceInterval::between(&look(7, 30), &look(8, 80)).is_err());
    }
}
