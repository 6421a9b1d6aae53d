//! One suite that every journal passes.
