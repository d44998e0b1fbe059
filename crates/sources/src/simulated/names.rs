//! The names of a simulation's devices and clients, and its finished zios as records.

use std::sync::Arc;

use dashpot_engine::{ClientId, Device, Event};
use dashpot_observe::{Facts, FinishedIo, IoWaits, Kind, Layer, OTHER, Who};
use dashpot_sim::scenario::Scenario;

/// The names of devices and clients.
pub struct Names {
    disks: Vec<Arc<str>>,
    volumes: Vec<Arc<str>>,
    workloads: Vec<Arc<str>>,
    /// The clients of each disk.
    clients: Vec<Vec<(ClientId, Arc<str>)>>,
    other: Arc<str>,
}

impl Names {
    /// The names of a scenario's devices and clients.
    pub fn of(scenario: &Scenario) -> Names {
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

    pub fn device(&self, device: Device) -> &Arc<str> {
        let (names, at) = match device {
            Device::Disk(disk) => (&self.disks, disk.0),
            Device::Volume(volume) => (&self.volumes, volume.0),
        };
        names.get(at as usize).unwrap_or(&self.other)
    }

    /// The name of a client of a device. Clients without a separate id share one name.
    pub fn client(&self, device: Device, client: ClientId) -> &Arc<str> {
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
    pub fn finished(&self, event: &Event) -> FinishedIo {
        let layer = match event.device {
            Device::Disk(_) => Layer::Disk,
            Device::Volume(_) => Layer::Volume,
        };
        let device = Arc::clone(self.device(event.device));
        FinishedIo {
            fua: event.fua,
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
            facts: Facts {
                rule: event.rule.map(|rule| rule.0),
                lane: event.lane,
                class: event.class,
                txg_syncing: event.txg_syncing,
            },
            error: event.outcome.err().map(|errno| errno.name().to_owned()),
            ..FinishedIo::bare(layer, device, Kind::Op(event.op))
        }
    }
}
