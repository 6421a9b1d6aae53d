//! Sessions: a step of the machine, hundreds at the same time, and what Baton adds to a turn of an agent.

mod live;
mod machine;
mod many;
mod relay;

pub(crate) use many::child as many_child;

use crate::Figure;

pub(crate) fn run() -> Vec<Figure> {
    let mut figures = vec![machine::run()];
    figures.extend(many::run());
    figures.extend(relay::run());
    figures
}
