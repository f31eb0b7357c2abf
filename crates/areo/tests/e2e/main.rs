//! End to end: real processes, real files, real crashes.
//!
//! Every test starts its own cluster in a directory of its own, and does what a user does. Nothing here
//! asserts how long something takes; the deadlines that are given to commands are asserted by their exit codes.

mod autopilot;
mod backup;
mod bad_input;
mod certificates;
mod clocks;
mod cluster;
mod command;
mod conditional;
mod console;
mod console_client;
mod console_health;
mod console_objects;
mod cp;
mod crashes;
mod deploy;
mod disks;
mod file_history;
mod files;
mod gateway;
mod hardware;
mod if_version;
mod joining;
mod keyed;
mod labels;
mod large;
mod leaks;
mod leaving;
mod library;
mod lifecycle;
mod logs;
mod machines;
mod manners;
mod metrics;
mod otlp;
mod parts;
mod readme;
mod reconfig;
mod records;
mod replacement;
mod restart;
mod rotation;
mod s3;
mod s3_anonymous;
mod s3_client;
mod s3_cors;
mod s3_lifecycle;
mod s3_listing;
mod s3_many_parts;
mod s3_memory;
mod s3_metrics;
mod s3_parts;
mod s3_tags;
mod s3_tls;
mod security;
mod terminal;
mod trace;
mod trust;
mod upgrade;
mod values;
mod waiting;
mod wall_clock;

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_areo")
}

#[test]
fn the_help_fits_a_screen() {
    command::help_fits_a_screen();
}

#[test]
fn commands_of_the_documents_are_known() {
    command::documented_commands_are_known("areo", 80);
}
