//! Every route, once. The router, the document that describes them, the reference page and the table of who may do what are made from it.

use std::future::Future;
use std::pin::Pin;

use axum::http::{Method, StatusCode};

use crate::access::Needs;
use crate::asked::{Answer, Asked};
use crate::field::Field;
use crate::schema::Shape;

/// What does a route's work.
pub type Handler = fn(Asked) -> Pin<Box<dyn Future<Output = Answer> + Send>>;

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub verb: Verb,
    pub path: &'static str,
    /// What a client calls it.
    pub name: &'static str,
    pub summary: &'static str,
    pub needs: Needs,
    pub query: &'static [Field],
    pub takes: Takes,
    pub gives: Gives,
    pub handler: Handler,
}

/// What is done to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Put => "PUT",
            Verb::Patch => "PATCH",
            Verb::Delete => "DELETE",
        }
    }

    pub fn is(self, method: &Method) -> bool {
        method.as_str() == self.as_str() || (self == Verb::Get && method == Method::HEAD)
    }

    /// Whether it changes something, so that a request may have a key and a page of another site may not make it.
    pub fn changes(self) -> bool {
        self != Verb::Get
    }
}

/// What a route takes as its body.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    Nothing,
    /// An object of these fields.
    Fields(&'static [Field]),
    /// JSON that is judged elsewhere: its shape, for the description.
    Json(Shape),
    /// Bytes of any kind.
    Bytes,
}

/// What a route answers where all is well.
#[derive(Debug, Clone, Copy)]
pub enum Gives {
    Json(StatusCode, Shape),
    /// 200 where it was accepted, and 422 with the same shape where it was not.
    Judged(Shape),
    Text,
    /// A page for people, or the way to it.
    Page,
    Bytes,
    Empty,
    /// A stream of events that ends when somebody wants it to.
    Events,
    /// The answer to a message, which may take its time; 202 where it wants none.
    Reply(Shape),
    /// A WebSocket.
    Socket,
}

impl Route {
    /// Whether a key makes a request to it one that is done once. Conversations with agents and tools have numbers of their own, and what is said in them is not kept.
    pub fn takes_key(&self) -> bool {
        self.verb.changes() && !matches!(self.gives, Gives::Reply(_) | Gives::Json(_, Shape::JsonRpc))
    }
}

/// Everything that is served: all of them, and the addresses of the page.
pub fn served() -> impl Iterator<Item = &'static Route> {
    all().into_iter().chain(crate::api::page::ASIDE)
}

/// All of them.
pub fn all() -> Vec<&'static Route> {
    use crate::acp;
    use crate::api::{
        actions, agents, changes, commands, health, mcp, page, reviews, sessions, status, streams, tasks,
        traces, work,
    };
    let families = [
        health::ROUTES,
        status::ROUTES,
        page::ROUTES,
        tasks::ROUTES,
        actions::ROUTES,
        changes::ROUTES,
        work::ROUTES,
        sessions::ROUTES,
        traces::ROUTES,
        reviews::ROUTES,
        streams::ROUTES,
        agents::ROUTES,
        commands::ROUTES,
        mcp::ROUTES,
        acp::ROUTES,
    ];
    families.into_iter().flatten().collect()
}

/// Makes a handler of an asynchronous function.
macro_rules! handler {
    ($function:path) => {
        |asked| Box::pin($function(asked))
    };
}
pub(crate) use handler;
