//! `--events`: one line for each finished zio, with all known facts.

use std::io::{self, Write};
use std::path::Path;

use std::sync::Arc;

use anyhow::Context;
use dashpot_engine::{ClientId, Device, Event, Instant};
use dashpot_observe::{FinishedIo, IoWaits, Kind, Layer, OTHER, Who};
use dashpot_sim::scenario::Scenario;

use crate::commands::draft::Draft;

const TITLES: &str = "number,parent,device,client,class,op,fua,offset,length,outcome,arrived_ns,\
                      submitted_ns,admitted_ns,issued_ns,store_done_ns,target_ns,offered_ns,\
                      ended_ns,rule,lane";

/// A file of events.
pub(super) struct EventsFile(Draft);

impl EventsFile {
    /// Checks that the file can be written, and begins it.
    pub(super) fn create(place: &Path) -> anyhow::Result<EventsFile> {
        let mut draft = Draft::create("--events", place)?;
        writeln!(draft.out, "{TITLES}").context("--events")?;
        Ok(EventsFile(draft))
    }

    /// Writes the event of a zio that has finished.
    pub(super) fn write(&mut self, event: &Event, names: &Names) -> anyhow::Result<()> {
        write_line(&mut self.0.out, event, names).context("--events")
    }

    /// Moves the complete file to its place.
    pub(super) fn publish(self) -> anyhow::Result<()> {
        self.0.publish()
    }
}

/// The names of devices and clients.
pub(in crate::commands) struct Names {
    disks: Vec<Arc<str>>,
    volumes: Vec<Arc<str>>,
    workloads: Vec<Arc<str>>,
    /// The clients of each disk.
    clients: Vec<Vec<(ClientId, Arc<str>)>>,
    other: Arc<str>,
}

impl Names {
    pub(in crate::commands) fn of(scenario: &Scenario) -> Names {
        Names {
            disks: scenario
                .disks
                .iter()
                .map(|disk| disk.name.as_str().into())
                .collect(),
            volumes: scenario
                .volumes
                .iter()
                .map(|volume| volume.name.as_str().into())
                .collect(),
            workloads: scenario
                .workloads
                .iter()
                .map(|workload| workload.name.as_str().into())
                .collect(),
            clients: (0..scenario.disks.len())
                .map(|disk| scenario.clients_of(disk).into_iter())
                .map(|clients| clients.map(|(id, name)| (id, name.into())).collect())
                .collect(),
            other: OTHER.into(),
        }
    }

    fn device(&self, device: Device) -> &Arc<str> {
        let (names, at) = match device {
            Device::Disk(disk) => (&self.disks, disk.0),
            Device::Volume(volume) => (&self.volumes, volume.0),
        };
        names.get(at as usize).unwrap_or(&self.other)
    }

    /// The name of a client. Clients without a separate id share one name.
    fn client(&self, device: Device, client: ClientId) -> &Arc<str> {
        let name = match device {
            Device::Disk(disk) => {
                let clients = self.clients.get(disk.0 as usize);
                let mut clients = clients.into_iter().flatten();
                clients.find_map(|(id, name)| (*id == client).then_some(name))
            }
            Device::Volume(_) if client == ClientId::OTHER => None,
            Device::Volume(_) => self.workloads.get(usize::from(client.0)),
        };
        name.unwrap_or(&self.other)
    }

    /// The record of a finished zio.
    pub(in crate::commands) fn finished(&self, event: &Event) -> FinishedIo {
        FinishedIo {
            layer: match event.device {
                Device::Disk(_) => Layer::Disk,
                Device::Volume(_) => Layer::Volume,
            },
            device: Arc::clone(self.device(event.device)),
            kind: Kind::Op(event.op),
            fua: event.fua,
            letters: None,
            offset_bytes: event.offset,
            length_bytes: event.length.into(),
            depth: Some(event.depth),
            begun_ns: event.arrived.as_nanos(),
            ended_ns: event.ended.as_nanos(),
            at_ns: event.ended.as_nanos(),
            waits: IoWaits::Zio(event.waits()),
            who: Some(Who::Client(Arc::clone(
                self.client(event.device, event.client),
            ))),
            rule: event.rule.map(|rule| rule.0),
            lane: event.lane,
            class: event.class,
            txg_syncing: event.txg_syncing,
            inode: None,
            merged: 0,
            requeued: 0,
            error: event.outcome.err().map(|errno| errno.name().to_owned()),
        }
    }
}

fn write_line(out: &mut impl Write, event: &Event, names: &Names) -> io::Result<()> {
    let or_empty = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
    write!(
        out,
        "{},{},{},{},{},{},{},{},{},{}",
        event.number,
        or_empty(event.parent),
        names.device(event.device),
        names.client(event.device, event.client),
        event.class.map_or("", |class| class.name()),
        event.op.name(),
        event.fua,
        event.offset,
        event.length,
        event.outcome.map_or_else(|errno| errno.name(), |()| "ok"),
    )?;
    for at in [
        event.arrived,
        event.submitted,
        event.admitted,
        event.issued,
        event.store_done,
        event.target,
        event.offered,
        event.ended,
    ] {
        write!(out, ",{}", Instant::as_nanos(at))?;
    }
    writeln!(
        out,
        ",{},{}",
        or_empty(event.rule.map(|rule| rule.0.into())),
        or_empty(event.lane.map(u64::from))
    )
}
