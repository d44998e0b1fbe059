//! How zios are cut into pieces: parts of blocks, and runs of blocks.

use core::ops::Range;

use super::jobs::TOUCHED_MAX;
use crate::zio::{Op, VolumeId, Zio};

/// A part of a zio: the part in one block, or a run of whole blocks. Zeroes and trims are cut into runs where
/// possible, and so are long writes when they take their locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The first block.
    pub(super) block: u32,
    /// How many blocks the piece has. If there are several, the piece covers each of them completely.
    pub(super) count: u32,
    /// The piece's first byte, as an offset into the block.
    pub(super) at: u32,
    pub(super) length: u32,
    /// The piece's first byte, as an offset into the zio.
    pub(super) from: u32,
}

impl Piece {
    /// The offsets in the block where the piece begins and ends.
    pub(super) fn bytes(&self) -> (u32, u32) {
        (self.at, self.at + self.length)
    }

    /// The block after the piece.
    pub(super) fn end(&self) -> u32 {
        self.block + self.count
    }

    pub(super) fn is_run(&self) -> bool {
        self.count > 1
    }

    pub(super) fn is_whole(&self, block_size: u32) -> bool {
        self.length == self.count * block_size
    }
}

/// Cuts a zio into pieces, from this byte of the zio on. A piece is a part of one block or, if the zio
/// `has_runs`, a run of whole blocks.
pub(super) fn cut(
    block_size: u32,
    zio: &Zio<VolumeId>,
    from: u32,
    has_runs: bool,
) -> impl Iterator<Item = Piece> + use<> {
    // The block size is a power of two, so shifts can replace slow divisions.
    let (size, shift) = (u64::from(block_size), block_size.trailing_zeros());
    let (begin, end) = (zio.offset, zio.offset + u64::from(zio.length));
    let cut = move |first: u64| {
        let block = first >> shift;
        let run_end = if has_runs && block << shift == first {
            ((first / RUN_MAX + 1) * RUN_MAX).min(end >> shift << shift)
        } else {
            0
        };
        let last = run_end.max((block + 1) << shift).min(end);
        Piece {
            block: block as u32,
            count: (((last + size - 1) >> shift) - block) as u32,
            at: (first - (block << shift)) as u32,
            length: (last - first) as u32,
            from: (first - begin) as u32,
        }
    };
    let after = move |piece: &Piece| {
        let next = begin + u64::from(piece.from) + u64::from(piece.length);
        (next < end).then(|| cut(next))
    };
    core::iter::successors(Some(cut(begin + u64::from(from))), after)
}

/// The blocks that a zio touches. The zio must have at least one byte.
pub(super) fn blocks_of(block_size: u32, zio: &Zio<VolumeId>) -> Range<u32> {
    let size = u64::from(block_size);
    let end = zio.offset + u64::from(zio.length);
    (zio.offset / size) as u32..end.div_ceil(size) as u32
}

/// Whether a read or write has more blocks than one step may handle.
pub(super) fn is_long(block_size: u32, zio: &Zio<VolumeId>) -> bool {
    let blocks = blocks_of(block_size, zio);
    matches!(zio.op, Op::Read | Op::Write) && blocks.end - blocks.start > TOUCHED_MAX
}

/// The maximum size of a run of blocks, in bytes. Runs end at multiples of this size.
const RUN_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::{Piece, RUN_MAX};
    use crate::client::ClientId;
    use crate::time::Instant;
    use crate::zio::{Op, VolumeId, Zio, ZioId};
    use alloc::vec::Vec;

    /// The pieces of a zio that is cut into blocks of 4 KiB, each as (block, count, at, length).
    fn cut(op: Op, offset: u64, length: u32) -> Vec<(u32, u32, u32, u32)> {
        let zio = Zio {
            id: ZioId(0),
            device: VolumeId(0),
            client: ClientId(0),
            op,
            fua: false,
            call: None,
            offset,
            length,
            arrived: Instant::ZERO,
        };
        let has_runs = matches!(op, Op::Zero | Op::Trim);
        let pieces: Vec<Piece> = super::cut(4_096, &zio, 0, has_runs).collect();
        let from = |at: usize| pieces[..at].iter().map(|piece| piece.length).sum();
        for (at, piece) in pieces.iter().enumerate() {
            assert_eq!(piece.from, from(at));
        }
        let tuple = |piece: &Piece| (piece.block, piece.count, piece.at, piece.length);
        pieces.iter().map(tuple).collect()
    }

    #[test]
    fn a_zio_is_cut_where_blocks_begin() {
        let expected = [(0, 1, 4_000, 96), (1, 1, 0, 4_096), (2, 1, 0, 8)];
        assert_eq!(cut(Op::Write, 4_000, 4_200), expected);
        assert_eq!(cut(Op::Trim, 4_000, 4_200), expected);
        let expected = [(1, 1, 0, 4_096), (2, 1, 0, 4_096)];
        assert_eq!(cut(Op::Write, 4_096, 8_192), expected);
    }

    #[test]
    fn whole_blocks_of_zeroes_are_cut_in_runs() {
        let expected = [(0, 1, 1, 4_095), (1, 2, 0, 8_192), (3, 1, 0, 1)];
        assert_eq!(cut(Op::Zero, 1, 3 * 4_096), expected);
        assert_eq!(cut(Op::Zero, 8_192, 2_000), [(2, 1, 0, 2_000)]);
        let (run, block) = (RUN_MAX as u32, (RUN_MAX / 4_096) as u32);
        let expected = [
            (block - 1, 1, 0, 4_096),
            (block, block, 0, run),
            (2 * block, 2, 0, 8_192),
            (2 * block + 2, 1, 0, 5),
        ];
        let length = run + 3 * 4_096 + 5;
        assert_eq!(cut(Op::Trim, RUN_MAX - 4_096, length), expected);
    }
}
