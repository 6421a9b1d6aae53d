//! What a decision takes from outside besides its input: the time, and chance.

use crate::ids::{EventId, HookRunId, RunId, StreamId, ToolRunId, TraceId, Uuid7};
use crate::time::Timestamp;

/// When something is decided, and the random bytes that ids are made of: everything a decision takes from outside besides the input.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub now: Timestamp,
    pub seed: [u8; 10],
}

/// Makes ids of a moment: each different, all the same in replay.
#[derive(Debug, Clone)]
pub struct Ids {
    moment: Moment,
    count: u16,
}

impl Ids {
    pub fn new(moment: Moment) -> Self {
        Ids { moment, count: 0 }
    }

    fn uuid(&mut self) -> Uuid7 {
        let mut random = self.moment.seed;
        let count = u16::from_be_bytes([random[8], random[9]]).wrapping_add(self.count);
        random[8..].copy_from_slice(&count.to_be_bytes());
        self.count = self.count.wrapping_add(1);
        Uuid7::from_parts(self.moment.now, random)
    }

    pub fn event(&mut self) -> EventId {
        EventId::new(self.uuid())
    }

    pub fn run(&mut self) -> RunId {
        RunId::new(self.uuid())
    }

    pub fn stream(&mut self) -> StreamId {
        StreamId::new(self.uuid())
    }

    pub fn tool_run(&mut self) -> ToolRunId {
        ToolRunId::new(self.uuid())
    }

    pub fn hook_run(&mut self) -> HookRunId {
        HookRunId::new(self.uuid())
    }

    pub fn trace(&mut self) -> TraceId {
        TraceId::Work(self.uuid())
    }
}
