//! What goes wrong, as a problem document (RFC 9457): the code and the words of the command line, and a status.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

/// An error with everything that is said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub status: StatusCode,
    /// The code, for which there is a page: `baton explain CODE`.
    pub code: String,
    pub title: String,
    /// Why, one cause each.
    pub causes: Vec<String>,
    /// A command that helps.
    pub hint: Option<String>,
}

/// Declares the codes that only a server gives.
macro_rules! codes {
    ($($name:ident $code:literal $status:ident,)*) => {
        impl Problem {
            $(
                pub fn $name(title: impl Into<String>) -> Problem {
                    Problem::new(StatusCode::$status, $code, title)
                }
            )*
        }

        /// Every code of this crate.
        pub const CODES: &[&str] = &[$($code,)*];
    };
}

codes! {
    token "W001" UNAUTHORIZED,
    scope "W002" FORBIDDEN,
    origin "W003" FORBIDDEN,
    form "W004" BAD_REQUEST,
    too_large "W005" PAYLOAD_TOO_LARGE,
    no_route "W006" NOT_FOUND,
    method "W007" METHOD_NOT_ALLOWED,
    not_acceptable "W008" NOT_ACCEPTABLE,
    media_type "W009" UNSUPPORTED_MEDIA_TYPE,
    precondition "W010" PRECONDITION_FAILED,
    key_reused "W011" UNPROCESSABLE_ENTITY,
    in_progress "W012" CONFLICT,
    too_many "W013" TOO_MANY_REQUESTS,
    overloaded "W014" SERVICE_UNAVAILABLE,
    too_slow "W015" REQUEST_TIMEOUT,
    ended "W016" SERVICE_UNAVAILABLE,
    unexpected "W017" INTERNAL_SERVER_ERROR,
    no_server "W030" NOT_FOUND,
    other_agent "W031" CONFLICT,
    no_answer "W032" GATEWAY_TIMEOUT,
}

impl Problem {
    pub fn new(status: StatusCode, code: impl Into<String>, title: impl Into<String>) -> Self {
        Problem { status, code: code.into(), title: title.into(), causes: Vec::new(), hint: None }
    }

    /// One of the command line, by its exit code.
    pub fn of_exit(exit: u8, code: impl Into<String>, title: impl Into<String>) -> Self {
        let code = code.into();
        let status = match (code.as_str(), exit) {
            ("U003", _) => StatusCode::PAYLOAD_TOO_LARGE,
            ("A005", _) => StatusCode::FORBIDDEN,
            ("L010", _) => StatusCode::INSUFFICIENT_STORAGE,
            ("T015" | "W016", _) => StatusCode::SERVICE_UNAVAILABLE,
            (_, 2) => StatusCode::BAD_REQUEST,
            (_, 3) => StatusCode::NOT_FOUND,
            (_, 4 | 7 | 8) => StatusCode::UNPROCESSABLE_ENTITY,
            (_, 5) => StatusCode::CONFLICT,
            (_, 6) => StatusCode::BAD_GATEWAY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem::new(status, code, title)
    }

    /// What a command printed to its standard error under `--json`.
    pub fn of_command(exit: u8, printed: &[u8]) -> Problem {
        let last = String::from_utf8_lossy(printed);
        let error = last.lines().rev().find_map(|line| {
            let value: Value = serde_json::from_str(line).ok()?;
            value.get("error").cloned()
        });
        let Some(error) = error else {
            let what = format!("the command ended with {exit} and did not say why");
            return Problem::unexpected(what);
        };
        let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut problem =
            Problem::of_exit(exit, text("code").unwrap_or_default(), text("message").unwrap_or_default());
        let causes = error.get("causes").and_then(Value::as_array).into_iter().flatten();
        problem.causes = causes.filter_map(|cause| cause.as_str().map(str::to_owned)).collect();
        problem.hint = text("hint");
        problem
    }

    #[must_use]
    pub fn cause(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("type".into(), format!("urn:baton:error:{}", self.code).into());
        object.insert("title".into(), self.title.clone().into());
        object.insert("status".into(), self.status.as_u16().into());
        object.insert("code".into(), self.code.clone().into());
        if !self.causes.is_empty() {
            object.insert("detail".into(), self.causes.join("\n").into());
        }
        if let Some(hint) = &self.hint {
            object.insert("hint".into(), hint.clone().into());
        }
        Value::Object(object)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.to_json().to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_command_line_keeps_its_words() {
        let printed = b"warning: something\n{\"error\":{\"code\":\"T001\",\"message\":\"no task X\",\"hint\":\"baton task ls\"}}\n";
        let problem = Problem::of_command(3, printed);
        assert_eq!((problem.status, problem.code.as_str()), (StatusCode::NOT_FOUND, "T001"));
        assert_eq!(
            problem.to_json(),
            serde_json::json!({
                "type": "urn:baton:error:T001", "title": "no task X", "status": 404, "code": "T001",
                "hint": "baton task ls",
            })
        );
        assert_eq!(Problem::of_command(1, b"").code, "W017");
    }
}
