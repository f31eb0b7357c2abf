//! Quorum systems: how many replies make a quorum, and why two of them meet (`docs/spec` 0.2).

/// Any `quorum` of `n` members form a quorum.
///
/// | system | quorum | two quorums share at least | crashes tolerated `f` |
/// |---|---|---|---|
/// | majority | ⌊n/2⌋ + 1 | 1 | ⌊(n-1)/2⌋ |
/// | erasure-coded `[n,k]` | ⌈(n+k)/2⌉ | k | ⌊(n-k)/2⌋ |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quorums {
    n: usize,
    quorum: usize,
}

impl Quorums {
    /// A quorum system of majorities.
    pub fn majority(n: usize) -> Quorums {
        assert!(n > 0, "a configuration has members");
        let quorum = n / 2 + 1;
        assert!(quorum <= n && n < 2 * quorum, "two majorities meet");
        Quorums { n, quorum }
    }

    /// ⌈(n+k)/2⌉ of `n`: two quorums share `k` members, enough to decode a value that one of them stored.
    pub fn erasure_coded(n: usize, k: usize) -> Quorums {
        assert!(0 < k && k <= n, "k is between 1 and n");
        Quorums {
            n,
            quorum: (n + k).div_ceil(2),
        }
    }

    /// Replies that make a quorum.
    pub fn quorum(self) -> usize {
        self.quorum
    }

    /// Members that any two quorums share at least, `2q - n`: the support threshold of `[EC-11 acceptance-test]`
    /// (`[X-1 support-threshold]`).
    pub fn intersection(self) -> usize {
        assert!(
            self.n <= 2 * self.quorum,
            "two quorums are all members at least"
        );
        2 * self.quorum - self.n
    }

    /// Crashes that leave a quorum.
    pub fn f(self) -> usize {
        assert!(self.quorum <= self.n, "a quorum is of the members");
        self.n - self.quorum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest overlap of two sets of `quorum` out of `n`, by trying all.
    fn smallest_overlap(n: usize, quorum: usize) -> usize {
        let sets = || (0u32..1 << n).filter(|set| set.count_ones() as usize == quorum);
        let overlap = |a: u32, b: u32| (a & b).count_ones() as usize;
        sets()
            .flat_map(|a| sets().map(move |b| overlap(a, b)))
            .min()
            .expect("there is a quorum")
    }

    #[test]
    fn every_two_quorums_meet_as_promised() {
        for n in 1..=8 {
            let majority = Quorums::majority(n);
            assert_eq!(
                smallest_overlap(n, majority.quorum()),
                majority.intersection()
            );
            assert!(majority.intersection() >= 1);
            assert_eq!(majority.f(), (n - 1) / 2);
            assert!(
                n == 1 || smallest_overlap(n, majority.quorum() - 1) == 0,
                "one less would not do"
            );
            for k in 1..=n {
                let coded = Quorums::erasure_coded(n, k);
                assert_eq!(smallest_overlap(n, coded.quorum()), coded.intersection());
                assert!(coded.intersection() >= k);
                assert_eq!(coded.f(), (n - k) / 2);
                assert!(
                    smallest_overlap(n, coded.quorum() - 1) < k,
                    "one less would not do"
                );
            }
        }
    }

    #[test]
    fn the_known_triples_hold() {
        // (n, m) -> (q, f), rule [EC-3 code-quorums].
        for (n, m, q, f) in [
            (3, 1, 3, 0),
            (5, 2, 4, 1),
            (7, 3, 6, 1),
            (9, 4, 7, 2),
            (11, 5, 9, 2),
            (11, 1, 11, 0),
        ] {
            let quorums = Quorums::erasure_coded(n, n - m);
            assert_eq!((quorums.quorum(), quorums.f()), (q, f), "n = {n}, m = {m}");
        }
    }
}
