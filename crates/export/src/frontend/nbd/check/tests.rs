use proptest::prelude::*;

use super::*;
use crate::export::Power;

const SIZE: u64 = 1 << 30;
const ALL: Features = Features {
    structured: true,
    base_allocation: true,
};

fn export(block: u32, read_only: bool) -> ExportInfo {
    ExportInfo {
        name: "a".into(),
        description: String::new(),
        size: SIZE,
        block,
        preferred: block,
        read_only,
        power: Power::default(),
    }
}

fn request(command: u16, flags: u16, offset: u64, length: u32) -> RequestHeader {
    RequestHeader {
        flags,
        command,
        cookie: 1,
        offset,
        length,
    }
}

/// Checks a request against a writable export of 512-byte blocks, with all features negotiated.
fn served(command: u16, flags: u16, offset: u64, length: u32) -> Result<Accepted, Refused> {
    check(
        &request(command, flags, offset, length),
        &export(512, false),
        ALL,
    )
}

fn errno(result: Result<Accepted, Refused>) -> Option<Errno> {
    match result {
        Err(Refused::Reply { errno, .. }) => Some(errno),
        Ok(_) | Err(Refused::Drop) => None,
    }
}

#[test]
fn every_command_is_understood() {
    use Operation::{Cache, Flush, Read, Trim, Write, Zero};
    let io = |operation| Ok(Accepted::Io(operation));
    assert_eq!(served(command::READ, 0, 512, 1024), io(Read));
    assert_eq!(served(command::READ, flag::DF, 512, 1024), io(Read));
    for fua in [false, true] {
        let flags = if fua { flag::FUA } else { 0 };
        let zero = |no_hole| io(Zero { fua, no_hole });
        assert_eq!(served(command::WRITE, flags, 0, 512), io(Write { fua }));
        assert_eq!(served(command::TRIM, flags, 0, 512), io(Trim { fua }));
        assert_eq!(served(command::WRITE_ZEROES, flags, 0, 512), zero(false));
        assert_eq!(
            served(command::WRITE_ZEROES, flags | flag::NO_HOLE, 0, 512),
            zero(true)
        );
    }
    assert_eq!(served(command::FLUSH, 0, 0, 0), io(Flush));
    assert_eq!(served(command::CACHE, 0, 0, 512), io(Cache));
    let status = |req_one| Ok(Accepted::BlockStatus { req_one });
    assert_eq!(served(command::BLOCK_STATUS, 0, 0, 512), status(false));
    assert_eq!(
        served(command::BLOCK_STATUS, flag::REQ_ONE, 0, 512),
        status(true)
    );
    assert_eq!(served(command::DISC, 0, 0, 0), Ok(Accepted::Disconnect));
    assert_eq!(
        served(command::DISC, 0xffff, 1, 1),
        Ok(Accepted::Disconnect)
    );
}

#[test]
fn each_command_has_its_flags_and_all_have_fua() {
    let own = [
        (command::READ, flag::DF),
        (command::WRITE, 0),
        (command::TRIM, 0),
        (command::CACHE, 0),
        (command::WRITE_ZEROES, flag::NO_HOLE),
        (command::BLOCK_STATUS, flag::REQ_ONE),
    ];
    for (command, own) in own {
        for bit in 0..16 {
            let flags = 1 << bit;
            let refused = errno(served(command, flags, 0, 512)) == Some(Errno::Inval);
            assert_eq!(
                refused,
                flags & (own | flag::FUA) == 0,
                "command {command}, bit {bit}"
            );
        }
    }
    assert_eq!(
        served(command::FLUSH, flag::FUA, 0, 0),
        Ok(Accepted::Io(Operation::Flush))
    );
    assert_eq!(
        errno(served(command::FLUSH, flag::DF, 0, 0)),
        Some(Errno::Inval)
    );
}

#[test]
fn what_was_not_negotiated_is_refused() {
    let simple = Features::default();
    let export = export(512, false);
    let refused = |command, flags| {
        errno(check(&request(command, flags, 0, 512), &export, simple)) == Some(Errno::Inval)
    };
    assert!(refused(command::READ, flag::DF));
    assert!(refused(command::BLOCK_STATUS, 0));
    assert!(!refused(command::READ, 0));
}

#[test]
fn unknown_commands_are_refused() {
    for command in [8, 9, 0xffff] {
        assert_eq!(errno(served(command, 0, 0, 512)), Some(Errno::Inval));
    }
}

#[test]
fn beyond_the_end_is_no_space_for_writes_and_invalid_for_the_rest() {
    let cases = [
        (command::READ, Errno::Inval),
        (command::WRITE, Errno::NoSpc),
        (command::TRIM, Errno::Inval),
        (command::CACHE, Errno::Inval),
        (command::WRITE_ZEROES, Errno::NoSpc),
        (command::BLOCK_STATUS, Errno::Inval),
    ];
    for (command, expected) in cases {
        assert_eq!(errno(served(command, 0, SIZE - 512, 512)), None);
        for (offset, length) in [(SIZE, 512), (SIZE - 512, 1024), (u64::MAX - 511, 512)] {
            assert_eq!(
                errno(served(command, 0, offset, length)),
                Some(expected),
                "command {command} at {offset}"
            );
        }
    }
}

#[test]
fn ranges_are_aligned_and_not_empty() {
    for command in [
        command::READ,
        command::WRITE,
        command::TRIM,
        command::CACHE,
        command::WRITE_ZEROES,
        command::BLOCK_STATUS,
    ] {
        for (offset, length) in [(1, 512), (0, 511), (512, 0)] {
            assert_eq!(
                errno(served(command, 0, offset, length)),
                Some(Errno::Inval),
                "command {command}, {length} bytes at {offset}"
            );
        }
        let bytewise = export(1, false);
        assert!(check(&request(command, 0, 3, 5), &bytewise, ALL).is_ok());
    }
    assert_eq!(errno(served(command::FLUSH, 0, 512, 0)), Some(Errno::Inval));
    assert_eq!(errno(served(command::FLUSH, 0, 0, 512)), Some(Errno::Inval));
}

#[test]
fn a_read_only_export_is_not_changed() {
    let export = export(512, true);
    let result = |command| check(&request(command, 0, 0, 512), &export, ALL);
    for command in [command::WRITE, command::TRIM, command::WRITE_ZEROES] {
        assert_eq!(errno(result(command)), Some(Errno::Perm));
    }
    for command in [command::READ, command::CACHE, command::BLOCK_STATUS] {
        assert!(result(command).is_ok());
    }
    assert!(check(&request(command::FLUSH, 0, 0, 0), &export, ALL).is_ok());
}

#[test]
fn only_payloads_are_bounded() {
    assert!(served(command::READ, 0, 0, PAYLOAD_MAX).is_ok());
    assert!(served(command::WRITE, 0, 0, PAYLOAD_MAX).is_ok());
    let above = PAYLOAD_MAX + 512;
    assert_eq!(
        errno(served(command::READ, 0, 0, above)),
        Some(Errno::Inval)
    );
    for command in [
        command::TRIM,
        command::CACHE,
        command::WRITE_ZEROES,
        command::BLOCK_STATUS,
    ] {
        assert!(served(command, 0, 0, above).is_ok());
    }
}

#[test]
fn a_refused_write_says_how_much_to_throw_away() {
    let payload = |result| match result {
        Err(Refused::Reply { payload, .. }) => Some(payload),
        _ => None,
    };
    assert_eq!(payload(served(command::WRITE, 0xff00, 0, 512)), Some(512));
    assert_eq!(
        payload(served(command::WRITE, 0, 0, DRAIN_MAX)),
        Some(DRAIN_MAX)
    );
    let read_only = check(&request(command::WRITE, 0, 0, 9), &export(1, true), ALL);
    assert_eq!(payload(read_only), Some(9));
    assert_eq!(payload(served(command::READ, 0xff00, 0, 512)), Some(0));
    assert_eq!(
        served(command::WRITE, 0, 0, DRAIN_MAX + 1),
        Err(Refused::Drop)
    );
}

prop_compose! {
    /// Random requests, close to the limits of the export, the blocks, the payloads and the integer types.
    fn any_request()(
        command in 0..10_u16,
        flags in prop_oneof![3 => Just(0), 1 => 0..64_u16],
        from in prop_oneof![Just(0), Just(SIZE), Just(u64::MAX), any::<u64>()],
        shift in -2048..=2048_i64,
        length in prop_oneof![0..2048_u32, (0..9_u32).prop_map(|n| n * 512),
            PAYLOAD_MAX - 512..=PAYLOAD_MAX + 512, any::<u32>()],
        aligned in any::<bool>(),
    ) -> RequestHeader {
        let mask = if aligned { !511 } else { !0 };
        request(command, flags, from.wrapping_add_signed(shift) & mask, length & mask as u32)
    }
}

proptest! {
    #[test]
    fn what_is_accepted_is_within_the_export(
        request in any_request(),
        block in (0..=16_u32).prop_map(|shift| 1 << shift),
        read_only in any::<bool>(),
        structured in any::<bool>(),
    ) {
        let features = Features { structured, base_allocation: structured };
        let result = check(&request, &export(block, read_only), features);
        let (offset, length) = (u128::from(request.offset), u128::from(request.length));
        let within = length > 0
            && offset + length <= u128::from(SIZE)
            && offset % u128::from(block) == 0
            && length % u128::from(block) == 0;
        match result {
            Ok(Accepted::Io(Operation::Flush) | Accepted::Disconnect) => {}
            Ok(Accepted::Io(Operation::Read)) => {
                prop_assert!(within && request.length <= PAYLOAD_MAX);
            }
            Ok(Accepted::Io(Operation::Write { .. })) => {
                prop_assert!(within && request.length <= PAYLOAD_MAX && !read_only);
            }
            Ok(Accepted::Io(Operation::Trim { .. } | Operation::Zero { .. })) => {
                prop_assert!(within && !read_only);
            }
            Ok(Accepted::Io(Operation::Cache) | Accepted::BlockStatus { .. }) => {
                prop_assert!(within);
            }
            Ok(Accepted::Io(Operation::Call(..))) => prop_assert!(false, "NBD has no calls"),
            Err(Refused::Drop) => {
                prop_assert!(request.command == command::WRITE && request.length > DRAIN_MAX);
            }
            Err(Refused::Reply { payload, .. }) => {
                let is_write = request.command == command::WRITE;
                prop_assert_eq!(payload, if is_write { request.length } else { 0 });
            }
        }
        let plain = request.flags == 0 && within && request.length <= PAYLOAD_MAX;
        if plain && matches!(request.command, command::READ | command::CACHE) {
            prop_assert!(result.is_ok());
        }
    }
}
