//! `doctor`: what this host can do for dashpot, how precisely, and what would change it.

mod host;
mod ways;

use serde::Serialize;

use crate::api::types::{Shard, Status};
use crate::cli::DoctorArgs;
use crate::client::Client;
use crate::commands::{Column, print, print_json, promise_table, shard_table, table};
use crate::promises::{Promise, promises};
use host::Host;
pub(crate) use host::median_oversleep;
use ways::Way;

/// What the host is, and how a program here can reach a disk.
#[derive(Debug, Serialize)]
struct Diagnosis {
    host: Host,
    /// Which promises about time can hold here: for the daemon that runs, or one that would.
    promises: Vec<Promise>,
    /// The shards of the daemon that runs, with what their probes have read.
    shards: Vec<Shard>,
    ways: Vec<Way>,
}

const HOST: [Column; 3] = [
    Column::Text("this host"),
    Column::Text("is"),
    Column::Text("which means"),
];

const WAYS: [Column; 3] = [
    Column::Text("a way to a disk"),
    Column::Text("works"),
    Column::Text("why, and what would change it"),
];

/// Examines the host. It changes nothing, and needs no daemon; one that runs is asked how it does.
pub(crate) fn doctor(daemon: Option<&Client>, args: &DoctorArgs) -> anyhow::Result<()> {
    let host = Host::examine();
    let status = daemon.and_then(|daemon| daemon.get("/v1/status?oldest=0").ok());
    let (promises, shards) = match status {
        Some(Status {
            promises, shards, ..
        }) => (promises, shards),
        None => (promises(host.cpus(), &[]), Vec::new()),
    };
    let diagnosis = Diagnosis {
        host,
        promises,
        shards,
        ways: ways::all(),
    };
    if args.json {
        return print_json(&diagnosis);
    }
    let host = table(&HOST, diagnosis.host.rows());
    let ways = table(&WAYS, diagnosis.ways.iter().map(Way::row));
    let promises = promise_table(&diagnosis.promises);
    let shards = match diagnosis.shards.as_slice() {
        [] => "no daemon answers: what its probe would read is not known\n".to_owned(),
        shards => shard_table(shards),
    };
    print(&format!("{host}\n{promises}\n{shards}\n{ways}"))
}
