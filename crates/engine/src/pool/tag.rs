//! The tags of I/Os in the queues of disks.

/// The owner of an I/O in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// The repair of a mirror. It has at most one I/O in each queue at a time.
    Repair,
    /// One side's part in the write with this id.
    Write(u32),
    /// The read with this id.
    Read(u32),
    /// One side's part in the zio without bytes with this id.
    Beside(u32),
}

impl Tag {
    /// The tag as a number. The numbers are small and have few gaps, as queues require.
    #[inline]
    pub(super) fn pack(self) -> u32 {
        match self {
            Tag::Repair => 0,
            Tag::Read(id) => 3 * id + 1,
            Tag::Write(id) => 3 * id + 2,
            Tag::Beside(id) => 3 * id + 3,
        }
    }

    #[inline]
    pub(super) fn unpack(tag: u32) -> Tag {
        match (tag, tag % 3) {
            (0, _) => Tag::Repair,
            (_, 1) => Tag::Read(tag / 3),
            (_, 2) => Tag::Write(tag / 3),
            _ => Tag::Beside(tag / 3 - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tag;

    #[test]
    fn tags_are_small_and_dense() {
        let tags = [
            Tag::Repair,
            Tag::Read(0),
            Tag::Write(0),
            Tag::Beside(0),
            Tag::Read(1),
        ];
        assert_eq!(tags.map(Tag::pack), [0, 1, 2, 3, 4]);
        assert_eq!(tags.map(|tag| Tag::unpack(tag.pack())), tags);
    }
}
