//! Requests that come again. Whoever does not know whether something was done asks for it again with the same key, and it is done once.
//!
//! Before anything is done, the key and the moment that ids are made of are written down; after it, the answer. Whoever comes after a death of Baton in
//! between finds the moment, and so the ids of the events that the request led to, if it did: the ledger tells. What is kept here is no state of its own.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use baton_core::moment::{Ids, Moment};
use baton_core::{Digest, EventId, Timestamp};
use baton_store::clock;
use serde::{Deserialize, Serialize};

use crate::asked::Answer;
use crate::limits::{ANSWER_KEPT_BYTES_MAX, ANSWERS_KEPT, ANSWERS_KEPT_BYTES_MAX, ANSWERS_KEPT_MAX};
use crate::problem::Problem;

/// What is known of requests with keys.
#[derive(Debug)]
pub struct Once {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    known: HashMap<[u8; 32], Known>,
    file: File,
    path: PathBuf,
    /// Lines in the file; those that are superseded are left out now and then.
    lines: usize,
    /// Bytes of the answers that are kept.
    bytes: usize,
}

#[derive(Debug, Clone)]
struct Known {
    digest: Digest,
    moment: Moment,
    stage: Stage,
}

#[derive(Debug, Clone)]
enum Stage {
    /// It is being done at this moment.
    Running,
    /// It was begun by a process that is no more.
    Left,
    Answered(Kept),
}

/// An answer as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    status: u16,
    kind: String,
    body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
}

/// One line of the file: that something was begun, or how it was answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    key: String,
    digest: Digest,
    at: Timestamp,
    seed: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<Kept>,
}

/// What became of a request before.
#[derive(Debug)]
pub enum Before {
    /// It comes for the first time.
    Nothing,
    /// It was begun, with this moment, and whether it was done the ledger says.
    Begun(Moment),
    Answered(Response),
}

const FILE: &str = "requests.jsonl";
/// A line is an answer, escaped, and a little.
const LINE_BYTES_MAX: u64 = 1 << 20;

impl Once {
    /// Opens what is kept in a directory. Lines that do not read, such as a last one that was cut off, are passed over.
    pub fn open(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let path = dir.join(FILE);
        let mut known = HashMap::new();
        match File::open(&path) {
            Ok(file) => load(file, &mut known)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let bytes = make_room(&mut known, usize::MAX, clock::now());
        let file = rewrite(&path, &known)?;
        let lines = known.len();
        Ok(Once { state: Mutex::new(State { known, file, path, lines, bytes }) })
    }

    /// Whether a request may be done now, and with which moment.
    pub fn begin(&self, key: [u8; 32], digest: Digest, moment: Moment) -> Result<Before, Problem> {
        let mut state = self.state();
        let now = moment.now;
        match state.known.get_mut(&key) {
            Some(known) if is_over(known.moment.now, now) => drop(state.known.remove(&key)),
            Some(known) if known.digest != digest => {
                return Err(Problem::key_reused("Idempotency-Key: it was used for another body"));
            }
            Some(known) => {
                return match &known.stage {
                    Stage::Running => Err(Problem::in_progress("the same request is being done")),
                    Stage::Answered(kept) => Ok(Before::Answered(kept.response())),
                    Stage::Left => {
                        known.stage = Stage::Running;
                        Ok(Before::Begun(known.moment))
                    }
                };
            }
            None => {}
        }
        state.bytes = {
            let bytes = state.bytes;
            make_room(&mut state.known, bytes, now)
        };
        let known = Known { digest, moment, stage: Stage::Running };
        let written = state.write(&key, &known);
        written.map_err(|error| Problem::unexpected(format!("the request cannot be kept: {error}")))?;
        state.known.insert(key, known);
        Ok(Before::Nothing)
    }

    /// Writes down another moment for a request that was begun before and not done.
    pub fn renew(&self, key: [u8; 32], moment: Moment) -> Result<(), Problem> {
        let mut state = self.state();
        let Some(known) = state.known.get_mut(&key) else { return Ok(()) };
        known.moment = moment;
        let known = known.clone();
        let written = state.write(&key, &known);
        written.map_err(|error| Problem::unexpected(format!("the request cannot be kept: {error}")))
    }

    /// Keeps the answer, and gives it.
    pub async fn end(&self, key: [u8; 32], answer: Answer) -> Answer {
        let response = match answer {
            // What failed here may not fail again, so it is not kept.
            // Nothing was done, and it comes as if for the first time.
            Err(problem) if problem.status == StatusCode::SERVICE_UNAVAILABLE => {
                self.state().known.remove(&key);
                return Err(problem);
            }
            Err(problem)
                if problem.status.is_server_error()
                    || problem.status == StatusCode::TOO_MANY_REQUESTS
                    || problem.code == "S001" =>
            {
                if let Some(known) = self.state().known.get_mut(&key) {
                    known.stage = Stage::Left;
                }
                return Err(problem);
            }
            answer => answer.unwrap_or_else(Problem::into_response),
        };
        let (head, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await;
        let bytes = bytes.map_err(|error| Problem::unexpected(format!("no answer: {error}")))?;
        let text =
            |name| head.headers.get(name).and_then(|v: &HeaderValue| v.to_str().ok()).map(str::to_owned);
        let body = String::from_utf8(bytes.to_vec()).ok().filter(|body| body.len() <= ANSWER_KEPT_BYTES_MAX);
        let mut state = self.state();
        if let Some(known) = state.known.get_mut(&key) {
            let length = body.as_ref().map_or(0, String::len);
            known.stage = match body {
                Some(body) => Stage::Answered(Kept {
                    status: head.status.as_u16(),
                    kind: text(header::CONTENT_TYPE).unwrap_or_default(),
                    etag: text(header::ETAG),
                    body,
                }),
                None => Stage::Left,
            };
            let known = known.clone();
            state.bytes += length;
            // Where it cannot be kept, the ledger still tells that it was done.
            let _ = state.write(&key, &known);
        }
        Ok(Response::from_parts(head, Body::from(bytes)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write(&mut self, key: &[u8; 32], known: &Known) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Row::of(key, known))?;
        line.push(b'\n');
        // Not synced: what a death of Baton leaves is enough, and a power cut takes at most the last seconds.
        self.file.write_all(&line)?;
        self.lines += 1;
        if self.lines > 4 * ANSWERS_KEPT_MAX {
            self.file = rewrite(&self.path, &self.known)?;
            self.lines = self.known.len();
        }
        Ok(())
    }
}

/// Forgets what is oldest where there is too much of it, and gives how many bytes of answers are left.
fn make_room(known: &mut HashMap<[u8; 32], Known>, bytes: usize, now: Timestamp) -> usize {
    let is_room =
        |known: &HashMap<_, _>, bytes| known.len() < ANSWERS_KEPT_MAX && bytes < ANSWERS_KEPT_BYTES_MAX;
    if is_room(known, bytes) {
        return bytes;
    }
    known.retain(|_, known| !is_over(known.moment.now, now));
    let mut bytes = bytes_of(known);
    let is_running = |known: &Known| matches!(known.stage, Stage::Running);
    while !is_room(known, bytes) && !known.values().all(is_running) {
        let mut ages: Vec<Timestamp> = known.values().map(|known| known.moment.now).collect();
        ages.sort_unstable();
        let middle = ages[ages.len() / 2];
        known.retain(|_, known| known.moment.now > middle || is_running(known));
        bytes = bytes_of(known);
    }
    bytes
}

fn bytes_of(known: &HashMap<[u8; 32], Known>) -> usize {
    let length = |known: &Known| match &known.stage {
        Stage::Answered(kept) => kept.body.len(),
        Stage::Running | Stage::Left => 0,
    };
    known.values().map(length).sum()
}

impl Kept {
    fn response(&self) -> Response {
        let mut response = Response::new(Body::from(self.body.clone()));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        let headers = response.headers_mut();
        let values = [(header::CONTENT_TYPE, Some(&self.kind)), (header::ETAG, self.etag.as_ref())];
        for (name, value) in values {
            if let Some(Ok(value)) =
                value.filter(|value| !value.is_empty()).map(|value| HeaderValue::from_str(value))
            {
                headers.insert(name, value);
            }
        }
        headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
        response
    }
}

impl Row {
    fn of(key: &[u8; 32], known: &Known) -> Row {
        let answer = match &known.stage {
            Stage::Answered(kept) => Some(kept.clone()),
            Stage::Running | Stage::Left => None,
        };
        let Known { digest, moment, .. } = known;
        Row {
            key: Digest(*key).to_string(),
            digest: *digest,
            at: moment.now,
            seed: hex(&moment.seed),
            answer,
        }
    }

    fn read(self) -> Option<([u8; 32], Known)> {
        let key: Digest = self.key.parse().ok()?;
        let mut seed = [0; 10];
        for (byte, pair) in seed.iter_mut().zip(self.seed.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        let stage = self.answer.map_or(Stage::Left, Stage::Answered);
        Some((key.0, Known { digest: self.digest, moment: Moment { now: self.at, seed }, stage }))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_over(at: Timestamp, now: Timestamp) -> bool {
    let age = now.unix_ms().saturating_sub(at.unix_ms());
    u128::try_from(age).is_ok_and(|age| age > ANSWERS_KEPT.as_millis())
}

fn load(file: File, known: &mut HashMap<[u8; 32], Known>) -> io::Result<()> {
    let now = clock::now();
    let mut reader = io::BufReader::new(file);
    loop {
        let mut line = Vec::new();
        if (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let row = serde_json::from_slice::<Row>(&line).ok().and_then(Row::read);
        if let Some((key, row)) = row.filter(|(_, row)| !is_over(row.moment.now, now)) {
            known.insert(key, row);
        }
    }
}

/// Writes what is known into a new file, and goes on in that.
fn rewrite(path: &Path, known: &HashMap<[u8; 32], Known>) -> io::Result<File> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&new)?;
    let mut writer = io::BufWriter::new(&mut file);
    for (key, known) in known {
        serde_json::to_writer(&mut writer, &Row::of(key, known))?;
        writer.write_all(b"\n")?;
    }
    writer.flush()?;
    drop(writer);
    fs::rename(&new, path)?;
    Ok(file)
}

/// The ids that the first events of a decision have, where they were made of this moment.
pub fn first_events(moment: Moment) -> impl Iterator<Item = EventId> {
    let mut ids = Ids::new(moment);
    (0..EVENTS_LOOKED_FOR).map(move |_| ids.event())
}

/// A decision makes ids of other things too, and its first event is among these.
const EVENTS_LOOKED_FOR: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked::json;

    fn moment(ms: i64) -> Moment {
        Moment { now: Timestamp::nearest(clock::now().unix_ms() + ms), seed: [7; 10] }
    }

    const KEY: [u8; 32] = [1; 32];

    fn digest(n: u8) -> Digest {
        Digest([n; 32])
    }

    #[test]
    fn the_same_request_is_done_once_and_another_body_is_another_request() {
        let dir = tempfile::tempdir().unwrap();
        let once = Once::open(dir.path()).unwrap();
        assert!(matches!(once.begin(KEY, digest(1), moment(0)), Ok(Before::Nothing)));
        assert_eq!(once.begin(KEY, digest(1), moment(1)).unwrap_err().code, "W012");
        let answer = Ok(json(StatusCode::CREATED, &serde_json::json!({"a": 1})));
        futures::executor::block_on(once.end(KEY, answer)).unwrap();
        let again = |once: &Once| match once.begin(KEY, digest(1), moment(2)) {
            Ok(Before::Answered(response)) => response.status(),
            other => panic!("{other:?}"),
        };
        assert_eq!(again(&once), StatusCode::CREATED);
        assert_eq!(once.begin(KEY, digest(2), moment(3)).unwrap_err().code, "W011");
        let once = Once::open(dir.path()).unwrap();
        assert_eq!(again(&once), StatusCode::CREATED, "also after a restart");
    }

    #[test]
    fn what_a_death_cut_short_is_found_with_its_moment() {
        let dir = tempfile::tempdir().unwrap();
        let began = moment(0);
        Once::open(dir.path()).unwrap().begin(KEY, digest(1), began).unwrap();
        fs::OpenOptions::new()
            .append(true)
            .open(dir.path().join(FILE))
            .unwrap()
            .write_all(b"{\"key\":\"ab")
            .unwrap();
        let once = Once::open(dir.path()).unwrap();
        let Ok(Before::Begun(found)) = once.begin(KEY, digest(1), moment(5)) else { panic!() };
        assert_eq!((found.now, found.seed), (began.now, began.seed));
        assert_eq!(once.begin(KEY, digest(1), moment(6)).unwrap_err().code, "W012");
        // A failure of ours is no answer.
        let failed = futures::executor::block_on(once.end(KEY, Err(Problem::unexpected("disk"))));
        failed.unwrap_err();
        assert!(matches!(once.begin(KEY, digest(1), moment(7)), Ok(Before::Begun(_))));
        // Not done then, it is done now, with the time of now; also for whoever comes after another death.
        let now = moment(3_600_000);
        once.renew(KEY, now).unwrap();
        let once = Once::open(dir.path()).unwrap();
        let Ok(Before::Begun(found)) = once.begin(KEY, digest(1), moment(8)) else { panic!() };
        assert_eq!(found.now, now.now);
        // Turned away at the door, nothing was begun.
        let ending = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "W016", "the server ends");
        futures::executor::block_on(once.end(KEY, Err(ending))).unwrap_err();
        assert!(matches!(once.begin(KEY, digest(1), moment(9)), Ok(Before::Nothing)));
    }

    #[test]
    fn what_is_kept_is_bounded_in_bytes_and_the_oldest_goes_first() {
        let dir = tempfile::tempdir().unwrap();
        let once = Once::open(dir.path()).unwrap();
        let key = |n: u16| {
            let mut key = [0; 32];
            key[..2].copy_from_slice(&n.to_be_bytes());
            key
        };
        let body = serde_json::Value::from("x".repeat(ANSWER_KEPT_BYTES_MAX - 2));
        let count = u16::try_from(ANSWERS_KEPT_BYTES_MAX / ANSWER_KEPT_BYTES_MAX).unwrap() + 8;
        for n in 0..count {
            once.begin(key(n), digest(1), moment(i64::from(n))).unwrap();
            futures::executor::block_on(once.end(key(n), Ok(json(StatusCode::OK, &body)))).unwrap();
        }
        let bytes = once.state().bytes;
        assert!(bytes <= ANSWERS_KEPT_BYTES_MAX + ANSWER_KEPT_BYTES_MAX, "{bytes}");
        assert!(matches!(once.begin(key(count - 1), digest(1), moment(0)), Ok(Before::Answered(_))));
        assert!(matches!(once.begin(key(0), digest(1), moment(0)), Ok(Before::Nothing)));
        drop(once);
        let once = Once::open(dir.path()).unwrap();
        assert!(matches!(once.begin(key(count - 1), digest(1), moment(0)), Ok(Before::Answered(_))));
    }

    #[test]
    fn a_day_later_a_key_is_free_again() {
        let dir = tempfile::tempdir().unwrap();
        let once = Once::open(dir.path()).unwrap();
        once.begin(KEY, digest(1), moment(-2 * 24 * 3_600_000)).unwrap();
        assert!(matches!(once.begin(KEY, digest(2), moment(0)), Ok(Before::Nothing)));
    }
}
