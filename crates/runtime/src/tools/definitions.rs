//! What a model is told of each tool.

use serde_json::{Value, json};

/// A tool as it is offered to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub name: &'static str,
    pub description: &'static str,
    /// JSON Schema of its arguments.
    pub parameters: Value,
    pub mutating: bool,
}

/// One argument: its name, its schema, whether it must be there.
type Argument = (&'static str, Value, bool);

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn words(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

fn number(description: &str) -> Value {
    json!({"type": "integer", "minimum": 1, "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

fn tool(name: &'static str, description: &'static str, arguments: &[Argument]) -> Definition {
    let required: Vec<&str> =
        arguments.iter().filter(|(_, _, is_required)| *is_required).map(|(name, _, _)| *name).collect();
    let properties: serde_json::Map<String, Value> =
        arguments.iter().map(|(name, schema, _)| ((*name).to_owned(), schema.clone())).collect();
    let parameters = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let mutating = baton_core::session::is_mutating(name).unwrap_or(true);
    Definition { name, description, parameters, mutating }
}

/// Every tool that is offered. Other commands of git are `git_` and their name, and take `args` as these do.
pub fn definitions() -> Vec<Definition> {
    let path = || text("Path in the workspace.");
    let git = || vec![("args", words("Arguments after the command."), false)];
    vec![
        tool(
            "read_file",
            "Read a text file, or some lines of it.",
            &[
                ("path", path(), true),
                ("line", number("First line, counted from 1."), false),
                ("limit", number("How many lines."), false),
            ],
        ),
        tool(
            "list_files",
            "List a directory. Directories end in /, links in @.",
            &[
                ("path", text("Directory in the workspace; the workspace itself if missing."), false),
                ("recursive", flag("Also what is in its directories."), false),
            ],
        ),
        tool(
            "grep",
            "Find lines that match a regular expression. Gives path:line:text.",
            &[
                ("pattern", text("Regular expression."), true),
                ("path", text("File or directory; the workspace if missing."), false),
                ("glob", text("Only files whose path matches, such as *.rs or src/**/*.ts."), false),
                ("ignore_case", flag("Whether A is a."), false),
            ],
        ),
        tool(
            "search",
            "Find files by their path.",
            &[
                ("glob", text("Such as *.rs, src/**/*.ts or **/{a,b}.md."), true),
                ("path", text("Directory to look in; the workspace if missing."), false),
            ],
        ),
        tool(
            "edit_file",
            "Replace text that occurs exactly once in a file.",
            &[
                ("path", path(), true),
                ("old", text("The text as it is, with enough around it to be there only once."), true),
                ("new", text("The text as it is to be."), true),
            ],
        ),
        tool(
            "write_file",
            "Write a file as a whole. Directories on the way are made.",
            &[("path", path(), true), ("content", text("All of its text."), true)],
        ),
        tool(
            "apply_patch",
            "Apply a unified diff to any number of files: all of it or nothing.",
            &[("patch", text("The diff, with or without git's headers."), true)],
        ),
        tool(
            "bash",
            "Run a script with bash in the workspace. Gives both outputs in order, and how it ended.",
            &[("command", text("The script."), true)],
        ),
        tool(
            "run_command",
            "Run a program without a shell. Gives both outputs in order, and how it ended.",
            &[
                ("command", words("The program and its arguments."), true),
                ("dir", text("Directory to run it in; the workspace if missing."), false),
                ("stdin", text("What it reads."), false),
            ],
        ),
        tool("git_status", "Run git status.", &git()),
        tool("git_diff", "Run git diff.", &git()),
        tool("git_log", "Run git log.", &git()),
        tool("git_show", "Run git show.", &git()),
        tool("git_add", "Run git add.", &git()),
        tool("git_commit", "Run git commit; without -m it has no text and fails.", &git()),
        tool("git_checkout", "Run git checkout.", &git()),
        tool(
            "git_apply",
            "Run git apply.",
            &[
                ("args", words("Arguments after the command."), false),
                ("stdin", text("What it reads: a patch."), false),
            ],
        ),
    ]
}

/// Their names, for a message.
pub(super) fn names() -> String {
    let names: Vec<&str> = definitions().iter().map(|definition| definition.name).collect();
    names.join(", ")
}
