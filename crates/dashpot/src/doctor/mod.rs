//! `doctor`: what this host can do for dashpot, how precisely, and what would change it.

mod host;
mod ways;

use serde::Serialize;

use crate::cli::DoctorArgs;
use crate::commands::{Column, print, print_json, table};
use host::Host;
use ways::Way;

/// What the host is, and how a program here can reach a disk.
#[derive(Debug, Serialize)]
struct Diagnosis {
    host: Host,
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

/// Examines the host. It changes nothing, and needs no daemon.
pub(crate) fn doctor(args: &DoctorArgs) -> anyhow::Result<()> {
    let diagnosis = Diagnosis {
        host: Host::examine(),
        ways: ways::all(),
    };
    if args.json {
        return print_json(&diagnosis);
    }
    let host = table(&HOST, diagnosis.host.rows());
    let ways = table(&WAYS, diagnosis.ways.iter().map(Way::row));
    print(&format!("{host}\n{ways}"))
}
