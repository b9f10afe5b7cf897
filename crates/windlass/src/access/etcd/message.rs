//! The few messages of etcd that are sent and read, in the encoding of protocol buffers.
//!
//! Five calls with a dozen fields in all do not pay for a generator of code and its runtime. Fields that are not known are
//! skipped, as the encoding wants it; whatever else is no message is refused.

use windlass_plan::inventory::Alarm;

/// What a member says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Its own id.
    pub id: u64,
    /// What it runs.
    pub version: String,
    /// The id of the member that leads; 0 when it knows none.
    pub leader: u64,
    /// It does not count in the quorum yet.
    pub learner: bool,
}

impl Status {
    /// Whether it leads, as far as it knows.
    pub fn leads(&self) -> bool {
        self.leader != 0 && self.leader == self.id
    }
}

/// A member, as the cluster knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: u64,
    /// Its name; empty while it has not started.
    pub name: String,
    /// It does not count in the quorum yet.
    pub learner: bool,
}

/// It is no message of the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer is no message of etcd")]
pub struct Garbled;

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of a width that nothing has that we read.
    Fixed,
}

/// The message with this number in its first field.
pub fn number(value: u64) -> Vec<u8> {
    let mut message = vec![0x08];
    let mut rest = value;
    while rest >= 0x80 {
        message.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    message.push((rest & 0x7f) as u8);
    message
}

/// Reads a number, and moves on.
fn read_varint(bytes: &mut &[u8]) -> Result<u64, Garbled> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().ok_or(Garbled)?;
        *bytes = rest;
        let bits = u64::from(first & 0x7f);
        if shift == 63 && bits > 1 {
            return Err(Garbled);
        }
        value |= bits << shift;
        if first & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Garbled)
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Result<&'a [u8], Garbled> {
    let length = usize::try_from(length).map_err(|_| Garbled)?;
    let (taken, rest) = bytes.split_at_checked(length).ok_or(Garbled)?;
    *bytes = rest;
    Ok(taken)
}

/// Reads all fields of a message, in order.
fn fields(mut bytes: &[u8], mut each: impl FnMut(u64, Field<'_>) -> Result<(), Garbled>) -> Result<(), Garbled> {
    while !bytes.is_empty() {
        let tag = read_varint(&mut bytes)?;
        let field = match tag & 7 {
            0 => Field::Number(read_varint(&mut bytes)?),
            1 => take(&mut bytes, 8).map(|_| Field::Fixed)?,
            2 => {
                let length = read_varint(&mut bytes)?;
                Field::Bytes(take(&mut bytes, length)?)
            }
            5 => take(&mut bytes, 4).map(|_| Field::Fixed)?,
            _ => return Err(Garbled),
        };
        each(tag >> 3, field)?;
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<String, Garbled> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Garbled)
}

/// Reads a `StatusResponse`.
pub fn status(bytes: &[u8]) -> Result<Status, Garbled> {
    let mut status = Status::default();
    fields(bytes, |number, field| {
        match (number, field) {
            (1, Field::Bytes(header)) => status.id = member_of(header)?,
            (2, Field::Bytes(version)) => status.version = text(version)?,
            (4, Field::Number(leader)) => status.leader = leader,
            (10, Field::Number(learner)) => status.learner = learner != 0,
            _ => {}
        }
        Ok(())
    })?;
    // An empty message is one, too; a member without an id is none.
    if status.id == 0 { Err(Garbled) } else { Ok(status) }
}

/// The member that has answered, by the header of its answer.
fn member_of(header: &[u8]) -> Result<u64, Garbled> {
    let mut id = 0;
    fields(header, |number, field| {
        if let (2, Field::Number(member)) = (number, field) {
            id = member;
        }
        Ok(())
    })?;
    Ok(id)
}

/// Reads a `MemberListResponse`.
pub fn members(bytes: &[u8]) -> Result<Vec<Listed>, Garbled> {
    let mut members = Vec::new();
    fields(bytes, |number, field| {
        if let (2, Field::Bytes(member)) = (number, field) {
            members.push(listed(member)?);
        }
        Ok(())
    })?;
    // Somebody has answered.
    if members.is_empty() { Err(Garbled) } else { Ok(members) }
}

fn listed(bytes: &[u8]) -> Result<Listed, Garbled> {
    let mut member = Listed::default();
    fields(bytes, |number, field| {
        match (number, field) {
            (1, Field::Number(id)) => member.id = id,
            (2, Field::Bytes(name)) => member.name = text(name)?,
            (5, Field::Number(learner)) => member.learner = learner != 0,
            _ => {}
        }
        Ok(())
    })?;
    Ok(member)
}

/// Reads an `AlarmResponse`: whose alarm, and which. One that nobody knew when this was written is told as the worse of the two.
pub fn alarms(bytes: &[u8]) -> Result<Vec<(u64, Alarm)>, Garbled> {
    let mut alarms = Vec::new();
    fields(bytes, |number, field| {
        let (2, Field::Bytes(alarm)) = (number, field) else { return Ok(()) };
        let (mut id, mut sort) = (0, 0);
        fields(alarm, |number, field| {
            match (number, field) {
                (1, Field::Number(member)) => id = member,
                (2, Field::Number(alarm)) => sort = alarm,
                _ => {}
            }
            Ok(())
        })?;
        match sort {
            0 => {}
            1 => alarms.push((id, Alarm::NoSpace)),
            _ => alarms.push((id, Alarm::Corrupt)),
        }
        Ok(())
    })?;
    Ok(alarms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let message = number(value);
            assert_eq!(member_of(&[&[0x10], &message[1..]].concat()), Ok(value));
        }
    }

    #[test]
    fn what_is_not_known_is_skipped() {
        let header = field(1, &[0x08, 5, 0x10, 7]);
        let body = [&header[..], &field(2, b"3.6.1"), &[0x20, 7, 0x49, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 1]].concat();
        let expected = Status { id: 7, version: "3.6.1".into(), leader: 7, learner: true };
        assert_eq!(status(&body), Ok(expected));
        let alarms_said = [field(2, &[0x08, 7, 0x10, 1]), field(2, &[0x08, 8, 0x10, 2]), field(2, &[0x08, 9])].concat();
        assert_eq!(alarms(&alarms_said), Ok(vec![(7, Alarm::NoSpace), (8, Alarm::Corrupt)]));
    }

    #[test]
    fn what_is_cut_or_is_no_message_is_refused() {
        let whole = [field(1, &[0x10, 7]), field(2, b"3.6.1")].concat();
        for length in (1..whole.len()).filter(|length| *length != 4) {
            assert_eq!(status(&whole[..length]), Err(Garbled), "{length}");
        }
        let endless = [0xff; 11];
        for bytes in [&[0x0b][..], &endless, &[0x12, 0xff, 0xff, 0xff, 0xff, 0x0f], &[]] {
            assert_eq!(status(bytes), Err(Garbled), "{bytes:?}");
            assert_eq!(members(bytes), Err(Garbled), "{bytes:?}");
        }
        assert_eq!(members(&field(2, &field(2, &[0xff, 0xfe]))), Err(Garbled), "a name that is no text");
    }
}
