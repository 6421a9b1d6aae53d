//! The engine with real parts: journal, files, clock.

mod sim;
