//! Checkpoints and trace heads as other tools of the family read and write them, and what is no good note.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::{Digest, Origin};
use baton_ledger::key::PublicKey;
use baton_ledger::note::{Checkpoint, Error, Note, Statement, TraceHead, verifier_key};
use signed_note::{Signer as _, StandardSigner, StandardVerifier, VerifierList};
use tlog_tiles::tlog::Hash;

use crate::writer::{ledger, secret, trace};

fn checkpoint() -> Checkpoint {
    Checkpoint { origin: ledger().origin, size: 1234, root: Digest([0xab; 32]) }
}

fn head() -> TraceHead {
    TraceHead { origin: ledger().origin, trace: trace(3), seq: 7, hash: Digest([0xcd; 32]) }
}

fn check(note: &[u8]) -> Result<Statement, Error> {
    let note = Note::parse(note)?;
    note.check(&ledger().origin, &ledger().key).map(|()| note.statement)
}

/// A signer of the other implementation with the n-th key.
fn signer(name: &str, n: u8) -> StandardSigner {
    let mut key = vec![1];
    key.extend_from_slice(&[n; 32]);
    let public = [&[1], secret(n).public().as_bytes().as_slice()].concat();
    let id = signed_note::key_id(name, &public);
    StandardSigner::new(&format!("PRIVATE+KEY+{name}+{id:08x}+{}", BASE64.encode(key))).unwrap()
}

fn verifiers(name: &str, key: &PublicKey) -> VerifierList {
    let origin: Origin = name.parse().unwrap();
    VerifierList::new(vec![Box::new(StandardVerifier::new(&verifier_key(&origin, key)).unwrap())])
}

#[test]
fn our_notes_are_read_and_verified_by_the_other_implementation() {
    for note in [checkpoint().sign(&secret(1)), head().sign(&secret(1))] {
        let theirs = signed_note::Note::from_bytes(note.as_bytes()).unwrap();
        let (good, unknown) = theirs.verify(&verifiers("baton/test", &ledger().key)).unwrap();
        assert_eq!((good.len(), unknown.len()), (1, 0));
        assert_eq!(theirs.to_bytes(), note.as_bytes());
        assert!(theirs.verify(&verifiers("baton/test", secret(2).public())).is_err());
        assert!(theirs.verify(&verifiers("baton/other", &ledger().key)).is_err());
    }
    let note = checkpoint().sign(&secret(1));
    let text = note.split_inclusive('\n').take(3).collect::<String>();
    let parsed = tlog_tiles::Checkpoint::from_bytes(text.as_bytes()).unwrap();
    assert_eq!((parsed.origin(), parsed.size(), parsed.hash()), ("baton/test", 1234, &Hash([0xab; 32])));
    assert_eq!(parsed.extension(), "");
}

#[test]
fn their_notes_are_read_and_verified_by_us() {
    let theirs = tlog_tiles::Checkpoint::new("baton/test", 1234, Hash([0xab; 32]), "").unwrap();
    let mut note = signed_note::Note::new(&theirs.to_bytes(), &[]).unwrap();
    let (ours, witness) = (signer("baton/test", 1), signer("witness.example/w", 8));
    note.add_sigs(&[&ours]).unwrap();
    assert_eq!(String::from_utf8(note.to_bytes()).unwrap(), checkpoint().sign(&secret(1)), "to the byte");
    // A witness before us, after us, or with our key under another name.
    for signers in [vec![&witness, &ours], vec![&ours, &witness], vec![&signer("elsewhere", 1), &ours]] {
        let mut note = signed_note::Note::new(&theirs.to_bytes(), &[]).unwrap();
        for signer in signers {
            note.add_sigs(&[signer]).unwrap();
        }
        assert_eq!(check(&note.to_bytes()), Ok(Statement::Checkpoint(checkpoint())));
    }
    let mut foreign = signed_note::Note::new(&theirs.to_bytes(), &[]).unwrap();
    foreign.add_sigs(&[&witness, &signer("baton/test", 2)]).unwrap();
    assert_eq!(check(&foreign.to_bytes()), Err(Error::Unsigned));
}

#[test]
fn statements_survive_signing() {
    assert_eq!(check(checkpoint().sign(&secret(1)).as_bytes()), Ok(Statement::Checkpoint(checkpoint())));
    assert_eq!(check(head().sign(&secret(1)).as_bytes()), Ok(Statement::TraceHead(head())));
    let ledger_head = TraceHead { trace: baton_core::TraceId::Ledger, ..head() };
    assert_eq!(check(ledger_head.sign(&secret(1)).as_bytes()), Ok(Statement::TraceHead(ledger_head)));
    let extreme = Checkpoint { size: 9_007_199_254_740_991, ..checkpoint() };
    assert_eq!(check(extreme.sign(&secret(1)).as_bytes()), Ok(Statement::Checkpoint(extreme)));
}

#[test]
fn no_bit_of_a_note_can_flip() {
    for note in [checkpoint().sign(&secret(1)), head().sign(&secret(1))] {
        for bit in 0..note.len() * 8 {
            let mut bytes = note.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&bytes).is_err(), "bit {bit}: {}", String::from_utf8_lossy(&bytes));
        }
        for end in 0..note.len() {
            assert!(check(&note.as_bytes()[..end]).is_err(), "cut at {end}");
        }
    }
}

#[test]
fn every_line_of_our_key_must_check() {
    let good = checkpoint().sign(&secret(1));
    let line = good.lines().last().unwrap();
    assert!(check(format!("{good}{line}\n").as_bytes()).is_ok(), "twice is once");
    let other = Checkpoint { size: 1, ..checkpoint() }.sign(&secret(1));
    let other = other.lines().last().unwrap();
    assert_eq!(check(format!("{good}{other}\n").as_bytes()), Err(Error::Signature));
    // Our name and key hash, but not 64 bytes.
    let hash = BASE64.decode(line.rsplit(' ').next().unwrap()).unwrap()[..4].to_vec();
    for length in [1, 63, 65, 128] {
        let bytes = [hash.clone(), vec![7; length]].concat();
        let odd = format!("{good}\u{2014} baton/test {}\n", BASE64.encode(bytes));
        assert_eq!(check(odd.as_bytes()), Err(Error::Signature), "{length}");
    }
}

#[test]
fn a_note_of_another_origin_or_key_is_refused() {
    let note = checkpoint().sign(&secret(2));
    assert_eq!(check(note.as_bytes()), Err(Error::Unsigned));
    let elsewhere = Checkpoint { origin: "baton/else".parse().unwrap(), ..checkpoint() }.sign(&secret(1));
    assert!(matches!(check(elsewhere.as_bytes()), Err(Error::Origin { .. })));
    // The text of one origin under the signature name of another.
    let mixed = checkpoint().sign(&secret(1)).replacen("baton/test\n", "baton/else\n", 1);
    assert!(matches!(check(mixed.as_bytes()), Err(Error::Origin { .. })));
}

#[test]
fn the_form_of_a_note_is_exact() {
    let good = checkpoint().sign(&secret(1));
    let [name, size, root, _, signature] = good.lines().collect::<Vec<_>>()[..] else { panic!("five lines") };
    let form = |note: String| {
        assert!(matches!(Note::parse(note.as_bytes()), Err(Error::Form(_))), "{note:?}");
    };
    for wrong in
        ["01234", "+1234", "-1", "1234 ", "", "1e3", "0x10", "9007199254740992", "99999999999999999999"]
    {
        form(format!("{name}\n{wrong}\n{root}\n\n{signature}\n"));
    }
    let short = BASE64.encode([0; 31]);
    for wrong in
        ["", "AAAA", &short, root.trim_end_matches('='), &format!("{root}="), &root.replace('=', "+")]
    {
        form(format!("{name}\n{size}\n{wrong}\n\n{signature}\n"));
    }
    for wrong in [
        "",
        "Baton",
        "/x",
        "baton test",
        "b+c",
        "baton/test/trace/",
        "baton/test/trace/x",
        "a/trace/b/trace/ledger",
        &"a".repeat(129),
    ] {
        form(format!("{wrong}\n{size}\n{root}\n\n{signature}\n"));
    }
    for wrong in [
        format!("{name}\n{size}\n{root}\n{signature}\n"),
        format!("{name}\n{size}\n\n{signature}\n"),
        format!("{name}\n{size}\n{root}\nextension\n\n{signature}\n"),
        format!("\n{name}\n{size}\n{root}\n\n{signature}\n"),
        format!("{name}\n{size}\n{root}\n\n\n{signature}\n"),
        format!("{name}\n{size}\n{root}\n\n{signature}"),
        format!("{name}\n{size}\n{root}\n\n{signature}\n\n"),
        format!("{name}\n{size}\n{root}\n\n{signature}\nmore\n"),
        format!("{name}\n{size}\n{root}\n\n"),
        format!("{name}\n{size}\n{root}\n\n\n"),
        format!("{name}\r\n{size}\r\n{root}\r\n\r\n{signature}\r\n"),
        good.replace("\u{2014} ", "- "),
        good.replace("\u{2014} ", "\u{2014}"),
        good.replace("\u{2014} baton/test ", "\u{2014}  "),
        good.replace("\u{2014} baton/test ", "\u{2014} baton/test+1 "),
    ] {
        form(wrong);
    }
}

#[test]
fn ignored_signature_lines_must_still_have_the_form_and_a_bounded_number() {
    let good = checkpoint().sign(&secret(1));
    let unknown = |bytes: usize| format!("\u{2014} someone {}\n", BASE64.encode(vec![9; bytes]));
    assert!(check(format!("{good}{}", unknown(5)).as_bytes()).is_ok());
    assert!(check(format!("{good}{}", unknown(5000)).as_bytes()).is_ok());
    for wrong in [
        unknown(4),
        unknown(0),
        "\u{2014} someone !!!!\n".into(),
        "\u{2014} some one AAAAAAA=\n".into(),
        "x\n".into(),
    ] {
        assert!(matches!(check(format!("{good}{wrong}").as_bytes()), Err(Error::Form(_))), "{wrong}");
    }
    assert!(check(format!("{good}{}", unknown(5).repeat(15)).as_bytes()).is_ok(), "sixteen lines");
    let seventeen = check(format!("{good}{}", unknown(5).repeat(16)).as_bytes());
    assert_eq!(seventeen, Err(Error::Form("at most 16 signature lines")));
}

#[test]
fn a_note_is_bounded_and_has_no_control_characters() {
    let good = checkpoint().sign(&secret(1));
    let room = 16_384 - good.len();
    // A line of 15 bytes and its base64; three more bytes are four more characters.
    let filler = |length: usize| format!("\u{2014} {} {}\n", "n".repeat(length), BASE64.encode([9; 6]));
    let exact = format!("{good}{}", filler(room - filler(0).len()));
    assert_eq!(exact.len(), 16_384);
    assert!(check(exact.as_bytes()).is_ok());
    let over = format!("{good}{}", filler(room - filler(0).len() + 1));
    assert_eq!(check(over.as_bytes()), Err(Error::Form("at most 16 KiB")));
    for control in (0..0x20u8).filter(|b| *b != b'\n') {
        let noted = format!("{good}\u{2014} some{}one AAAAAAA=\n", char::from(control));
        assert_eq!(check(noted.as_bytes()), Err(Error::Form("no control characters")), "{control}");
    }
    let latin = [good.as_bytes(), b"\xe2\x80\x94 \xff AAAAAAA=\n"].concat();
    assert_eq!(check(&latin), Err(Error::Form("UTF-8")));
}

#[test]
fn the_verifier_key_is_the_one_the_family_uses() {
    let theirs = signer("baton/test", 1);
    let ours = verifier_key(&ledger().origin, &ledger().key);
    assert!(ours.starts_with(&format!("baton/test+{:08x}+", theirs.key_id())), "{ours}");
}
