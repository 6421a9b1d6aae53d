//! What needs files or a clock to be shown.

mod envelopes;
mod speed;
