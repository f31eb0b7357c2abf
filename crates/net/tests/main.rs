//! Connections over real sockets. One program: linking one for each file takes longer than running them.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too")]

mod asking;
mod bounds;
mod cable;
mod common;
mod encryption;
mod fuzz;
mod hostile;
mod large_read;
mod multiplex;
mod presence;
mod reconnect;
mod tickets;
mod worlds;
