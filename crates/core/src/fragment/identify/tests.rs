use super::*;

/// One letter is one chunk.
fn digest(letter: char) -> Digest {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&u32::from(letter).to_le_bytes());
    Digest(bytes)
}

fn digests(text: &str) -> Vec<Digest> {
    text.chars().map(digest).collect()
}

/// A dot is an empty block.
fn blocks(text: &str) -> Vec<Option<Digest>> {
    let block = |letter| (letter != '.').then(|| digest(letter));
    text.chars().map(block).collect()
}

/// The file after the updates, as text; and how many blocks they write.
fn updated(old: &str, new: &str) -> (String, usize) {
    let letters: Vec<char> = new.chars().collect();
    let text = |chunk: Option<usize>| chunk.map_or('.', |chunk| letters[chunk]);
    let mut list: Vec<String> = old.chars().map(String::from).collect();
    list.insert(0, String::new());
    let mut written = 0;
    for update in updates(&blocks(old), &digests(new)) {
        let after = update.after.iter().map(|chunk| text(Some(*chunk)));
        written += 1 + update.after.len();
        let place = update.block.map_or(0, |block| block + 1);
        let own = text(update.chunk);
        let own = update.block.map(|_| own.to_string());
        assert!(
            own.is_some() || update.chunk.is_none(),
            "genesis has no data"
        );
        list[place] = own.unwrap_or_default().chars().chain(after).collect();
    }
    (list.concat(), written)
}

#[test]
fn opcodes_say_what_was_done() {
    use Opcode::{Delete, Equal, Insert, Replace};
    let codes = |old, new| opcodes(&digests(old), &digests(new));
    assert_eq!(codes("", ""), []);
    assert_eq!(codes("abc", "abc"), [Equal(0..3, 0..3)]);
    assert_eq!(codes("", "ab"), [Insert(0, 0..2)]);
    assert_eq!(codes("ab", ""), [Delete(0..2, 0)]);
    assert_eq!(codes("ab", "xy"), [Replace(0..2, 0..2)]);
    assert_eq!(
        codes("abcde", "abXde"),
        [Equal(0..2, 0..2), Replace(2..3, 2..3), Equal(3..5, 3..5)]
    );
    assert_eq!(
        codes("abc", "XabcY"),
        [Insert(0, 0..1), Equal(0..3, 1..4), Insert(3, 4..5)]
    );
    assert_eq!(
        codes("abcd", "ad"),
        [Equal(0..1, 0..1), Delete(1..3, 1), Equal(3..4, 1..2)]
    );
}

#[test]
fn the_longest_common_sequence_stays() {
    let stays = |old: &str, new: &str| matches(&digests(old), &digests(new)).len();
    assert_eq!(stays("abcdefgh", "efghabcd"), 4, "a moved half");
    assert_eq!(stays("abcdefgh", "hgfedcba"), 1);
    assert_eq!(stays("xaybzc", "abc"), 3);
    assert_eq!(stays("aaaa", "aaaaaa"), 4, "all alike");
}

/// An edit writes the blocks that step 3 of 4.3 demands, and no others.
#[test]
fn each_kind_of_edit_writes_what_it_must() {
    for (old, new, list, written) in [
        ("abc", "abc", "abc", 0),
        ("", "abc", "abc", 3 + 1),
        ("abc", "axc", "axc", 1),
        ("abc", "axyzc", "axyzc", 3),
        ("abcd", "axd", "ax.d", 2),
        ("abc", "ac", "a.c", 1),
        ("abc", "", "...", 3),
        // The block before the insertion is written for its link; genesis in front of the first one.
        ("abc", "abxc", "abxc", 2),
        ("abc", "xabc", "xabc", 2),
        // [B-5 reuse-empty]: empty blocks are taken before new ones are made.
        ("ab.", "abx", "abx", 1),
        ("a..", "axyz", "axyz", 3),
        (".", "x", "x", 1),
        // But no more is written than must be.
        ("a.bc", "axc", "a.xc", 1),
    ] {
        let (text, count) = updated(old, new);
        assert_eq!((text.as_str(), count), (list, written), "{old} to {new}");
    }
}

/// Whatever is edited, the file has the new content afterwards, and no block is gone (`[B-1 never-unlinked]`).
#[test]
fn random_edits_make_the_new_content() {
    let mut state = 1_u64;
    let mut below = |limit: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % limit
    };
    for letters in [2, 4, 1000] {
        let mut text = |length: usize, empty: bool| -> String {
            let mut letter = || match empty && below(5) == 0 {
                true => '.',
                false => char::from_u32(0x4e00 + below(letters) as u32).expect("a letter"),
            };
            (0..length).map(|_| letter()).collect()
        };
        for round in 0..500 {
            let (old, new) = (text(round % 23, true), text(round % 17, false));
            let (list, written) = updated(&old, &new);
            assert_eq!(list.replace('.', ""), new, "{old}");
            assert!(
                list.chars().count() >= old.chars().count(),
                "{old} to {list}"
            );
            if old.replace('.', "") == new {
                assert_eq!(written, 0);
            }
        }
    }
}
