//! One server process: accept, read frames, run the shard, commit, reply.
