//! Words of memory that several processes share.

use std::fs::File;
use std::io;
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};

/// The words of a file in memory. Each process that maps the file sees what the others store.
#[derive(Debug)]
pub struct SharedWords {
    memory: MmapRaw,
    count: usize,
}

impl SharedWords {
    /// Maps the first `count` words of a file.
    ///
    /// # Errors
    /// Fails if the file is shorter, or if the kernel refuses the mapping.
    pub fn map(file: &File, count: usize) -> io::Result<SharedWords> {
        let length = count * size_of::<AtomicU64>();
        if file.metadata()?.len() < length as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let memory = MmapOptions::new().len(length).map_raw(file)?;
        Ok(SharedWords { memory, count })
    }

    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has at least `count` words, begins at a page, lives as long as `self`, and is
        // readable and writable. All bytes are valid words. Every process that has the mapping uses it only
        // through this type, hence atomically. The file must not be made shorter: it has no name, and no owner
        // does that.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::SharedWords;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_one_stores_the_other_sees() {
        let file = tempfile::tempfile().unwrap();
        assert!(SharedWords::map(&file, 2).is_err());
        file.set_len(16).unwrap();
        let [one, other] = [(); 2].map(|()| SharedWords::map(&file, 2).unwrap());
        one.words()[1].store(7, Ordering::Release);
        assert_eq!(other.words()[1].load(Ordering::Acquire), 7);
        assert_eq!(other.words().len(), 2);
    }
}
