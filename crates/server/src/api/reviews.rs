//! What a person says about the work of a trace: reviews, and the abort.

use axum::http::StatusCode;
use baton_core::limits::INTEGER_MAX;

use crate::access::Needs;
use crate::asked::{Answer, Asked, json as answer, words};
use crate::field::{Kind, may, needed};
use crate::limits::SUBJECT_CHARS_MAX;
use crate::routes::{Gives, Route, Takes, Verb, handler};
use crate::schema::Shape;

use super::tasks::REASON;
use super::traces::id;

const APPENDED: Gives = Gives::Json(StatusCode::CREATED, Shape::Appended);

pub const ROUTES: &[Route] = &[
    Route {
        verb: Verb::Post,
        path: "/v1/traces/{id}/reviews",
        name: "reviewTrace",
        summary: "Reviews a proposal, an intent or a claim of a trace, as a critic, with the operator's key.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[
            needed("id", Kind::Text(SUBJECT_CHARS_MAX), "The proposal_id, the intent_id or the claim_id."),
            needed("verdict", Kind::Word(&["approve", "block"]), "What is thought of it."),
            REASON,
        ]),
        gives: APPENDED,
        handler: handler!(review),
    },
    Route {
        verb: Verb::Post,
        path: "/v1/traces/{id}/abort",
        name: "abortTrace",
        summary: "Aborts the work of a trace and closes it, with the operator's key.",
        needs: Needs::Operate,
        query: &[],
        takes: Takes::Fields(&[
            REASON,
            may(
                "seen",
                Kind::Number(1, INTEGER_MAX.unsigned_abs()),
                "The number of the last event that was seen; where the trace has moved on, it is not aborted.",
            ),
        ]),
        gives: APPENDED,
        handler: handler!(abort),
    },
];

async fn review(asked: Asked) -> Answer {
    let trace = id(&asked)?.to_string();
    let text = |name| asked.fields.text(name).unwrap_or_default();
    let reason = format!("--reason={}", text("reason"));
    let words = words(&["trace", "review", &reason, "--", &trace, text("id"), text("verdict")]);
    Ok(answer(StatusCode::CREATED, &asked.command(words, Vec::new()).await?))
}

async fn abort(asked: Asked) -> Answer {
    let trace = id(&asked)?.to_string();
    let reason = format!("--reason={}", asked.fields.text("reason").unwrap_or_default());
    let mut words = words(&["trace", "abort", &trace, &reason]);
    words.extend(asked.fields.number("seen").map(|seen| format!("--seen={seen}")));
    Ok(answer(StatusCode::CREATED, &asked.command(words, Vec::new()).await?))
}
