//! The messages of etcd that a simulated member reads and writes, in the encoding of protocol buffers: the other end of those in
//! `access/etcd/message.rs`.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use windlass_sim::workload::{Alarm, Member};

/// How long the prefix of a message is that says whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// A message with what stands before it: not compressed, and so long.
pub fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[0], &length[..], message].concat().into()
}

/// The number in the first field of a message that was sent; 0 where there is none, which is nobody's id.
pub fn number(framed: &[u8]) -> u64 {
    let Some([0x08, varint @ ..]) = framed.get(PREFIX_BYTES..) else { return 0 };
    let mut value = 0;
    for (byte, shift) in varint.iter().zip((0..64).step_by(7)) {
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    0
}

fn varint(value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = value;
    while rest >= 0x80 {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push((rest & 0x7f) as u8);
    bytes
}

/// A field that is a number.
fn of_number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

/// A field that is a text, or a message.
fn of_bytes(field: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// The header of an answer: who says it.
fn header(of: &Member) -> Vec<u8> {
    of_bytes(1, &of_number(2, of.id))
}

/// A `StatusResponse`.
pub fn status(of: &Member, leader: u64) -> Vec<u8> {
    let version = of.version.as_ref().map(|version| version.to_string().trim_start_matches('v').to_owned());
    [
        header(of),
        of_bytes(2, version.unwrap_or_default().as_bytes()),
        of_number(4, leader),
        of_number(10, u64::from(of.learner)),
    ]
    .concat()
}

/// A `MemberListResponse`.
pub fn members(said_by: &Member, members: &[Member]) -> Vec<u8> {
    let one = |member: &Member| {
        let fields =
            [of_number(1, member.id), of_bytes(2, member.name.as_bytes()), of_number(5, u64::from(member.learner))];
        of_bytes(2, &fields.concat())
    };
    [header(said_by)].into_iter().chain(members.iter().map(one)).flatten().collect()
}

/// An `AlarmResponse`.
pub fn alarms(alarms: &BTreeMap<u64, BTreeSet<Alarm>>) -> Vec<u8> {
    let one = |id: u64, alarm: &Alarm| {
        let sort = match alarm {
            Alarm::NoSpace => 1,
            Alarm::Corrupt => 2,
        };
        of_bytes(2, &[of_number(1, id), of_number(2, sort)].concat())
    };
    alarms.iter().flat_map(|(id, all)| all.iter().flat_map(move |alarm| one(*id, alarm))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_it_is_written() {
        for value in [1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(number(&framed(&of_number(1, value))), value);
        }
        for none in [&[][..], &framed(&[]), &framed(&of_bytes(1, b"x")), &framed(&[0x08, 0x80])] {
            assert_eq!(number(none), 0, "{none:?}");
        }
    }
}
