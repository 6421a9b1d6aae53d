//! `baton session …`: what is asked of sessions. They live in the process that owns the data directory, so that is where these commands are done.

mod act;
mod led;
mod list;
mod show;
mod transcript;

use std::sync::Arc;

use baton_core::ids::SessionId;
use baton_core::task::Board;
use baton_runtime::session::{Live, Snapshot};

use crate::commands::Ended;
use crate::commands::ending::{Stopped, ending};
use crate::context::{Context, Writing};
use crate::error::{CliError, Code, Stop};
use crate::serve::Owner;
use crate::session_args::Session;
use crate::sessions;
use crate::ui::Ui;

pub(super) fn run(ctx: &Context, ui: &mut Ui, command: Session) -> Ended {
    match command {
        Session::Ls(args) => list::run(ctx, ui, &args),
        Session::Show(args) => show::show(ctx, ui, &args),
        Session::Start(args) => act::start(ctx, ui, &args),
        Session::Send(args) => act::send(ctx, ui, &args),
        Session::Attach(one) => act::attach(ctx, ui, &one),
        Session::Stop(one) => act::stop(ctx, ui, &one),
        Session::RetryTool(args) => act::retry_tool(ctx, ui, &args),
        Session::RetryHook(args) => act::retry_hook(ctx, ui, &args),
        Session::Permit(args) => act::permit(ctx, ui, args),
        Session::Ask(args) => act::ask(ctx, ui, &args),
        Session::Submit(one) => act::submit(ctx, ui, &one),
    }
}

/// The owner of the data directory, which this process is, or the command is handed over to; `None` where there is none.
fn owner(ctx: &Context, ui: &Ui) -> Result<Option<Arc<Owner>>, Stop> {
    ctx.reach()?;
    if !ctx.is_served() {
        return Ok(None);
    }
    match ctx.write(ui)? {
        Writing::Shared(owner) => Ok(Some(owner)),
        Writing::Own { .. } => Ok(None),
    }
}

/// A session that runs. One that does not is refused, with how it ended.
fn running(ctx: &Context, ui: &Ui, word: &str) -> Result<(Arc<Owner>, Live), Stop> {
    let owner = owner(ctx, ui)?;
    let snapshot = sessions::find(&sessions::dir_of(&ctx.layout()?), word)?;
    if owner.as_ref().is_some_and(|owner| owner.broker.relayed(snapshot.id).is_some()) {
        let what = format!("session {} is led by clients of its own, who alone speak to it", snapshot.id);
        let error = CliError::new(Code::SessionRefused, what);
        return Err(error.cause("GET /v1/acp says under which name").hint("baton explain A003").into());
    }
    let live = owner.and_then(|owner| owner.broker.get(snapshot.id).map(|live| (owner, live)));
    match live {
        Some(live) => Ok(live),
        None => Err(ended(&board(ctx), &snapshot).into()),
    }
}

/// The tasks, which know why sessions were stopped. Where they do not read, that is not known; it is no reason to show nothing.
fn board(ctx: &Context) -> Board {
    ctx.board().map(|read| read.board).unwrap_or_default()
}

fn ended(board: &Board, snapshot: &Snapshot) -> CliError {
    let id: SessionId = snapshot.id;
    let what = match &snapshot.ended {
        Some(data) => format!("session {id} has ended: {}", ending(data, &Stopped::on(board, snapshot))),
        None => format!("session {id} does not run any more"),
    };
    CliError::new(Code::SessionRefused, what).hint(format!("baton session show {id}"))
}
