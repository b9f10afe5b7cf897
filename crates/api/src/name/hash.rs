//! The hash that stands for texts which do not fit into a name.
//!
//! Names of existing objects are made with it: it must never change. It is FNV-1a of 128 bits, which is short, the same on
//! every machine, and spreads texts well. It withstands no attack, and need not: whoever chooses the names of a cluster
//! can make only that cluster's names meet, and an object is adopted only when its owner is the same.

const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = (1 << 88) + 0x13b;

/// A byte that no text has, so that `["a", "bc"]` and `["ab", "c"]` are not the same.
const END_OF_PART: u8 = 0xff;

/// The hash of a sequence of texts.
pub(super) fn of(parts: &[&str]) -> u128 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([END_OF_PART]));
    bytes.fold(OFFSET_BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

/// The digits of a hash in base 36, of fixed width: 36^25 = 8.1e38 is the first power above 2^128 = 3.4e38.
pub(super) const BASE36_DIGITS: usize = 25;

/// Writes a hash with lower-case letters and digits.
pub(super) fn base36(mut hash: u128) -> [char; BASE36_DIGITS] {
    let mut text = ['0'; BASE36_DIGITS];
    for digit in text.iter_mut().rev() {
        // A remainder of 36 is a digit of base 36.
        *digit = u32::try_from(hash % 36).ok().and_then(|value| char::from_digit(value, 36)).unwrap_or('0');
        hash /= 36;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(parts: &[&str], hash: u128, text: &str) {
        assert_eq!(of(parts), hash, "{parts:?}");
        assert_eq!(base36(hash).iter().collect::<String>(), text, "{parts:?}");
    }

    #[test]
    fn the_hash_is_the_one_that_existing_names_were_made_with() {
        check(&[], OFFSET_BASIS, "6ezv16m7wweombnkd3ldlii6l");
        check(&["a"], 0x0880_9545_50ab_1be9_5aa0_7330_55b7_51b9, "0i4cjt7vkt42e9r5lf7ja6k6x");
        check(&["ab", "c"], 0x3276_3e66_4083_d94f_7081_4487_f805_ad59, "2zjr7op0fvb6e2v9g6cyfik49");
        check(&["a", "bc"], 0x36cc_2406_4d83_d94f_7081_45dd_5865_1e3b, "38selq46onad9nzxxncxzrccb");
    }

    #[test]
    fn the_largest_hash_fits() {
        assert_eq!(base36(u128::MAX).iter().collect::<String>(), "f5lxx1zz5pnorynqglhzmsp33");
        assert_eq!(base36(0).iter().collect::<String>(), "0000000000000000000000000");
    }
}
