//! `baton explain [CODE]`: the page of an error or a finding, from the binary itself.

use baton_core::nearest::nearest;
use serde_json::{Value, json};

use crate::args::Explain;
use crate::commands::Ended;
use crate::error::{CliError, Code, pages};
use crate::exit::Exit;
use crate::ui::Ui;
use crate::ui::table::{Align, Table};

pub(super) fn run(ui: &mut Ui, args: &Explain) -> Ended {
    let Some(wanted) = &args.code else { return list(ui) };
    // What an error prints may be pasted as it is.
    let plain = wanted.trim().trim_start_matches("error").trim_matches(['[', ']', ':']);
    let Some(page) = pages().find(|page| page.code.eq_ignore_ascii_case(plain)) else {
        let mut error = CliError::new(Code::NoPage, format!("no code {wanted}")).hint("baton explain");
        for near in nearest(plain, pages().map(|page| page.code), 3) {
            error = error.cause(format!("did you mean {near}?"));
        }
        return Err(error.into());
    };
    if ui.json {
        ui.object(&json!({"v": 1, "code": page.code, "text": page.text}))?;
    } else {
        ui.raw(page.text)?;
    }
    Ok(Exit::Ok)
}

fn list(ui: &mut Ui) -> Ended {
    if ui.json {
        let codes: Vec<Value> =
            pages().map(|page| json!({"code": page.code, "title": page.title()})).collect();
        ui.object(&json!({"v": 1, "codes": codes}))?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&[("code", Align::Left), ("means", Align::Left)]);
    pages().for_each(|page| table.row(vec![page.code.to_owned(), page.title().to_owned()]));
    ui.table(table)?;
    Ok(Exit::Ok)
}
