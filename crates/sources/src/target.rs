//! The target of a report: a daemon's disks and volumes, its pools, or the kernel's disks.

use anyhow::{anyhow, bail};
use dashpot_api::{Client, ClientError, Export};
use dashpot_cli::reports::DeviceArgs;
use dashpot_observe::{Dimension, Knows, Layer, Predicates, Question, Schedule, Subject, Wanted};
use dashpot_probe::Device;
use dashpot_rules::{ApiAddress, ParseError};

use crate::counted::CountedSource;
use crate::counters::CountersSource;
use crate::daemon::{DaemonSource, Watched, counted};
use crate::devices::{find_all, is_surely_the_kernels};
use crate::failed::warn_of_failed;
use crate::ios::{Devices, IoSource, KernelStream, SyncStream, SyncedStream, ZioStream};
use crate::kernel::KernelSource;
use crate::known::check_known;
use crate::named::Named;
use crate::owner::Owner;
use crate::remembered::Remembered;
use crate::served::{at, by_layer, of_layer, split};
use crate::source::Source;

/// The target of a report.
pub enum Target {
    /// Disks and volumes of a daemon.
    Daemon {
        /// The daemon.
        client: Client,
        /// The names of the disks: all served disks if the user has named no device.
        disks: Vec<String>,
        /// The names of the volumes: all served volumes if the user has named no device.
        volumes: Vec<String>,
        /// Whether the user has named the disks and volumes.
        named: Named,
    },
    /// Pools of a daemon.
    Pools {
        /// The daemon.
        client: Client,
        /// The names of the pools.
        names: Vec<String>,
    },
    /// Block devices of the kernel, at least one, and whether the user has named them.
    Kernel(Vec<Device>, Named),
}

impl Target {
    /// Finds a target. A path or a number (`7,0`) means one of the kernel's disks, and so does every word if
    /// the user gives `--kernel`. Any other name means the daemon's disk or volume with that name, if there
    /// is one, and otherwise one of the kernel's disks.
    pub fn find(api: Option<&ApiAddress>, args: &DeviceArgs) -> anyhow::Result<Target> {
        if args.kernel && args.devices.is_empty() {
            return Ok(Target::Kernel(Device::all()?, Named::No));
        }
        if args.kernel
            || args
                .devices
                .iter()
                .any(|words| is_surely_the_kernels(words))
        {
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
        if let Some((disks, volumes)) = by_layer(&args.devices, &exports) {
            return Ok(Target::Daemon {
                client,
                disks,
                volumes,
                named: Named::Yes,
            });
        }
        let known: Vec<String> = exports.into_iter().map(|export| export.name).collect();
        match find_all(&args.devices) {
            Ok(devices) => Ok(Target::Kernel(devices, Named::Yes)),
            Err(error) => Err(nowhere(&args.devices, &known, &error)),
        }
    }

    /// Finds disks and volumes of a daemon by their names.
    pub fn of_daemon(api: Option<&ApiAddress>, names: &[String]) -> anyhow::Result<Target> {
        let client = Client::find(api)?;
        let exports = client.exports()?;
        let is_known = |name: &&String| exports.iter().any(|export| export.name == **name);
        if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
            let known: Vec<&str> = exports.iter().map(|export| &*export.name).collect();
            bail!("--disk {unknown}: the daemon has {}", known.join(", "));
        }
        let named = exports.iter().filter(|export| names.contains(&export.name));
        let (disks, volumes) = split(named);
        Ok(Target::Daemon {
            client,
            disks,
            volumes,
            named: Named::Yes,
        })
    }

    /// All disks and volumes of a daemon, except those whose shard has failed.
    fn all_of(client: Client, exports: Vec<Export>) -> Target {
        warn_of_failed(exports.iter().map(|export| (&export.name, &export.failed)));
        let serving = exports.iter().filter(|export| export.failed.is_none());
        let (disks, volumes) = split(serving);
        Target::Daemon {
            client,
            disks,
            volumes,
            named: Named::No,
        }
    }

    /// Finds pools of a daemon: the pools with these names, or all pools.
    pub fn of_pools(api: Option<&ApiAddress>, names: &[String]) -> anyhow::Result<Target> {
        let client = Client::find(api)?;
        let known = client.pools()?.into_iter();
        let known: Vec<String> = known.map(|pool| pool.name).collect();
        if known.is_empty() {
            bail!(
                "the daemon serves no pool: give its lab one (docs/lab.md), or take a simulation's: \
                 dashpot sim LAB --report zpool-iostat"
            );
        }
        if let Some(name) = names.iter().find(|name| !known.contains(name)) {
            bail!("no pool '{name}': there is {}", known.join(", "));
        }
        let names = match names {
            [] => known,
            names => names.to_vec(),
        };
        Ok(Target::Pools { client, names })
    }

    /// The names of the devices of a layer.
    pub fn names(&self, layer: Layer) -> Vec<String> {
        match self {
            Target::Daemon { disks, volumes, .. } => of_layer(layer, disks, volumes).to_vec(),
            Target::Pools { names, .. } => names.clone(),
            Target::Kernel(devices, _) => {
                devices.iter().map(|device| device.name.clone()).collect()
            }
        }
    }

    /// The names of the devices of a layer if the user has named them, and otherwise none.
    pub fn named(&self, layer: Layer) -> Vec<String> {
        if self.has_names() {
            self.names(layer)
        } else {
            Vec::new()
        }
    }

    /// Makes the source for a question and a schedule. The first interval begins now.
    pub fn watch(
        &self,
        question: &Question,
        schedule: &Schedule,
    ) -> anyhow::Result<Box<dyn Source + '_>> {
        match self {
            Target::Daemon {
                client,
                disks,
                volumes,
                ..
            } => watch_daemon(client, disks, volumes, question, schedule),
            Target::Pools { client, names } => {
                let watched = Watched {
                    pools: names.clone(),
                    ..Watched::default()
                };
                let source = DaemonSource::new(client, watched, question, schedule)?;
                Ok(Box::new(source))
            }
            Target::Kernel(devices, named) => watch_kernel(devices, *named, question, schedule),
        }
    }

    /// Makes the sources of all I/Os at these layers, one by one. The watch begins now.
    pub fn watch_all(
        &self,
        layers: &[Layer],
        schedule: &Schedule,
    ) -> anyhow::Result<Vec<Box<dyn Source + '_>>> {
        if let (Target::Daemon { client, .. }, [_, ..]) = (self, layers) {
            let each = layers.iter().map(|layer| at(*layer, &self.names(*layer)));
            let devices: Devices = each.flatten().collect();
            let wanted = Wanted::all(Layer::Disk);
            let stream = || ZioStream::new(client, devices, &wanted);
            let source = IoSource::begin(&wanted, &Predicates::default(), schedule, stream)?;
            return Ok(vec![Box::new(source)]);
        }
        let questions = layers
            .iter()
            .map(|layer| Question::of(Subject::Ios(Wanted::all(*layer))));
        questions
            .map(|question| self.watch(&question, schedule))
            .collect()
    }

    /// Refuses a question that no source of this target can answer.
    pub fn check(&self, question: &Question) -> Result<(), ParseError> {
        let mut layers = question.layers().iter();
        layers.try_for_each(|layer| self.check_layer(*layer))?;
        check_known(question, self.knows())?;
        self.check_events(question)?;
        check_past(question)
    }

    /// Whether the user has named the devices.
    fn has_names(&self) -> bool {
        match self {
            Target::Daemon { named, .. } | Target::Kernel(_, named) => *named == Named::Yes,
            Target::Pools { .. } => false,
        }
    }

    /// The owner of these disks.
    pub fn owner(&self) -> Owner {
        match self {
            Target::Daemon { .. } | Target::Pools { .. } => Owner::Daemon,
            Target::Kernel(..) => Owner::Kernel,
        }
    }

    /// The facts that a source of this target knows of I/Os.
    pub fn knows(&self) -> Knows {
        match self {
            Target::Daemon { .. } | Target::Pools { .. } => Knows::Zios,
            Target::Kernel(..) => Knows::Kernel,
        }
    }

    /// Refuses a question about both volumes and disks, if only events or the daemon's memory can answer it:
    /// dashpot reads these one layer at a time.
    fn check_events(&self, question: &Question) -> Result<(), ParseError> {
        let layers = question.layers();
        let is_both =
            layers.contains(&Layer::Volume) && layers.iter().any(|one| *one != Layer::Volume);
        let has_one = needs_events(question) || question.past.is_some();
        match self {
            Target::Daemon { .. } if is_both && has_one => Err(ParseError::new(
                "--layer: a daemon tells these figures of one layer at a time: name volume or disk only, or record \
                 both with 'dashpot record'",
            )),
            _ => Ok(()),
        }
    }

    fn check_layer(&self, layer: Layer) -> Result<(), ParseError> {
        let (disks, volumes) = match (self, layer) {
            (_, Layer::Kernel) => {
                return Err(ParseError::new(
                    "--layer kernel: only a recording has this layer, beside a daemon's disks: of live disks take \
                 --layer disk, with -k for the kernel's",
                ));
            }
            (Target::Daemon { .. }, Layer::Fs) => {
                return Err(ParseError::new(
                    "--layer fs: a daemon sees no system calls but those of path disks, which are I/Os of --layer \
                     disk: for others take the kernel's disks, -k or -d DEVICE",
                ));
            }
            (Target::Daemon { disks, volumes, .. }, _) => (disks, volumes),
            (_, Layer::Disk) | (Target::Pools { .. }, _) | (Target::Kernel(..), Layer::Fs) => {
                return Ok(());
            }
            (Target::Kernel(..), Layer::Volume | Layer::Store) => {
                return Err(ParseError::new(
                    "--layer: dashpot sees the kernel's disks only at the layer disk; name the device \
                     below or above it with -d instead",
                ));
            }
        };
        let why = match (layer, &disks[..], &volumes[..], self.has_names()) {
            (Layer::Volume, [disk, ..], _, true) => {
                format!("--layer volume: '{disk}' is a disk: name volumes only")
            }
            (Layer::Volume, _, [], _) => {
                "--layer volume: the daemon serves no volume; a lab with a pool has some: docs/lab.md"
                    .to_owned()
            }
            (Layer::Disk | Layer::Store, _, [volume, ..], true) => {
                format!("'{volume}' is a volume: add --layer volume, and name volumes only")
            }
            _ => return Ok(()),
        };
        Err(ParseError::new(why))
    }
}

/// Refuses questions that no daemon's memory answers.
fn check_past(question: &Question) -> Result<(), ParseError> {
    let is_kept = |by| by == Dimension::Client;
    match (question.past, question.by) {
        (None, _) => Ok(()),
        (Some(_), Some(by)) if !is_kept(by) => Err(ParseError::new(format!(
            "--by {}: a daemon remembers its past only by client, device and op: take one of these",
            by.word()
        ))),
        (Some(_), _) if !question.predicates.is_empty() => Err(ParseError::new(
            "--where: a daemon remembers no single I/Os of its past: leave out --last, or record them \
             with 'dashpot record'",
        )),
        (Some(_), _) if question.has_averages() => Err(ParseError::new(
            "--last: a daemon's memory of seconds has no busy times: leave it out, or record the I/Os with \
             'dashpot record'",
        )),
        (Some(_), _) if question.layers().contains(&Layer::Store) => Err(ParseError::new(
            "--layer store: a daemon remembers no times of its stores: leave out --last, or record the I/Os with \
             'dashpot record'",
        )),
        (Some(_), _) => Ok(()),
    }
}

/// Whether only events can answer the question: the daemon has no counters for the question's measure, for one of
/// its conditions, or for its breakdown.
fn needs_events(question: &Question) -> bool {
    let is_counted = |by| counted(by).is_some();
    let is_apart = |by: Dimension| match by {
        Dimension::Device | Dimension::Op | Dimension::Type => true,
        Dimension::Error => question.counts_failed(),
        _ => false,
    };
    question.measure.is_some()
        || !question.by.is_none_or(is_counted)
        || !question.predicates.dimensions().all(is_apart)
}

fn watch_daemon<'a>(
    client: &'a Client,
    disks: &'a [String],
    volumes: &'a [String],
    question: &Question,
    schedule: &Schedule,
) -> anyhow::Result<Box<dyn Source + 'a>> {
    let has = |layer| question.layers().contains(&layer);
    let layer = if has(Layer::Volume) {
        Layer::Volume
    } else {
        Layer::Disk
    };
    let names = of_layer(layer, disks, volumes);
    if let Some(past) = question.past {
        return Ok(Box::new(Remembered::ask(client, names, layer, past)?));
    }
    if let Subject::Ios(wanted) = &question.subject {
        let stream = || ZioStream::new(client, at(wanted.layer, names), wanted);
        let predicates = &question.predicates;
        return Ok(Box::new(IoSource::begin(
            wanted, predicates, schedule, stream,
        )?));
    }
    if needs_events(question) {
        let wanted = Wanted::all(layer);
        let stream = || ZioStream::new(client, at(layer, names), &wanted);
        let layers = vec![(layer, names.to_vec())];
        return Ok(Box::new(CountedSource::begin(
            question, layers, schedule, stream,
        )?));
    }
    let names = |wanted: bool, names: &[String]| if wanted { names.to_vec() } else { Vec::new() };
    let watched = Watched {
        disks: names(has(Layer::Disk) || has(Layer::Store), disks),
        volumes: names(has(Layer::Volume), volumes),
        pools: Vec::new(),
    };
    let source = DaemonSource::new(client, watched, question, schedule)?;
    Ok(Box::new(source))
}

fn watch_kernel<'a>(
    devices: &'a [Device],
    named: Named,
    question: &Question,
    schedule: &Schedule,
) -> anyhow::Result<Box<dyn Source + 'a>> {
    if question.past.is_some() {
        bail!("--last: no daemon remembers the past of the kernel's disks: leave it out");
    }
    if question.layers().contains(&Layer::Fs) {
        return watch_syncs(devices, named, question, schedule);
    }
    Ok(match &question.subject {
        Subject::Ios(wanted) => {
            let stream = || KernelStream::new(devices, named, wanted);
            Box::new(IoSource::begin(
                wanted,
                &question.predicates,
                schedule,
                stream,
            )?)
        }
        Subject::Averages(_) => Box::new(CountersSource::new(devices, named, schedule)?),
        _ => Box::new(KernelSource::new(devices, named, question, schedule)?),
    })
}

/// Watches the calls that sync files on these devices and, if the question is also about disks, the devices'
/// I/Os. If the user has named no device, calls on unknown devices count as [`ELSEWHERE`].
fn watch_syncs<'a>(
    devices: &'a [Device],
    named: Named,
    question: &Question,
    schedule: &Schedule,
) -> anyhow::Result<Box<dyn Source + 'a>> {
    let others = (named == Named::No).then_some(ELSEWHERE);
    let stream = || SyncStream::new(devices, others, &question.predicates);
    if let Subject::Ios(wanted) = &question.subject {
        let predicates = &question.predicates;
        return Ok(Box::new(IoSource::begin(
            wanted, predicates, schedule, stream,
        )?));
    }
    let disks: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
    let mut calls = disks.clone();
    calls.extend(others.map(str::to_owned));
    if !question.layers().contains(&Layer::Disk) {
        let layers = vec![(Layer::Fs, calls)];
        return Ok(Box::new(CountedSource::begin(
            question, layers, schedule, stream,
        )?));
    }
    let both = || {
        Ok(SyncedStream {
            disks: KernelStream::new(devices, named, &Wanted::all(Layer::Disk))?,
            calls: stream()?,
        })
    };
    let layers = vec![(Layer::Fs, calls), (Layer::Disk, disks)];
    Ok(Box::new(CountedSource::begin(
        question, layers, schedule, both,
    )?))
}

/// The device name for calls that are not on a watched device, and for calls on unknown devices.
const ELSEWHERE: &str = "elsewhere";

/// The error if neither the daemon nor the kernel has devices with all of these names.
fn nowhere(names: &[String], known: &[String], kernel: &anyhow::Error) -> anyhow::Error {
    let daemon = match known {
        [] => "no daemon is here".to_owned(),
        _ => format!("the daemon has {}", known.join(", ")),
    };
    let mixed = names.iter().any(|name| known.contains(name));
    let hint = if mixed {
        "; a report covers the daemon's disks or the kernel's, not both"
    } else {
        ""
    };
    anyhow!("{kernel:#}; {daemon}{hint}")
}
