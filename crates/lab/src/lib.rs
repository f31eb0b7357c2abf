//! Parts that programs which measure real servers share, `areo-lab` and `areo-peers` outside the workspace, and the probe of S3 endpoints.

pub mod probe;
pub mod shared;
