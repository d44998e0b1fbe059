//! Asks daemons which nodes they serve.
//!
//! A daemon that is stopped or hangs does not answer. Commands that clean up therefore ask all daemons at
//! once, wait briefly, and leave alone the devices of daemons that stay silent.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use dashpot_api::{Client, ClientError};
use dashpot_export::complain;
use dashpot_rules::parse_api;

use crate::place::Record;
use crate::process::Process;

/// The answers of daemons, and the errors of daemons that did not answer.
pub(crate) struct Answers {
    /// The nodes that each daemon serves, by the address of its API.
    nodes: BTreeMap<String, anyhow::Result<BTreeSet<String>>>,
}

impl Answers {
    /// Asks the daemons of these attachments, all at once. Leaves out daemons that have certainly ended.
    pub(crate) fn about<'a>(records: impl Iterator<Item = &'a Record>) -> Answers {
        let may_live = records.filter(|record| record.daemon.is_none_or(Process::is_alive));
        let apis: BTreeSet<&str> = may_live.map(|record| record.api.as_str()).collect();
        let nodes = thread::scope(|scope| {
            let asked = apis.iter().map(|api| (*api, scope.spawn(|| ask(api))));
            let asked: Vec<_> = asked.collect();
            let answers = asked.into_iter().map(|(api, asked)| {
                let answer = asked.join().unwrap_or_else(|_| Err(anyhow!("a panic")));
                (api.to_owned(), answer)
            });
            answers.collect()
        });
        Answers { nodes }
    }

    /// Whether the attachment's daemon has said that it no longer serves the node.
    pub(crate) fn deny(&self, record: &Record) -> bool {
        match self.nodes.get(&record.api) {
            Some(Ok(nodes)) => !nodes.contains(&record.node),
            _ => false,
        }
    }

    /// Prints a message for each daemon that exists but does not answer.
    pub(crate) fn say_silent(&self) {
        for error in self
            .nodes
            .values()
            .filter_map(|answer| answer.as_ref().err())
        {
            if let Some(ClientError::Silent { .. }) = error.downcast_ref() {
                complain(format_args!(
                    "dashpot: {error}; its devices stay as they are"
                ));
            }
        }
    }
}

/// The nodes that the daemon at an address serves.
fn ask(api: &str) -> anyhow::Result<BTreeSet<String>> {
    let api = parse_api(api).map_err(anyhow::Error::msg)?;
    let status = Client::find(Some(&api))?.status_within(0, PATIENCE)?;
    let disks = status.disks.into_iter().map(|disk| disk.io);
    let all = disks.chain(status.volumes.into_iter().map(|volume| volume.io));
    let attachments = all.flat_map(|io| io.attachments);
    Ok(attachments.map(|attachment| attachment.node).collect())
}

/// How long a daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);
