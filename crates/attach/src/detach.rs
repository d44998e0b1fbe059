//! `detach`: removes block devices that `attach` made, unless they are in use.

use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use dashpot_api::{Client, ClientError, MechanismWord};
use dashpot_cli::DetachArgs;
use dashpot_export::complain;
use dashpot_export::store::device_users_beside;
use dashpot_rules::parse_api;
use dashpot_sources::Stop;

use crate::down::{CLOSING, LOOK_EVERY, free, take_down};
use crate::file_system::{self, Manner};
use crate::place::{LockedDirectory, Record, records};
use crate::process::Process;
use crate::stale;
use crate::state::{io_of, is_ours, waits_now};
use crate::sysfs::queue_of;
use crate::target::Target;
use crate::tool::check_root;

/// Detaches the named devices. If one of them cannot be detached, `detach` still detaches the others, and
/// then fails.
pub fn detach(client: &Client, args: &DetachArgs) -> anyhow::Result<ExitCode> {
    check_root("detach")?;
    if args.stale {
        return stale::clean();
    }
    let target = args.target.as_deref().unwrap_or_default();
    let stop = Stop::new()?;
    let way = Way {
        client,
        fails: Fails::when(args.fail_held, "--fail-held"),
        is_stopped: &|| stop.is_set(),
    };
    let mut all_done = true;
    for (place, record) in chosen(client, target)? {
        let node = record.node.clone();
        if let Err(error) = way.detach(place, &record) {
            complain(format_args!("dashpot: {node}: {error:#}"));
            all_done = false;
        }
    }
    Ok(ExitCode::from(u8::from(!all_done)))
}

/// Detaches a node whose daemon is about to end, unless the user has detached it already. If rules still hold
/// I/O, that I/O fails.
pub(crate) fn detach_own(client: &Client, node: &str) -> anyhow::Result<()> {
    let way = Way {
        client,
        fails: Fails::Now,
        is_stopped: &|| false,
    };
    // By now, the node may belong to another daemon.
    way.detach_each(|record| is_of(client, record) && record.node == node)
}

/// Detaches all devices of a daemon, unless they are in use.
pub(crate) fn detach_all_of(client: &Client, fails: Fails) -> anyhow::Result<()> {
    let stop = Stop::new()?;
    let way = Way {
        client,
        fails,
        is_stopped: &|| stop.is_set(),
    };
    way.detach_each(|record| is_of(client, record))
}

/// How a command treats I/O in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fails {
    /// The I/O fails now.
    Now,
    /// The command waits for the I/O, or refuses with a message that names this option, which would make the
    /// I/O fail.
    With(&'static str),
}

impl Fails {
    pub(crate) fn when(is_given: bool, option: &'static str) -> Fails {
        if is_given {
            Fails::Now
        } else {
            Fails::With(option)
        }
    }
}

/// Whether a device belongs to the daemon that the command talks to.
fn is_of(client: &Client, record: &Record) -> bool {
    record.api == client.address()
}

/// The attachments that a word on the command line names. A word that is both a name and a path means the
/// disk or the volume with that name.
fn chosen(client: &Client, word: &str) -> anyhow::Result<Vec<(LockedDirectory, Record)>> {
    let is_own = |record: &Record| is_of(client, record);
    if word == "all" {
        return LockedDirectory::meant(is_own);
    }
    let target = Target::of(word);
    let mut meant = LockedDirectory::meant(|record| is_own(record) && target.is_name_of(record))?;
    if meant.is_empty() {
        meant = LockedDirectory::meant(|record| target.is_path_of(record))?;
    }
    if meant.is_empty() {
        let records = records().into_iter();
        let nodes = records.map(|(_, record)| match &record {
            Record { node, disk, .. } if is_own(&record) => format!("{node} ({disk})"),
            Record {
                node, disk, api, ..
            } => format!("{node} ({disk} of the daemon at {api})"),
        });
        let nodes: Vec<String> = nodes.collect();
        let known = match nodes.as_slice() {
            [] => "nothing is".to_owned(),
            nodes => format!("it attached {}", nodes.join(", ")),
        };
        bail!("'{word}' is not attached by dashpot: {known}");
    }
    Ok(meant)
}

/// The daemon of an attachment; `None` if it is the daemon that the command already talks to. A user may name
/// the node of any daemon.
fn other_daemon(client: &Client, record: &Record) -> anyhow::Result<Option<Client>> {
    if is_of(client, record) {
        return Ok(None);
    }
    let api = parse_api(&record.api).map_err(anyhow::Error::msg)?;
    Client::find(Some(&api)).map(Some)
}

/// The options of a detachment.
struct Way<'a> {
    client: &'a Client,
    fails: Fails,
    is_stopped: &'a dyn Fn() -> bool,
}

impl Way<'_> {
    fn detach_each(&self, is_meant: impl Fn(&Record) -> bool) -> anyhow::Result<()> {
        for (place, record) in LockedDirectory::meant(is_meant)? {
            self.detach(place, &record)?;
        }
        Ok(())
    }

    fn detach(&self, place: LockedDirectory, record: &Record) -> anyhow::Result<()> {
        let other = other_daemon(self.client, record)?;
        let detachment = Detachment {
            client: other.as_ref().unwrap_or(self.client),
            fails: self.fails,
            is_stopped: self.is_stopped,
            place: &place,
            record,
        };
        detachment.end_use()?;
        take_down(place, record)
    }
}

/// A device that is being detached.
struct Detachment<'a> {
    /// The daemon that serves the device.
    client: &'a Client,
    fails: Fails,
    is_stopped: &'a dyn Fn() -> bool,
    place: &'a LockedDirectory,
    record: &'a Record,
}

impl Detachment<'_> {
    /// Ends all use of the device, or fails and names its users.
    fn end_use(&self) -> anyhow::Result<()> {
        if !self.is_ours() {
            return Ok(());
        }
        if waits_now(self.place, self.record) {
            self.fail_waiting()?;
        }
        let mounted = self.own_mount();
        if let Fails::With(_) = self.fails {
            // Check before unmounting, so that a refusal changes nothing.
            self.wait_until_unused(mounted)?;
        }
        self.unmount()?;
        self.fail_if_asked()?;
        if let Err(refusal) = self.wait_until_unused(None) {
            return Err(match self.mount_again(mounted) {
                Ok(()) => refusal,
                Err(error) => anyhow!("{refusal:#}; {error:#}"),
            });
        }
        self.wait_until_idle()
    }

    /// The directory where dashpot has mounted the file system, if it is still mounted there.
    fn own_mount(&self) -> Option<&Path> {
        let mounted = self.record.mounted.as_deref();
        mounted.filter(|at| file_system::is_mounted(&self.record.node, at))
    }

    /// Mounts the file system again after a refusal. Otherwise programs would write into the directory that
    /// the mount covered.
    fn mount_again(&self, mounted: Option<&Path>) -> anyhow::Result<()> {
        let node = &self.record.node;
        let begun = Instant::now();
        // Even if Ctrl-C caused the refusal, `mount` gets a moment to succeed.
        let gives_up = || (self.is_stopped)() && begun.elapsed() >= CLOSING;
        match mounted {
            Some(at) if self.is_ours() && !file_system::is_mounted(node, at) => {
                let options = self.record.options.as_deref();
                let manner = Manner {
                    kind: None,
                    options,
                };
                file_system::mount_noted(node, at, manner, &gives_up)
                    .with_context(|| format!("{} has no mount any more", at.display()))
            }
            _ => Ok(()),
        }
    }

    /// Whether the node is still the device of this attachment. Once the device is free, another program may
    /// take the node.
    fn is_ours(&self) -> bool {
        is_ours(self.place, self.record)
    }

    /// Unmounts the file system. A rule may hold the writes that unmounting causes, or an I/O of a program
    /// that uses the file system until this I/O ends. If the caller wants held I/O to fail, this function makes
    /// it fail, and then unmounts again.
    fn unmount(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let is_held = || begun.elapsed() >= CLOSING && self.in_flight() > 0;
        let fails = matches!(self.fails, Fails::Now);
        let gives_up = || (self.is_stopped)() || fails && is_held();
        let unmounted = file_system::unmount(self.record, &gives_up);
        if unmounted.is_ok() || !fails || self.in_flight() == 0 {
            return unmounted;
        }
        self.fail_held_now()?;
        let failed = Instant::now();
        loop {
            match file_system::unmount(self.record, self.is_stopped) {
                // The program may need a moment to see the error and to end.
                Err(_) if failed.elapsed() < CLOSING && !(self.is_stopped)() => {
                    self.fail_held_now()?;
                    thread::sleep(LOOK_EVERY);
                }
                unmounted => return unmounted,
            }
        }
    }

    /// Frees a device whose daemon is gone if the caller wants waiting I/O to fail, and refuses otherwise.
    /// Call this function before the device is unmounted, because the writes of an unmount would wait for
    /// another daemon.
    fn fail_waiting(&self) -> anyhow::Result<()> {
        let name = &self.record.disk;
        match self.fails {
            Fails::Now => free(self.record),
            Fails::With(option) => bail!(
                "its daemon is gone: 'dashpot attach {name}' takes the device over when a daemon serves the same bytes again, and {option} ends it"
            ),
        }
    }

    /// Ends the connection to the daemon, so that held I/O fails.
    fn fail_held_now(&self) -> anyhow::Result<()> {
        if self.in_flight() == 0 {
            return Ok(());
        }
        if self.record.mechanism == MechanismWord::Nbd && self.is_ours() {
            // End the connection on both sides. If only the daemon ended the connection, the kernel would
            // wait for another connection. If only the kernel ended it, the daemon would still finish the I/O
            // of a volume, which waits for the pool's disks.
            free(self.record)?;
        }
        match self
            .client
            .fail_attachment(self.record.key(), &self.record.node)
        {
            // An earlier call has already ended the attachment, but the kernel still counts I/O in flight.
            Err(ClientError::Refused { status, .. }) if status.as_u16() == 404 => Ok(()),
            Err(error) if self.record.daemon.is_none_or(Process::is_alive) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Fails I/O in flight, if the caller wants that. Waiting loops repeat this call, because I/O may come
    /// late: when a program ends, the kernel writes the program's data from the page cache.
    fn fail_if_asked(&self) -> anyhow::Result<()> {
        match self.fails {
            Fails::Now => self.fail_held_now(),
            Fails::With(_) => Ok(()),
        }
    }

    /// The number of unfinished I/Os of the device: the kernel's count or the daemon's, whichever is
    /// larger.
    fn in_flight(&self) -> u64 {
        let queue = queue_of(&self.record.node).filter(|_| self.is_ours());
        let kernel = queue.map_or(0, |queue| queue.in_flight);
        let io = io_of(self.client, self.record);
        let attachments = io.map(|io| io.attachments).unwrap_or_default();
        let own = attachments.iter().find(|it| it.node == self.record.node);
        own.map_or(0, |it| it.in_flight.into()).max(kernel)
    }

    /// Waits until nothing uses the node, except a file system at `mounted`. A program such as udev may need
    /// a moment to close the node.
    fn wait_until_unused(&self, mounted: Option<&Path>) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let users = device_users_beside(&self.record.node, mounted);
            if users.is_empty() || !self.is_ours() {
                return Ok(());
            }
            if begun.elapsed() >= CLOSING || (self.is_stopped)() {
                bail!("it is in use: {}{}", users.join(", "), self.held());
            }
            self.fail_if_asked()?;
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The words of an error message about I/O in flight.
    fn held(&self) -> String {
        match (self.in_flight(), self.fails) {
            (0, _) => String::new(),
            (count, Fails::Now) => format!("; I/Os in flight: {count}"),
            (count, Fails::With(option)) => {
                format!("; I/Os in flight: {count}; {option} ends them with EIO")
            }
        }
    }

    /// The words of a message about I/O in flight when no program uses the device: whether the command waits
    /// for this I/O or ends it.
    fn does_with(&self, count: u64) -> String {
        match self.fails {
            Fails::Now => format!("ends the I/Os in flight with EIO: {count}"),
            Fails::With(option) => {
                format!("waits for I/Os in flight: {count}; {option} ends them with EIO")
            }
        }
    }

    /// Waits until no I/O is in flight. A rule may still hold I/O that no program waits for.
    fn wait_until_idle(&self) -> anyhow::Result<()> {
        let mut has_said = false;
        while self.in_flight() > 0 {
            if (self.is_stopped)() {
                bail!("interrupted: it stays attached");
            }
            if !std::mem::replace(&mut has_said, true) {
                let (node, does) = (&self.record.node, self.does_with(self.in_flight()));
                complain(format_args!("dashpot: {node}: {does}"));
            }
            self.fail_if_asked()?;
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}
