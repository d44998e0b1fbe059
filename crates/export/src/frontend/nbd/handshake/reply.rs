//! The server's side of the handshake, byte for byte.

use super::super::wire::{PAYLOAD_MAX, bounded};
use super::advertised::{preferred_block, transmission_flags};
use super::option::{BASE_ALLOCATION_NAME, info};
use crate::export::ExportInfo;

pub(super) const ERR_UNSUP: u32 = ERROR | 1;
pub(super) const ERR_INVALID: u32 = ERROR | 3;
pub(super) const ERR_TOO_BIG: u32 = ERROR | 9;
const ERR_POLICY: u32 = ERROR | 2;
const ERR_UNKNOWN: u32 = ERROR | 6;
const ERROR: u32 = 1 << 31;

const ACK: u32 = 1;
const SERVER: u32 = 2;
const INFO: u32 = 3;
const META_CONTEXT: u32 = 4;

const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// The replies to one option: any number of replies with information, and then the final reply.
pub(super) struct Reply<'a> {
    option: u32,
    output: &'a mut Vec<u8>,
}

impl<'a> Reply<'a> {
    pub(super) fn new(option: u32, output: &'a mut Vec<u8>) -> Reply<'a> {
        Reply { option, output }
    }

    pub(super) fn ack(mut self) {
        self.put(ACK, &[]);
    }

    pub(super) fn refuse(mut self, error: u32, message: &str) {
        self.put(error, &[bounded(message).as_bytes()]);
    }

    pub(super) fn unknown_export(self, name: &[u8]) {
        let name = String::from_utf8_lossy(name);
        self.refuse(ERR_UNKNOWN, &format!("there is no export {name:?}"));
    }

    pub(super) fn no_power(self, export: &ExportInfo) {
        let name = &export.name;
        let message = format!(
            "disk {name:?} is off after a power cut: `dashpot crash {name} --restart` serves it again"
        );
        self.refuse(ERR_POLICY, &message);
    }

    pub(super) fn server(&mut self, export: &ExportInfo) {
        let name = export.name.as_bytes();
        let length = (name.len() as u32).to_be_bytes();
        self.put(SERVER, &[&length, name, export.description.as_bytes()]);
    }

    pub(super) fn info_export(&mut self, export: &ExportInfo, structured: bool) {
        let flags = transmission_flags(export.read_only, structured).to_be_bytes();
        self.put_info(info::EXPORT, &[&export.size.to_be_bytes(), &flags]);
    }

    pub(super) fn info_block_size(&mut self, export: &ExportInfo) {
        let sizes = [export.block, preferred_block(export), PAYLOAD_MAX];
        let [min, preferred, max] = sizes.map(u32::to_be_bytes);
        self.put_info(info::BLOCK_SIZE, &[&min, &preferred, &max]);
    }

    pub(super) fn info_name(&mut self, export: &ExportInfo) {
        self.put_info(info::NAME, &[export.name.as_bytes(), &[]]);
    }

    pub(super) fn info_description(&mut self, export: &ExportInfo) {
        self.put_info(info::DESCRIPTION, &[export.description.as_bytes(), &[]]);
    }

    pub(super) fn meta_context(&mut self, id: u32) {
        let name = BASE_ALLOCATION_NAME.as_bytes();
        self.put(META_CONTEXT, &[&id.to_be_bytes(), name]);
    }

    fn put_info(&mut self, kind: u16, parts: &[&[u8]]) {
        let kind = kind.to_be_bytes();
        let all: Vec<&[u8]> = [&kind[..]]
            .into_iter()
            .chain(parts.iter().copied())
            .collect();
        self.put(INFO, &all);
    }

    fn put(&mut self, kind: u32, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.output.extend_from_slice(&REPLY_MAGIC.to_be_bytes());
        self.output.extend_from_slice(&self.option.to_be_bytes());
        self.output.extend_from_slice(&kind.to_be_bytes());
        self.output
            .extend_from_slice(&(length as u32).to_be_bytes());
        for part in parts {
            self.output.extend_from_slice(part);
        }
    }
}
