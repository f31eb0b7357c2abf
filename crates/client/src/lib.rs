//! What users import: connect, domains, put, get, stat, delete, list; asynchronous and blocking.
