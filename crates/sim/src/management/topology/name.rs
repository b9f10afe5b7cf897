//! The names of what is derived from a topology: as Cluster API makes them, with chance from the seed.

use windlass_runtime::chance::Seed;

/// What Kubernetes makes its random names of: no vowels, and nothing that looks like something else.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// How many of them end a name.
const SUFFIX_LENGTH: usize = 5;

/// The longest name that is also the value of a label.
const NAME_MAX: usize = 63;

/// `<base>-<five letters>`, where the letters follow from what the name is for.
pub(super) fn with_suffix(base: &str, seed: Seed, what: &str) -> String {
    let mut chance = seed.stream(what);
    let bound = u64::try_from(LETTERS.len()).unwrap_or_default();
    let letter = |_| {
        let drawn = usize::try_from(chance.below(bound)).unwrap_or_default();
        LETTERS.get(drawn).copied().map_or('x', char::from)
    };
    let suffix: String = (0..SUFFIX_LENGTH).map(letter).collect();
    let room = NAME_MAX - SUFFIX_LENGTH - 1;
    let end = base.char_indices().map(|(at, letter)| at + letter.len_utf8()).take_while(|end| *end <= room).last();
    format!("{}-{suffix}", base.get(..end.unwrap_or(0)).unwrap_or_default().trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_each_time_and_another_for_something_else() {
        let name = with_suffix("c", Seed(7), "control plane");
        assert_eq!(name, with_suffix("c", Seed(7), "control plane"));
        assert_ne!(name, with_suffix("c", Seed(7), "infrastructure"));
        assert_ne!(name, with_suffix("c", Seed(8), "control plane"));
        assert!(name.len() == 7 && name.starts_with("c-"), "{name}");
    }

    #[test]
    fn a_long_name_is_cut_so_that_it_fits_into_a_label() {
        let name = with_suffix(&"a-".repeat(40), Seed(7), "pool");
        assert!(name.len() <= 63 && !name.contains("--"), "{name}");
    }
}
