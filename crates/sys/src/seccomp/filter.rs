//! The filter: a program for the kernel's classic BPF that picks the calls to notify.
//!
//! No crate writes it for us: libseccomp needs a C library, and seccompiler has no action that notifies and
//! kills programs of a foreign architecture. The program has no jump out of a block, so it needs no labels.

use libc::{sock_filter, sock_fprog};

use super::abi::{Condition, NUMBERINGS, Numbering, SystemCall};

/// The program that notifies these calls in each ABI, and every call of an architecture that is not known.
/// It lets all others go on.
pub(super) fn program(calls: &[SystemCall]) -> Vec<sock_filter> {
    let mut program = Vec::new();
    let mut architectures: Vec<u32> = NUMBERINGS.iter().map(|it| it.architecture).collect();
    architectures.dedup();
    for architecture in architectures {
        let numberings = NUMBERINGS
            .iter()
            .filter(|it| it.architecture == architecture);
        let block = of_architecture(numberings, calls);
        program.push(load(ARCHITECTURE));
        program.extend(unless_equal_skip(architecture, block.len()));
        program.extend(block);
    }
    program.push(give(libc::SECCOMP_RET_USER_NOTIF));
    program
}

/// The program as the system call takes it. It borrows the instructions.
pub(super) fn borrowed(program: &mut [sock_filter]) -> sock_fprog {
    sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    }
}

fn of_architecture<'a>(
    numberings: impl Iterator<Item = &'a Numbering>,
    calls: &[SystemCall],
) -> Vec<sock_filter> {
    let mut block = vec![load(NUMBER)];
    for numbering in numberings {
        for call in calls {
            let body = of_call(call.condition());
            block.extend(unless_equal_skip((numbering.number)(*call), body.len()));
            block.extend(body);
        }
    }
    block.push(give(libc::SECCOMP_RET_ALLOW));
    block
}

/// The verdict on a call that may be notified.
fn of_call(condition: Option<Condition>) -> Vec<sock_filter> {
    let notify = give(libc::SECCOMP_RET_USER_NOTIF);
    let Some(condition) = condition else {
        return vec![notify];
    };
    vec![
        load(ARGUMENTS + 8 * condition.argument as u32 + LOW_HALF),
        jump(libc::BPF_JSET, condition.bits, 0, 1),
        notify,
        give(libc::SECCOMP_RET_ALLOW),
    ]
}

/// Skips `count` instructions unless the loaded word is this one. A longer block takes a second jump.
fn unless_equal_skip(word: u32, count: usize) -> Vec<sock_filter> {
    match u8::try_from(count) {
        Ok(count) => vec![jump(libc::BPF_JEQ, word, 0, count)],
        Err(_) => vec![
            jump(libc::BPF_JEQ, word, 1, 0),
            instruction(libc::BPF_JMP | libc::BPF_JA, count as u32, 0, 0),
        ],
    }
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0)
}

fn give(verdict: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, verdict, 0, 0)
}

fn jump(test: u32, word: u32, yes: u8, no: u8) -> sock_filter {
    instruction(libc::BPF_JMP | test | libc::BPF_K, word, yes, no)
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    let code = code as u16;
    sock_filter { code, jt, jf, k }
}

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;
/// The place of the lower half of a word of 64 bits.
const LOW_HALF: u32 = if cfg!(target_endian = "big") { 4 } else { 0 };
