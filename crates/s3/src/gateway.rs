//! Requests answered by a cluster.
