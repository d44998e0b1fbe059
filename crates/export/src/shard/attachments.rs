//! New connections, and attachments: connections whose client is the kernel, which makes the export a block
//! device of this host.

use dashpot_engine::Input;

use super::Shard;
use super::connection::Connection;
use crate::export::ExportId;
use crate::frontend::Session;
use crate::message::{Attach, AttachError, Attachment, Handover};
use crate::snapshot::AttachmentView;

impl Shard {
    /// Makes a peer a client of an export.
    pub(super) fn connect(&mut self, handover: Handover) -> Result<(), AttachError> {
        let export = handover.export;
        self.takes_clients(export)?;
        let peer = handover.peer.as_str();
        let (client, is_new) = self.exports.connect(export, peer);
        if is_new {
            let device = self.exports.device(export);
            let join = Input::Join {
                device,
                client,
                name: peer,
            };
            self.step(join, None);
            // The id may have belonged to another client until now, so publish that client's events first.
            self.record();
            self.recorder.join(device, client, peer);
        }
        let connection = Connection::new(handover, client, self.timers.now());
        let at = self.connections.insert(connection);
        self.zios.budget.recount(&mut self.connections[at]);
        self.connections
            .begin_watch(at)
            .map_err(AttachError::Refused)?;
        self.intake.push(at, self.connections[at].inlet_mut());
        Ok(())
    }

    /// Makes the kernel a client of an export.
    pub(super) fn attach(&mut self, export: ExportId, attach: Attach) -> Result<(), AttachError> {
        if let Some(other) = self.attachments(export).pop() {
            return Err(AttachError::Attached(other.node));
        }
        self.connect(Handover {
            session: Session::of_kernel(attach.mechanism, attach.descriptor)?,
            export,
            peer: attach.node.clone(),
            left_over: Vec::new(),
            permit: None,
            attachment: Some(Attachment {
                node: attach.node,
                mechanism: attach.mechanism,
                by: attach.by,
            }),
        })
    }

    pub(super) fn attachments(&self, export: ExportId) -> Vec<AttachmentView> {
        let connections = self.connections.places();
        let connections = connections.filter_map(|at| self.connections.get(at));
        let view = |connection: &Connection| {
            let (attachment, since) = connection.attachment()?;
            let in_flight = self.zios.slots.list(connection.zios()).len() as u32;
            Some(AttachmentView {
                node: attachment.node.clone(),
                mechanism: attachment.mechanism,
                by: attachment.by.clone(),
                since,
                in_flight,
            })
        };
        connections
            .filter(|connection| connection.export() == export)
            .filter_map(view)
            .collect()
    }

    /// Ends the connection of an attachment. The kernel's waiting requests fail, and so do all later ones.
    /// Returns how many zios were in flight, or `None` if there is no such attachment.
    pub(super) fn fail_attachment(&mut self, export: ExportId, node: &str) -> Option<u32> {
        let is_it = |connection: &Connection| {
            let attachment = connection.attachment();
            connection.export() == export && attachment.is_some_and(|(it, _)| it.node == node)
        };
        let mut places = self.connections.places();
        let at = places.find(|at| self.connections.get(*at).is_some_and(is_it))?;
        let zios = self.connections.get(at)?.zios();
        let failed = self.zios.slots.list(zios).len() as u32;
        self.connections.hang_up(at);
        // The kernel's requests must fail before the answer.
        self.connections.part_with_ended(&mut self.zios);
        Some(failed)
    }

    /// Fails unless the export takes clients now.
    fn takes_clients(&self, export: ExportId) -> Result<(), AttachError> {
        let info = self.exports.find(export);
        let is_off = info.is_none_or(|info| info.power.is_off());
        if self.control.is_shutting_down() || is_off {
            Err(AttachError::Closed)
        } else {
            Ok(())
        }
    }
}
