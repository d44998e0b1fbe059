//! `suspend`: stops a disk's new zios.

use dashpot_engine::Duration;

use super::output::print;
use crate::api::types::{Disk, Suspend, Suspended};
use crate::cli::SuspendArgs;
use crate::client::{Client, ClientError, segment};
use dashpot_export::complain;

pub(crate) fn suspend(client: &Client, args: &SuspendArgs) -> anyhow::Result<()> {
    let path = format!("/v1/disks/{}", segment(&args.disk));
    warn_of_kernel_clients(&client.get(&path)?);
    let request = Suspend {
        for_ns: args.lasts.map(Duration::as_nanos),
        now: args.now,
    };
    let disk = &args.disk;
    match client.post_unless_interrupted(&format!("{path}/suspend"), &request) {
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

fn warn_of_kernel_clients(disk: &Disk) {
    for client in disk.clients.iter().filter(|client| is_kernel(&client.name)) {
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

/// The process that connected, `nbd-client` or its like, hands the socket to the kernel and ends,
/// or waits in the kernel until the device is disconnected.
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
