//! The client's side of the handshake: option numbers and the layout of their data.

use super::super::wire::STRING_MAX;

pub(super) const EXPORT_NAME: u32 = 1;
pub(super) const ABORT: u32 = 2;
pub(super) const LIST: u32 = 3;
pub(super) const STARTTLS: u32 = 5;
pub(super) const INFO: u32 = 6;
pub(super) const GO: u32 = 7;
pub(super) const STRUCTURED_REPLY: u32 = 8;
pub(super) const LIST_META_CONTEXT: u32 = 9;
pub(super) const SET_META_CONTEXT: u32 = 10;

/// The types of information that clients request with INFO and GO, and that the replies contain.
pub(super) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const DESCRIPTION: u16 = 2;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// The only metadata context that this server supports.
pub(super) const BASE_ALLOCATION_NAME: &str = "base:allocation";

/// Whether the server knows this option.
pub(super) fn is_served(option: u32) -> bool {
    matches!(
        option,
        EXPORT_NAME
            | ABORT
            | LIST
            | INFO
            | GO
            | STRUCTURED_REPLY
            | LIST_META_CONTEXT
            | SET_META_CONTEXT
    )
}

/// The data of INFO and GO.
pub(super) struct InfoRequest<'a> {
    pub(super) name: &'a [u8],
    pub(super) wants_name: bool,
    pub(super) wants_description: bool,
}

impl<'a> InfoRequest<'a> {
    /// Parses the data. `None` if it is malformed.
    pub(super) fn parse(data: &'a [u8]) -> Option<InfoRequest<'a>> {
        let mut fields = Fields(data);
        let name = fields.string()?;
        let count = fields.u16()?;
        let (items, []) = fields.0.as_chunks::<2>() else {
            return None;
        };
        if items.len() != usize::from(count) {
            return None;
        }
        let wants = |item: u16| items.contains(&item.to_be_bytes());
        Some(InfoRequest {
            name,
            wants_name: wants(info::NAME),
            wants_description: wants(info::DESCRIPTION),
        })
    }
}

/// The data of LIST_META_CONTEXT and SET_META_CONTEXT.
pub(super) struct MetaRequest<'a> {
    pub(super) export: &'a [u8],
    queries: Vec<&'a [u8]>,
}

impl<'a> MetaRequest<'a> {
    /// Parses the data. `None` if it is malformed.
    pub(super) fn parse(data: &'a [u8]) -> Option<MetaRequest<'a>> {
        let mut fields = Fields(data);
        let export = fields.string()?;
        let count = fields.u32()?;
        let queries = (0..count).map(|_| fields.string()).collect::<Option<_>>()?;
        fields
            .0
            .is_empty()
            .then_some(MetaRequest { export, queries })
    }

    /// Whether SET selects `base:allocation`. `base:` and unknown names select nothing.
    pub(super) fn selects_base_allocation(&self) -> bool {
        self.queries.contains(&BASE_ALLOCATION_NAME.as_bytes())
    }

    /// Whether LIST lists `base:allocation`. A request without queries asks for all contexts, and the
    /// query `base:` asks for all contexts of that namespace.
    pub(super) fn lists_base_allocation(&self) -> bool {
        self.queries.is_empty()
            || self.queries.contains(&b"base:".as_slice())
            || self.selects_base_allocation()
    }
}

/// The part of an option's data that has not been parsed yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Takes a string, which comes after its length.
    fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        if length > STRING_MAX {
            return None;
        }
        let (string, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(string)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }
}
