//! gzip, as far as a copy of a release needs it: what is packed here is stored as it is, and what others have packed is read.
//!
//! RFC 1952 is the wrapping, RFC 1951 what is in it. Nothing that is read can take more room than [`UNPACKED_MAX`].

use std::fmt;

/// As much as an annotation could hold four times over: more is no release.
const UNPACKED_MAX: usize = 1 << 20;
/// What a block that is stored as it is can hold.
const STORED_MAX: usize = 0xffff;
/// The beginning of what is packed here: deflate, no name, no time, made on an unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// Something that was not packed by gzip, or has been cut or changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(&'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// Packs bytes: the same bytes the same way, always.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packed = HEADER.to_vec();
    let blocks = bytes.len().div_ceil(STORED_MAX).max(1);
    for (number, block) in (1..=blocks).zip(bytes.chunks(STORED_MAX).chain(std::iter::once(&[][..]))) {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        packed.push(u8::from(number == blocks));
        packed.extend(length.to_le_bytes());
        packed.extend((!length).to_le_bytes());
        packed.extend(block);
    }
    packed.extend(crc32(bytes).to_le_bytes());
    packed.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    packed
}

/// The bytes that were packed.
pub fn unpack(packed: &[u8]) -> Result<Vec<u8>, Malformed> {
    let body = packed.get(body(packed)?..).unwrap_or_default();
    let mut bits = Bits { bytes: body, at: 0 };
    let bytes = inflate(&mut bits)?;
    let end = bits.at.div_ceil(8);
    let [checksum, length] = [end, end + 4].map(|at| {
        let bytes = body.get(at..at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
        bytes.map(u32::from_le_bytes).ok_or(CUT)
    });
    if checksum? != crc32(&bytes) || usize::try_from(length?).ok() != Some(bytes.len()) {
        return Err(Malformed("its checksum is another"));
    }
    Ok(bytes)
}

const CUT: Malformed = Malformed("it has been cut off");

/// Where the wrapping ends and the blocks begin.
fn body(packed: &[u8]) -> Result<usize, Malformed> {
    let [0x1f, 0x8b, 8, flags, ..] = packed else { return Err(Malformed("it was not packed by gzip")) };
    let mut at = HEADER.len();
    if flags & 4 != 0 {
        let [low, high] = [at, at + 1].map(|at| packed.get(at).copied().map(usize::from).ok_or(CUT));
        at += 2 + low? + (high? << 8);
    }
    // A name and a remark, each with a zero behind it.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let text = packed.get(at..).ok_or(CUT)?;
            at += 1 + text.iter().position(|byte| *byte == 0).ok_or(CUT)?;
        }
    }
    Ok(at + if flags & 2 == 0 { 0 } else { 2 })
}

/// Bits, from the lowest of each byte on.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn one(&mut self) -> Result<usize, Malformed> {
        let byte = self.bytes.get(self.at / 8).ok_or(CUT)?;
        let bit = byte >> (self.at % 8) & 1;
        self.at += 1;
        Ok(usize::from(bit))
    }

    /// A number of so many bits, the lowest first.
    fn number(&mut self, width: usize) -> Result<usize, Malformed> {
        (0..width).try_fold(0, |number, place| Ok(number | self.one()? << place))
    }
}

/// A code of Huffman's: how many words of each length there are, and the symbols in their order.
struct Code {
    counts: [usize; 16],
    symbols: Vec<usize>,
}

impl Code {
    fn new(lengths: &[usize]) -> Self {
        let mut counts = [0; 16];
        let mut symbols = Vec::new();
        for (length, count) in counts.iter_mut().enumerate().skip(1) {
            let these = lengths.iter().enumerate().filter(|(_, of)| **of == length).map(|(symbol, _)| symbol);
            symbols.extend(these);
            *count = lengths.iter().filter(|of| **of == length).count();
        }
        Self { counts, symbols }
    }

    fn symbol(&self, bits: &mut Bits<'_>) -> Result<usize, Malformed> {
        let (mut word, mut first, mut index) = (0, 0, 0);
        for count in self.counts.iter().skip(1) {
            word |= bits.one()?;
            if word < first + count {
                let symbol = self.symbols.get(index + word - first);
                return symbol.copied().ok_or(Malformed("it has a word that is in no code"));
            }
            index += count;
            first = (first + count) << 1;
            word <<= 1;
        }
        Err(Malformed("it has a word that is in no code"))
    }
}

fn inflate(bits: &mut Bits<'_>) -> Result<Vec<u8>, Malformed> {
    let mut bytes = Vec::new();
    loop {
        let last = bits.one()? == 1;
        match bits.number(2)? {
            0 => stored(bits, &mut bytes)?,
            1 => {
                let literals: Vec<usize> = (0..288)
                    .map(|symbol| match symbol {
                        0..=143 | 280..=287 => 8,
                        144..=255 => 9,
                        _ => 7,
                    })
                    .collect();
                packed(bits, &Code::new(&literals), &Code::new(&[5; 30]), &mut bytes)?;
            }
            2 => {
                let (literals, distances) = codes(bits)?;
                packed(bits, &literals, &distances, &mut bytes)?;
            }
            _ => return Err(Malformed("it has a block of no known kind")),
        }
        if last {
            return Ok(bytes);
        }
    }
}

fn stored(bits: &mut Bits<'_>, bytes: &mut Vec<u8>) -> Result<(), Malformed> {
    bits.at = bits.at.next_multiple_of(8);
    let (length, check) = (bits.number(16)?, bits.number(16)?);
    if length ^ check != STORED_MAX {
        return Err(Malformed("a block has two lengths"));
    }
    let from = bits.at / 8;
    bytes.extend(bits.bytes.get(from..from + length).ok_or(CUT)?);
    bits.at += length * 8;
    within(bytes)
}

/// The two codes of a block that brings its own.
fn codes(bits: &mut Bits<'_>) -> Result<(Code, Code), Malformed> {
    const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    let (literals, distances, count) = (bits.number(5)? + 257, bits.number(5)? + 1, bits.number(4)? + 4);
    let mut of_lengths = [0; 19];
    for place in ORDER.into_iter().take(count) {
        of_lengths[place] = bits.number(3)?;
    }
    let of_lengths = Code::new(&of_lengths);
    let mut lengths: Vec<usize> = Vec::new();
    while lengths.len() < literals + distances {
        let (length, times) = match of_lengths.symbol(bits)? {
            16 => {
                let before = lengths.last().copied().ok_or(Malformed("it repeats what was never said"))?;
                (before, 3 + bits.number(2)?)
            }
            17 => (0, 3 + bits.number(3)?),
            18 => (0, 11 + bits.number(7)?),
            length => (length, 1),
        };
        lengths.extend(std::iter::repeat_n(length, times));
    }
    let (of_literals, of_distances) = lengths.split_at(literals);
    Ok((Code::new(of_literals), Code::new(of_distances)))
}

/// A block of literals, and of what was said before.
fn packed(bits: &mut Bits<'_>, literals: &Code, distances: &Code, bytes: &mut Vec<u8>) -> Result<(), Malformed> {
    loop {
        let symbol = literals.symbol(bits)?;
        match symbol {
            256 => return Ok(()),
            literal if literal < 256 => bytes.extend(u8::try_from(literal)),
            _ => {
                let length = length(bits, symbol - 257)?;
                let symbol = distances.symbol(bits)?;
                let distance = distance(bits, symbol)?;
                let from = bytes.len().checked_sub(distance).ok_or(Malformed("it repeats what was never said"))?;
                for at in from..from + length {
                    bytes.extend(bytes.get(at).copied());
                }
            }
        }
        within(bytes)?;
    }
}

fn within(bytes: &[u8]) -> Result<(), Malformed> {
    if bytes.len() > UNPACKED_MAX { Err(Malformed("it is larger than any release")) } else { Ok(()) }
}

/// How much is repeated. Symbols go up in groups of four, each with one bit more than the one before.
fn length(bits: &mut Bits<'_>, symbol: usize) -> Result<usize, Malformed> {
    match symbol {
        0..=7 => Ok(symbol + 3),
        28 => Ok(258),
        8..=27 => {
            let width = symbol / 4 - 1;
            Ok(((symbol % 4 + 4) << width) + 3 + bits.number(width)?)
        }
        _ => Err(Malformed("it repeats too much")),
    }
}

/// From how far back. Symbols go up in groups of two.
fn distance(bits: &mut Bits<'_>, symbol: usize) -> Result<usize, Malformed> {
    match symbol {
        0..=3 => Ok(symbol + 1),
        4..=29 => {
            let width = symbol / 2 - 1;
            Ok(((symbol % 2 + 2) << width) + 1 + bits.number(width)?)
        }
        _ => Err(Malformed("it repeats from too far back")),
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        let mixed = sum ^ u32::from(*byte);
        (0..8).fold(mixed, |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 })
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        for length in [0, 1, 300, STORED_MAX, STORED_MAX + 1, 3 * STORED_MAX] {
            let bytes: Vec<u8> = (0..length).map(|n| u8::try_from(n % 251).unwrap()).collect();
            assert_eq!(unpack(&pack(&bytes)).as_deref(), Ok(bytes.as_slice()), "{length}");
        }
    }

    #[test]
    fn what_gzip_has_packed_is_read_with_its_own_codes_with_the_common_ones_and_with_a_name() {
        let check = |packed: &str, expected: &str| {
            let bytes = unpack(&STANDARD.decode(packed).unwrap()).unwrap();
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        };
        check("H4sIAAAAAAACA0tMhIGkRAQTAJocDsYWAAAA", "aaaaaaaaaabaaaaaaaaaab");
        check("H4sICAAAAAAC/25hbWUueWFtbADLSM3JyVfIQJAAgIj55REAAAA=", "hello hello hello");
    }

    #[test]
    fn what_was_cut_or_changed_is_refused_wherever_that_was() {
        let packed = STANDARD.decode("H4sICAAAAAAC/25hbWUueWFtbADLSM3JyVfIQJAAgIj55REAAAA=").unwrap();
        for end in 0..packed.len() {
            assert!(unpack(&packed[..end]).is_err(), "cut at {end}");
        }
        // Before that are the time and the system, and the name, which say nothing about what is in it.
        for at in packed.len() - 18..packed.len() {
            let mut changed = packed.clone();
            changed[at] ^= 0x55;
            assert_ne!(unpack(&changed), Ok(b"hello hello hello".to_vec()), "changed at {at}");
        }
    }
}
