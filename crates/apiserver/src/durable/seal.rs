//! How a file is sealed: what its header says, and the frames after it.
//!
//! ```text
//! header  magic 8 | version 4 | sort 4 | key id 8 | salt 32 | first frame 8 | tag 16
//! frame   magic 4 | length 4 | number 8 | sealed bytes | tag 16
//! ```
//!
//! Each file has a key of its own: HKDF-SHA256 of the key in the key file, with the file's random salt, and all that its header
//! says. Frames are sealed with AES-256-GCM.
//!
//! **Nonces.** A nonce is the frame's ordinal within its file, from 1; the header's own tag has 0. A file is created anew
//! (never opened for appending, never truncated), by one process, with a new salt of 256 bits, and it has one writer, which counts up
//! and seals each ordinal once. A frame that could not be written or synced is sealed again in *another* file. So no nonce is
//! used twice with one key, without anything having to be remembered across restarts. Two salts that are equal by chance are as
//! improbable as guessing a key. A file ends long before 2^32 frames, where AES-GCM's bound for one key would be near.
//!
//! The tag is also the checksum: whatever a crash, a disk or a person did to a frame, it is either as it was written, or none.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf;

use super::key::{self, ID_BYTES, Keys};

const MAGIC: [u8; 8] = *b"windlass";
const VERSION: u32 = 1;
/// Where frames may be found again behind a damaged one. Sealed bytes may hold it by chance, and then do not open.
const FRAME_MAGIC: [u8; 4] = [0xff, b'w', b'l', 0xf7];
/// AES-GCM's.
const TAG_BYTES: usize = 16;
const SALT_BYTES: usize = 32;
/// Of the header, without its tag.
const PLAIN_HEADER_BYTES: usize = 8 + 4 + 4 + ID_BYTES + SALT_BYTES + 8;
/// Of the whole header.
pub(super) const HEADER_BYTES: usize = PLAIN_HEADER_BYTES + TAG_BYTES;
/// What is before the sealed bytes of a frame.
pub(super) const FRAME_HEAD_BYTES: usize = 16;
/// No frame is longer: what says so is damaged.
const FRAME_BYTES_MAX: u32 = 256 << 20;

/// What is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Changes, as they came.
    Log,
    /// All that there was after a change.
    Checkpoint,
}

impl Sort {
    fn number(self) -> u32 {
        match self {
            Self::Log => 1,
            Self::Checkpoint => 2,
        }
    }
}

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) sort: Sort,
    /// The number of the first frame of a log; that of the last frame that a checkpoint has.
    pub(super) first: u64,
    /// It was sealed with the first key of the key file.
    pub(super) is_current: bool,
}

/// Why a header cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It is shorter than a header.
    Short,
    /// It is no header, or another than was written.
    Damaged,
    /// It is of a later version.
    Version(u32),
    /// None of the keys is the one that it was sealed with.
    OtherKey,
}

/// The key of one file.
pub(super) struct Seal(LessSafeKey);

/// How many bytes a derived key has.
struct KeyLength;

impl hkdf::KeyType for KeyLength {
    fn len(&self) -> usize {
        key::KEY_BYTES
    }
}

impl Seal {
    fn new(key: &key::Key, salt: &[u8], header: &[u8]) -> Option<Self> {
        let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(&key.bytes);
        let info = [header];
        let mut bytes = [0; key::KEY_BYTES];
        secret.expand(&info, KeyLength).ok()?.fill(&mut bytes).ok()?;
        let key = UnboundKey::new(&AES_256_GCM, &bytes).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// A new file's header, and what seals its frames. `None` if the operating system gives no random bytes.
    pub(super) fn begin(keys: &Keys, sort: Sort, first: u64) -> Option<(Vec<u8>, Self)> {
        let salt = key::random::<SALT_BYTES>()?;
        let key = keys.sealing();
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&VERSION.to_be_bytes());
        header.extend_from_slice(&sort.number().to_be_bytes());
        header.extend_from_slice(&key.id);
        header.extend_from_slice(&salt);
        header.extend_from_slice(&first.to_be_bytes());
        let seal = Self::new(key, &salt, &header)?;
        let tag = seal.0.seal_in_place_separate_tag(nonce(0), Aad::from(&header), &mut []).ok()?;
        header.extend_from_slice(tag.as_ref());
        Some((header, seal))
    }

    /// What a header says, and what opens the frames after it.
    pub(super) fn read(keys: &Keys, bytes: &[u8]) -> Result<(Header, Self), Unusable> {
        let header = bytes.get(..HEADER_BYTES).ok_or(Unusable::Short)?;
        let (plain, tag) = header.split_at(PLAIN_HEADER_BYTES);
        if plain[..8] != MAGIC {
            return Err(Unusable::Damaged);
        }
        let version = u32_at(plain, 8);
        if version != VERSION {
            return Err(Unusable::Version(version));
        }
        let sort = [Sort::Log, Sort::Checkpoint].into_iter().find(|sort| sort.number() == u32_at(plain, 12));
        let sort = sort.ok_or(Unusable::Damaged)?;
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&plain[16..16 + ID_BYTES]);
        let key = keys.find(id).ok_or(Unusable::OtherKey)?;
        let seal = Self::new(key, &plain[24..24 + SALT_BYTES], plain).ok_or(Unusable::Damaged)?;
        seal.0.open_in_place(nonce(0), Aad::from(plain), &mut tag.to_vec()).map_err(|_| Unusable::Damaged)?;
        let header = Header { sort, first: u64_at(plain, 24 + SALT_BYTES), is_current: key.id == keys.sealing().id };
        Ok((header, seal))
    }

    /// Makes a frame of the bytes. Each ordinal is sealed once.
    pub(super) fn frame(&self, ordinal: u64, number: u64, content: &[u8]) -> Option<Vec<u8>> {
        let length = u32::try_from(content.len() + TAG_BYTES).ok().filter(|length| *length <= FRAME_BYTES_MAX)?;
        let mut frame = Vec::with_capacity(FRAME_HEAD_BYTES + content.len() + TAG_BYTES);
        frame.extend_from_slice(&FRAME_MAGIC);
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(&number.to_be_bytes());
        frame.extend_from_slice(content);
        let (head, sealed) = frame.split_at_mut(FRAME_HEAD_BYTES);
        let tag = self.0.seal_in_place_separate_tag(nonce(ordinal), Aad::from(&*head), sealed).ok()?;
        frame.extend_from_slice(tag.as_ref());
        Some(frame)
    }

    /// The bytes in a frame, if it is the one with this ordinal and number and as it was written.
    pub(super) fn open(&self, ordinal: u64, number: u64, head: &[u8], mut sealed: Vec<u8>) -> Option<Vec<u8>> {
        if u64_at(head, 8) != number {
            return None;
        }
        let length = self.0.open_in_place(nonce(ordinal), Aad::from(head), &mut sealed).ok()?.len();
        sealed.truncate(length);
        Some(sealed)
    }
}

/// How many sealed bytes follow, and the frame's number, where this is the head of a frame.
pub(super) fn frame_head(head: &[u8]) -> Option<(usize, u64)> {
    if head.len() < FRAME_HEAD_BYTES || head[..4] != FRAME_MAGIC {
        return None;
    }
    let length = u32_at(head, 4);
    if length > FRAME_BYTES_MAX {
        return None;
    }
    Some((usize::try_from(length).ok()?, u64_at(head, 8)))
}

/// Where a frame may begin, at or after a place.
pub(super) fn next_magic(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(FRAME_MAGIC.len()).position(|window| window == FRAME_MAGIC).map(|at| from + at)
}

fn nonce(ordinal: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 8..].copy_from_slice(&ordinal.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}
