//! Reads and writes that move fewer bytes than the program has asked for, and fail with no error.
//!
//! dashpot does such a call itself, on a copy of the program's descriptor, so that the position in the file moves
//! as if the program had done the call. The kernel does not do the call, which returns the number of the bytes.

use std::ops::Range;
use std::os::fd::OwnedFd;

use dashpot_engine::Random;
use dashpot_sys::Buffer;
use dashpot_sys::seccomp::{Call, Caller, SystemCall, descriptor_of, read_memory, write_memory};
use rustix::fs::{
    AtFlags, FileType, OFlags, SeekFrom, Statx, StatxFlags, fcntl_getfl, seek, statx, tell,
};
use rustix::io::{Errno, pread, pwrite, read, retry_on_intr, write};
use rustix::process::Pid;

/// Does less of a call, if it is a read or a write. Returns how many bytes it has moved; `None` if there is nothing
/// to shorten: at the end of the file, or if there is one byte only. If the call cannot be shortened, nothing has
/// happened.
pub(super) fn shorten(
    call: &Call,
    seed: u64,
    waits: impl Fn() -> bool,
) -> Result<Option<u32>, Errno> {
    let transfer = Transfer::of(call).ok_or(Errno::OPNOTSUPP)?;
    let thread = call.thread.ok_or(Errno::SRCH)?;
    let file = descriptor_of(thread, call.arguments[0] as i32)?;
    let buffers = transfer.buffers(thread)?;
    // If the call still waits, these are the file and the memory of its own thread, not those of a later thread with
    // the same number.
    if !waits() {
        return Err(Errno::SRCH);
    }
    let whole = buffers.iter().map(|it| it.end - it.start).sum::<u64>();
    let (there, unit) = transfer.extent(&file, whole)?;
    let Some(length) = shortened(there, unit, seed) else {
        return if there > 1 {
            Err(Errno::INVAL)
        } else {
            Ok(None)
        };
    };
    let mut buffer = Buffer::default().of(length);
    let memory = Memory { thread, buffers };
    let moved = match transfer.moves {
        Moves::Out => transfer.write(&file, &memory, buffer.bytes_mut(), waits)?,
        Moves::In => transfer.read(&file, &memory, buffer.bytes_mut(), waits)?,
    };
    Ok((moved > 0).then_some(moved as u32))
}

/// The memory of a call.
struct Memory {
    thread: Pid,
    buffers: Vec<Range<u64>>,
}

/// A read or a write, whose first argument is the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transfer {
    moves: Moves,
    /// The address and the length of the buffer, or the address of a list of buffers and the number of these.
    memory: (u64, u64),
    is_list: bool,
    /// Where the bytes begin in the file; `None` for the descriptor's position.
    offset: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moves {
    /// From the file into the program's memory.
    In,
    /// From the program's memory into the file.
    Out,
}

impl Transfer {
    /// `None` for other calls, and for those with flags, which may forbid that only a part is done.
    fn of(call: &Call) -> Option<Transfer> {
        let Caller::Native(it) = call.caller else {
            return None;
        };
        let [_, at, length, offset, _, flags] = call.arguments;
        let (moves, is_list, offset) = match it {
            SystemCall::Read => (Moves::In, false, None),
            SystemCall::Write => (Moves::Out, false, None),
            SystemCall::Pread64 => (Moves::In, false, Some(offset)),
            SystemCall::Pwrite64 => (Moves::Out, false, Some(offset)),
            SystemCall::Readv => (Moves::In, true, None),
            SystemCall::Writev => (Moves::Out, true, None),
            SystemCall::Preadv => (Moves::In, true, Some(offset)),
            SystemCall::Pwritev => (Moves::Out, true, Some(offset)),
            // An offset of -1 stands for the position of the descriptor.
            SystemCall::Preadv2 if flags as u32 == 0 => {
                (Moves::In, true, Some(offset).filter(|it| *it != u64::MAX))
            }
            SystemCall::Pwritev2 if flags as u32 == 0 => {
                (Moves::Out, true, Some(offset).filter(|it| *it != u64::MAX))
            }
            _ => return None,
        };
        Some(Transfer {
            moves,
            memory: (at, length),
            is_list,
            offset,
        })
    }

    /// How many of `whole` bytes the call as a whole would move, and the unit in which it can be shortened.
    fn extent(self, file: &OwnedFd, whole: u64) -> Result<(u64, u64), Errno> {
        let asked = StatxFlags::BASIC_STATS | StatxFlags::DIOALIGN;
        let status = statx(file, "", AtFlags::EMPTY_PATH, asked)?;
        if FileType::from_raw_mode(status.stx_mode.into()) != FileType::RegularFile {
            return Err(Errno::OPNOTSUPP);
        }
        // The kernel takes these bits away when a user writes, but not when root does.
        if self.moves == Moves::Out && u32::from(status.stx_mode) & SET_ID != 0 {
            return Err(Errno::PERM);
        }
        let there = match self.moves {
            Moves::In => {
                let at = self.offset.map_or_else(|| tell(file), Ok)?;
                whole.min(status.stx_size.saturating_sub(at))
            }
            Moves::Out => whole,
        };
        let is_direct = fcntl_getfl(file)?.contains(OFlags::DIRECT);
        Ok((there, if is_direct { block(&status) } else { 1 }))
    }

    /// Writes the first bytes of the program's memory to the file, by way of `bytes`.
    fn write(
        self,
        file: &OwnedFd,
        memory: &Memory,
        bytes: &mut [u8],
        waits: impl Fn() -> bool,
    ) -> Result<usize, Errno> {
        if read_memory(memory.thread, &memory.buffers, bytes)? < bytes.len() || !waits() {
            return Err(Errno::FAULT);
        }
        retry_on_intr(|| match self.offset {
            Some(at) => pwrite(file, bytes, at),
            None => write(file, bytes),
        })
    }

    /// Reads from the file into the program's memory, by way of `bytes`.
    fn read(
        self,
        file: &OwnedFd,
        memory: &Memory,
        bytes: &mut [u8],
        waits: impl Fn() -> bool,
    ) -> Result<usize, Errno> {
        let count = retry_on_intr(|| match self.offset {
            Some(at) => pread(file, &mut *bytes, at),
            None => read(file, &mut *bytes),
        })?;
        let given = waits().then(|| write_memory(memory.thread, &memory.buffers, &bytes[..count]));
        if given == Some(Ok(count)) {
            return Ok(count);
        }
        if self.offset.is_none() {
            seek(file, SeekFrom::Current(-(count as i64)))?;
        }
        Err(Errno::FAULT)
    }

    /// The addresses of the bytes in the program's memory.
    fn buffers(self, thread: Pid) -> Result<Vec<Range<u64>>, Errno> {
        let (at, length) = self.memory;
        if !self.is_list {
            return Ok(vec![addresses(at, length)?]);
        }
        if length > BUFFERS_MAX {
            return Err(Errno::INVAL);
        }
        let mut list = vec![0; length as usize * 16];
        let list_at = addresses(at, list.len() as u64)?;
        if read_memory(thread, &[list_at], &mut list)? < list.len() {
            return Err(Errno::FAULT);
        }
        let (words, _) = list.as_chunks::<8>();
        let (pairs, _) = words.as_chunks::<2>();
        let pairs = pairs.iter().map(|pair| pair.map(u64::from_ne_bytes));
        pairs.map(|[at, length]| addresses(at, length)).collect()
    }
}

fn addresses(at: u64, length: u64) -> Result<Range<u64>, Errno> {
    let end = at.checked_add(length).filter(|_| length <= LENGTH_MAX);
    end.map(|end| at..end).ok_or(Errno::INVAL)
}

/// How many bytes of `there` a shortened call moves: a multiple of `unit`, at least one, and not all.
fn shortened(there: u64, unit: u64, seed: u64) -> Option<usize> {
    let most = there.saturating_sub(1).min(SHORT_MAX) / unit;
    let units = (most > 0).then(|| 1 + Random::new(seed).below(most))?;
    Some((units * unit) as usize)
}

/// The size of the blocks of which direct I/O on a file consists.
fn block(status: &Statx) -> u64 {
    match status.stx_dio_offset_align {
        // Before Linux 6.1, or if the file system does not tell. All logical blocks divide this size.
        0 => 4096,
        size => size.into(),
    }
}

/// `S_ISUID` and `S_ISGID`.
const SET_ID: u32 = 0o6000;
/// The largest number of buffers that the kernel takes in one call.
const BUFFERS_MAX: u64 = 1024;
/// The longest buffer that is shortened. The sum of the lengths of all buffers of a call fits, too.
const LENGTH_MAX: u64 = i64::MAX as u64 / BUFFERS_MAX;
/// The most bytes that a shortened call moves, because dashpot keeps them meanwhile.
const SHORT_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileExt, PermissionsExt};

    use dashpot_engine::Random;
    use dashpot_sys::seccomp::{Call, CallId, Caller, SystemCall};
    use rustix::fs::{SeekFrom, seek, tell};
    use rustix::io::Errno;
    use rustix::thread::gettid;

    use super::{SHORT_MAX, shorten, shortened};

    #[test]
    fn a_part_is_neither_nothing_nor_all_and_every_length_comes() {
        for (there, unit, lengths) in [
            (2, 1, vec![1]),
            (5, 1, vec![1, 2, 3, 4]),
            (1536, 512, vec![512, 1024]),
            (1537, 512, vec![512, 1024, 1536]),
        ] {
            let mut seen: Vec<usize> = (0..100)
                .filter_map(|seed| shortened(there, unit, seed))
                .collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, lengths, "{there} in {unit}");
        }
        for (there, unit) in [(0, 1), (1, 1), (512, 512), (100, 512)] {
            assert_eq!(shortened(there, unit, 0), None);
        }
        assert!(shortened(u64::MAX, 1, 5).is_some_and(|it| it as u64 <= SHORT_MAX));
    }

    fn call(it: SystemCall, arguments: [u64; 6]) -> Call {
        Call {
            id: CallId(1),
            thread: Some(gettid()),
            caller: Caller::Native(it),
            arguments,
        }
    }

    const READS: [SystemCall; 5] = [
        SystemCall::Read,
        SystemCall::Pread64,
        SystemCall::Readv,
        SystemCall::Preadv,
        SystemCall::Preadv2,
    ];
    const WRITES: [SystemCall; 5] = [
        SystemCall::Write,
        SystemCall::Pwrite64,
        SystemCall::Writev,
        SystemCall::Pwritev,
        SystemCall::Pwritev2,
    ];

    /// The caller's memory: two buffers, and the list of them.
    struct Memory {
        buffers: [Vec<u8>; 2],
        list: [u64; 4],
    }

    impl Memory {
        fn new(lengths: [usize; 2], fill: u8) -> Memory {
            let mut buffers = lengths.map(|length| vec![fill; length]);
            let places = buffers.each_mut();
            let [one, two] = places.map(|it| it.as_mut_ptr().expose_provenance() as u64);
            let list = [one, lengths[0] as u64, two, lengths[1] as u64];
            Memory { buffers, list }
        }

        /// The second and the third argument of a call, and the bytes that these name.
        fn arguments(&self, is_list: bool) -> ([u64; 2], Vec<u8>) {
            if is_list {
                ([self.list.as_ptr().addr() as u64, 2], self.buffers.concat())
            } else {
                ([self.list[0], self.list[1]], self.buffers[0].clone())
            }
        }
    }

    /// Random calls on a file against the same calls on a model: the number of bytes, the bytes, those that must not
    /// change, and the position.
    #[test]
    fn shortened_calls_move_the_first_bytes_and_the_position() {
        let file = tempfile::tempfile().unwrap();
        let mut random = Random::new(7);
        let mut model: Vec<u8> = (0..200_u8).collect();
        file.write_all_at(&model, 0).unwrap();
        for round in 0..2_000 {
            let at = |random: &mut Random| random.below(5) as usize;
            let is_read = random.below(2) == 0;
            let it = if is_read {
                READS[at(&mut random)]
            } else {
                WRITES[at(&mut random)]
            };
            let memory = Memory::new([0, 0].map(|_| random.below(60) as usize), round as u8);
            let is_list = it.name().contains('v');
            let ([address, length], bytes) = memory.arguments(is_list);
            let position = random.below(250);
            seek(&file, SeekFrom::Start(position)).unwrap();
            let (offset, from, moves) = match it {
                SystemCall::Read | SystemCall::Readv | SystemCall::Write | SystemCall::Writev => {
                    (0, position, true)
                }
                SystemCall::Preadv2 | SystemCall::Pwritev2 if random.below(2) == 0 => {
                    (u64::MAX, position, true)
                }
                _ => {
                    let offset = random.below(250);
                    (offset, offset, false)
                }
            };
            let seed = random.next_u64();
            let arguments = [file.as_raw_fd() as u64, address, length, offset, 0, 0];
            let result = shorten(&call(it, arguments), seed, || true);
            let room = if is_read {
                bytes.len().min(model.len().saturating_sub(from as usize))
            } else {
                bytes.len()
            };
            let expected = shortened(room as u64, 1, seed);
            assert_eq!(
                result,
                Ok(expected.map(|it| it as u32)),
                "{it:?} {arguments:?}"
            );
            let count = expected.unwrap_or(0);
            let place = from as usize..from as usize + count;
            let (_, after) = memory.arguments(is_list);
            if is_read {
                let mut told = bytes;
                told[..count].copy_from_slice(model.get(place).unwrap_or_default());
                assert_eq!(after, told, "{it:?}");
            } else if count > 0 {
                model.resize(model.len().max(place.end), 0);
                model[place].copy_from_slice(&bytes[..count]);
            }
            let moved = if moves {
                position + count as u64
            } else {
                position
            };
            assert_eq!(tell(&file), Ok(moved), "{it:?} {arguments:?}");
            assert_eq!(content(&file), model, "{it:?}");
        }
    }

    fn content(file: &File) -> Vec<u8> {
        let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// A call that cannot be shortened has done nothing, so it can go on.
    #[test]
    fn a_call_that_cannot_be_shortened_has_done_nothing() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[1; 100], 0).unwrap();
        let descriptor = file.as_raw_fd() as u64;
        let bytes = [2_u8; 100];
        let at = bytes.as_ptr().addr() as u64;
        for (it, arguments) in [
            // Memory that does not exist, or that may not be written.
            (SystemCall::Read, [descriptor, 8, 100, 0, 0, 0]),
            (
                SystemCall::Read,
                [descriptor, shortened as *const () as u64, 100, 0, 0, 0],
            ),
            (SystemCall::Write, [descriptor, 8, 100, 0, 0, 0]),
            (SystemCall::Writev, [descriptor, at, 1025, 0, 0, 0]),
            // RWF_ATOMIC
            (SystemCall::Pwritev2, [descriptor, at, 1, 0, 0, 0x40]),
            (
                SystemCall::CopyFileRange,
                [descriptor, 0, descriptor, 0, 50, 0],
            ),
            (SystemCall::Write, [u32::MAX.into(), at, 100, 0, 0, 0]),
        ] {
            assert!(shorten(&call(it, arguments), 3, || true).is_err(), "{it:?}");
        }
        // Root's write would leave the bit.
        file.set_permissions(Permissions::from_mode(0o4755))
            .unwrap();
        let write = call(SystemCall::Write, [descriptor, at, 100, 0, 0, 0]);
        assert_eq!(shorten(&write, 3, || true), Err(Errno::PERM));
        file.set_permissions(Permissions::from_mode(0o600)).unwrap();
        // The call no longer waits.
        assert_eq!(shorten(&write, 3, || false), Err(Errno::SRCH));
        assert_eq!((tell(&file), content(&file)), (Ok(0), vec![1; 100]));
    }
}
