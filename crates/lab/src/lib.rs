//! What programs that measure real servers share: `areo-lab`, and `areo-peers`, which is outside the workspace.

pub mod shared;
