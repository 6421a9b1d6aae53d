//! Arguments that are one of a few words: listed in the help, completed by shells, and a slip of the pen is answered with the nearest one.

use std::error::Error;
use std::str::FromStr;

use baton_core::Role;
use baton_core::task::{Phase, Priority, Status};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

pub(crate) fn statuses() -> impl TypedValueParser<Value = Status> {
    one_of(Status::ALL.iter().map(|status| PossibleValue::new(status.as_str())))
}

pub(crate) fn priorities() -> impl TypedValueParser<Value = Priority> {
    one_of(Priority::ALL.iter().map(|priority| PossibleValue::new(priority.as_str())))
}

/// Every phase is read, and those that a task cannot start in are refused as such; the help names only the others.
pub(crate) fn first_phases() -> impl TypedValueParser<Value = Phase> {
    let is_first = |phase: Phase| matches!(phase, Phase::Draft | Phase::Implementation);
    one_of(Phase::ALL.iter().map(move |phase| PossibleValue::new(phase.as_str()).hide(!is_first(*phase))))
}

/// Every role is read; the one that is Baton's own is refused as such, and not offered.
pub(crate) fn roles() -> impl TypedValueParser<Value = Role> {
    one_of(Role::ALL.into_iter().map(|role| PossibleValue::new(role.as_str()).hide(role == Role::System)))
}

fn one_of<T>(words: impl Iterator<Item = PossibleValue>) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| word.parse::<T>())
}
