//! What a session says while it lives, for whoever wants to follow: the last part of it, by position. A reader that is too slow learns what it missed;
//! nobody waits for one.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::limits::{FEED_BYTES_MAX, FEED_ITEMS_MAX};

/// One thing that a session said: an object of one of the two wire streams.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Counted from 1, without a gap.
    pub at: u64,
    pub channel: Channel,
    pub value: Said,
}

/// An object as its text, which is a small part of what it takes as a value. Whoever looks into it reads it, once each.
#[derive(Clone)]
pub struct Said {
    text: Arc<str>,
    read: OnceLock<Value>,
}

impl Said {
    fn new(text: &Arc<str>) -> Self {
        Said { text: text.clone(), read: OnceLock::new() }
    }

    /// The text of the object, in one line.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Deref for Said {
    type Target = Value;

    fn deref(&self) -> &Value {
        // It was written from a value: it reads.
        self.read.get_or_init(|| serde_json::from_str(&self.text).unwrap_or_default())
    }
}

impl AsRef<Value> for Said {
    fn as_ref(&self) -> &Value {
        self
    }
}

impl PartialEq for Said {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl std::fmt::Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Which of the two streams of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// `agent:state_event`: what has become true, and is in the ledger.
    State,
    /// `agent:stream_event`: what passes by.
    Stream,
    /// The last word: how it ended.
    Ended,
}

/// What a reader gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    Items(Vec<Item>),
    /// What it wanted is gone; the first that is left.
    Gap(u64),
    /// Nothing came in time.
    Nothing,
    /// Nothing will come any more.
    Over,
}

/// The last part of what a session said.
#[derive(Debug, Default)]
pub struct Feed {
    kept: Mutex<Kept>,
    changed: Condvar,
}

/// Who waits without a thread of their own; told once, and registered anew with the next question.
type Wakers = Vec<Waker>;

#[derive(Debug, Default)]
struct Kept {
    /// The last one stands at `last`, those before it at the numbers before.
    items: VecDeque<(Channel, Arc<str>)>,
    bytes: usize,
    last: u64,
    is_over: bool,
    wakers: Wakers,
}

impl Feed {
    /// Adds an item; the oldest go where there is no room.
    pub fn push(&self, channel: Channel, value: &Value) {
        let text: Arc<str> = value.to_string().into();
        let mut kept = self.kept();
        kept.last += 1;
        kept.bytes += bytes(&text);
        kept.items.push_back((channel, text));
        while kept.items.len() > FEED_ITEMS_MAX || kept.bytes > FEED_BYTES_MAX && kept.items.len() > 1 {
            if let Some((_, text)) = kept.items.pop_front() {
                kept.bytes -= bytes(&text);
            }
        }
        let wakers = std::mem::take(&mut kept.wakers);
        drop(kept);
        self.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Says that nothing more will come.
    pub fn end(&self) {
        let mut kept = self.kept();
        kept.is_over = true;
        let wakers = std::mem::take(&mut kept.wakers);
        drop(kept);
        self.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until nothing more will come.
    pub fn wait_for_end(&self) {
        while self.after(u64::MAX, Duration::from_secs(3600)) != Next::Over {}
    }

    /// Where the last item stands.
    pub fn last(&self) -> u64 {
        self.kept().last
    }

    /// What came after a position, for whoever has no thread to wait with: who is told to wait is woken when there is more.
    pub fn poll_after(&self, position: u64, cx: &mut Context<'_>) -> Poll<Next> {
        let mut kept = self.kept();
        match kept.after(position) {
            Some(next) => Poll::Ready(next),
            None => {
                if !kept.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                    kept.wakers.push(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    /// What came after a position: at once where there is something, else within the time.
    pub fn after(&self, position: u64, time: Duration) -> Next {
        let until = Instant::now() + time;
        let mut kept = self.kept();
        loop {
            if let Some(next) = kept.after(position) {
                return next;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Nothing;
            }
            kept = self.changed.wait_timeout(kept, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// What came after a position, or that nothing will; `None` where it has to be waited for.
    fn after(&self, position: u64) -> Option<Next> {
        let before = self.last - self.items.len() as u64;
        if position < before {
            return Some(Next::Gap(before + 1));
        }
        if self.last > position {
            let skip = usize::try_from(position - before).unwrap_or(usize::MAX);
            let numbered = (position + 1..).zip(self.items.iter().skip(skip));
            let item = |(at, (channel, text)): (u64, &(Channel, Arc<str>))| Item {
                at,
                channel: *channel,
                value: Said::new(text),
            };
            return Some(Next::Items(numbered.map(item).collect()));
        }
        self.is_over.then_some(Next::Over)
    }
}

/// What a text takes, with what stands around it.
fn bytes(text: &Arc<str>) -> usize {
    text.len() + 2 * size_of::<usize>() + size_of::<(Channel, Arc<str>)>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const AT_ONCE: Duration = Duration::ZERO;

    #[test]
    fn a_reader_gets_everything_after_its_position_once_and_in_order() {
        let feed = Feed::default();
        for n in 1..=5 {
            feed.push(Channel::Stream, &json!(n));
        }
        let Next::Items(items) = feed.after(2, AT_ONCE) else { panic!() };
        assert_eq!(items.iter().map(|item| item.at).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(feed.after(5, AT_ONCE), Next::Nothing);
        feed.end();
        assert_eq!(feed.after(5, AT_ONCE), Next::Over);
        assert!(matches!(feed.after(4, AT_ONCE), Next::Items(items) if items.len() == 1));
        assert_eq!(
            feed.after(u64::MAX, AT_ONCE),
            Next::Over,
            "for whoever wants the end and nothing before it"
        );
    }

    #[test]
    fn whoever_is_too_slow_learns_where_it_goes_on() {
        let feed = Feed::default();
        for n in 0..FEED_ITEMS_MAX + 10 {
            feed.push(Channel::Stream, &json!(n));
        }
        assert_eq!(feed.after(0, AT_ONCE), Next::Gap(11));
        assert!(matches!(feed.after(10, AT_ONCE), Next::Items(items) if items.len() == FEED_ITEMS_MAX));
        let large = "x".repeat(FEED_BYTES_MAX / 2);
        for _ in 0..3 {
            feed.push(Channel::Stream, &json!(large));
        }
        assert!(feed.kept().bytes <= FEED_BYTES_MAX);
    }

    #[test]
    fn whoever_has_no_thread_is_woken_too() {
        let feed = Arc::new(Feed::default());
        let waiting = {
            let feed = feed.clone();
            std::thread::spawn(move || {
                futures::executor::block_on(std::future::poll_fn(|cx| feed.poll_after(0, cx)))
            })
        };
        feed.push(Channel::State, &json!("up"));
        assert!(matches!(waiting.join().unwrap(), Next::Items(items) if items.len() == 1));
        feed.end();
        let over = futures::executor::block_on(std::future::poll_fn(|cx| feed.poll_after(1, cx)));
        assert_eq!(over, Next::Over);
    }

    #[test]
    fn whoever_waits_is_woken() {
        let feed = Arc::new(Feed::default());
        let waiting = {
            let feed = feed.clone();
            std::thread::spawn(move || feed.after(0, Duration::from_secs(60)))
        };
        feed.push(Channel::State, &json!("up"));
        assert!(matches!(waiting.join().unwrap(), Next::Items(items) if items.len() == 1));
    }
}
