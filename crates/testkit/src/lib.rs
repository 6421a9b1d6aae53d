//! Pretends. For tests only: a disk that fails and forgets, a disk that kills, a model that does as it is told, random numbers from a seed, small
//! ledgers to start from.

pub mod builders;
pub mod deadline;
pub mod fixtures;
pub mod fuzz;
pub mod kill_disk;
pub mod model_server;
pub mod real_agents;
pub mod rng;
pub mod segments;
pub mod sim_disk;
pub mod sim_tree;
