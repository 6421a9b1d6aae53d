//! Who may do what: tokens, what each opens, and where a request may come from.

pub(crate) mod cookie;
mod origin;
mod tokens;

pub use cookie::login_cookie;
pub use origin::{Hosts, is_cross_site};
pub use tokens::{Entry, Error as TokenError, NewToken, Tokens};

use baton_runtime::session::Pass;

use crate::house::Bound;

/// What a token opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everything, tokens too.
    Admin,
    /// What a person does: everything but tokens.
    Operator,
    /// What one agent does about its own task.
    Agent,
    /// To look.
    Viewer,
    /// To look at tasks, and to report what CI found.
    Ci,
}

impl Scope {
    pub const ALL: [Scope; 5] = [Scope::Admin, Scope::Operator, Scope::Agent, Scope::Viewer, Scope::Ci];

    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Admin => "admin",
            Scope::Operator => "operator",
            Scope::Agent => "agent",
            Scope::Viewer => "viewer",
            Scope::Ci => "ci",
        }
    }

    pub fn parse(word: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// What a route asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: says only whether the server is there.
    Nothing,
    /// Any token.
    Token,
    /// To look at everything; of agents, at what concerns their task.
    Look,
    /// To look at everything, which agents do not.
    LookAtAll,
    /// To work on tasks: a person, or an agent for itself; a session as long as it holds its task.
    Work,
    /// Tools, each of which says by itself what it needs: a person, or an agent for itself.
    Tools,
    /// A person.
    Operate,
    /// A person, or CI.
    ReportCi,
}

impl Needs {
    /// Whether a token of this scope opens it.
    pub fn is_met_by(self, scope: Scope) -> bool {
        use Scope::{Admin, Agent, Ci, Operator, Viewer};
        match self {
            Needs::Nothing | Needs::Token => true,
            Needs::Look => matches!(scope, Admin | Operator | Agent | Viewer | Ci),
            Needs::LookAtAll => matches!(scope, Admin | Operator | Viewer | Ci),
            Needs::Work | Needs::Tools => matches!(scope, Admin | Operator | Agent),
            Needs::Operate => matches!(scope, Admin | Operator),
            Needs::ReportCi => matches!(scope, Admin | Operator | Ci),
        }
    }

    /// The scopes that open it.
    pub fn scopes(self) -> Vec<&'static str> {
        Scope::ALL.into_iter().filter(|scope| self.is_met_by(*scope)).map(Scope::as_str).collect()
    }
}

/// Whoever asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    pub scope: Scope,
    /// The token's name, which is no secret.
    pub token: String,
    /// The agent, where the scope is one's.
    pub bound: Option<Bound>,
}

impl Who {
    /// A session, by the pass that was made for it.
    pub fn of_session(pass: Pass) -> Who {
        let Pass { session, agent, bound, .. } = pass;
        let (task, fence) = (Some(bound.task), Some(bound.fence));
        let bound = Bound { agent, session: Some(session), task, fence };
        Who { scope: Scope::Agent, token: session.to_string(), bound: Some(bound) }
    }
}
