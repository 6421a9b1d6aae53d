//! What a person may do to a task now, and why not: asked of the decisions that would be made.

use axum::http::StatusCode;
use baton_core::task::Refusal;
use baton_runtime::Fault;
use serde_json::{Value, json};

use crate::access::Needs;
use crate::app::Server;
use crate::asked::{Answer, Asked, ok};
use crate::problem::Problem;
use crate::routes::{Gives, Route, Takes, Verb, handler};
use crate::schema::Shape;

pub const ROUTES: &[Route] = &[Route {
    verb: Verb::Get,
    path: "/v1/tasks/{id}/actions",
    name: "getTaskActions",
    summary: "What a person may do to a task now, and why not where they may not. Nothing is done.",
    needs: Needs::Look,
    query: &[],
    takes: Takes::Nothing,
    gives: Gives::Json(StatusCode::OK, Shape::TaskActions),
    handler: handler!(actions),
}];

async fn actions(asked: Asked) -> Answer {
    let id = asked.task()?;
    // Whoever only looks is told so before anything is tried.
    let scope = asked.who.as_ref().map(|who| who.scope).filter(|scope| !Needs::Operate.is_met_by(*scope));
    let barred = scope.map(|scope| format!("a token of scope {} does not open this", scope.as_str()));
    let object = asked
        .apart(move |server| {
            let moment = server.house.engine.ground().clock.moment();
            let looked = server.house.engine.look(|board| {
                let rev = board.get(&id).map_or(0, baton_core::task::Task::rev);
                board.actions(&id, moment).map(|actions| (rev, actions))
            });
            let refused = |refusal| server.house.commands.explain(Fault::Refused(refusal));
            let (rev, actions) =
                looked.map_err(|fault| server.house.commands.explain(fault))?.map_err(refused)?;
            let say = |refusal| match &barred {
                Some(why) => json!({"allowed": false, "why": why, "code": "W002"}),
                None => allowed(server, refusal),
            };
            let moves = actions.moves.into_iter().map(|(to, refusal)| {
                let mut shown = say(refusal);
                shown["to"] = to.as_str().into();
                shown
            });
            Ok(json!({
                "v": 1, "taskId": id.as_str(), "rev": rev, "moves": moves.collect::<Vec<Value>>(),
                "approve": say(actions.approve), "reject": say(actions.reject), "retry": say(actions.retry),
            }))
        })
        .await?;
    ok(&object)
}

/// Whether something is allowed, and else why not, in the words that the request itself would be refused with.
fn allowed(server: &Server, refusal: Option<Refusal>) -> Value {
    let Some(refusal) = refusal else { return json!({"allowed": true}) };
    let Problem { code, title, .. } = server.house.commands.explain(Fault::Refused(refusal));
    json!({"allowed": false, "why": title, "code": code})
}
