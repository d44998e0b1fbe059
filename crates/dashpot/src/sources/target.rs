//! The target of a report: a daemon's disks, or the kernel's.

use anyhow::{anyhow, bail};
use dashpot_api::{Client, ClientError, Export};
use dashpot_observe::{By, Layer, Question, Schedule, Subject};
use dashpot_probe::Device;
use dashpot_rules::{ApiAddress, ParseError};

use super::counters::CountersSource;
use super::daemon::DaemonSource;
use super::failed::warn_of_failed;
use super::ios::{IoSource, KernelStream, ZioStream};
use super::kernel::KernelSource;
use super::remembered::Remembered;
use super::source::Source;
use crate::cli::reports::DeviceArgs;

/// The target of a report.
pub(crate) enum Target {
    /// Disks of a daemon.
    Daemon {
        /// The daemon.
        client: Client,
        /// The names of the disks. If the user has named no disks, they are all served disks.
        names: Vec<String>,
        /// Whether the user has named them.
        named: Named,
    },
    /// Block devices of the kernel, at least one, and whether the user has named them.
    Kernel(Vec<Device>, Named),
}

/// Whether the user has named the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Yes,
    No,
}

impl Named {
    /// The names to ask for: those from the user, or no names, which stands for all.
    pub(crate) fn only(self, names: &[String]) -> &[String] {
        match self {
            Named::Yes => names,
            Named::No => &[],
        }
    }
}

impl Target {
    /// Finds a target. A path, a number (`7,0`) and everything under `--kernel` means the kernel's
    /// disks. A name means the daemon's disk with that name, if there is one, and otherwise the
    /// kernel's.
    pub(crate) fn find(api: Option<&ApiAddress>, args: &DeviceArgs) -> anyhow::Result<Target> {
        if args.kernel && args.devices.is_empty() {
            return Ok(Target::Kernel(Device::all()?, Named::No));
        }
        if args.kernel || args.devices.iter().any(|words| is_the_kernels(words)) {
            return Ok(Target::Kernel(find_all(&args.devices)?, Named::Yes));
        }
        let client = Client::find(api)?;
        let exports = match client.exports() {
            Ok(known) => known,
            Err(error @ ClientError::NoDaemon { .. }) if args.devices.is_empty() => {
                bail!("{error}; or look at the kernel's disks with -k")
            }
            Err(ClientError::NoDaemon { .. }) if api.is_none() => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        if args.devices.is_empty() {
            return Ok(Target::all_of(client, exports));
        }
        let known: Vec<String> = exports.into_iter().map(|export| export.name).collect();
        if args.devices.iter().all(|name| known.contains(name)) {
            return Ok(Target::Daemon {
                client,
                names: args.devices.clone(),
                named: Named::Yes,
            });
        }
        match find_all(&args.devices) {
            Ok(devices) => Ok(Target::Kernel(devices, Named::Yes)),
            Err(error) => Err(nowhere(&args.devices, &known, &error)),
        }
    }

    /// All disks of a daemon, except those whose shard has failed.
    fn all_of(client: Client, exports: Vec<Export>) -> Target {
        warn_of_failed(exports.iter().map(|export| (&export.name, &export.failed)));
        let serving = exports.into_iter().filter(|export| export.failed.is_none());
        Target::Daemon {
            client,
            names: serving.map(|export| export.name).collect(),
            named: Named::No,
        }
    }

    /// Finds the pools of a daemon.
    pub(crate) fn of_pools() -> anyhow::Result<Target> {
        bail!("pools are simulated so far: dashpot sim LAB --report zpool-iostat")
    }

    /// The names of the devices.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Target::Daemon { names, .. } => names.clone(),
            Target::Kernel(devices, _) => {
                devices.iter().map(|device| device.name.clone()).collect()
            }
        }
    }

    /// Makes the source for a question and a schedule. The first interval begins now.
    pub(crate) fn watch(
        &self,
        question: &Question,
        schedule: &Schedule,
    ) -> anyhow::Result<Box<dyn Source + '_>> {
        Ok(match (self, question.past, &question.subject) {
            (
                Target::Daemon {
                    client,
                    names,
                    named,
                },
                Some(past),
                _,
            ) => {
                Box::new({
                    // Without names the daemon answers for all disks at once.
                    Remembered::ask(client, named.only(names), past)?
                })
            }
            (Target::Kernel(..), Some(_), _) => {
                bail!("--last: no daemon remembers the past of the kernel's disks: leave it out")
            }
            (Target::Daemon { client, names, .. }, None, Subject::Ios(wanted)) => {
                let stream = || ZioStream::new(client, names, wanted);
                Box::new(IoSource::begin(wanted, schedule, stream)?)
            }
            (Target::Kernel(devices, _), None, Subject::Ios(wanted)) => {
                let stream = || KernelStream::new(devices, wanted);
                Box::new(IoSource::begin(wanted, schedule, stream)?)
            }
            (Target::Daemon { client, names, .. }, None, _) => {
                Box::new(DaemonSource::new(client, names, question, schedule)?)
            }
            (Target::Kernel(devices, named), None, Subject::Averages(_)) => {
                let are_named = *named == Named::Yes;
                Box::new(CountersSource::new(devices, are_named, schedule)?)
            }
            (Target::Kernel(devices, _), None, _) => {
                Box::new(KernelSource::new(devices, question, schedule)?)
            }
        })
    }

    /// Whether a source of these disks can answer the question.
    pub(crate) fn check(&self, question: &Question) -> Result<(), ParseError> {
        let mut layers = question.layers().iter();
        layers.try_for_each(|layer| self.check_layer(*layer))?;
        question.by.map_or(Ok(()), |by| self.check_by(by))?;
        match (question.past, question.by) {
            (Some(_), Some(By::Size)) => Err(ParseError::new(
                "--by size: a daemon remembers its seconds by client, device and type: take one of \
                 these",
            )),
            _ => Ok(()),
        }
    }

    fn check_by(&self, by: By) -> Result<(), ParseError> {
        let why = match (self, by) {
            (Target::Daemon { .. }, By::Process | By::Cgroup) => {
                "dashpot knows its clients, not what they run for; --by client, size, device and \
                 type can be had of its disks"
            }
            (Target::Kernel(..), By::Client) => {
                "the kernel's disks have no clients; --by process, cgroup, size, device and type \
                 can be had of them"
            }
            _ => return Ok(()),
        };
        Err(ParseError::new(format!("--by {}: {why}", by.word())))
    }

    fn check_layer(&self, layer: Layer) -> Result<(), ParseError> {
        let why = match (self, layer) {
            (_, Layer::Disk) | (Target::Daemon { .. }, Layer::Store) => return Ok(()),
            (Target::Daemon { .. }, Layer::Volume) => {
                "--layer volume: volumes are simulated so far: dashpot sim LAB --report 'quantize \
                 --layer volume'"
            }
            (Target::Kernel(..), Layer::Volume | Layer::Store) => {
                "--layer: of the kernel's disks nothing is seen but the disk; name the device \
                 below or above it with -d instead"
            }
        };
        Err(ParseError::new(why))
    }
}

fn is_the_kernels(words: &str) -> bool {
    words.contains(['/', ',']) && !words.starts_with(',')
}

/// The kernel's devices with these names, paths or numbers, each once.
fn find_all(words: &[String]) -> anyhow::Result<Vec<Device>> {
    let mut devices: Vec<Device> = Vec::new();
    for words in words {
        let device = Device::find(words)?;
        if !device.is_there() {
            bail!(
                "'{words}' has no size, so there is nothing to watch: set it up first, 'lsblk -a' \
                 shows sizes"
            );
        }
        if let Some(whole) = devices.iter().find(|other| shares_sectors(other, &device)) {
            if whole.number == device.number {
                continue;
            }
            bail!(
                "{} and {} are one disk, whose I/O would be counted twice: name one of them",
                whole.name,
                device.name
            );
        }
        devices.push(device);
    }
    Ok(devices)
}

fn shares_sectors(one: &Device, other: &Device) -> bool {
    let is_part = one.part.is_some() && other.part.is_some();
    one.number == other.number || (one.disk == other.disk && !is_part)
}

/// The error for names of which some belong to the daemon and some to the kernel.
fn nowhere(names: &[String], known: &[String], kernel: &anyhow::Error) -> anyhow::Error {
    let daemon = match known {
        [] => "no daemon is here".to_owned(),
        _ => format!("the daemon has {}", known.join(", ")),
    };
    let mixed = names.iter().any(|name| known.contains(name));
    let hint = match mixed {
        true => "; a report covers the daemon's disks or the kernel's, not both",
        false => "",
    };
    anyhow!("{kernel:#}; {daemon}{hint}")
}
