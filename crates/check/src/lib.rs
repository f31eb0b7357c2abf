//! Histories and verdicts: linearizable, coverable, fragmented, one winner.
