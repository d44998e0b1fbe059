//! Chunks of which little is written, in small pages. Each takes as much memory as was written of it, in
//! pages, and a free chunk takes none.

use std::ops::Range;

use dashpot_sys::{PageSize, Pages};

use super::pieces::pieces;
use super::slabs::{CHUNK, CHUNKS_PER_SLAB, map, place};

/// The numbers of chunks count from 0.
#[derive(Debug, Default)]
pub(super) struct Sparse {
    slabs: Vec<Pages>,
    /// For each chunk, a bit for each of its [pages](PAGE) that may differ from zeroes.
    touched: Vec<u16>,
    free: Vec<u32>,
}

impl Sparse {
    pub(super) const fn new() -> Sparse {
        Sparse {
            slabs: Vec::new(),
            touched: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Takes a chunk of zeroes.
    pub(super) fn take(&mut self) -> u32 {
        if let Some(number) = self.free.pop() {
            return number;
        }
        let number = self.touched.len() as u32;
        if number.is_multiple_of(CHUNKS_PER_SLAB) {
            self.slabs.push(map(PageSize::Small));
        }
        self.touched.push(0);
        number
    }

    /// Takes a chunk back, and gives its memory back to the system.
    pub(super) fn give(&mut self, number: u32) {
        let (slab, range) = place(number);
        if self.slabs[slab].give_back(range.clone()).is_err() {
            self.slabs[slab][range].fill(0);
        }
        self.touched[number as usize] = 0;
        self.free.push(number);
        if self.free.len() == self.touched.len() {
            *self = Sparse::new();
        }
    }

    pub(super) fn bytes(&self, number: u32) -> &[u8] {
        let (slab, range) = place(number);
        &self.slabs[slab][range]
    }

    /// Notes that a part of a chunk is about to be written.
    pub(super) fn touch(&mut self, number: u32, part: &Range<usize>) {
        self.touched[number as usize] |= bits(part);
    }

    /// A part of a chunk, to write to it.
    pub(super) fn bytes_mut(&mut self, number: u32, part: Range<usize>) -> &mut [u8] {
        self.touch(number, &part);
        let (slab, range) = place(number);
        &mut self.slabs[slab][range][part]
    }

    /// Zeroes a part of a chunk. Takes no memory for pages that are zeroes.
    pub(super) fn zero(&mut self, number: u32, part: Range<usize>) {
        for page in self.pages(number, part) {
            self.bytes_mut(number, page).fill(0);
        }
    }

    /// Whether so much of a chunk is written that a chunk of a huge page takes at most twice as much.
    pub(super) fn is_dense(&self, number: u32) -> bool {
        self.touched[number as usize].count_ones() >= DENSE
    }

    /// The pages of a part of a chunk that may differ from zeroes, as far as they lie in the part.
    pub(super) fn pages(
        &self,
        number: u32,
        part: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let touched = self.touched[number as usize];
        let pages = pieces(PAGE, part.start as u64, part.len() as u64);
        let pages = pages.filter(move |(page, _)| touched & 1 << page != 0);
        pages.map(|(page, range)| {
            let start = (page * PAGE) as usize;
            start + range.start..start + range.end
        })
    }
}

/// The bits of the pages that a part of a chunk touches.
fn bits(part: &Range<usize>) -> u16 {
    let (first, end) = (part.start as u64 / PAGE, (part.end as u64).div_ceil(PAGE));
    ((1_u32 << end) - (1_u32 << first)) as u16
}

const PAGE: u64 = CHUNK / u16::BITS as u64;
/// A chunk is dense from this number of touched pages on.
const DENSE: u32 = u16::BITS / 2;
