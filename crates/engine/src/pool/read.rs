//! A client's read: from memory what is dirty, from the disks the rest.

use super::blocks::Content;
use super::home::Then;
use super::pool::Pool;
use super::request::Phase;
use super::step::Step;
use crate::bytes::{Move, Span};
use crate::zio::{Errno, ZioId};

impl Pool {
    pub(super) fn read(&mut self, id: ZioId, step: &mut Step<'_>) {
        let Some((volume, zio)) = self.begin(id, Phase::Reading) else {
            return;
        };
        if zio.length == 0 {
            self.finish(id, Err(Errno::Inval), step);
            return;
        }
        // One more than the blocks, so that the last one is not the end before all have begun.
        self.add_pending(id, 1);
        for piece in self.volumes[volume].pieces(&zio) {
            let (to, at, length) = (piece.from, piece.at, piece.length);
            let newest = self.volumes[volume].newest(piece.block, self.txgs.open());
            match newest.map(|(_, content)| content) {
                Some(Content::Bytes(buf)) => {
                    let from = Span { buf, at, length };
                    step.move_bytes(Move::CopyOut { zio: id, to, from });
                }
                Some(Content::Zero | Content::Trim) => {
                    step.move_bytes(Move::ZeroOut {
                        zio: id,
                        to,
                        length,
                    });
                }
                None => {
                    let then = Then::Reply { at, length, to };
                    self.read_block(id, volume, piece.block, then, step);
                }
            }
        }
        self.one_less(id, Ok(()), step);
    }
}
