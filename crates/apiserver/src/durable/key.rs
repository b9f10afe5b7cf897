//! The keys that files are sealed with: a text file of its own, outside of the data directory.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// 256 bits.
pub(super) const KEY_BYTES: usize = 32;
/// By how much of a digest a key is told from others.
pub(super) const ID_BYTES: usize = 8;

/// What is hashed to tell keys apart. It says nothing about the key.
const ID_OF: &[u8] = b"windlass: which key is this";

/// The keys that there are: the first seals, each of them opens. Is not printed by `Debug`.
#[derive(Clone)]
pub struct Keys(Vec<Key>);

#[derive(Clone)]
pub(super) struct Key {
    pub(super) bytes: [u8; KEY_BYTES],
    pub(super) id: [u8; ID_BYTES],
}

/// A key file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It cannot be read or written.
    #[error("cannot {what} the key file {path:?}")]
    Os {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// There is none.
    #[error("there is no key file {path:?}")]
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
    /// Others could read it.
    #[error("others may read the key file {path:?}: its mode is {mode:04o}, and must be 0600")]
    Open {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A line of it is no key.
    #[error("line {line} of the key file {path:?} is no key: each line has 64 hexadecimal digits")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Which line.
        line: usize,
    },
    /// It has no line.
    #[error("no key is in the key file {path:?}")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes for a key")]
    Random,
}

impl Keys {
    /// Reads a key file: one key on each line, in hexadecimal digits. Lines with `#` before anything else are comments.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let os = |source| KeyError::Os { what: "read", path: path.to_owned(), source };
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(KeyError::Missing { path: path.to_owned() });
            }
            metadata => metadata.map_err(os)?,
        };
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Open { path: path.to_owned(), mode });
        }
        let text = fs::read_to_string(path).map_err(os)?;
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let lines = lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#'));
        let read =
            |(line, text)| from_hex(text).map(Key::new).ok_or(KeyError::Malformed { path: path.to_owned(), line });
        let keys = lines.map(read).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() { Err(KeyError::Empty { path: path.to_owned() }) } else { Ok(Self(keys)) }
    }

    /// Makes a key file with a new key; one that is there stays as it is, which is an error.
    pub fn create(path: &Path) -> Result<Self, KeyError> {
        let os = |source| KeyError::Os { what: "write", path: path.to_owned(), source };
        let bytes = random::<KEY_BYTES>().ok_or(KeyError::Random)?;
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            crate::private::make_folders(directory).map_err(os)?;
        }
        let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        let hex: String = nibbles.filter_map(|nibble| char::from_digit(nibble.into(), 16)).collect();
        let text = format!("# Seals data directories of Windlass. Without it they cannot be read.\n{hex}\n");
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(os)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(os)?;
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        let synced = directory.map_or(Ok(()), |directory| fs::File::open(directory).and_then(|open| open.sync_all()));
        synced.map_err(os)?;
        Ok(Self(vec![Key::new(bytes)]))
    }

    /// The one key with these bytes.
    pub fn of(bytes: [u8; 32]) -> Self {
        Self(vec![Key::new(bytes)])
    }

    /// The same keys after one with these bytes, which seals from now on.
    #[must_use]
    pub fn after(mut self, bytes: [u8; 32]) -> Self {
        self.0.insert(0, Key::new(bytes));
        self
    }

    /// The key that seals.
    pub(super) fn sealing(&self) -> &Key {
        // No constructor makes an empty list.
        &self.0[0]
    }

    pub(super) fn find(&self, id: [u8; ID_BYTES]) -> Option<&Key> {
        self.0.iter().find(|key| key.id == id)
    }
}

impl Key {
    fn new(bytes: [u8; KEY_BYTES]) -> Self {
        let digest = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &bytes), ID_OF);
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&digest.as_ref()[..ID_BYTES]);
        Self { bytes, id }
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

/// Random bytes of the operating system's.
pub(super) fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes)
}

fn from_hex(text: &str) -> Option<[u8; KEY_BYTES]> {
    let digits: Vec<u8> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    (digits.len() == 2 * KEY_BYTES).then(|| bytes.try_into().ok())?
}
