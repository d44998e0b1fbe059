//! Anonymous memory that can be given back in parts.

use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};
use rustix::mm::{Advice, madvise};

/// The size of the pages that the kernel provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// Small pages only, whatever the system prefers.
    Small,
    /// Huge pages, if the kernel has them.
    Huge,
}

/// Zeroed memory that this process shares with no other. The kernel provides each page when it is first used.
#[derive(Debug)]
pub struct Pages(Arc<MmapRaw>);

/// A range of [`Pages`] whose memory the kernel is to provide ahead of its use.
#[derive(Debug)]
pub struct Provision {
    memory: Arc<MmapRaw>,
    range: Range<usize>,
}

impl Pages {
    /// Maps this many bytes.
    ///
    /// # Errors
    /// Fails if the kernel refuses to map more memory for the process.
    pub fn map(length: usize, size: PageSize) -> io::Result<Pages> {
        let pages = MmapRaw::from(MmapOptions::new().len(length).map_anon()?);
        // A kernel without huge pages uses small pages.
        let _ = pages.advise(match size {
            PageSize::Small => memmap2::Advice::NoHugePage,
            PageSize::Huge => memmap2::Advice::HugePage,
        });
        Ok(Pages(Arc::new(pages)))
    }

    /// A range that another thread can [make](Provision::provide) the kernel provide. `None` if the range is
    /// not in this memory.
    pub fn provision(&self, range: Range<usize>) -> Option<Provision> {
        self.get(range.clone())?;
        let memory = Arc::clone(&self.0);
        Some(Provision { memory, range })
    }

    /// Gives the memory of a range of whole pages back to the kernel. The range then reads as zeroes.
    ///
    /// # Errors
    /// Fails if the range does not consist of whole pages, or if the kernel refuses. The bytes then stay as
    /// they were.
    pub fn give_back(&mut self, range: Range<usize>) -> io::Result<()> {
        let page = rustix::param::page_size();
        let is_whole = range.start.is_multiple_of(page) && range.end.is_multiple_of(page);
        let (Some(bytes), true) = (self.get_mut(range), is_whole) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (start, length) = (bytes.as_mut_ptr(), bytes.len());
        // SAFETY: the range consists of whole pages of this mapping, as the code above has checked. The
        // mapping is private and anonymous, so its pages become zeroes, which are valid bytes. `&mut self`
        // means that there is no other reference to these bytes.
        let advise = |advice| unsafe { madvise(start.cast(), length, advice) };
        // For locked memory, the kernel accepts only `MADV_DONTNEED_LOCKED`, which Linux has had since 5.18.
        let given = advise(Advice::LinuxDontneedLocked).or_else(|_| advise(Advice::LinuxDontNeed));
        Ok(given?)
    }
}

impl Provision {
    /// Makes the kernel provide the memory, and waits for it. The bytes stay as they are. Needs Linux 5.14.
    ///
    /// # Errors
    /// Fails if the kernel refuses, or has no memory. It then provides the memory when it is first used.
    pub fn provide(&self) -> io::Result<()> {
        let start = self.memory.as_mut_ptr().wrapping_add(self.range.start);
        // SAFETY: the range lies in the mapping, as `Pages::provision` has checked, and `self.memory` keeps the
        // mapping. This advice changes no bytes and moves none, so it may happen while others use them.
        let provided =
            unsafe { madvise(start.cast(), self.range.len(), Advice::LinuxPopulateWrite) };
        Ok(provided?)
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping has this length, consists of initialised bytes, and lives as long as `self`.
        // Only `self` gives out references to them: a `Provision` reads and writes nothing.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), self.0.len()) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`. `&mut self` means that there is no other reference.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr(), self.0.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{PageSize, Pages};

    const PAGE: usize = 4096;

    #[test]
    fn what_is_given_back_reads_as_zeroes_and_the_rest_stays() {
        let mut pages = Pages::map(4 * PAGE, PageSize::Small).unwrap();
        pages.fill(7);
        pages.give_back(PAGE..3 * PAGE).unwrap();
        assert_eq!(pages[..PAGE], [7; PAGE]);
        assert_eq!(pages[PAGE..3 * PAGE], [0; 2 * PAGE]);
        assert_eq!(pages[3 * PAGE..], [7; PAGE]);
        for range in [1..PAGE, 3 * PAGE..5 * PAGE] {
            assert!(pages.give_back(range).is_err());
        }
        assert_eq!(pages[3 * PAGE..], [7; PAGE]);
    }

    #[test]
    fn another_thread_makes_the_kernel_provide_memory() {
        let mut pages = Pages::map(4 * PAGE, PageSize::Huge).unwrap();
        pages[PAGE] = 7;
        assert!(pages.provision(3 * PAGE..5 * PAGE).is_none());
        let provision = pages.provision(0..4 * PAGE).unwrap();
        let provided = std::thread::spawn(move || provision.provide());
        pages[2 * PAGE] = 8;
        // An old kernel refuses.
        let _ = provided.join().unwrap();
        assert_eq!([pages[0], pages[PAGE], pages[2 * PAGE]], [0, 7, 8]);
    }
}
