//! The last part of what everybody is told, by position: bounded by number and by size.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::limits::{RELAY_RING_BYTES_MAX, RELAY_RING_ITEMS_MAX, RELAY_TAKE_ITEMS};

/// What a message is to whoever follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Notification,
    /// A request of the agent, under the name that clients answer it by.
    Request(Arc<str>),
    /// The answer to what one client asked.
    Response,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Counted from 1, without a gap.
    pub at: u64,
    pub kind: Kind,
    /// One line of JSON.
    pub text: Arc<str>,
}

#[derive(Debug, Default)]
pub(super) struct Ring {
    items: VecDeque<Item>,
    bytes: usize,
    last: u64,
}

/// What there is after a position.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum After {
    Items(Vec<Item>),
    /// Some of it is gone: the last position that is.
    Lost(u64),
    Nothing,
}

impl Ring {
    pub(super) fn push(&mut self, kind: Kind, text: Arc<str>) -> u64 {
        self.last += 1;
        let item = Item { at: self.last, kind, text };
        self.bytes += bytes(&item);
        self.items.push_back(item);
        let is_over = |ring: &Ring| {
            ring.items.len() > RELAY_RING_ITEMS_MAX
                || ring.bytes > RELAY_RING_BYTES_MAX && ring.items.len() > 1
        };
        while is_over(self) {
            self.bytes -= self.items.pop_front().map_or(0, |item| bytes(&item));
        }
        self.last
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The position before the oldest that is kept.
    pub(super) fn begin(&self) -> u64 {
        self.last - self.items.len() as u64
    }

    /// What there is after a position, as much as is taken at once. A position that never was is one of another life: all of that is lost.
    pub(super) fn after(&self, position: u64) -> After {
        let begin = self.begin();
        if position < begin || position > self.last {
            return After::Lost(begin);
        }
        let skip = usize::try_from(position - begin).unwrap_or(usize::MAX);
        let items: Vec<Item> = self.items.iter().skip(skip).take(RELAY_TAKE_ITEMS).cloned().collect();
        if items.is_empty() { After::Nothing } else { After::Items(items) }
    }
}

fn bytes(item: &Item) -> usize {
    item.text.len() + size_of::<Item>() + 2 * size_of::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_messages_are_kept_and_what_is_gone_is_said() {
        let mut ring = Ring::default();
        assert_eq!(ring.after(0), After::Nothing);
        assert_eq!(ring.after(7), After::Lost(0), "of another life");
        for n in 1..=RELAY_RING_ITEMS_MAX as u64 + 10 {
            assert_eq!(ring.push(Kind::Notification, "x".into()), n);
        }
        assert_eq!((ring.begin(), ring.after(9)), (10, After::Lost(10)));
        let After::Items(items) = ring.after(10) else { panic!() };
        assert_eq!((items[0].at, items.len()), (11, RELAY_TAKE_ITEMS));
        let large: Arc<str> = "x".repeat(RELAY_RING_BYTES_MAX).into();
        ring.push(Kind::Response, large.clone());
        ring.push(Kind::Response, large);
        assert_eq!(ring.items.len(), 1, "one is kept however large it is");
        assert!(matches!(ring.after(ring.last() - 1), After::Items(items) if items.len() == 1));
    }
}
