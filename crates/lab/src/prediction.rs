//! The weights of the model by which the autopilot predicts the loss of a server are made of drawn histories, and model and thresholds judge others.
//!
//! The lists of packages that were searched have no public set of drive statistics. So the histories are drawn, by figures that are assumed.
//! Of the servers that are lost some show nothing, some a disk that fails slowly, some a machine in trouble; of the others some show a sign all the same.

mod draw;

use areo_steward::prediction::{Features, Model, SIGNALS};
use areo_steward::rule::is_at_risk;
use areo_steward::rules::Rules;
use draw::DrawnServer;
use serde::Serialize;
use std::fmt::Write as _;

/// Servers that the weights are made of, and as many others that they are judged by.
const SERVERS: usize = 20_000;
const TRAINING_SEED: u64 = 1;
const HELD_OUT_SEED: u64 = 2;
/// The weights with the bias, which comes first.
const TERMS: usize = SIGNALS.len() + 1;
/// Keeps weights of signals that are rarely seen small.
const RIDGE: f64 = 1.0;
const STEPS: usize = 20;

/// The number of servers that were judged so, and what that comes to.
#[derive(Serialize, Debug)]
pub struct Judgement {
    /// The judge: `model` or `thresholds`.
    pub by: &'static str,
    /// Servers that were judged.
    pub servers: usize,
    /// Servers among them that were lost.
    pub lost: usize,
    /// Servers that were said to be at risk.
    pub at_risk: usize,
    /// Servers at risk that were lost.
    pub hits: usize,
    /// The part of those at risk that was lost.
    pub precision: f64,
    /// The part of those lost that was at risk.
    pub recall: f64,
}

/// The model that the drawn histories give, with weights of three digits.
#[allow(clippy::needless_range_loop, reason = "rows and columns")]
pub fn train() -> Model {
    let drawn = draw::servers(SERVERS, TRAINING_SEED);
    let mut terms = [0.0; TERMS];
    // Newton's method for the logistic likelihood: the steps are exact enough after a few.
    for _ in 0..STEPS {
        let (mut slope, mut curve) = ([0.0; TERMS], [[0.0; TERMS]; TERMS]);
        for at in 0..TERMS {
            slope[at] = -RIDGE * terms[at];
            curve[at][at] = RIDGE;
        }
        for server in &drawn {
            let x = with_bias(&Features::from(&server.record));
            let logit: f64 = x.iter().zip(&terms).map(|(x, term)| x * term).sum();
            let p = 1.0 / (1.0 + (-logit).exp());
            let error = f64::from(u8::from(server.is_lost)) - p;
            for row in 0..TERMS {
                slope[row] += error * x[row];
                for column in 0..TERMS {
                    curve[row][column] += p * (1.0 - p) * x[row] * x[column];
                }
            }
        }
        let step = solved(curve, slope);
        for at in 0..TERMS {
            terms[at] += step[at];
        }
    }
    let terms = terms.map(|it| (it * 1000.0).round() / 1000.0);
    let mut weights = [0.0; SIGNALS.len()];
    weights.copy_from_slice(&terms[1..]);
    Model {
        bias: terms[0],
        weights,
    }
}

fn with_bias(features: &Features) -> [f64; TERMS] {
    let mut x = [1.0; TERMS];
    x[1..].copy_from_slice(&features.0);
    x
}

/// The solution of these linear equations, whose matrix is positive definite: no row has to be exchanged.
#[allow(clippy::needless_range_loop, reason = "rows and columns")]
fn solved(mut matrix: [[f64; TERMS]; TERMS], mut right: [f64; TERMS]) -> [f64; TERMS] {
    for pivot in 0..TERMS {
        for row in pivot + 1..TERMS {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            for column in pivot..TERMS {
                matrix[row][column] -= factor * matrix[pivot][column];
            }
            right[row] -= factor * right[pivot];
        }
    }
    for row in (0..TERMS).rev() {
        for column in row + 1..TERMS {
            right[row] -= matrix[row][column] * right[column];
        }
        right[row] /= matrix[row][row];
    }
    right
}

/// The text of `crates/steward/prediction.toml`.
pub fn weights(model: &Model) -> String {
    let mut text = String::from(
        "# Weights of the model of a server's loss within 14 days. `areo-lab predict --weights` makes this file of drawn histories.\n",
    );
    let written = "a string takes what is written";
    writeln!(text, "bias = {:?}\nweights = [", model.bias).expect(written);
    for (name, weight) in SIGNALS.iter().zip(model.weights) {
        writeln!(text, "    {weight:?}, # {name}").expect(written);
    }
    text + "]\n"
}

/// Judgements of servers that the weights were not made of: by this model at the built-in probability, and by the built-in thresholds.
pub fn judged(model: &Model) -> [Judgement; 2] {
    let rules = Rules::built_in();
    let drawn = draw::servers(SERVERS, HELD_OUT_SEED);
    let by_model = |it: &DrawnServer| {
        model.probability(&Features::from(&it.record)) >= rules.prediction.probability
    };
    let by_thresholds = |it: &DrawnServer| is_at_risk(&rules, &it.record);
    [
        judgement("model", &drawn, by_model),
        judgement("thresholds", &drawn, by_thresholds),
    ]
}

fn judgement(
    by: &'static str,
    drawn: &[DrawnServer],
    is_at_risk: impl Fn(&DrawnServer) -> bool,
) -> Judgement {
    let count = |of: &dyn Fn(&DrawnServer) -> bool| drawn.iter().filter(|it| of(it)).count();
    let lost = count(&|it| it.is_lost);
    let at_risk = count(&|it| is_at_risk(it));
    let hits = count(&|it| it.is_lost && is_at_risk(it));
    let part = |of: usize| (hits as f64 / of.max(1) as f64 * 1000.0).round() / 1000.0;
    Judgement {
        by,
        servers: drawn.len(),
        lost,
        at_risk,
        hits,
        precision: part(at_risk),
        recall: part(lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_of_the_repository_are_those_that_the_histories_give() {
        let made = train();
        assert_eq!(weights(&made), areo_steward::prediction::BUILT_IN);
        assert_eq!(made, Model::built_in());
    }

    #[test]
    #[allow(clippy::needless_range_loop, reason = "rows and columns")]
    fn equations_are_solved() {
        let mut matrix = [[0.0; TERMS]; TERMS];
        let expected: [f64; TERMS] = std::array::from_fn(|at| at as f64 - 3.0);
        for row in 0..TERMS {
            for column in 0..TERMS {
                matrix[row][column] = if row == column { 5.0 } else { 0.5 };
            }
        }
        let right = matrix.map(|row| row.iter().zip(&expected).map(|(a, b)| a * b).sum());
        let found = solved(matrix, right);
        for at in 0..TERMS {
            assert!((found[at] - expected[at]).abs() < 1e-9, "{found:?}");
        }
    }

    /// The model raises fewer false alarms than the thresholds.
    #[test]
    fn held_out_servers_are_judged_by_both() {
        let [model, thresholds] = judged(&Model::built_in());
        assert_eq!(
            (model.servers, model.lost),
            (thresholds.servers, thresholds.lost)
        );
        for it in [&model, &thresholds] {
            assert!(it.hits > 0 && it.hits <= it.at_risk.min(it.lost), "{it:?}");
            assert!(it.recall < 0.75, "some servers show nothing: {it:?}");
        }
        assert!(
            model.precision > thresholds.precision,
            "{model:?} {thresholds:?}"
        );
    }
}
