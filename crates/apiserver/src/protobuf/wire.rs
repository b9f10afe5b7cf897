//! The wire format: a sequence of numbered fields.

use super::{ProtobufError, malformed};

/// The fields of a message.
pub(super) struct Wire<'a> {
    rest: &'a [u8],
}

/// What a field carries.
#[derive(Debug, Clone, Copy)]
pub(super) enum Payload<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32,
}

impl<'a> Payload<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], ProtobufError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Varint(_) | Self::Fixed64(_) | Self::Fixed32 => Err(malformed("wrong wire type")),
        }
    }

    pub(super) fn varint(self) -> Result<u64, ProtobufError> {
        match self {
            Self::Varint(varint) => Ok(varint),
            Self::Bytes(_) | Self::Fixed64(_) | Self::Fixed32 => Err(malformed("wrong wire type")),
        }
    }

    pub(super) fn double(self) -> Result<f64, ProtobufError> {
        match self {
            Self::Fixed64(bits) => Ok(f64::from_le_bytes(bits)),
            Self::Bytes(_) | Self::Varint(_) | Self::Fixed32 => Err(malformed("wrong wire type")),
        }
    }
}

impl<'a> Wire<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(|| malformed("unexpected EOF"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn field(&mut self) -> Result<(u64, Payload<'a>), ProtobufError> {
        let tag = varint(&mut self.rest)?;
        let payload = match tag & 7 {
            0 => Payload::Varint(varint(&mut self.rest)?),
            1 => {
                let bytes = self.take(8)?;
                Payload::Fixed64(bytes.try_into().map_err(|_| malformed("unexpected EOF"))?)
            }
            2 => {
                let length = varint(&mut self.rest)?;
                let length = usize::try_from(length).map_err(|_| malformed("proto: integer overflow"))?;
                Payload::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Payload::Fixed32
            }
            other => return Err(malformed(format!("proto: illegal wireType {other}"))),
        };
        Ok((tag >> 3, payload))
    }
}

impl<'a> Iterator for Wire<'a> {
    type Item = Result<(u64, Payload<'a>), ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Reads a number of up to ten bytes, seven bits each.
pub(super) fn varint(bytes: &mut &[u8]) -> Result<u64, ProtobufError> {
    let mut value = 0;
    for (i, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            *bytes = &bytes[i + 1..];
            return Ok(value);
        }
    }
    Err(malformed(if bytes.len() < 10 { "unexpected EOF" } else { "proto: integer overflow" }))
}
