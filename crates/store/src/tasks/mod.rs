//! Task files as text: a head of YAML between two fences, and a body that is the person's.
//!
//! [`Document`] reads one strictly, [`edit`] changes single fields and leaves every other byte alone, [`render`] writes a new one.
//! [`read_yaml`] is the same strict reader for a whole document. Nothing here touches a disk, and nothing knows what a task's fields
//! mean. Start at [`Document::parse`].

mod document;
mod edit;
pub mod files;
pub mod fold;
pub mod obstacles;
mod places;
mod problem;
mod render;
pub mod runs;
pub mod table;
#[cfg(test)]
mod tests;
pub mod tree;
mod writers;
mod yaml;

pub use document::Document;
pub use edit::edit;
pub use problem::Problem;
pub use render::render;
pub use yaml::{Bounds, read_yaml};
