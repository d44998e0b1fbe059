//! Anonymous memory that can be given back in parts.

use std::io;
use std::ops::{Deref, DerefMut, Range};

use memmap2::MmapMut;
use rustix::mm::{Advice, madvise};

/// Zeroed memory that this process shares with no other. The kernel provides each page when it is first used.
#[derive(Debug)]
pub struct Pages(MmapMut);

impl Pages {
    /// Maps this many bytes, in huge pages if the kernel has them.
    ///
    /// # Errors
    /// Fails if the kernel refuses to map more memory for the process.
    pub fn map(length: usize) -> io::Result<Pages> {
        let pages = MmapMut::map_anon(length)?;
        // A kernel without huge pages uses small pages.
        let _ = pages.advise(memmap2::Advice::HugePage);
        Ok(Pages(pages))
    }

    /// Gives the memory of a range of whole pages back to the kernel. The range then reads as zeroes.
    ///
    /// # Errors
    /// Fails if the range does not consist of whole pages, or if the kernel refuses. The bytes then stay as
    /// they were.
    pub fn give_back(&mut self, range: Range<usize>) -> io::Result<()> {
        let page = rustix::param::page_size();
        let is_whole = range.start.is_multiple_of(page) && range.end.is_multiple_of(page);
        let (Some(bytes), true) = (self.0.get_mut(range), is_whole) else {
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

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Pages;

    const PAGE: usize = 4096;

    #[test]
    fn what_is_given_back_reads_as_zeroes_and_the_rest_stays() {
        let mut pages = Pages::map(4 * PAGE).unwrap();
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
}
