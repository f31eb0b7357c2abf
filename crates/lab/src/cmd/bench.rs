//! `areo-lab bench`: real servers, measured.

mod availability;
mod fares;
mod limits;
mod reconfig;
mod repair;
mod report;
mod wide_area;

use super::Lab;
use crate::args::Bench;
use areo::exit::Outcome;

pub(super) fn run(lab: &Lab<'_>, command: Bench) -> Outcome {
    match command {
        Bench::Availability(args) => availability::run(lab, args),
        Bench::Limits(args) => limits::run(lab, args),
        Bench::Reconfig(args) => reconfig::run(lab, args),
        Bench::Repair(args) => repair::run(lab, args),
        Bench::Report(args) => report::draw(&args),
        Bench::WideArea(args) => wide_area::run(lab, args),
    }
}
