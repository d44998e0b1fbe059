//! Makes frames of the kernel's disks. The thread reads short intervals, and adds them up into the intervals
//! of the screen, so that the user can change the interval or leave at any time.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use dashpot_engine::Duration as Interval;
use dashpot_observe::{
    DeviceInterval, Dimension, Intervals, KEYS_MAX, Layer, Question, Schedule, Seen,
};
use dashpot_probe::Device;
use dashpot_sources::{KernelSource, Named, Source};
use tokio::sync::mpsc::UnboundedSender;

use crate::ask::{Ask, News};
use crate::frame::{ClientFrame, Condition, DiskFrame, Done, Frame};

/// Devices of the kernel, and the channel to the screen.
pub(crate) struct Kernel {
    pub(crate) devices: Vec<Device>,
    pub(crate) named: Named,
    pub(crate) interval: Duration,
    pub(crate) asked: Receiver<Ask>,
    pub(crate) news: UnboundedSender<News>,
}

impl Kernel {
    /// Watches until the screen is gone or a signal comes. Tells `begun` whether the watch has begun, or why
    /// it cannot begin.
    pub(crate) fn run(mut self, begun: impl FnOnce(anyhow::Result<()>)) {
        let question = Question {
            by: Some(Dimension::Process),
            ..Question::latencies(&[Layer::Disk])
        };
        let source = KernelSource::new(
            &self.devices,
            self.named,
            &question,
            &Schedule::every(STEP, None),
        );
        match source {
            Ok(source) => {
                begun(Ok(()));
                if let Err(error) = self.watch(source) {
                    let _ = self.news.send(News::Down(format!("{error:#}")));
                }
            }
            Err(error) => begun(Err(error)),
        }
    }

    fn watch(&mut self, mut source: KernelSource) -> anyhow::Result<()> {
        let mut sum: Vec<DeviceInterval> = Vec::new();
        let mut lost = 0;
        let mut begun: Option<Intervals> = None;
        while let Some(step) = source.next()? {
            let Seen { span, gone, .. } = step;
            let period_ns = self.interval.as_nanos() as u64;
            let begin = || Intervals::new(span.start_ns, period_ns, None);
            let intervals = begun.get_or_insert_with(begin);
            lost += step.lost;
            add(&mut sum, step.disks);
            match self.asked.try_recv() {
                Ok(Ask::Every(interval)) => {
                    self.interval = interval;
                    intervals.every(interval.as_nanos() as u64);
                }
                Ok(_) | Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
            if let Some(span) = intervals.end(span.end_ns) {
                let mut frame = frame(&sum, &gone, std::mem::take(&mut lost));
                frame.check_length(self.interval, span.missed);
                let _ = self.news.send(News::Frame(Box::new(frame)));
                sum.clear();
            }
        }
        Ok(())
    }
}

/// Adds a step to the current interval. An interval of the screen can last for hours, so the steps are added
/// up rather than kept. The sum may have as many processes as a single step may have.
fn add(sum: &mut Vec<DeviceInterval>, step: Vec<DeviceInterval>) {
    for next in step {
        let counted: usize = sum.iter().map(|one| one.ops.len()).sum();
        match sum.iter_mut().find(|one| one.device == next.device) {
            Some(one) => one.go_on(next, KEYS_MAX.saturating_sub(counted)),
            None => sum.push(next),
        }
    }
}

/// The frame at the end of an interval.
fn frame(intervals: &[DeviceInterval], gone: &[String], lost: u64) -> Frame {
    let disks = intervals.iter().map(|interval| DiskFrame {
        name: interval.device.clone(),
        conditions: if gone.contains(&interval.device) {
            vec![Condition::Vanished]
        } else {
            Vec::new()
        },
        clients: ClientFrame::all(interval),
        in_flight: interval.in_flight.zios.unwrap_or_default(),
        oldest_ns: interval.in_flight.oldest_ns,
        wait: interval.in_flight.wait.clone(),
        done: Done::of(interval),
        ..DiskFrame::default()
    });
    let missed = format!("{lost} events were lost in this interval: the figures miss them");
    Frame {
        disks: disks.collect(),
        notes: (lost > 0).then_some(missed).into_iter().collect(),
        ..Frame::default()
    }
}

const STEP: Interval = Interval::from_millis(100);
