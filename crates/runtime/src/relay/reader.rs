//! Whoever follows a relay: replay and what comes after it are one step, under one lock.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::ring::{After, Item, Kind};
use super::state::{Follower, Relay, State};

/// What a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Messages, and whether several clients follow: then answers are somebody else's.
    Items { items: Vec<Item>, is_shared: bool },
    /// What it wanted is gone up to here; it goes on behind that.
    Gap(u64),
    /// Nothing will come any more.
    Over,
}

/// What a reader wants of the answers to requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// Those too.
    All,
    /// None: it gets its own elsewhere.
    None,
}

/// Somebody who follows a relay, until this is dropped.
#[derive(Debug)]
pub struct Reader {
    relay: Arc<Relay>,
    number: u64,
    position: u64,
    /// What came up to here was there before it: of that it is not told what is settled.
    news_after: u64,
    answers: Answers,
}

impl Relay {
    /// Follows from a position on; from the oldest that is kept where none is given.
    pub fn read(self: &Arc<Self>, after: Option<u64>) -> Reader {
        self.reader(after, Answers::All)
    }

    /// Follows without the answers to requests.
    pub fn read_without_answers(self: &Arc<Self>) -> Reader {
        self.reader(None, Answers::None)
    }

    fn reader(self: &Arc<Self>, after: Option<u64>, answers: Answers) -> Reader {
        let (number, position, news_after) = self.change(|state| {
            state.last_reader += 1;
            let position = after.unwrap_or_else(|| state.ring.begin());
            state.readers.insert(state.last_reader, Follower { position, waker: None });
            state.is_shared |= state.readers.len() > 1;
            (state.last_reader, position, if after.is_none() { state.ring.last() } else { 0 })
        });
        Reader { relay: self.clone(), number, position, news_after, answers }
    }
}

impl Reader {
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What comes next. Asking for it says that everything before was passed on.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let relay = self.relay.clone();
        let mut state = relay.state();
        if let Some(follower) = state.readers.get_mut(&self.number) {
            follower.position = self.position;
        }
        let takers = state.take_takers();
        let next = self.next_in(&mut state, cx);
        drop(state);
        takers.into_iter().for_each(Waker::wake);
        next
    }

    fn next_in(&mut self, state: &mut State, cx: &Context<'_>) -> Poll<Next> {
        loop {
            match state.ring.after(self.position) {
                After::Lost(upto) => {
                    self.position = upto;
                    return Poll::Ready(Next::Gap(upto));
                }
                After::Items(mut items) => {
                    self.position = items.last().map_or(self.position, |item| item.at);
                    items.retain(|item| self.wants(state, item));
                    if !items.is_empty() {
                        return Poll::Ready(Next::Items { items, is_shared: state.is_shared });
                    }
                    if let Some(follower) = state.readers.get_mut(&self.number) {
                        follower.position = self.position;
                    }
                }
                After::Nothing if state.is_closed() => return Poll::Ready(Next::Over),
                After::Nothing => {
                    if let Some(follower) = state.readers.get_mut(&self.number) {
                        follower.waker = Some(cx.waker().clone());
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    fn wants(&self, state: &State, item: &Item) -> bool {
        let is_news = item.at > self.news_after;
        match &item.kind {
            Kind::Notification => true,
            Kind::Request(name) => is_news || state.calls.asked.contains_key(name),
            Kind::Response => is_news && self.answers == Answers::All,
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let takers = self.relay.change(|state| {
            state.readers.remove(&self.number);
            self.relay.pass_abstentions(state);
            state.take_takers()
        });
        takers.into_iter().for_each(Waker::wake);
    }
}
