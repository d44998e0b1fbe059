//! Decodes messages into requests.

use dashpot_engine::{CallNumber, Instant};
use zerocopy::FromBytes;

use super::wire::{MESSAGE, Message, WITHDRAWN};
use crate::frontend::boundary::{Decoded, Operation, Request};

/// Decodes the first message of `received`.
#[inline]
pub fn decode(received: &[u8]) -> Decoded {
    let Ok((message, _)) = Message::read_from_prefix(received) else {
        return Decoded::More;
    };
    if message.op == WITHDRAWN {
        return Decoded::Withdrawn {
            cookie: message.id,
            taken: MESSAGE,
        };
    }
    Decoded::Call {
        request: Request {
            cookie: message.id,
            operation: Operation::Call(message.op(), CallNumber::new(message.call as u8)),
            offset: message.offset,
            length: message.length,
        },
        arrived: Instant::from_nanos(message.arrived),
        taken: MESSAGE,
    }
}
