//! The block devices of `run --attach` and `serve --attach`, which live as long as the daemon.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, anyhow, bail};
use dashpot_attach::attacher::{ATTACHES, Device, Done, Order};
use dashpot_cli::{AttachedArgs, LabArgs};
use dashpot_export::store::OpenDevices;
use dashpot_export::{complain, reclaim};
use dashpot_lab::Lab;
use dashpot_rules::Address;
use tokio::task::spawn_blocking;

use crate::caller::Caller;
use crate::instance::Export;
use crate::signals::Signals;
use crate::variables::{DEVICE, variable};

/// The block devices that `--attach` and `--mount` ask for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The disks; empty for all.
    pub(crate) disks: Vec<String>,
    /// Whether each device gets a link in `/dev/dashpot`.
    pub(crate) linked: bool,
    /// Where the file system of the first disk is mounted.
    pub(crate) mount: Option<PathBuf>,
}

/// The disks to serve. In `--attach WORD`, dashpot takes WORD for a lab file. If there is no such file, the
/// error says how to name a disk to attach.
pub(crate) fn lab_beside(attach: &AttachedArgs, args: &LabArgs) -> anyhow::Result<Lab> {
    let lab = Lab::of(args.lab.as_deref(), &args.disks, &args.rules);
    let mut lab = lab.map_err(|error| match (&attach.disks, &args.lab) {
        (Some(disks), Some(word)) if disks.is_empty() && !word.exists() => {
            let word = word.display();
            anyhow!("{error}; to attach the disk or volume of that name: --attach={word}")
        }
        _ => error.into(),
    })?;
    lab.shards = args.shards.or(lab.shards);
    lab.events = args.events.or(lab.events);
    Ok(lab)
}

/// Opens the block devices on which the attached disks of a lab store their bytes. Refuses disks that the lab
/// does not have. Without `wanted`, the server opens the devices later.
pub(crate) fn open_devices(wanted: Option<&Wanted>, lab: &Lab) -> anyhow::Result<OpenDevices> {
    let Some(wanted) = wanted else {
        return Ok(OpenDevices::default());
    };
    if !lab.can_be_attached() {
        let option = match &wanted.mount {
            Some(directory) => format!("--mount {}", directory.display()),
            None => "--attach".to_owned(),
        };
        bail!(
            "{option}: the files of a program are no block device: add another disk, or leave the option out"
        );
    }
    for (at, disk) in wanted.disks.iter().enumerate() {
        lab.check_attached(disk)?;
        if wanted.disks[..at].contains(disk) {
            bail!("--attach {disk}: it is named twice; leave one out");
        }
    }
    let disks: Vec<_> = lab.disks.iter().map(|disk| disk.config.clone()).collect();
    Ok(OpenDevices::open(&disks)?)
}

/// The process that keeps the right to attach when dashpot gives up root.
pub(crate) struct Attacher {
    process: Child,
    caller: Option<Caller>,
    wanted: Wanted,
}

impl Attacher {
    /// Starts the attacher, which stays root. Then protects the memory of this process, and gives up root for
    /// the user who typed `sudo`. Call this function before any other thread starts.
    pub(crate) fn start(wanted: Wanted) -> anyhow::Result<Attacher> {
        let caller = Caller::of_sudo()?;
        let mut command = Command::new("/proc/self/exe");
        // The attacher has a process group of its own, so a Ctrl-C does not end it before dashpot tells it to
        // detach.
        let command = command.arg0(ATTACHES).process_group(0);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let process = command.spawn().context("cannot start the attacher")?;
        protect();
        if let Some(caller) = &caller {
            caller.become_again()?;
        }
        Ok(Attacher {
            process,
            caller,
            wanted,
        })
    }

    /// Attaches all disks; or none, if a disk cannot be attached or a signal comes.
    pub(crate) async fn attach(
        self,
        api: &Address,
        exports: &[Export],
        signals: &mut Signals,
    ) -> anyhow::Result<Devices> {
        let Wanted {
            disks,
            linked,
            mount,
        } = self.wanted;
        let order = Order {
            api: api.to_string(),
            disks: if disks.is_empty() {
                exports.iter().map(|export| export.name.clone()).collect()
            } else {
                disks
            },
            linked,
            mount,
            owner: self.caller.as_ref().map(Caller::owner),
        };
        Devices::order(self.process, &order, signals).await
    }
}

/// The devices, in the same order as the disks.
#[derive(Debug)]
pub(crate) struct Devices {
    devices: Vec<Device>,
    attacher: Child,
}

impl Devices {
    async fn order(
        mut attacher: Child,
        order: &Order,
        signals: &mut Signals,
    ) -> anyhow::Result<Devices> {
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        say(&mut attacher, &line)?;
        let stdout = attacher.stdout.take().context(GONE)?;
        let mut answer = spawn_blocking(move || read(stdout));
        let done = tokio::select! {
            done = &mut answer => done??,
            () = signals.end() => {
                // The line undoes the attacher's work, even if the attacher has already answered.
                say(&mut attacher, DETACH)?;
                let done = answer.await??;
                spawn_blocking(move || attacher.wait()).await??;
                match done {
                    Done::Devices(_) => bail!("interrupted: nothing is attached"),
                    Done::Failed(why) => bail!(why),
                }
            }
        };
        match done {
            Done::Devices(devices) => Ok(Devices { devices, attacher }),
            Done::Failed(why) => bail!(why),
        }
    }

    /// The environment variables that tell a command where the devices are.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let first = self.devices.first();
        let first = first.map(|device| (DEVICE.to_owned(), device.node.clone()));
        let named = |device: &Device| (variable(DEVICE, &device.disk), device.node.clone());
        let named = self.devices.iter().map(named);
        first.into_iter().chain(named).collect()
    }

    /// The lines in which `serve` names the devices.
    pub(crate) fn lines(&self) -> String {
        let line = |Device { disk, node }: &Device| format!("{disk}  {node}\n");
        self.devices.iter().map(line).collect()
    }

    pub(crate) fn nodes(&self) -> Vec<&str> {
        let nodes = self.devices.iter().map(|device| device.node.as_str());
        nodes.collect()
    }

    /// Detaches the devices. The attacher names the devices that are still in use.
    pub(crate) async fn detach(mut self) {
        let detached = spawn_blocking(move || {
            say(&mut self.attacher, DETACH)?;
            anyhow::Ok(self.attacher.wait()?)
        });
        if let Ok(Err(error)) = detached.await {
            complain(format_args!(
                "dashpot: the devices are not detached: {error:#}; 'dashpot detach --stale' removes them"
            ));
        }
    }
}

/// Reads the attacher's answer.
fn read(stdout: ChildStdout) -> anyhow::Result<Done> {
    let mut answer = String::new();
    BufReader::new(stdout).read_line(&mut answer)?;
    if answer.is_empty() {
        bail!("{GONE}: 'dashpot detach --stale' removes what it has made");
    }
    serde_json::from_str(&answer).context("the attacher has given no answer")
}

fn say(attacher: &mut Child, line: &str) -> anyhow::Result<()> {
    let stdin = attacher.stdin.as_mut().context(GONE)?;
    stdin.write_all(line.as_bytes()).context(GONE)
}

/// The line that makes the attacher detach what it has attached.
const DETACH: &str = "detach\n";
const GONE: &str = "the attacher is gone";

/// Protects the memory of a process that will serve block devices.
fn protect() {
    // Without root, the attacher will refuse to attach, and name the remedy.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    reclaim::protect();
    let lacks = reclaim::in_force().lacks;
    if !lacks.is_empty() {
        complain(format_args!(
            "dashpot: when memory is short, this process may wait for its own devices: {}",
            lacks.join("; ")
        ));
    }
}
