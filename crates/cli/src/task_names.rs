//! Which task a text means, and what to say where it means none: numbers that people type, and dependencies by a beginning.

use baton_core::TaskId;
use baton_core::task::Board;

use crate::error::{CliError, Code};
use crate::tasks;

/// The task that a text names. Where there is none, the error says what would name one.
pub(crate) fn find(board: &Board, text: &str) -> Result<TaskId, CliError> {
    tasks::find(board, text)
        .map_err(|error| if error.code == Code::NoTask { explain(board, text, error) } else { error })
}

/// The task that another one is to wait for, or to be a part of. An id that does not exist is left to the rules of tasks.
pub(crate) fn other(board: &Board, text: &str) -> Result<TaskId, CliError> {
    match (find(board, text), text.parse::<TaskId>()) {
        (Ok(id), _) => Ok(id),
        (Err(error), Ok(id)) if error.code == Code::NoTask => Ok(id),
        (Err(mut error), _) => {
            if error.code == Code::NoTask {
                error.code = Code::NoDependency;
            }
            Err(error)
        }
    }
}

fn explain(board: &Board, text: &str, error: CliError) -> CliError {
    let Some(last) = board.tasks().last() else { return error };
    let number = |text: &str| text.rsplit('-').next().and_then(|digits| digits.parse::<u64>().ok());
    let typed = text.strip_prefix("TASK-").unwrap_or(text).parse::<u64>().ok();
    let meant: Vec<&TaskId> = match typed {
        Some(typed) => board
            .tasks()
            .map(|task| &task.id)
            .filter(|id| number(id.as_str()) == Some(typed))
            .take(2)
            .collect(),
        None => Vec::new(),
    };
    let example = meant.first().copied().unwrap_or(&last.id);
    let plain = example.as_str().strip_prefix("TASK-").unwrap_or(example.as_str());
    let error = error.cause(format!("an id, or a unique beginning of one, names a task: {plain}"));
    match meant[..] {
        [one] => error.cause(format!("did you mean {one}?")),
        _ => error,
    }
}
