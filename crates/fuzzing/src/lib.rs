//! Fuzz targets on a stable toolchain: a target runs on the inputs that are kept for it and on mutations of them, from a
//! fixed seed, so that a failure is there again in the next run. The same targets run under `cargo fuzz`, guided by
//! coverage; see `fuzz/README.md`.
//!
//! A target is a function that takes any bytes, panics if a promise is broken, and says whether the input was a good
//! one, so that a driver notices when it only ever meets the first check.
//!
//! Beside that, [`not_run`] is for each test that needs something which a machine may lack.

mod mutation;
mod pairs;
mod skipped;

pub use mutation::Random;
pub use pairs::next_pair;
pub use skipped::not_run;

use mutation::change;
use std::path::PathBuf;

/// The number of mutations that each target is run on, for a longer run than on every change.
const VARIABLE: &str = "AREO_FUZZ_INPUTS";
/// Mutations on every change.
const USUAL: u32 = 10_000;
/// Maximum number of changes of one input.
const CHANGES: u64 = 4;

/// A target and what to run it on.
#[derive(Clone, Copy, Debug)]
pub struct Driver<'a> {
    /// Panics if a promise is broken; says whether the input was good.
    pub target: fn(&[u8]) -> bool,
    /// Inputs that are known to be good.
    pub corpus: &'a [Vec<u8>],
    /// Words that a text of this language has; none for inputs that are no text.
    pub words: &'a [&'a str],
    /// Seed of the mutations.
    pub seed: u64,
    /// Divisor of the number of mutations, for targets that take longer.
    pub cost: u32,
}

impl Driver<'_> {
    /// Runs the target on its corpus and on mutations of it.
    ///
    /// # Panics
    /// If the target does, or an input of the corpus is not good. If hardly any or nearly all mutations are good: a
    /// driver that only produces rubbish, or never does, would test nothing.
    pub fn run(&self) {
        assert!(self.corpus.len() >= 2, "there is something to begin with");
        for input in self.corpus {
            assert!(self.try_one(input), "known good: {}", shown(input));
        }
        let said = std::env::var(VARIABLE).ok();
        let inputs = said.map_or(USUAL, |number| number.parse().expect("a number"));
        let inputs = (inputs / self.cost.max(1)).max(500);
        let mut random = Random::new(self.seed);
        let mut good = 0;
        for _ in 0..inputs {
            let mut input = self.corpus[random.below(self.corpus.len())].clone();
            for _ in 0..=random.draw() % CHANGES {
                change(&mut input, self.corpus, self.words, &mut random);
            }
            good += u32::from(self.try_one(&input));
        }
        println!("{good} of {inputs} mutations were good");
        let percent = u64::from(good) * 100 / u64::from(inputs);
        assert!(
            (2..90).contains(&percent),
            "{good} of {inputs} mutations were good"
        );
    }

    fn try_one(&self, input: &[u8]) -> bool {
        let _shown = InputReport(input);
        (self.target)(input)
    }
}

/// The inputs that are kept for a target: the files in `fuzz/corpus/<target>`, in the order of their names.
///
/// # Panics
/// If there are none.
pub fn kept(target: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let entries = std::fs::read_dir(folder.join(target)).expect("inputs are kept for the target");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder of ours").path())
        .collect();
    paths.sort();
    let read = |path: &PathBuf| std::fs::read(path).expect("a file of ours");
    paths.iter().map(read).collect()
}

/// Says which input it was when the target panics.
struct InputReport<'a>(&'a [u8]);

impl Drop for InputReport<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input was: {}", shown(self.0));
        }
    }
}

/// The input as a literal for a test.
fn shown(input: &[u8]) -> String {
    format!("b\"{}\"", input.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::{Driver, shown};
    use std::sync::atomic::{AtomicU32, Ordering};

    fn driver(target: fn(&[u8]) -> bool) {
        Driver {
            target,
            corpus: &[b"k = 1\n".to_vec(), b"k = 2\nl = 3\n".to_vec()],
            words: &["k", "="],
            seed: 1,
            cost: 10,
        }
        .run();
    }

    #[test]
    fn a_target_that_takes_some_passes() {
        driver(|input| input.starts_with(b"k = "));
    }

    #[test]
    #[should_panic(expected = "a planted bug")]
    fn a_planted_bug_behind_a_change_is_found() {
        driver(|input| {
            assert!(!input.windows(2).any(|w| w == b"kk"), "a planted bug");
            input.starts_with(b"k = ")
        });
    }

    #[test]
    #[should_panic(expected = "mutations were good")]
    fn a_target_that_takes_everything_tests_nothing() {
        driver(|_| true);
    }

    #[test]
    #[should_panic(expected = "mutations were good")]
    fn a_target_that_takes_no_mutation_tests_nothing() {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        driver(|_| CALLS.fetch_add(1, Ordering::Relaxed) < 2);
    }

    #[test]
    fn an_input_is_shown_as_a_literal() {
        assert_eq!(shown(b"a\"\n\xff"), r#"b"a\"\n\xff""#);
    }
}
