//! What agents and CI report: messages, exit signals, verdicts.

use axum::http::StatusCode;
use baton_core::ids::TaskId;
use baton_core::limits::{EXIT_SIGNAL_BYTES_MAX, REASON_CHARS_MAX};
use baton_core::protocol;
use baton_core::task::decide::CiVerdict;
use baton_runtime::engine::Wish;
use serde_json::{Value, json};

use crate::access::Needs;
use crate::asked::{Answer, Asked, json as answer, ok};
use crate::field::{Kind, may, needed};
use crate::problem::Problem;
use crate::routes::{Gives, Route, Takes, Verb, handler};
use crate::schema::Shape;

use super::tasks::grant;

pub const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Post,
        path: "/v1/messages",
        name: "sendMessage",
        summary: "Routes one message of AOF/1. What is refused is answered with 422 and the reason.",
        needs: Needs::Work,
        query: &[],
        takes: Takes::Json(Shape::Message),
        gives: Gives::Judged(Shape::Sent),
        handler: handler!(message),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/exit-signals",
        name: "submitExitSignal",
        summary: "Takes the signal with which an agent ends a phase.",
        needs: Needs::Work,
        query: &[],
        takes: Takes::Fields(&[
            needed("task", Kind::Task, "The task whose phase ends."),
            may("session", Kind::Text(128), "The session that it comes from."),
            needed("signal", Kind::Object, "The signal, as docs/protocol/exit-signal.md describes it."),
        ]),
        gives: Gives::Judged(Shape::Submitted),
        handler: handler!(exit_signal),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/ci-reports",
        name: "reportCi",
        summary: "Takes the verdict of CI about a task that waits for it.",
        needs: Needs::ReportCi,
        query: &[],
        takes: Takes::Fields(&[
            needed("task", Kind::Task, "The task that was checked."),
            needed("passed", Kind::Flag, "Whether all is well."),
            may("reason", Kind::Text(REASON_CHARS_MAX), "Why not, in a few words."),
            may("log", Kind::Text(1 << 20), "What the checks printed."),
        ]),
        gives: Gives::Json(StatusCode::OK, Shape::Task),
        handler: handler!(ci_report),
    },
];

async fn message(asked: Asked) -> Answer {
    if let (Some(bound), Ok(message)) = (asked.bound(), protocol::read(&asked.body)) {
        if message.from != bound.agent {
            let what = format!("fromAgent: expected {}, got {}", bound.agent, message.from);
            return Err(Problem::scope(what));
        }
        asked.expect_own_task(&message.task)?;
    }
    let bytes = asked.body.clone();
    let (status, object) = asked
        .apart(move |server| {
            let engine = &server.house.engine;
            let sent = engine.send(&bytes).map_err(|fault| server.house.commands.explain(fault))?;
            server.house.commands.changed();
            let mut object = json!({
                "v": 1, "accepted": sent.rejected.is_none(), "events": sent.events,
                "position": engine.ground().journal.size(),
            });
            if let Some(rejection) = &sent.rejected {
                object["reason"] = rejection.reason.as_str().into();
                if let Some(detail) = &rejection.detail {
                    object["detail"] = detail.to_json();
                }
            }
            let status =
                if sent.rejected.is_none() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
            Ok((status, object))
        })
        .await?;
    Ok(answer(status, &object))
}

async fn exit_signal(asked: Asked) -> Answer {
    let task: TaskId = asked.fields.parsed("task").ok_or_else(|| Problem::form("task is missing"))?;
    asked.expect_own_task(&task)?;
    let signal = asked.fields.get("signal").cloned().unwrap_or(Value::Null).to_string();
    if signal.len() > EXIT_SIGNAL_BYTES_MAX {
        return Err(Problem::too_large(format!("signal: expected at most {EXIT_SIGNAL_BYTES_MAX} bytes")));
    }
    let mut words = vec!["exit".to_owned(), "submit".to_owned(), format!("--task={task}")];
    words.extend(asked.fields.text("session").map(|session| format!("--session={session}")));
    words.push("-".to_owned());
    let ran = asked.ran(words, signal.into_bytes()).await?;
    match serde_json::from_slice::<Value>(&ran.out) {
        Ok(object) if ran.exit == 0 => ok(&object),
        Ok(object) if ran.exit == 4 => Ok(answer(StatusCode::UNPROCESSABLE_ENTITY, &object)),
        _ => Err(Problem::of_command(ran.exit, &ran.err)),
    }
}

async fn ci_report(asked: Asked) -> Answer {
    let task: TaskId = asked.fields.parsed("task").ok_or_else(|| Problem::form("task is missing"))?;
    let log = asked.fields.text("log").map(str::to_owned);
    let (log, rework) = asked
        .apart(move |server| {
            let engine = &server.house.engine;
            let store = |text: String| engine.store_bytes(text.as_bytes(), "text/plain", "ci.log");
            let log = log.map(store).transpose().map_err(|fault| server.house.commands.explain(fault))?;
            Ok((log, engine.settings().ci_rework))
        })
        .await?;
    let verdict = CiVerdict {
        task,
        passed: asked.fields.is_set("passed"),
        exit_code: None,
        reason: asked.fields.text("reason").unwrap_or_default().to_owned(),
        log,
        rework,
        since: None,
    };
    grant(asked, StatusCode::OK, Wish::Ci(verdict)).await
}
