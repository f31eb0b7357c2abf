//! The door of the algorithms to the world over TCP: connections, calls in flight, write queues.
