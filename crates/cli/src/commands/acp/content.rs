//! What an editor sends, as texts: the blocks of a prompt, and single fields of parameters. Refusals name the field.

use serde_json::Value;

use super::wire::{INVALID_PARAMS, Refusal};
use crate::limits::ACP_PROMPT_BYTES_MAX;

/// A field that is a text.
pub(super) fn text<'a>(params: &'a Value, field: &str) -> Result<&'a str, Refusal> {
    match &params[field] {
        Value::String(text) => Ok(text),
        other => Err(wrong(field, "a text", other)),
    }
}

/// A refusal that names the field, what was expected, and what came.
pub(super) fn wrong(field: &str, expected: &str, got: &Value) -> Refusal {
    let got = match got {
        Value::Null => "nothing".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => {
            let mut shown: String = other.to_string().chars().take(80).collect();
            if shown.len() < other.to_string().len() {
                shown.push('…');
            }
            shown
        }
    };
    Refusal::new(INVALID_PARAMS, format!("{field}: expected {expected}, got {got}"))
}

/// The text of a prompt.
pub(super) fn prompt(params: &Value) -> Result<String, Refusal> {
    let blocks =
        params["prompt"].as_array().ok_or_else(|| wrong("prompt", "a list of blocks", &params["prompt"]))?;
    let mut parts = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        parts.push(of_block(block, &format!("prompt[{at}]"))?);
    }
    let text = parts.concat().trim().to_owned();
    if text.is_empty() {
        return Err(Refusal::new(INVALID_PARAMS, "prompt: it is empty: say what is to be done"));
    }
    if text.len() > ACP_PROMPT_BYTES_MAX {
        let what = format!(
            "prompt: it has {} bytes, and a task's text at most {ACP_PROMPT_BYTES_MAX}: name files instead of putting them in",
            text.len()
        );
        return Err(Refusal::new(INVALID_PARAMS, what));
    }
    Ok(text)
}

fn of_block(block: &Value, field: &str) -> Result<String, Refusal> {
    let named = |name: &str| match block.pointer(&format!("/{}", name.replace('.', "/"))) {
        Some(Value::String(text)) => Ok(text.as_str()),
        other => Err(wrong(&format!("{field}.{name}"), "a text", other.unwrap_or(&Value::Null))),
    };
    match block["type"].as_str() {
        Some("text") => named("text").map(str::to_owned),
        Some("resource_link") => {
            let uri = named("uri")?;
            Ok(format!(" [{}]({uri}) ", block["name"].as_str().unwrap_or(uri)))
        }
        Some("resource") if block["resource"]["blob"].is_string() => Err(wrong(
            &format!("{field}.resource"),
            "a text, since Baton takes nothing else",
            &Value::from("bytes"),
        )),
        Some("resource") => {
            let (uri, text) = (named("resource.uri")?, named("resource.text")?);
            let fence = fence_for(text);
            Ok(format!("\n\n{uri}\n{fence}\n{}\n{fence}\n\n", text.trim_end_matches('\n')))
        }
        _ => Err(wrong(&format!("{field}.type"), "text, resource_link or resource", &block["type"])),
    }
}

/// A fence that the text itself does not have.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(blocks: &Value, expected: Result<&str, &str>) {
        let read = prompt(&json!({"prompt": blocks})).map_err(|refusal| refusal.message);
        assert_eq!(read.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn blocks_become_one_text() {
        check(&json!([{"type": "text", "text": " do "}, {"type": "text", "text": "it"}]), Ok("do it"));
        let link = json!({"type": "resource_link", "uri": "file:///a.rs", "name": "a.rs"});
        check(&json!([{"type": "text", "text": "mend"}, link]), Ok("mend [a.rs](file:///a.rs)"));
        let file = json!({"type": "resource", "resource": {"uri": "file:///a.md", "text": "```\nx\n```\n"}});
        check(
            &json!([{"type": "text", "text": "mend"}, file]),
            Ok("mend\n\nfile:///a.md\n````\n```\nx\n```\n````"),
        );
    }

    #[test]
    fn what_is_not_taken_is_named() {
        check(&json!("do it"), Err("prompt: expected a list of blocks, got \"do it\""));
        check(&json!([]), Err("prompt: it is empty: say what is to be done"));
        check(&json!([{"type": "text"}]), Err("prompt[0].text: expected a text, got nothing"));
        check(
            &json!([{"type": "text", "text": "a"}, {"type": "image", "data": "", "mimeType": "image/png"}]),
            Err("prompt[1].type: expected text, resource_link or resource, got \"image\""),
        );
        let blob = json!({"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA"}});
        check(
            &json!([blob]),
            Err("prompt[0].resource: expected a text, since Baton takes nothing else, got \"bytes\""),
        );
        let long =
            prompt(&json!({"prompt": [{"type": "text", "text": "x".repeat(ACP_PROMPT_BYTES_MAX + 1)}]}));
        assert!(long.unwrap_err().message.starts_with("prompt: it has "));
    }
}
