//! The facts about the disks: the last frame, and the history.

use std::collections::BTreeMap;
use std::time::Duration;

use dashpot_api::Rule;

use crate::frame::{DiskFrame, Frame};
use crate::history::History;

/// The facts to show.
#[derive(Clone, Default)]
pub(crate) struct Board {
    pub(crate) frame: Frame,
    pub(crate) contact: Contact,
    histories: BTreeMap<String, History>,
}

/// Whether frames still come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Contact {
    /// No frame has come yet.
    #[default]
    Waiting,
    Up,
    /// The source could not make the last frame.
    Down(String),
    /// No frame has come for this long.
    Silent(Duration),
}

impl Board {
    /// Takes in a frame. A frame that ends no interval keeps the figures of the last interval.
    pub(crate) fn take(&mut self, mut frame: Frame) {
        if frame.restarted {
            self.histories.clear();
            self.frame.disks.clear();
        }
        for disk in &mut frame.disks {
            match &disk.done {
                Some(done) => self
                    .histories
                    .entry(disk.name.clone())
                    .or_default()
                    .push(done),
                None => self.keep_figures(disk),
            }
        }
        self.frame = frame;
        self.contact = Contact::Up;
    }

    pub(crate) fn disk(&self, name: &str) -> Option<&DiskFrame> {
        self.frame.disks.iter().find(|disk| disk.name == name)
    }

    pub(crate) fn history(&self, disk: &str) -> Option<&History> {
        self.histories.get(disk)
    }

    pub(crate) fn rules_of<'a>(&'a self, disk: &'a str) -> impl Iterator<Item = &'a Rule> {
        self.frame
            .rules
            .iter()
            .filter(move |rule| rule.disk == disk)
    }

    fn keep_figures(&self, disk: &mut DiskFrame) {
        let Some(before) = self.disk(&disk.name) else {
            return;
        };
        disk.done = before.done.clone();
        for client in &mut disk.clients {
            if let Some(known) = before.clients.iter().find(|one| one.name == client.name) {
                (client.per_second, client.p99_ns) = (known.per_second, known.p99_ns);
            }
        }
    }
}
