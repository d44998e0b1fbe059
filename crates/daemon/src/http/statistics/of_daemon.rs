//! A daemon as the source of statistics.

use std::sync::Arc;
use std::time::SystemTime;

use dashpot_api::{Clock, RememberedSteps, Source, SourceDevice, SourceKind, SourceLayer};
use dashpot_engine::Op;
use dashpot_observe::{Dimension, Fact, Knows, Layer, Statistic};

use super::asked::{Answer, Ios, StatisticSource};
use super::interval::{Counted, Interval, SECOND_NS};
use super::ios::{self, CopiedIos};
use super::seconds;
use crate::answers::{AnswerBuilder, AnswerMemory};
use crate::collector::Steps;
use crate::http::memory::Wanted;
use crate::{Daemon, Refusal};

impl StatisticSource for Arc<Daemon> {
    fn answers(&self) -> &AnswerMemory {
        Daemon::answers(self)
    }

    fn source(&self) -> Source {
        let device = |layer, name: &str| SourceDevice {
            over: Vec::new(),
            layer,
            name: name.to_owned(),
        };
        let disks = self
            .disks()
            .map(|(_, disk)| device(SourceLayer::Disk, &disk.name));
        let volumes = self.volumes();
        let volumes = volumes.map(|(_, volume)| device(SourceLayer::Volume, &volume.name));
        Source {
            kind: SourceKind::Daemon,
            name: String::new(),
            words: String::new(),
            devices: disks.chain(volumes).collect(),
            gaps: Vec::new(),
            ended_ns: None,
            trouble: None,
        }
    }

    fn knows(&self, layer: Layer) -> Option<Knows> {
        Knows::Zios.on(layer)
    }

    fn clock(&self) -> Clock {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Clock {
            now_ns: self.now().as_nanos(),
            started_ns: self.started().as_nanos(),
            unix_ns: since_epoch.map_or(0, |since| since.as_nanos() as u64),
        }
    }

    fn values(&self, dimension: Dimension) -> Answer<'_, Vec<String>> {
        Box::pin(async move {
            match dimension {
                Dimension::Device => {
                    let names = self.device_names();
                    names.iter().map(ToString::to_string).collect()
                }
                Dimension::Op => Op::ALL.map(|op| op.name().to_owned()).to_vec(),
                Dimension::Fact(Fact::Rule) => {
                    let records = self.records().await;
                    let ids = records.iter().map(|record| record.id.0.to_string());
                    ids.collect()
                }
                Dimension::Client => self.collected(|view| view.collected.client_names()),
                _ => Vec::new(),
            }
        })
    }

    fn remembered(&self) -> (Vec<RememberedSteps>, u64) {
        let started = self.started().as_nanos();
        let said = |steps: &Steps| RememberedSteps {
            step_ns: steps.bounds.unit * SECOND_NS,
            steps_max: steps.bounds.most as u64,
            bytes_max: steps.bounds.bytes as u64,
            since_ns: started.max(steps.since() * SECOND_NS),
        };
        self.collected(|view| {
            let collected = view.collected;
            let steps = collected.seconds().levels().iter().map(said).collect();
            (steps, collected.recent().since())
        })
    }

    fn count<'a>(
        &'a self,
        statistic: &'a Statistic,
        interval: &'a Interval,
        making: &'a mut AnswerBuilder,
    ) -> Answer<'a, Result<Counted, Refusal>> {
        Box::pin(count(self, statistic, interval, making))
    }

    fn ios<'a>(
        &'a self,
        wanted: Wanted,
        making: &'a mut AnswerBuilder,
    ) -> Answer<'a, Result<Box<dyn Ios>, Refusal>> {
        Box::pin(async move {
            self.collect_to(wanted.seconds.end).await;
            let copied = CopiedIos::copy(self, &wanted, None, making).await?;
            Ok(Box::new(copied) as Box<dyn Ios>)
        })
    }
}

async fn count(
    daemon: &Arc<Daemon>,
    statistic: &Statistic,
    interval: &Interval,
    making: &mut AnswerBuilder,
) -> Result<Counted, Refusal> {
    daemon.collect_to(interval.seconds.end).await;
    let mut counted = if seconds::has(statistic) {
        seconds::count(daemon, statistic, interval, making).await?
    } else {
        ios::count(daemon, statistic, interval, making).await?
    };
    let dropped = daemon.collected(|view| {
        let dropped = view.dropped_by_second(None);
        dropped
            .filter(|(second, _)| interval.seconds.contains(second))
            .collect::<Vec<_>>()
    });
    counted.finish(interval, &dropped);
    counted.since = counted.since.max(daemon.started().as_nanos() / SECOND_NS);
    Ok(counted)
}
