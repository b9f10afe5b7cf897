//! gzip, as far as a copy of a release needs it.

use std::io::{self, Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// As much as an annotation could hold four times over: more is no release.
const UNPACKED_MAX: usize = 1 << 20;

/// Packs bytes: the same bytes the same way, always, as neither name nor time is written with them.
pub fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// The bytes that were packed, if that is not more than a release could be.
pub fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(UNPACKED_MAX).unwrap_or(u64::MAX).saturating_add(1);
    GzDecoder::new(packed).take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > UNPACKED_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it unpacks to more than a release could be"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        for length in [0, 1, 300, 0xffff, 0x1_0000, 0x3_0000] {
            let bytes: Vec<u8> = (0..length).map(|n| u8::try_from(n % 251).unwrap()).collect();
            assert_eq!(unpack(&pack(&bytes).unwrap()).unwrap(), bytes, "{length}");
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
            assert_ne!(unpack(&changed).ok(), Some(b"hello hello hello".to_vec()), "changed at {at}");
        }
    }

    #[test]
    fn what_is_too_much_is_refused_before_it_takes_room() {
        let bomb = pack(&vec![0; UNPACKED_MAX + 1]).unwrap();
        assert!(bomb.len() < 10_000 && unpack(&bomb).is_err());
        assert!(unpack(&pack(&vec![0; UNPACKED_MAX]).unwrap()).is_ok());
    }
}
