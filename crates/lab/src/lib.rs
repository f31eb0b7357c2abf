//! Parts that programs which measure real servers share, `areo-lab` and `areo-peers` outside the workspace, the probe of S3 endpoints, and the
//! making of the autopilot's model of losses.

pub mod prediction;
pub mod probe;
pub mod shared;
