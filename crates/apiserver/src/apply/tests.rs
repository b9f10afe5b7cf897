//! Ownership, as tables and as laws.
