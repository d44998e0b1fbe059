//! Writes the filter, a program in the kernel's classic BPF. The filter decides which calls the kernel
//! reports to the listener.
//!
//! No crate can write this program for us: libseccomp needs a C library; seccompiler cannot notify calls, and
//! kills programs of a foreign architecture. Each jump skips a block of known length, so the program needs no
//! labels.

use libc::{sock_filter, sock_fprog};

use super::abi::{Abi, Condition, NUMBERINGS, Numbering, SystemCall, When};

/// A call that the filter reports to the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notified {
    pub call: SystemCall,
    /// The arguments with which the filter notifies the call.
    pub when: When,
}

/// The program that notifies these calls in each ABI, and every call from an unknown architecture. The
/// program lets all other calls go on.
pub(super) fn program(calls: &[Notified]) -> Vec<sock_filter> {
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

/// The program in the form that the system call takes. The returned value borrows the instructions.
pub(super) fn borrowed(program: &mut [sock_filter]) -> sock_fprog {
    sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    }
}

fn of_architecture<'a>(
    numberings: impl Iterator<Item = &'a Numbering>,
    calls: &[Notified],
) -> Vec<sock_filter> {
    let mut block = vec![load(NUMBER)];
    for numbering in numberings {
        for call in calls {
            for number in call.call.numbers(numbering) {
                let body = of_call(call, numbering.abi);
                block.extend(unless_equal_skip(*number, body.len()));
                block.extend(body);
            }
        }
    }
    block.push(give(libc::SECCOMP_RET_ALLOW));
    block
}

/// The instructions for a call in the list, which notify the call if it meets all conditions, and otherwise
/// allow it.
fn of_call(notified: &Notified, abi: Abi) -> Vec<sock_filter> {
    let mut body = Vec::new();
    for condition in notified.call.conditions(notified.when, abi) {
        body.extend(unless_met_allow(condition));
    }
    body.push(give(libc::SECCOMP_RET_USER_NOTIF));
    body
}

/// The instructions that allow a call unless it meets the condition.
fn unless_met_allow(condition: &Condition) -> Vec<sock_filter> {
    let (argument, tests) = match *condition {
        Condition::Any(argument, bits) => (argument, vec![jump(libc::BPF_JSET, bits, 1, 0)]),
        Condition::None(argument, bits) => (argument, vec![jump(libc::BPF_JSET, bits, 0, 1)]),
        Condition::OneOf(argument, numbers) => {
            // A number that is equal skips the tests of the later numbers, and the verdict after them.
            let skips = (1..=numbers.len() as u8).rev();
            let test = |(number, skip): (&u32, u8)| jump(libc::BPF_JEQ, *number, skip, 0);
            (argument, numbers.iter().zip(skips).map(test).collect())
        }
    };
    let mut body = vec![load(ARGUMENTS + 8 * argument as u32 + LOW_HALF)];
    body.extend(tests);
    body.push(give(libc::SECCOMP_RET_ALLOW));
    body
}

/// Skips `count` instructions unless the loaded word is `word`. Skipping a long block takes a second jump.
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

/// The offset of the call's number in `struct seccomp_data`.
const NUMBER: u32 = 0;
/// The offset of the architecture in `struct seccomp_data`.
const ARCHITECTURE: u32 = 4;
/// The offset of the first argument in `struct seccomp_data`.
const ARGUMENTS: u32 = 16;
/// The offset of the lower half of a 64-bit word.
const LOW_HALF: u32 = if cfg!(target_endian = "big") { 4 } else { 0 };
