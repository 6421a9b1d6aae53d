//! Artifacts that events cite: there before the event is, as files that are stored now or as bytes that were stored before.
//!
//! [`foresee`] looks at everything that can be known without copying; only when a whole decision has passed is anything stored.

use std::path::Path;

use baton_core::limits::ARTIFACT_BYTES_MAX;
use baton_core::{ArtifactRef, Digest};
use baton_store::{ArtifactStore as _, Workspace};

use crate::context::Context;
use crate::error::{CliError, Code};
use crate::input::file::{Named, open_regular};
use crate::input::{Citation, Draft};
use crate::ui::text::count;

/// An artifact as it will be cited, and the file that it is made of if it is yet to be stored; its hash is not known before that.
#[derive(Debug)]
pub(super) struct Foreseen {
    pub(super) artifact: ArtifactRef,
    file: Option<Named>,
}

impl Foreseen {
    pub(super) fn is_to_be_stored(&self) -> bool {
        self.file.is_some()
    }
}

/// The artifacts of an event, as far as they can be told before anything is stored.
///
/// What is cited by its hash must be stored already. Only a claim may cite what is missing: that is the verifier's to find.
pub(super) fn foresee(
    ctx: &Context,
    workspace: &Workspace,
    draft: &mut Draft,
) -> Result<Vec<Foreseen>, CliError> {
    let may_be_missing = draft.event_type.as_str() == "claim_issued";
    let one = |citation| match citation {
        Citation::Stored(artifact) => {
            if !may_be_missing {
                expect_stored(workspace, &artifact)?;
            }
            Ok(Foreseen { artifact, file: None })
        }
        Citation::File { path, .. } if ctx.is_elsewhere() => {
            let what =
                format!("artifacts: {} is a path, and means nothing on the server's machine", path.display());
            let hint = "store it with PUT /v1/artifacts/SHA256, and cite its sha256 and bytes";
            Err(CliError::new(Code::Artifact, what).hint(hint))
        }
        Citation::File { path, media_type, name } => foresee_file(ctx.name(&path), media_type, name),
    };
    std::mem::take(&mut draft.artifacts).into_iter().map(one).collect()
}

fn expect_stored(workspace: &Workspace, artifact: &ArtifactRef) -> Result<(), CliError> {
    let path = workspace.artifacts.path(&artifact.sha256);
    let length = workspace.artifacts.length(&artifact.sha256);
    let found = match length.map_err(|error| CliError::io("read", &path, &error))? {
        Some(length) if length == artifact.bytes => return Ok(()),
        Some(length) => format!("it is stored with {}, not {}", count(length, "byte"), artifact.bytes),
        None => "it is not stored".to_owned(),
    };
    let what = format!("artifact {} is cited", artifact.sha256);
    let hint = "cite the file itself: {\"path\": \"FILE\"}";
    Err(CliError::new(Code::Artifact, what).cause(found).hint(hint))
}

fn foresee_file(file: Named, media_type: Option<String>, name: Option<String>) -> Result<Foreseen, CliError> {
    let metadata = open_regular(&file.real).and_then(|file| file.metadata());
    let bytes = metadata.map_err(|error| file.error(&error))?.len();
    let path = &file.shown;
    if bytes > ARTIFACT_BYTES_MAX {
        let why = format!("it has {bytes} bytes, an artifact has at most {ARTIFACT_BYTES_MAX}");
        return Err(too_large(path, why));
    }
    let media_type = media_type.unwrap_or_else(|| media_type_of(path).to_owned());
    let name = name.unwrap_or_else(|| path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    let artifact = ArtifactRef { sha256: Digest([0; 32]), bytes, media_type, name };
    Ok(Foreseen { artifact, file: Some(file) })
}

/// Stores what is yet to be stored, and gives the reference with the hash and the length that were stored.
pub(super) fn store(workspace: &Workspace, foreseen: Foreseen) -> Result<ArtifactRef, CliError> {
    let Some(named) = foreseen.file else { return Ok(foreseen.artifact) };
    let mut file = open_regular(&named.real).map_err(|error| named.error(&error))?;
    let path = &named.shown;
    let stored = workspace.artifacts.put(&mut file);
    let (sha256, bytes) = stored.map_err(|error| match error.kind() {
        // It has grown since.
        std::io::ErrorKind::FileTooLarge => too_large(path, error.to_string()),
        _ => CliError::io("store", path, &error),
    })?;
    Ok(ArtifactRef { sha256, bytes, ..foreseen.artifact })
}

fn too_large(path: &Path, why: String) -> CliError {
    CliError::new(Code::Artifact, format!("{} is too large", path.display())).cause(why)
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
