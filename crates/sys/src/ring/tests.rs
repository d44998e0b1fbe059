use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};

use super::{Completion, Ring, Work};

/// A ring that this thread uses; `None` if the host forbids io_uring.
fn ring(entries: u32) -> Option<Ring> {
    match Ring::new(entries) {
        Ok(ring) => {
            ring.enable().unwrap();
            Some(ring)
        }
        Err(error) => {
            eprintln!("skipped: this host has no io_uring ({error})");
            None
        }
    }
}

fn file(length: u64) -> Arc<File> {
    let file = tempfile::tempfile().unwrap();
    file.set_len(length).unwrap();
    Arc::new(file)
}

fn read(at: u64) -> Work<'static> {
    Work::Read {
        offset: at * 512,
        length: 512,
    }
}

/// Waits for completions, as a thread with a poller does.
fn collect(ring: &mut Ring, count: usize) -> Vec<Completion> {
    let mut all = Vec::new();
    while all.len() < count {
        ring.submit().unwrap();
        while let Some(completion) = ring.next_completion() {
            all.push(completion);
        }
        if all.len() < count {
            poll(&mut [PollFd::new(&*ring, PollFlags::IN)], None).unwrap();
            ring.hear();
        }
    }
    all
}

#[test]
fn bytes_come_and_go_and_each_operation_has_its_name() {
    let Some(mut ring) = ring(8) else { return };
    let file = file(1 << 20);
    let write = |offset, from, durable| Work::Write {
        offset,
        from,
        durable,
    };
    ring.start(&file, 7, write(512, &[3; 512], false)).unwrap();
    ring.start(&file, 8, write(4096, &[5; 512], true)).unwrap();
    let mut tokens: Vec<u64> = collect(&mut ring, 2)
        .into_iter()
        .map(|done| {
            assert_eq!(done.result, Ok(512));
            done.token
        })
        .collect();
    tokens.sort_unstable();
    assert_eq!(tokens, [7, 8]);
    ring.start(&file, 9, Work::Sync).unwrap();
    assert_eq!(collect(&mut ring, 1)[0].result, Ok(0));
    let mut bytes = [0; 512];
    file.read_exact_at(&mut bytes, 4096).unwrap();
    assert_eq!(bytes, [5; 512]);
    ring.start(&file, 10, read(1)).unwrap();
    let done = collect(&mut ring, 1).remove(0);
    assert_eq!((done.token, done.buffer.bytes()), (10, &[3; 512][..]));
}

/// Starts more operations than the ring's two queues can hold together. All of them must end.
#[test]
fn more_may_be_in_flight_than_the_queues_hold() {
    let Some(mut ring) = ring(4) else { return };
    let file = file(1 << 20);
    for token in 0..100 {
        ring.start(&file, token, read(token)).unwrap();
    }
    let mut tokens: Vec<u64> = collect(&mut ring, 100)
        .iter()
        .map(|done| done.token)
        .collect();
    tokens.sort_unstable();
    assert!(tokens.into_iter().eq(0..100));
    assert!(!ring.has_queued());
    assert!(ring.next_completion().is_none());
}

#[test]
fn a_read_beyond_the_end_is_short_and_a_bad_descriptor_an_error() {
    let Some(mut ring) = ring(4) else { return };
    ring.start(&file(100), 0, read(0)).unwrap();
    assert_eq!(collect(&mut ring, 1)[0].result, Ok(100));
    let unreadable = Arc::new(File::options().write(true).open("/dev/null").unwrap());
    ring.start(&unreadable, 0, read(0)).unwrap();
    let refused = collect(&mut ring, 1).remove(0).result;
    assert_eq!(refused, Err(rustix::io::Errno::BADF));
}

/// The test drops its file before the kernel has seen the operation. The ring must keep the file open until
/// the operation has ended.
#[test]
fn a_ring_that_goes_waits_for_what_is_in_flight() {
    let Some(mut ring) = ring(4) else { return };
    let file = file(1 << 20);
    ring.start(&file, 0, read(0)).unwrap();
    let weak = Arc::downgrade(&file);
    drop(file);
    assert!(weak.upgrade().is_some());
    drop(ring);
    assert!(weak.upgrade().is_none());
}
