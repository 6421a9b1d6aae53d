//! The tools that a request offers, and arguments that fit them: every agent names them as it likes.

use serde_json::{Map, Value};

use super::answer::Wire;

/// A tool as it is offered.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    schema: Value,
}

const WRITERS: &[&str] = &["write", "write_file", "create_file", "edit"];
const RUNNERS: &[&str] = &["bash", "shell", "run_shell_command", "run_command", "execute"];
const PATHS: &[&str] = &["filePath", "file_path", "absolute_path", "path", "filename"];
const CONTENTS: &[&str] = &["content", "contents", "file_text", "text", "newString", "new_string"];
const COMMANDS: &[&str] = &["command", "cmd", "script"];

pub(super) fn offered(wire: Wire, request: &Value) -> Vec<Tool> {
    let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let tool = |tool: &Value| {
        let (tool, schema) = match wire {
            Wire::OpenAi => (&tool["function"], "parameters"),
            Wire::Anthropic => (tool, "input_schema"),
        };
        let name = tool["name"].as_str()?.to_owned();
        Some(Tool { name, schema: tool[schema].clone() })
    };
    tools.iter().filter_map(tool).collect()
}

pub(super) fn write(offered: &[Tool], path: &str, content: &str) -> Option<(String, Value)> {
    let tool = pick(offered, WRITERS)?;
    let mut arguments = tool.rest();
    tool.set(&mut arguments, PATHS, path);
    tool.set(&mut arguments, CONTENTS, content);
    Some((tool.name.clone(), Value::Object(arguments)))
}

pub(super) fn run(offered: &[Tool], command: &str) -> Option<(String, Value)> {
    let tool = pick(offered, RUNNERS)?;
    let mut arguments = tool.rest();
    if tool.properties().is_some_and(|known| known.get("command").is_some_and(|is| is["type"] == "array")) {
        arguments.insert("command".to_owned(), vec!["sh", "-c", command].into());
    } else {
        tool.set(&mut arguments, COMMANDS, command);
    }
    Some((tool.name.clone(), Value::Object(arguments)))
}

fn pick<'a>(offered: &'a [Tool], names: &[&str]) -> Option<&'a Tool> {
    names.iter().find_map(|name| offered.iter().find(|tool| tool.name.eq_ignore_ascii_case(name)))
}

impl Tool {
    fn properties(&self) -> Option<&Map<String, Value>> {
        self.schema["properties"].as_object()
    }

    /// Sets the first of the names that the tool knows.
    fn set(&self, arguments: &mut Map<String, Value>, names: &[&str], value: &str) {
        let knows = |name: &&&str| self.properties().is_some_and(|known| known.contains_key(**name));
        if let Some(name) = names.iter().find(knows).or(names.first()) {
            arguments.insert((*name).to_owned(), value.into());
        }
    }

    /// Something for everything that it wants to have.
    fn rest(&self) -> Map<String, Value> {
        let required = self.schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        let something = |name: &str| match self.schema["properties"][name]["type"].as_str() {
            Some("boolean") => Value::Bool(false),
            Some("number" | "integer") => 1000.into(),
            Some("array") => Value::Array(Vec::new()),
            Some("object") => Value::Object(Map::new()),
            _ => "as asked".into(),
        };
        required.iter().filter_map(Value::as_str).map(|name| (name.to_owned(), something(name))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_fit_whatever_is_offered() {
        let tool = |name: &str, properties: Value, required: Value| {
            json!({"type": "function", "function": {"name": name, "parameters": {
                "type": "object", "properties": properties, "required": required}}})
        };
        let string = json!({"type": "string"});
        let request = json!({"tools": [
            tool("Write", json!({"filePath": string, "content": string}), json!(["filePath", "content"])),
            tool("shell", json!({"command": string, "is_background": {"type": "boolean"}}), json!(["command", "is_background"])),
        ]});
        let offered = offered(Wire::OpenAi, &request);
        let write = write(&offered, "/w/a", "b c").unwrap();
        assert_eq!(write, ("Write".into(), json!({"filePath": "/w/a", "content": "b c"})));
        let run = run(&offered, "ls -l").unwrap();
        assert_eq!(run, ("shell".into(), json!({"command": "ls -l", "is_background": false})));
    }
}
