//! Tests of notified calls. A filter applies to one thread, so each test filters a thread of its own.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::mpsc::channel;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::abi::{Abi, Condition, NUMBERINGS, REQUESTS, SystemCall, When, find};
use super::filter::program;
use super::{Answer, Call, CallId, Caller, Listener, NotInstalled, Notified};

const SYNCS: [Notified; 3] = [
    notified(SystemCall::Fsync),
    notified(SystemCall::Fdatasync),
    notified(SystemCall::Pwritev2),
];

const fn notified(call: SystemCall) -> Notified {
    let when = When::Syncs;
    Notified { call, when }
}

/// Runs `calls` on a filtered thread, while `answer` answers each notified call.
fn filtered<T: Send>(
    calls: impl FnOnce() -> T + Send,
    mut answer: impl FnMut(&Listener, Call),
) -> T {
    let (give, take) = channel();
    thread::scope(|scope| {
        let caller = scope.spawn(move || {
            give.send(Listener::install(&SYNCS)).unwrap();
            calls()
        });
        let listener = take.recv().unwrap().unwrap();
        while waits_for_call(&listener) {
            if let Some(call) = listener.receive().unwrap() {
                answer(&listener, call);
            }
        }
        caller.join().unwrap()
    })
}

/// Blocks until a call waits for an answer. Returns false if no filtered thread is left.
fn waits_for_call(listener: &Listener) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut polled, None).unwrap();
    polled[0].revents().contains(PollFlags::IN)
}

fn fail(errno: Errno) -> impl FnMut(&Listener, Call) {
    move |listener, call| assert!(listener.answer(call.id, Answer::Fail(errno)).unwrap())
}

#[test]
fn a_call_goes_on_or_fails_as_answered() {
    let file = tempfile::tempfile().unwrap();
    let mut seen = Vec::new();
    let ended = filtered(
        || [file.sync_all(), file.sync_data(), file.sync_all()],
        |listener, call| {
            assert!(listener.waits(call.id));
            assert_eq!(call.arguments[0], file.as_raw_fd() as u64);
            let answer = match seen.len() {
                1 => Answer::Fail(Errno::IO),
                _ => Answer::GoOn,
            };
            seen.push(call);
            assert!(listener.answer(call.id, answer).unwrap());
            assert!(!listener.waits(call.id));
            assert!(!listener.answer(call.id, answer).unwrap(), "answered twice");
        },
    );
    assert!(ended[0].is_ok() && ended[2].is_ok());
    let error = Errno::from_io_error(ended[1].as_ref().unwrap_err());
    assert_eq!(error, Some(Errno::IO));
    let callers: Vec<Caller> = seen.iter().map(|call| call.caller).collect();
    let expected = [SystemCall::Fsync, SystemCall::Fdatasync, SystemCall::Fsync];
    assert_eq!(callers, expected.map(Caller::Native));
    assert!(seen.is_sorted_by(|a, b| a.id.0 + 1 == b.id.0));
}

#[test]
fn only_picked_calls_are_notified() {
    let mut file = tempfile::tempfile().unwrap();
    let count = |flags| {
        let mut calls = 0;
        let written = filtered(
            || {
                std::io::Write::write_all(&mut &file, b"x").unwrap();
                pwritev2(&file, flags)
            },
            |listener, call| {
                calls += 1;
                assert_eq!(call.caller, Caller::Native(SystemCall::Pwritev2));
                listener.answer(call.id, Answer::GoOn).unwrap();
            },
        );
        assert_eq!(written, 1);
        calls
    };
    assert_eq!(
        [count(0), count(libc::RWF_SYNC), count(libc::RWF_DSYNC)],
        [0, 1, 1]
    );
    std::io::Write::flush(&mut file).unwrap();
}

fn pwritev2(file: &File, flags: i32) -> isize {
    let bytes = libc::iovec {
        iov_base: b"x".as_ptr().cast_mut().cast(),
        iov_len: 1,
    };
    // SAFETY: the one buffer outlives the call, which only reads it.
    unsafe { libc::pwritev2(file.as_raw_fd(), &raw const bytes, 1, 0, flags) }
}

/// 32-bit programs use other numbers for their calls. The listener must recognise each call all the same.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_calls_of_32_bit_programs_are_told_apart() {
    let mut callers = Vec::new();
    let results = filtered(
        || {
            // SAFETY: fsync of the descriptor -1 touches no memory.
            let x32 = unsafe { libc::syscall(0x4000_0000 | libc::SYS_fsync, -1) };
            [x32, i386_fsync().into()]
        },
        |listener, call| {
            callers.push(call.caller);
            fail(Errno::NOSYS)(listener, call);
        },
    );
    let foreign = Caller::Foreign(SystemCall::Fsync);
    // A kernel that does not support 32-bit programs refuses the second call by itself.
    assert!(
        callers == [foreign; 2] || callers == [foreign],
        "{callers:?}"
    );
    assert!(results.iter().all(|result| *result < 0), "{results:?}");
}

#[cfg(target_arch = "x86_64")]
fn i386_fsync() -> i32 {
    let mut number = 118;
    // SAFETY: fsync of the descriptor -1 touches no memory. The kernel's entry for 32-bit calls changes only
    // the registers that this code names. The compiler reserves rbx, so this code restores rbx after the
    // call. A kernel without the entry sends SIGSEGV, which ends the test.
    unsafe {
        std::arch::asm!(
            "xchg {bad:r}, rbx", "int 0x80", "xchg {bad:r}, rbx",
            bad = inout(reg) -1_i64 => _, inout("eax") number,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    number
}

#[test]
fn a_second_listener_is_refused() {
    let second = filtered(|| Listener::install(&SYNCS).err(), |_, _| {});
    assert_eq!(second, Some(NotInstalled::HasListener));
}

#[test]
fn a_shared_listener_answers_what_the_first_owner_has_received() {
    let file = tempfile::tempfile().unwrap();
    let ended = filtered(
        || file.sync_all(),
        |listener, call| {
            let heir = listener.share().unwrap();
            assert!(heir.answer(call.id, Answer::Fail(Errno::IO)).unwrap());
        },
    );
    assert_eq!(ended.unwrap_err().raw_os_error(), Some(libc::EIO));
    assert!(!waits_for_nobody());
}

/// Whether a listener says that a call waits, or accepts an answer to it, although there is no such call.
fn waits_for_nobody() -> bool {
    let (give, take) = channel();
    thread::spawn(move || give.send(Listener::install(&[]).unwrap()).unwrap());
    let listener = take.recv().unwrap();
    listener.waits(CallId(0)) || listener.answer(CallId(0), Answer::GoOn).unwrap()
}

/// Interprets the filter naively, and returns its verdict on a call.
fn verdict(program: &[libc::sock_filter], data: &[u32; 16]) -> u32 {
    let (mut at, mut word) = (0, 0);
    loop {
        let step = program[at];
        at += 1;
        match u32::from(step.code) {
            0x20 => word = data[step.k as usize / 4],
            0x15 => at += usize::from(if word == step.k { step.jt } else { step.jf }),
            0x45 => at += usize::from(if word & step.k != 0 { step.jt } else { step.jf }),
            0x05 => at += step.k as usize,
            0x06 => return step.k,
            code => panic!("an instruction of unknown code {code:#x}"),
        }
    }
}

/// Compares the filter's verdict on every call number of every architecture with the tables.
#[test]
fn the_filter_picks_what_the_tables_say() {
    for when in [
        When::Always,
        When::Syncs,
        When::WritesFile,
        When::ReachesFile,
    ] {
        let calls = SystemCall::ALL.map(|call| Notified { call, when });
        let program = program(&calls);
        assert!(program.len() < 4096, "the kernel takes no longer program");
        let mut architectures: Vec<u32> = NUMBERINGS.iter().map(|it| it.architecture).collect();
        architectures.push(0xdead_beef);
        for architecture in architectures {
            let is_known = architecture != 0xdead_beef;
            for number in (0..600).chain(0x4000_0000..0x4000_0000 + 600) {
                for word in [0, 1, 2, 3, 4, 7, 0x20, 0x23, 0x1000, 0x80000]
                    .into_iter()
                    .chain(REQUESTS)
                {
                    let mut data = [word; 16];
                    (data[0], data[1]) = (number, architecture);
                    let meets = |it: &Condition| match it {
                        Condition::Any(_, bits) => bits & word != 0,
                        Condition::None(_, bits) => bits & word == 0,
                        Condition::OneOf(_, numbers) => numbers.contains(&word),
                    };
                    let wanted = match find(architecture, number) {
                        Some((call, abi)) => call.conditions(when, abi).iter().all(meets),
                        None => !is_known,
                    };
                    let notified = verdict(&program, &data) == libc::SECCOMP_RET_USER_NOTIF;
                    assert_eq!(notified, wanted, "{architecture:x} {number} {word}");
                }
            }
        }
    }
}

/// The table's numbers for native programs must be those of the C library.
#[test]
fn the_numbers_are_those_of_the_machine() {
    for (call, number) in [
        (SystemCall::Fsync, libc::SYS_fsync),
        (SystemCall::Pwritev2, libc::SYS_pwritev2),
        (SystemCall::Preadv2, libc::SYS_preadv2),
        (SystemCall::Pread64, libc::SYS_pread64),
        (SystemCall::Writev, libc::SYS_writev),
        (SystemCall::Sendfile, libc::SYS_sendfile),
        (SystemCall::Splice, libc::SYS_splice),
        (SystemCall::CopyFileRange, libc::SYS_copy_file_range),
        (SystemCall::Openat, libc::SYS_openat),
        (SystemCall::Openat2, libc::SYS_openat2),
        (SystemCall::Unlinkat, libc::SYS_unlinkat),
        (SystemCall::Renameat2, libc::SYS_renameat2),
        (SystemCall::Ftruncate, libc::SYS_ftruncate),
        (SystemCall::Fallocate, libc::SYS_fallocate),
        (SystemCall::Mmap, libc::SYS_mmap),
        (SystemCall::Ioctl, libc::SYS_ioctl),
        (SystemCall::OpenByHandleAt, libc::SYS_open_by_handle_at),
        (SystemCall::IoSetup, libc::SYS_io_setup),
        (SystemCall::IoSubmit, libc::SYS_io_submit),
        (SystemCall::IoUringSetup, libc::SYS_io_uring_setup),
        (SystemCall::Execveat, libc::SYS_execveat),
    ] {
        let found = find(NUMBERINGS[0].architecture, number as u32);
        assert_eq!(found, Some((call, Abi::Native)), "{}", call.name());
    }
}
