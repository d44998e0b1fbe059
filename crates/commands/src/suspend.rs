//! `suspend`: stops a disk's new zios.

use dashpot_api::{Client, ClientError, Disk, InFlightZio, Suspend, Suspended};
use dashpot_cli::SuspendArgs;
use dashpot_engine::Duration;
use dashpot_export::complain;
use dashpot_output::{print, print_json};
use dashpot_rules::short_time;

/// Suspends a disk. Without `--now`, waits until the disk has nothing in flight.
pub fn suspend(client: &Client, args: &SuspendArgs) -> anyhow::Result<()> {
    let before = client.disk(&args.disk, LOOKED_AT)?;
    warn_of_kernel_clients(&before);
    if let Some(waits) = (!args.now).then(|| long_wait(&before)).flatten() {
        complain(format_args!("dashpot: {waits}"));
    }
    let request = Suspend {
        for_ns: args.lasts.map(Duration::as_nanos),
        now: args.now,
    };
    let disk = &args.disk;
    match client.suspend(disk, &request) {
        Ok(suspended) if args.json => print_json(&suspended),
        Ok(Suspended { in_flight: 0 }) => print(&format!("{disk} is suspended\n")),
        Ok(Suspended { in_flight }) => print(&format!(
            "{disk} is suspended; {in_flight} zios are in flight\n"
        )),
        Err(ClientError::Interrupted) => print(&format!(
            "no longer waiting: {disk} is suspended, and zios are in flight; \
             'dashpot resume {disk}' lets it go on\n"
        )),
        Err(error) => Err(error.into()),
    }
}

/// `suspend` looks at this many of the oldest zios in flight to find the zio that will end last.
const LOOKED_AT: usize = 100;
/// The shortest wait that `suspend` reports.
const LONG_NS: u64 = 1_000_000_000;

/// An explanation of a long wait for the zio that will end last: it names the client that sent this zio, the
/// rule that holds it, and the remedy.
fn long_wait(disk: &Disk) -> Option<String> {
    let name = &disk.name;
    let rule = |zio: &InFlightZio| {
        zio.rule
            .map_or_else(String::new, |id| format!(" by rule {id}"))
    };
    let waiting = format!("waiting for {} I/Os in flight on {name}", disk.io.in_flight);
    if let Some(hung) = disk.io.oldest.iter().find(|zio| zio.wait == "hung") {
        return Some(format!(
            "{waiting}: a {} of {} hangs{} and never ends by itself: 'dashpot clear {name} \
             --release' lets it go, --now does not wait for it",
            hung.op,
            hung.client,
            rule(hung)
        ));
    }
    let held = disk.io.oldest.iter().max_by_key(|zio| zio.remaining_ns)?;
    let left = held.remaining_ns.filter(|left| *left > LONG_NS)?;
    Some(format!(
        "{waiting}: a {} of {} is held{} for {} more: 'dashpot clear {name} --release' lets it go, \
         --now does not wait for it",
        held.op,
        held.client,
        rule(held),
        short_time(left)
    ))
}

fn warn_of_kernel_clients(disk: &Disk) {
    for client in disk
        .io
        .clients
        .iter()
        .filter(|client| is_kernel(&client.name))
    {
        let outcome = if client.connections > 1 {
            "with several connections it then fails the I/O with an error"
        } else {
            "it then waits for the reply, or gives the device up, as nbd-client -timeout says"
        };
        complain(format_args!(
            "dashpot: '{}' is a kernel's NBD client, which times out after 30 s: {outcome}",
            client.name
        ));
    }
}

/// Whether the client is the kernel. `nbd-client` and similar programs hand the socket to the
/// kernel, and then end or wait in the kernel until the device is disconnected.
fn is_kernel(client: &str) -> bool {
    let pid = client.split(' ').find_map(|word| word.strip_prefix("pid="));
    let Some(pid) = pid.filter(|pid| *pid != "0") else {
        return false;
    };
    match std::fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(command) => command.trim_end() == "nbd-client",
        Err(_) => true,
    }
}
