//! Injected time and chance, and the deterministic runner that controllers run on.
