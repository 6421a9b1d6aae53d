//! Artifacts that events cite: there before the event is, as files that are stored now or as bytes that were stored before.

use std::path::Path;

use baton_core::ArtifactRef;
use baton_store::{ArtifactStore as _, Workspace};

use crate::error::{CliError, Code};
use crate::input::file::{file_error, open_regular};
use crate::input::{Citation, Draft};

/// Cited artifacts are stored before the event that cites them. A claim may cite what is missing: that is the verifier's to find.
pub(super) fn expect_stored(workspace: &Workspace, draft: &Draft) -> Result<(), CliError> {
    for citation in &draft.artifacts {
        match citation {
            Citation::Stored(artifact) if draft.event_type.as_str() != "claim_issued" => {
                let path = workspace.artifacts.path(&artifact.sha256);
                let length = workspace.artifacts.length(&artifact.sha256);
                let found = match length.map_err(|error| CliError::io("read", &path, &error))? {
                    Some(length) if length == artifact.bytes => continue,
                    Some(length) => format!("it is stored with {length} bytes, not {}", artifact.bytes),
                    None => "it is not stored".to_owned(),
                };
                let what = format!("artifact {} is cited", artifact.sha256);
                let hint = "cite the file itself: {\"path\": \"FILE\"}";
                return Err(CliError::new(Code::Artifact, what).cause(found).hint(hint));
            }
            Citation::Stored(_) => {}
            Citation::File { path, .. } => {
                open_regular(path).map_err(|error| file_error(path, &error))?;
            }
        }
    }
    Ok(())
}

/// Stores a cited file and gives its reference.
pub(super) fn store(workspace: &Workspace, citation: Citation) -> Result<ArtifactRef, CliError> {
    let (path, media_type, name) = match citation {
        Citation::Stored(artifact) => return Ok(artifact),
        Citation::File { path, media_type, name } => (path, media_type, name),
    };
    let mut file = open_regular(&path).map_err(|error| file_error(&path, &error))?;
    let stored = workspace.artifacts.put(&mut file);
    let (sha256, bytes) = stored.map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => {
            CliError::new(Code::Artifact, format!("{} is too large", path.display())).cause(error.to_string())
        }
        _ => CliError::io("store", &path, &error),
    })?;
    let media_type = media_type.unwrap_or_else(|| media_type_of(&path).to_owned());
    let name = name.unwrap_or_else(|| path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    Ok(ArtifactRef { sha256, bytes, media_type, name })
}

/// What a file's name says about its content; only where there is no doubt.
fn media_type_of(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("txt" | "log") => "text/plain",
        Some("md") => "text/markdown",
        Some("json") => "application/json",
        Some("html") => "text/html",
        Some("csv") => "text/csv",
        Some("png") => "image/png",
        Some("patch" | "diff") => "text/x-diff",
        _ => "application/octet-stream",
    }
}
