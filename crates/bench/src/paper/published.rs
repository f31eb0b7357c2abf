//! The results in the publication (`docs/spec` 7.1): latency of READ in milliseconds.

use super::variant::{Algorithm, Extras, SequenceEnds, Variant};

const MIB: usize = 1 << 20;
const S: f64 = 1_000.0;

/// Table 2 (E6, and a part of E1): sizes in MiB; of ARES, CoARES, `CoARESF`, each with ABD and EC: without PB and with it.
const PIGGYBACK: [(usize, [[f64; 2]; 6]); 3] = [
    (
        1,
        [
            [343.0, 334.0],
            [257.0, 251.0],
            [308.0, 302.0],
            [136.0, 127.0],
            [284.0, 278.0],
            [149.0, 142.0],
        ],
    ),
    (
        256,
        [
            [72.0 * S, 72.0 * S],
            [54.0 * S, 53.0 * S],
            [71.0 * S, 63.0 * S],
            [25.0 * S, 27.0 * S],
            [9.0 * S, 5.0 * S],
            [9.65 * S, 3.82 * S],
        ],
    ),
    (
        512,
        [
            [264.0 * S, 192.0 * S],
            [109.0 * S, 106.0 * S],
            [176.0 * S, 164.0 * S],
            [55.6 * S, 52.4 * S],
            [21.8 * S, 15.2 * S],
            [23.2 * S, 10.9 * S],
        ],
    ),
];

/// Table 3 (E7): how the sequence was left, size in MiB; of ARES, CoARES, `CoARESF`: plain, PB, PB and GC.
const COLLECTED: [(SequenceEnds, usize, [[f64; 3]; 3]); 4] = [
    (
        SequenceEnds::Pending,
        1,
        [
            [159.0, 494.0, 107.0],
            [162.0, 506.0, 110.0],
            [181.0, 191.0, 127.0],
        ],
    ),
    (
        SequenceEnds::Pending,
        64,
        [
            [5_570.0, 27_400.0, 5_580.0],
            [5_810.0, 26_800.0, 5_730.0],
            [6_780.0, 6_620.0, 6_610.0],
        ],
    ),
    (
        SequenceEnds::Finalized,
        1,
        [
            [159.0, 166.0, 119.0],
            [163.0, 167.0, 122.0],
            [186.0, 193.0, 135.0],
        ],
    ),
    (
        SequenceEnds::Finalized,
        64,
        [
            [5_800.0, 5_760.0, 5_710.0],
            [5_880.0, 5_980.0, 5_820.0],
            [6_920.0, 6_730.0, 6_740.0],
        ],
    ),
];

/// A figure of the publication, and the size in bytes that it was measured at: of those, the nearest one.
pub(super) type Figure = (f64, usize);

/// A table of latencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Table {
    /// Table 2, with piggybacked pointers.
    Piggyback,
    /// Table 3, with garbage collection.
    Collected,
}

impl Table {
    /// Latency of a read of a file of this size; `left`: how the reconfigurations before it were left, of table 3.
    pub(super) fn read_ms(
        self,
        variant: Variant,
        left: Option<SequenceEnds>,
        size: usize,
    ) -> Option<Figure> {
        let algorithm = match variant.algorithm {
            Algorithm::Ares => 0,
            Algorithm::CoAres => 1,
            Algorithm::CoAresF => 2,
        };
        let extras = match variant.extras {
            Extras::Plain => 0,
            Extras::Piggyback => 1,
            Extras::Collecting => 2,
        };
        match self {
            Table::Piggyback => {
                let column = 2 * algorithm + usize::from(variant.dap.is_coded());
                let (at, columns) = nearest(PIGGYBACK.iter(), |row| row.0, size)?;
                Some((*columns.1[column].get(extras)?, at))
            }
            Table::Collected => {
                let rows = COLLECTED.iter().filter(|row| Some(row.0) == left);
                let (at, row) = nearest(rows, |row| row.1, size)?;
                Some((row.2[algorithm][extras], at))
            }
        }
    }
}

/// The row of the size that is nearest, in MiB, and that size in bytes.
fn nearest<'a, R>(
    rows: impl Iterator<Item = &'a R>,
    mib: impl Fn(&R) -> usize,
    size: usize,
) -> Option<(usize, &'a R)> {
    let far = |row: &&R| further(mib(row), size);
    let row = rows.min_by(|a, b| far(a).total_cmp(&far(b)))?;
    Some((mib(row) * MIB, row))
}

/// The distance of a published size from this one, as the logarithm of their ratio.
fn further(mib: usize, size: usize) -> f64 {
    ((mib * MIB) as f64 / size as f64).ln().abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::DapKind;

    fn variant(algorithm: Algorithm, dap: DapKind, extras: Extras) -> Variant {
        Variant {
            algorithm,
            dap,
            extras,
            etcd: false,
        }
    }

    #[test]
    fn figures_are_those_of_the_tables() {
        let f = |extras| variant(Algorithm::CoAresF, DapKind::Ec, extras);
        let read = |extras, size| Table::Piggyback.read_ms(f(extras), None, size);
        assert_eq!(read(Extras::Plain, 512 * MIB), Some((23_200.0, 512 * MIB)));
        assert_eq!(
            read(Extras::Piggyback, 256 * MIB),
            Some((3_820.0, 256 * MIB))
        );
        assert_eq!(read(Extras::Collecting, MIB), None);
        let ares = variant(Algorithm::Ares, DapKind::Abd, Extras::Piggyback);
        assert_eq!(
            Table::Piggyback.read_ms(ares, None, MIB),
            Some((334.0, MIB))
        );
        let (a, b) = (Some(SequenceEnds::Pending), Some(SequenceEnds::Finalized));
        assert_eq!(Table::Collected.read_ms(ares, a, MIB), Some((494.0, MIB)));
        assert_eq!(
            Table::Collected.read_ms(ares, b, 64 * MIB),
            Some((5_760.0, 64 * MIB))
        );
        let collecting = f(Extras::Collecting);
        assert_eq!(
            Table::Collected.read_ms(collecting, b, MIB),
            Some((135.0, MIB))
        );
    }

    #[test]
    fn the_nearest_size_counts() {
        let plain = variant(Algorithm::Ares, DapKind::Ec, Extras::Plain);
        let at = |size| {
            Table::Piggyback
                .read_ms(plain, None, size)
                .map(|(_, at)| at / MIB)
        };
        assert_eq!(at(64 << 10), Some(1));
        assert_eq!(at(15 * MIB), Some(1));
        assert_eq!(at(17 * MIB), Some(256));
        assert_eq!(at(1 << 40), Some(512));
    }
}
