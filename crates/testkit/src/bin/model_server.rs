//! The fake model by itself, for agents that are tried by hand: prints where it listens, and runs until its input ends.

use std::io::Read as _;

use baton_testkit::model_server::ModelServer;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = ModelServer::start()?;
    println!("{}", server.base_url());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
