//! Looks at the kernel's disks: short intervals, added up to those of the screen, so that it can
//! change its mind about their length, and leave, at any time.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use dashpot_engine::Duration as Interval;
use tokio::sync::mpsc::UnboundedSender;

use super::ask::{Ask, Told};
use super::look::{ClientLook, DiskLook, Done, Look};
use crate::observe::{By, DeviceInterval, Question, Target, Watch};

/// Devices of the kernel, and who is told of them.
pub(super) struct Kernel {
    pub(super) target: Target,
    pub(super) interval: Duration,
    pub(super) asked: Receiver<Ask>,
    pub(super) told: UnboundedSender<Told>,
}

impl Kernel {
    /// Watches until nobody asks any more, or a signal ends it; `begun` is told whether it can.
    pub(super) fn run(mut self, begun: impl FnOnce(anyhow::Result<()>)) {
        let target = std::mem::replace(&mut self.target, Target::Kernel(Vec::new()));
        let question = Question {
            by: Some(By::Process),
            queued: false,
            store: false,
        };
        match Watch::new(&target, &question, STEP, None) {
            Ok(watch) => {
                begun(Ok(()));
                if let Err(error) = self.watch(watch) {
                    let _ = self.told.send(Told::Down(format!("{error:#}")));
                }
            }
            Err(error) => begun(Err(error)),
        }
    }

    fn watch(&mut self, mut watch: Watch<'_>) -> anyhow::Result<()> {
        let mut steps = Vec::new();
        let mut lost = 0;
        while let Some(step) = watch.next()? {
            lost += watch.lost();
            steps.push(step);
            match self.asked.try_recv() {
                Ok(Ask::Every(interval)) => self.interval = interval,
                Ok(_) | Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
            let first = |step: &Vec<DeviceInterval>| step.first().map(|one| one.elapsed);
            let elapsed: Duration = steps.iter().filter_map(first).sum();
            if elapsed + STEP_HALF >= self.interval {
                let look = look(&steps, std::mem::take(&mut lost));
                let _ = self.told.send(Told::Look(Box::new(look)));
                steps.clear();
            }
        }
        Ok(())
    }
}

/// What devices did in steps that follow each other.
fn look(steps: &[Vec<DeviceInterval>], lost: u64) -> Look {
    let disks = steps.last().into_iter().flatten().map(|last| {
        let of_disk = |step: &&DeviceInterval| step.device == last.device;
        let own: Vec<&DeviceInterval> = steps.iter().flatten().filter(of_disk).collect();
        DiskLook {
            name: last.device.clone(),
            clients: ClientLook::all(&own),
            in_flight: last.in_flight.zios,
            oldest_ns: last.in_flight.oldest_ns,
            wait: last.in_flight.wait.clone(),
            done: Done::of(&own),
            ..DiskLook::default()
        }
    });
    let missed = format!("{lost} events were lost in this interval: the figures miss them");
    Look {
        disks: disks.collect(),
        notes: (lost > 0).then_some(missed).into_iter().collect(),
        ..Look::default()
    }
}

const STEP_MS: u64 = 100;
const STEP: Interval = Interval::from_millis(STEP_MS);
const STEP_HALF: Duration = Duration::from_millis(STEP_MS / 2);
