//! Changes to an input: those in which length-prefixed formats go wrong, and, if there are words, those in which texts do.

/// A generator of pseudo-random numbers: `splitmix64`.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A source whose sequence depends on the seed alone.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Draws a number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound.max(1) as u64) as usize
    }
}

/// Changes an input once.
pub(crate) fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str], random: &mut Random) {
    match words.is_empty() || random.below(2) == 0 {
        true => change_bytes(input, corpus, random),
        false => change_text(input, corpus, words, random),
    }
}

/// A number that is likely to be a limit of something.
fn number(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => 0,
        1 => u64::MAX,
        2 => random.draw() >> random.below(64),
        _ => 1 << random.below(64),
    }
}

fn change_bytes(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let byte = random.draw() as u8;
    let number = number(random);
    let mut overwrite = |bytes: &[u8]| {
        for (old, new) in input[at..].iter_mut().zip(bytes) {
            *old = *new;
        }
    };
    match random.below(8) {
        0 => overwrite(&[byte]),
        1 => overwrite(&(number as u16).to_le_bytes()),
        2 => overwrite(&(number as u32).to_le_bytes()),
        3 => overwrite(&number.to_le_bytes()),
        4 => input.truncate(at),
        5 => input.insert(at, byte),
        6 => {
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len());
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        _ => {
            if let Some(old) = input.get_mut(at) {
                *old ^= 1 << (byte % 8);
            }
        }
    }
}

fn change_text(input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str], random: &mut Random) {
    let at = random.below(input.len() + 1);
    match random.below(5) {
        0 => insert(input, at, words[random.below(words.len())].as_bytes()),
        1 => {
            let number = number(random).to_string();
            insert(input, at, number.as_bytes());
        }
        2 => {
            let line = any_line(input, random).to_vec();
            insert(input, line_start(input, at), &line);
        }
        3 => {
            let line = any_line(&corpus[random.below(corpus.len())], random).to_vec();
            insert(input, line_start(input, at), &line);
        }
        // One word for another.
        _ => {
            let (old, new) = (random.below(words.len()), random.below(words.len()));
            let old = words[old].as_bytes();
            let found = input.windows(old.len()).position(|window| window == old);
            if let Some(at) = found {
                input.splice(at..at + old.len(), words[new].bytes());
            }
        }
    }
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

/// Begin of the line that contains the position `at`.
fn line_start(input: &[u8], at: usize) -> usize {
    let end = input[..at].iter().rposition(|byte| *byte == b'\n');
    end.map_or(0, |end| end + 1)
}

/// One line with its end; nothing of an empty input.
fn any_line<'a>(input: &'a [u8], random: &mut Random) -> &'a [u8] {
    let lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
    lines
        .get(random.below(lines.len()))
        .copied()
        .unwrap_or_default()
}
