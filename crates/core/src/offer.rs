//! What anyone but Baton itself may hand in as an event: the rules that hold whatever the ledger's state is.

use crate::event::Payload;
use crate::ids::EventId;
use crate::limits::CLOCK_SKEW_MS_MAX;
use crate::roles::{Role, is_own_name};
use crate::time::Timestamp;

/// The parts of an event that its sender chooses and that are not the sender's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer<'a> {
    pub event_type: &'a str,
    /// Who speaks, as far as it is said.
    pub agent: Option<&'a str>,
    pub role: Option<Role>,
    /// Only where the sender sets them; Baton's own choice needs no check.
    pub at: Option<Timestamp>,
    pub id: Option<EventId>,
}

/// Why an event is not taken from outside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("events of type {0} are appended by Baton itself")]
    Reserved(String),
    #[error("the agent name `{0}` stands for Baton itself")]
    Name(String),
    #[error("the role `system` is Baton's own")]
    Role,
    #[error("at is {at}, this machine's clock says {now}")]
    Clock { at: Timestamp, now: Timestamp },
    /// Ids carry their time and are found by it: one from the future would make every later search long. One from the past may be tried again.
    #[error("id {id} carries a time in the future, this machine's clock says {now}")]
    IdClock { id: EventId, now: Timestamp },
}

impl Offer<'_> {
    /// Judges an event at the moment it is handed in.
    pub fn check(&self, now: Timestamp) -> Result<(), Refusal> {
        if Payload::is_reserved(self.event_type) {
            return Err(Refusal::Reserved(self.event_type.to_owned()));
        }
        if let Some(own) = self.agent.filter(|agent| is_own_name(agent)) {
            return Err(Refusal::Name(own.to_owned()));
        }
        if self.role == Some(Role::System) {
            return Err(Refusal::Role);
        }
        let ahead_ms = |ms: i64| ms - now.unix_ms();
        if let Some(at) = self.at.filter(|at| ahead_ms(at.unix_ms()).abs() > CLOCK_SKEW_MS_MAX) {
            return Err(Refusal::Clock { at, now });
        }
        match self.id.filter(|id| ahead_ms(id.uuid().unix_ms()) > CLOCK_SKEW_MS_MAX) {
            Some(id) => Err(Refusal::IdClock { id, now }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Uuid7;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_unix_ms(1_700_000_000_000 + ms).unwrap()
    }

    fn id(ms: i64) -> EventId {
        EventId::new(Uuid7::from_parts(at(ms), [7; 10]))
    }

    const GOOD: Offer<'_> =
        Offer { event_type: "note", agent: Some("worker"), role: Some(Role::Executor), at: None, id: None };

    fn check(offer: Offer<'_>, expected: &Result<(), Refusal>) {
        assert_eq!(&offer.check(at(0)), expected, "{offer:?}");
    }

    #[test]
    fn what_is_batons_own_is_not_taken_from_others() {
        check(GOOD, &Ok(()));
        for own in ["ledger.created", "ledger.recovered", "key_bound", "key_revoked", "trace.closed"] {
            check(Offer { event_type: own, ..GOOD }, &Err(Refusal::Reserved(own.into())));
        }
        for own in ["baton", "baton-rules", "baton-verifier"] {
            check(Offer { agent: Some(own), ..GOOD }, &Err(Refusal::Name(own.into())));
        }
        check(Offer { role: Some(Role::System), ..GOOD }, &Err(Refusal::Role));
    }

    #[test]
    fn a_time_more_than_five_minutes_off_is_refused_in_an_id_only_if_it_is_ahead() {
        for near in [-CLOCK_SKEW_MS_MAX, 0, CLOCK_SKEW_MS_MAX] {
            check(Offer { at: Some(at(near)), id: Some(id(near)), ..GOOD }, &Ok(()));
        }
        for far in [-CLOCK_SKEW_MS_MAX - 1, CLOCK_SKEW_MS_MAX + 1, 1 << 40] {
            let now = at(0);
            check(Offer { at: Some(at(far)), ..GOOD }, &Err(Refusal::Clock { at: at(far), now }));
            let of_id = if far > 0 { Err(Refusal::IdClock { id: id(far), now }) } else { Ok(()) };
            check(Offer { id: Some(id(far)), ..GOOD }, &of_id);
        }
    }
}
