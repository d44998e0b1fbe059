//! The handshake, from the greeting to the first request, as a state machine that has no socket itself.
//!
//! Source: The rules are from NetworkBlockDevice/nbd, doc/proto.md, "Fixed newstyle negotiation" and "Option
//! types". The server supports the options EXPORT_NAME, ABORT, LIST, INFO, GO, STRUCTURED_REPLY,
//! LIST_META_CONTEXT and SET_META_CONTEXT with `base:allocation`. It does not support TLS. It answers every
//! other option with ERR_UNSUP and skips the option's data.
//!
//! The caller first sends [`GREETING`]. Then it receives bytes, passes them in pieces of any size to
//! [`Handshake::input`], and sends the bytes that `input` appends to its argument `output`. The caller sends
//! these bytes even if the result is [`Progress::Close`]. The caller must limit the time that the handshake
//! takes. This module limits the memory that the handshake takes.

mod advertised;
mod option;
mod reply;

use std::sync::Arc;

pub use self::advertised::transmission_flags;
use self::option::{InfoRequest, MetaRequest};
use self::reply::Reply;
use super::wire::{BASE_ALLOCATION, STRING_MAX};
use crate::export::ExportInfo;

/// The server's first bytes: two magic words, then the flags FIXED_NEWSTYLE and NO_ZEROES.
pub const GREETING: [u8; 18] = *b"NBDMAGICIHAVEOPT\x00\x03";

/// The largest number of options in one handshake. A client that lists the exports needs two options per
/// export.
pub const OPTIONS_MAX: u32 = 1000;

/// The largest amount of data in one option, in bytes.
pub const OPTION_DATA_MAX: u32 = 64 << 10;

/// If a client sends another option while `output` holds more unsent bytes than this, the server closes the
/// connection. A client must read the reply to an option before it sends the next option, so only a client
/// that does not read its replies reaches this limit.
pub const UNSENT_MAX: usize = 64 << 10;

/// The negotiated features of the transmission phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Features {
    /// Whether replies are structured.
    pub structured: bool,
    /// Whether the client may ask for the block status of `base:allocation`.
    pub base_allocation: bool,
}

/// The result of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The index of the chosen export.
    pub export: usize,
    pub features: Features,
    /// The bytes that were received after the end of the handshake. They are the beginning of the client's
    /// first requests.
    pub left_over: Vec<u8>,
}

/// The state of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The client must send more.
    More,
    /// Close the connection once `output` is sent.
    Close,
    /// The transmission phase begins once `output` is sent.
    Ready(Negotiated),
}

#[derive(Debug)]
pub struct Handshake {
    exports: Arc<[ExportInfo]>,
    state: State,
    /// Received bytes that have not been parsed.
    received: Vec<u8>,
    options: u32,
    no_zeroes: bool,
    structured: bool,
    /// The index of the export for which the client has selected `base:allocation`.
    base_allocation: Option<usize>,
}

/// The part of the handshake that the client sends next.
#[derive(Clone, Copy, Debug)]
enum State {
    ClientFlags,
    Header,
    Data {
        option: u32,
        length: usize,
    },
    Skip {
        option: u32,
        left: usize,
        error: u32,
    },
    Over,
}

/// The result of trying to parse received bytes in the current state.
enum Step {
    Again,
    Starved,
    Close,
    Ready(usize),
}

impl Handshake {
    /// Begins a handshake over these exports. The first export is also the default export.
    pub fn new(exports: Arc<[ExportInfo]>) -> Handshake {
        Handshake {
            exports,
            state: State::ClientFlags,
            received: Vec::new(),
            options: 0,
            no_zeroes: false,
            structured: false,
            base_allocation: None,
        }
    }

    /// Takes received bytes, and appends to `output` the bytes that the caller must send. After any result
    /// other than [`Progress::More`], the handshake is over, and further calls return [`Progress::Close`].
    pub fn input(&mut self, bytes: &[u8], output: &mut Vec<u8>) -> Progress {
        self.received.extend_from_slice(bytes);
        loop {
            match self.step(output) {
                Step::Again => {}
                Step::Starved => return Progress::More,
                Step::Close => return self.close(),
                Step::Ready(export) => return Progress::Ready(self.finish(export)),
            }
        }
    }

    fn step(&mut self, output: &mut Vec<u8>) -> Step {
        match self.state {
            State::ClientFlags => self.client_flags(),
            State::Header => self.header(output),
            State::Data { option, length } => self.data(option, length, output),
            State::Skip {
                option,
                left,
                error,
            } => self.skip(option, left, error, output),
            State::Over => Step::Close,
        }
    }

    fn close(&mut self) -> Progress {
        self.state = State::Over;
        self.received = Vec::new();
        Progress::Close
    }

    fn finish(&mut self, export: usize) -> Negotiated {
        self.state = State::Over;
        Negotiated {
            export,
            features: Features {
                structured: self.structured,
                base_allocation: self.base_allocation == Some(export),
            },
            left_over: std::mem::take(&mut self.received),
        }
    }

    fn client_flags(&mut self) -> Step {
        let Some(flags) = self.take().map(u32::from_be_bytes) else {
            return Step::Starved;
        };
        if flags & !(C_FIXED_NEWSTYLE | C_NO_ZEROES) != 0 {
            return Step::Close;
        }
        self.no_zeroes = flags & C_NO_ZEROES != 0;
        self.state = State::Header;
        Step::Again
    }

    fn header(&mut self, output: &[u8]) -> Step {
        let Some([magic, option_and_length]) = self.take().map(halves) else {
            return Step::Starved;
        };
        self.options += 1;
        if magic != *OPTION_MAGIC || self.options > OPTIONS_MAX || output.len() > UNSENT_MAX {
            return Step::Close;
        }
        let both = u64::from_be_bytes(option_and_length);
        self.begin_option((both >> 32) as u32, both as u32)
    }

    fn begin_option(&mut self, option: u32, length: u32) -> Step {
        if option == option::EXPORT_NAME && length > STRING_MAX as u32 {
            return Step::Close;
        }
        if option == option::SET_META_CONTEXT {
            // A new selection replaces the old one, even if the new one fails.
            self.base_allocation = None;
        }
        self.state = if !option::is_served(option) {
            State::Skip {
                option,
                left: length as usize,
                error: reply::ERR_UNSUP,
            }
        } else if length > OPTION_DATA_MAX {
            State::Skip {
                option,
                left: length as usize,
                error: reply::ERR_TOO_BIG,
            }
        } else {
            State::Data {
                option,
                length: length as usize,
            }
        };
        Step::Again
    }

    /// Discards an option's data, then refuses the option.
    fn skip(&mut self, option: u32, left: usize, error: u32, output: &mut Vec<u8>) -> Step {
        let skipped = left.min(self.received.len());
        self.received.drain(..skipped);
        let left = left - skipped;
        if left > 0 {
            self.state = State::Skip {
                option,
                left,
                error,
            };
            return Step::Starved;
        }
        let reply = Reply::new(option, output);
        match (option, error) {
            (option::STARTTLS, _) => reply.refuse(error, "this server has no TLS"),
            (_, reply::ERR_TOO_BIG) => reply.refuse(error, "an option has at most 64 KiB of data"),
            _ => reply.refuse(error, "this server does not know the option"),
        }
        self.state = State::Header;
        Step::Again
    }

    fn data(&mut self, option: u32, length: usize, output: &mut Vec<u8>) -> Step {
        if self.received.len() < length {
            return Step::Starved;
        }
        let data: Vec<u8> = self.received.drain(..length).collect();
        self.state = State::Header;
        if option == option::EXPORT_NAME {
            return self.export_name(&data, output);
        }
        let reply = Reply::new(option, output);
        match option {
            option::ABORT => {
                reply.ack();
                return Step::Close;
            }
            option::INFO | option::GO => return self.info(option, &data, reply),
            option::LIST if data.is_empty() => self.list(reply),
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                reply.ack();
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                self.meta_context(option, &data, reply);
            }
            _ => reply.refuse(reply::ERR_INVALID, "this option has no data"),
        }
        Step::Again
    }

    fn export_name(&self, name: &[u8], output: &mut Vec<u8>) -> Step {
        let Some(index) = self.find(name) else {
            return Step::Close;
        };
        let export = &self.exports[index];
        if export.power.is_off() {
            return Step::Close;
        }
        output.extend_from_slice(&export.size.to_be_bytes());
        output.extend_from_slice(
            &transmission_flags(export.read_only, self.structured).to_be_bytes(),
        );
        if !self.no_zeroes {
            output.extend_from_slice(&[0; 124]);
        }
        Step::Ready(index)
    }

    fn list(&self, mut reply: Reply<'_>) {
        for export in self.exports.iter() {
            reply.server(export);
        }
        reply.ack();
    }

    fn info(&self, option: u32, data: &[u8], mut reply: Reply<'_>) -> Step {
        let Some(request) = InfoRequest::parse(data) else {
            reply.refuse(reply::ERR_INVALID, MALFORMED);
            return Step::Again;
        };
        let Some(index) = self.find(request.name) else {
            reply.unknown_export(request.name);
            return Step::Again;
        };
        let export = &self.exports[index];
        if export.power.is_off() {
            reply.no_power(export);
            return Step::Again;
        }
        reply.info_export(export, self.structured);
        // The server sends the block sizes even to clients that did not ask for them, because clients that
        // list the exports show them.
        reply.info_block_size(export);
        if request.wants_name {
            reply.info_name(export);
        }
        if request.wants_description && !export.description.is_empty() {
            reply.info_description(export);
        }
        reply.ack();
        match option {
            option::GO => Step::Ready(index),
            _ => Step::Again,
        }
    }

    fn meta_context(&mut self, option: u32, data: &[u8], mut reply: Reply<'_>) {
        if !self.structured {
            return reply.refuse(reply::ERR_INVALID, "negotiate structured replies first");
        }
        let Some(request) = MetaRequest::parse(data) else {
            return reply.refuse(reply::ERR_INVALID, MALFORMED);
        };
        let Some(index) = self.find(request.export) else {
            return reply.unknown_export(request.export);
        };
        if option == option::SET_META_CONTEXT {
            if request.selects_base_allocation() {
                self.base_allocation = Some(index);
                reply.meta_context(BASE_ALLOCATION);
            }
        } else if request.lists_base_allocation() {
            reply.meta_context(0);
        }
        reply.ack();
    }

    fn find(&self, name: &[u8]) -> Option<usize> {
        self.exports
            .iter()
            .position(|export| name.is_empty() || export.name.as_bytes() == name)
    }

    /// Takes the next `N` received bytes. `None` if fewer bytes have arrived.
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = *self.received.first_chunk()?;
        self.received.drain(..N);
        Some(bytes)
    }
}

fn halves(header: [u8; 16]) -> [[u8; 8]; 2] {
    std::array::from_fn(|half| std::array::from_fn(|i| header[half * 8 + i]))
}

const OPTION_MAGIC: &[u8; 8] = b"IHAVEOPT";
const C_FIXED_NEWSTYLE: u32 = 1 << 0;
const C_NO_ZEROES: u32 = 1 << 1;
const MALFORMED: &str = "the lengths in the data do not add up to the length of the option";

#[cfg(test)]
mod tests;
