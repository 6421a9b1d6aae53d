//! A chat model over HTTP: OpenAI's chat completions and Anthropic's messages, streaming. Its tools are Baton's.
//!
//! A request is a thread ([`call`]), which tells what comes while it comes; so a slow listener holds back the model and nobody else. Whoever ends a
//! request first, its thread or somebody who does not want it any more, tells its end; nothing is told of it after that. The conversation is kept here
//! ([`conversation`]) and sent whole each time. The key is shown nowhere.

mod answer;
mod anthropic;
mod call;
mod conversation;
mod http;
mod openai;
mod sse;

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_core::session::{Answer, ProcessEnd};
use serde_json::Value;
use zeroize::Zeroizing;

use self::call::Call;
use self::conversation::Conversation;
use self::http::Client;
use super::{Failure, Harness, Ready, Told, ToolOutput};
use crate::agent::Exit;

/// Which form a model's server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    OpenAi,
    Anthropic,
}

impl Api {
    /// Where the provider that made it has its server.
    pub fn own_server(self) -> &'static str {
        match self {
            Api::OpenAi => "https://api.openai.com/v1",
            Api::Anthropic => "https://api.anthropic.com/v1",
        }
    }
}

/// What a model's server knows its client by. Shown nowhere, wiped when it goes.
#[derive(Clone)]
pub struct Key(Zeroizing<String>);

impl Key {
    pub fn new(key: impl Into<String>) -> Self {
        Key(Zeroizing::new(key.into()))
    }

    /// Reads it from a variable of the environment. An error names the variable and never what it holds.
    pub fn from_env(name: &str) -> io::Result<Self> {
        let refused = |why: &str| {
            let message = format!("the variable {name}, which holds the model's key, {why}");
            io::Error::new(io::ErrorKind::InvalidInput, message)
        };
        match std::env::var(name) {
            Ok(key) if key.is_empty() => Err(refused("is empty")),
            Ok(key) => Ok(Key::new(key)),
            Err(std::env::VarError::NotPresent) => Err(refused("is not set")),
            Err(std::env::VarError::NotUnicode(_)) => Err(refused("is no text")),
        }
    }

    fn text(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// A tool that the model is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    /// JSON Schema of its arguments, which are an object.
    pub schema: Value,
}

/// Everything that a model's conversation begins with.
#[derive(Debug, Clone)]
pub struct LlmSetup {
    pub api: Api,
    /// Where the API begins, such as `https://api.openai.com/v1`.
    pub base_url: String,
    pub model: String,
    pub key: Option<Key>,
    pub system: Option<String>,
    pub tools: Vec<ToolDefinition>,
    /// Longest answer, in tokens; the server's own bound where there is none.
    pub max_tokens: Option<u32>,
    /// How long a server may be silent. Below the session's own deadline, which ends the session and not only the request.
    pub timeout: Duration,
}

/// A model and the conversation with it.
#[derive(Debug)]
pub struct LlmHarness {
    shared: Arc<Shared>,
    /// The request of the moment, or the last one.
    call: Option<Arc<Call>>,
    endings: Sender<Ending>,
}

/// What the threads of a conversation have in common.
struct Shared {
    setup: LlmSetup,
    client: Client,
    conversation: Mutex<Conversation>,
    tell: Box<dyn Fn(Told) + Send + Sync>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("setup", &self.setup).finish_non_exhaustive()
    }
}

impl Shared {
    /// Never held while something is told or waited for.
    fn conversation(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is told by a thread of its own, because whoever asks for it is also who listens.
enum Ending {
    Cancel(Arc<Call>),
    Stop(Option<Arc<Call>>),
}

impl LlmHarness {
    /// Checks the configuration and begins. Nothing is sent before the first prompt.
    pub fn start(setup: LlmSetup, tell: impl Fn(Told) + Send + Sync + 'static) -> io::Result<LlmHarness> {
        let client = Client::new(&setup)?;
        let conversation = Mutex::new(Conversation::default());
        let shared = Arc::new(Shared { setup, client, conversation, tell: Box::new(tell) });
        let (endings, asked) = channel();
        let ender = shared.clone();
        std::thread::Builder::new().name("llm".into()).spawn(move || end_what_is_asked(&ender, &asked))?;
        Ok(LlmHarness { shared, call: None, endings })
    }

    /// Sends the conversation as it is.
    fn send(&mut self) -> Result<(), Failure> {
        let request = self.shared.conversation().request(&self.shared.setup)?;
        let call = Arc::new(Call::new(&self.shared.client));
        call::start(self.shared.clone(), call.clone(), request)
            .map_err(|error| Failure::new(format!("no thread for the request: {error}")))?;
        self.call = Some(call);
        Ok(())
    }

    fn refuse_a_second(&self) -> Result<(), Failure> {
        match &self.call {
            Some(call) if !call.is_over() => Err(Failure::new("a request is under way")),
            _ => Ok(()),
        }
    }
}

fn end_what_is_asked(shared: &Shared, asked: &Receiver<Ending>) {
    let agent = Some(shared.setup.model.clone());
    (shared.tell)(Told::Ready(Ready { agent, ..Ready::default() }));
    while let Ok(ending) = asked.recv() {
        match ending {
            Ending::Cancel(call) => call.end(|said| {
                shared.conversation().hear_part(said);
                (shared.tell)(Told::TurnEnded { stop: "cancelled".to_owned(), usage: None });
            }),
            Ending::Stop(call) => {
                if let Some(call) = call {
                    call.end(|_| {});
                }
                let exit = Exit::without_process(ProcessEnd::Absent, true);
                return (shared.tell)(Told::Exited(Box::new(exit)));
            }
        }
    }
}

impl Harness for LlmHarness {
    fn prompt(&mut self, blocks: &[String]) -> Result<(), Failure> {
        self.refuse_a_second()?;
        self.shared.conversation().prompt(blocks);
        self.send()
    }

    fn outputs(&mut self, outputs: &[ToolOutput]) -> Result<(), Failure> {
        self.refuse_a_second()?;
        self.shared.conversation().outputs(outputs);
        self.send()
    }

    fn again(&mut self) -> Result<(), Failure> {
        self.refuse_a_second()?;
        self.send()
    }

    fn cancel(&mut self) {
        if let Some(call) = &self.call {
            call.interrupt();
            // The thread is there for as long as nobody has stopped it.
            let _ = self.endings.send(Ending::Cancel(call.clone()));
        }
    }

    fn answer(&mut self, _: &str, _: &Answer) {
        // A model asks for nothing; its tools are Baton's, and so are their permissions.
    }

    fn stop(&mut self) {
        if let Some(call) = &self.call {
            call.interrupt();
        }
        let _ = self.endings.send(Ending::Stop(self.call.clone()));
    }

    fn pid(&self) -> Option<u32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        let setup = LlmSetup {
            api: Api::OpenAi,
            base_url: "http://127.0.0.1:1/v1".into(),
            model: "m".into(),
            key: Some(Key::new("sk-hunter2")),
            system: None,
            tools: Vec::new(),
            max_tokens: None,
            timeout: Duration::from_secs(1),
        };
        let harness = LlmHarness::start(setup, |_| {}).unwrap();
        let shown = format!("{harness:?}");
        assert!(shown.contains("Key") && !shown.contains("hunter2"), "{shown}");
        let missing = Key::from_env("BATON_NO_SUCH_KEY").unwrap_err().to_string();
        assert_eq!(missing, "the variable BATON_NO_SUCH_KEY, which holds the model's key, is not set");
    }
}
