//! Examines the host: which promises it allows, which ways to a disk work, why the others do not, and what would
//! help.
//!
//! This crate examines the host and changes nothing.

mod calls;
mod drivers;
mod found;
mod host;
mod ways;

use dashpot_api::{Promise, Shard, Status};
use dashpot_daemon::promises::promises_of_host;
use dashpot_text::health::{promise_table, shard_table};
use dashpot_text::table::{Column, Room, table_within};
use serde::Serialize;

use host::Host;
pub use host::median_oversleep;
use ways::Way;

pub use calls::why_not;
pub use drivers::{FUSE, Missing, loop_works, nbd_works, ublk_works};
pub use found::{installed, path_of, with_sudo};

/// The findings about the host, and the ways in which a program here can reach a disk.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    host: Host,
    /// The promises about time that dashpot can keep here: those of the running daemon or, if none runs,
    /// those that a daemon on this host would keep.
    promises: Vec<Promise>,
    /// The shards of the running daemon, with their probes' readings.
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

impl Diagnosis {
    /// Examines the host. The examination changes nothing and needs no daemon. `daemon` has the
    /// status of a running daemon.
    pub fn examine(daemon: Option<Status>) -> Diagnosis {
        let host = Host::examine();
        let (promises, shards) = match daemon {
            Some(Status {
                promises, shards, ..
            }) => (promises, shards),
            None => (
                promises_of_host(host.cpus(), host.wake_cost_p50_ns()),
                Vec::new(),
            ),
        };
        Diagnosis {
            host,
            promises,
            shards,
            ways: ways::all(),
        }
    }

    /// Four tables that fit the screen.
    pub fn text(&self, room: Room) -> String {
        let host = table_within(room, &HOST, self.host.rows());
        let ways = table_within(room, &WAYS, self.ways.iter().map(Way::row));
        let promises = promise_table(room, &self.promises);
        let shards = match self.shards.as_slice() {
            [] => "no daemon answers, so there are no readings of a probe\n".to_owned(),
            shards => shard_table(room, shards),
        };
        format!("{host}\n{promises}\n{shards}\n{ways}")
    }
}
