use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use dashpot_engine::Errno;

use crate::store::blocking::Blocking;
use crate::store::extent::{Extent, Found};
use crate::store::tests::file_of;
use crate::store::{Attempt, Store};

#[test]
fn after_a_failed_sync_nothing_is_durable_any_more() {
    let (_directory, file) = file_of(4096);
    assert_eq!(file.sync(), Ok(()));
    assert_eq!(file.fault(), None);
    assert_eq!(
        file.durability
            .believe(Err(io::Error::from_raw_os_error(5))),
        Err(Errno::Io)
    );
    // The file itself is sound, so a second `fdatasync` would succeed, but that success would prove nothing.
    assert_eq!(file.sync(), Err(Errno::Io));
    assert_eq!(file.write(0, &[1], true), Err(Errno::Io));
    assert_eq!(file.zero(0, 1, true, true), Err(Errno::Io));
    assert_eq!(file.trim(0, 1, true), Err(Errno::Io));
    assert!(file.fault().unwrap().contains("Input/output error"));
}

#[test]
fn a_fault_leaves_reads_and_plain_writes_alone() {
    let (_directory, file) = file_of(4096);
    let _ = file
        .durability
        .believe(Err(io::Error::from_raw_os_error(5)));
    assert_eq!(file.write(7, &[1, 2], false), Ok(()));
    let mut bytes = [0; 2];
    assert_eq!(file.read(7, &mut bytes), Ok(()));
    assert_eq!(bytes, [1, 2]);
}

#[test]
fn what_is_in_memory_is_read_at_once() {
    let (_directory, file) = file_of(100_000);
    assert_eq!(file.write(0, &[3; 100_000], false), Ok(()));
    let mut bytes = vec![0; 100_000];
    assert_eq!(file.try_read(0, &mut bytes), Attempt::Done(Ok(())));
    assert!(bytes.iter().all(|&byte| byte == 3));
}

#[test]
fn what_may_wait_is_never_tried() {
    let (_directory, file) = file_of(4096);
    let mut store = Store::File(Arc::clone(&file));
    assert_eq!(store.flush(), Attempt::WouldBlock);
    assert_eq!(store.write(0, &[1], true), Attempt::WouldBlock);
    assert_eq!(store.zero(0, 1, false, false), Attempt::WouldBlock);
    assert_eq!(store.trim(0, 1, false), Attempt::WouldBlock);
    let mut first = [9];
    assert_eq!(file.read(0, &mut first), Ok(()));
    assert_eq!(first, [0]);
}

/// If another process shortens the file, the disk keeps its size, and reads beyond the end of the file fail.
#[test]
fn a_file_that_ends_too_early_is_an_error() {
    let (_directory, file) = file_of(4096);
    file.file.set_len(100).unwrap();
    let mut bytes = [0; 200];
    assert_eq!(file.try_read(0, &mut bytes), Attempt::WouldBlock);
    assert_eq!(file.read(0, &mut bytes), Err(Errno::Io));
}

#[test]
fn zeroes_are_written_where_they_cannot_be_allocated() {
    let length = 3 * super::ZEROES.len() as u64;
    let (_directory, file) = file_of(length);
    assert_eq!(file.write(0, &vec![1; length as usize], false), Ok(()));
    assert_eq!(file.write_zeroes(5, length - 10), Ok(()));
    let mut bytes = vec![9; length as usize];
    assert_eq!(file.read(0, &mut bytes), Ok(()));
    let expected = |at: u64| u8::from(!(5..length - 5).contains(&at));
    assert!((0..).zip(&bytes).all(|(at, &byte)| byte == expected(at)));
}

#[test]
fn holes_are_found() {
    let (_directory, file) = file_of(1 << 20);
    assert_eq!(file.write(256 << 10, &[1; 128 << 10], false), Ok(()));
    let mut out = Vec::new();
    file.extents(64 << 10, 512 << 10, Found::new(&mut out, 9));
    let expected = [(192 << 10, true), (128 << 10, false), (192 << 10, true)];
    assert_eq!(out, expected.map(|(length, hole)| Extent { length, hole }));
    file.extents(300 << 10, 4096, Found::new(&mut out, 9));
    assert_eq!(
        out,
        [Extent {
            length: 4096,
            hole: false
        }]
    );
}

#[test]
fn errors_are_those_that_clients_know() {
    let told = |raw| super::errno(io::Error::from_raw_os_error(raw));
    let (enospc, edquot, efbig, enomem, eio, ebadf) = (28, 122, 27, 12, 5, 9);
    assert_eq!([enospc, edquot, efbig].map(told), [Errno::NoSpc; 3]);
    assert_eq!(told(enomem), Errno::NoMem);
    assert_eq!([eio, ebadf].map(told), [Errno::Io; 2]);
}

#[test]
fn a_refused_write_is_not_tried_again() {
    let (_directory, file) = file_of(4096);
    // Some file systems accept `RWF_NOWAIT` for writes. If this one does not, a second attempt must be
    // refused, too.
    match file.try_write(0, &[1]) {
        Attempt::Done(outcome) => assert_eq!(outcome, Ok(())),
        Attempt::WouldBlock => assert_eq!(file.try_write(0, &[1]), Attempt::WouldBlock),
    }
    file.waits_for_writes
        .store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(file.try_write(1, &[1]), Attempt::WouldBlock);
    let mut second = [9];
    file.file.read_exact_at(&mut second, 1).unwrap();
    assert_eq!(second, [0]);
}
