//! The page of the routes, `docs/reference/http.md`, whose middle is made from the table. `BATON_REGENERATE=1` writes it anew.

use std::fmt::Write as _;
use std::fs;

use crate::access::Needs;
use crate::field::Field;
use crate::routes::{self, Gives, Route, Takes};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/http.md");

/// What stands before and after what is made.
const BEGIN: &str = "<!-- made from the routes: begin -->\n";
const END: &str = "<!-- made from the routes: end -->\n";

fn fields(out: &mut String, fields: &[Field]) {
    let _ = writeln!(out, "\n| name | must | what | meaning |\n| --- | --- | --- | --- |");
    for field in fields {
        let must = if field.is_required { "yes" } else { "" };
        let _ = writeln!(out, "| `{}` | {must} | {} | {} |", field.name, field.kind.words(), field.help);
    }
}

fn describe(out: &mut String, route: &Route) {
    let _ = writeln!(out, "\n### `{} {}`\n\n{}\n", route.verb.as_str(), route.path, route.summary);
    let scopes = match route.needs {
        Needs::Nothing => "no token is needed".to_owned(),
        needs => format!("scopes: {}", needs.scopes().join(", ")),
    };
    let gives = match route.gives {
        Gives::Json(status, shape) => format!("{} with `{}`", status.as_u16(), shape.0),
        Gives::Judged(shape) => format!("200 or 422 with `{}`", shape.0),
        Gives::Text => "200 with text".to_owned(),
        Gives::Page => "200 with a page, or 303".to_owned(),
        Gives::Bytes => "200 with bytes".to_owned(),
        Gives::Empty => "204".to_owned(),
        Gives::Reply(shape) => format!("200 with `{}`, or 202", shape.0),
        Gives::Socket => "101 with a WebSocket".to_owned(),
        Gives::Events => "200 with a stream of events".to_owned(),
    };
    let _ = writeln!(out, "`{}` · {scopes} · answers {gives}", route.name);
    if !route.query.is_empty() {
        let _ = writeln!(out, "\nIn the query:");
        fields(out, route.query);
    }
    match route.takes {
        Takes::Nothing | Takes::Fields(&[]) => {}
        Takes::Fields(known) => {
            let _ = writeln!(out, "\nIn the body:");
            fields(out, known);
        }
        Takes::Json(shape) => {
            let _ = writeln!(out, "\nThe body is JSON: `{}`.", shape.0);
        }
        Takes::Bytes => {
            let _ = writeln!(out, "\nThe body is bytes.");
        }
    }
}

#[test]
fn the_page_lists_every_route_as_it_is() {
    let mut made = String::new();
    routes::all().into_iter().for_each(|route| describe(&mut made, route));
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}{made}\n{END}{after}");
    if std::env::var_os("BATON_REGENERATE").is_some() {
        fs::write(PAGE, &wanted).unwrap();
    }
    assert_eq!(fs::read_to_string(PAGE).unwrap(), wanted, "BATON_REGENERATE=1 writes it anew");
}
