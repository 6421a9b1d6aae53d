//! What is read, from which layer, and what each mistake is called.

use super::*;

/// The user's file, the data directory's, variables, flags.
#[derive(Default)]
struct Case<'a> {
    user: Option<&'a str>,
    data: Option<&'a str>,
    variables: &'a [(&'a str, &'a str)],
    flags: &'a [(&'a str, &'a str)],
}

impl Case<'_> {
    fn resolve(&self) -> Result<Resolved, CliError> {
        let files = [("config.toml", self.user), ("baton.toml", self.data)];
        let files = files.into_iter().filter_map(|(path, text)| Some(Rc::new(Source::new(path, text?))));
        let variable = |name: &str| {
            let found = self.variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let flags = self.flags.iter();
        let flags: Vec<Flag> = flags
            .map(|(path, value)| Flag { flag: "--set", path: (*path).into(), value: (*value).into() })
            .collect();
        resolve(&Layers { files: files.collect(), variable: &variable, flags: &flags })
    }

    fn shown(&self, path: &str) -> String {
        let resolved = self.resolve().unwrap();
        let key = TABLE.iter().find(|key| key.path() == path).unwrap();
        let setting = resolved.get(key).unwrap();
        format!("{} from {}", setting.value.to_toml(), setting.origin)
    }
}

fn read(text: &str) -> Result<Resolved, CliError> {
    Case { data: Some(text), ..Case::default() }.resolve()
}

#[track_caller]
fn refused(text: &str, what: &str, place: &str) {
    let error = read(text).unwrap_err();
    assert_eq!((error.what.as_str(), error.causes[0].as_str()), (what, place), "{text}");
    assert_eq!(error.code, Code::Config);
}

#[test]
fn each_layer_hides_the_ones_below_it() {
    let user = Some("[scheduler]\npoll = \"1s\"\n");
    let data = Some("# first\n[scheduler]\npoll = \"2s\"\n");
    let variables = &[("BATON_SCHEDULER_POLL", "3s")][..];
    let flags = &[("scheduler.poll", "4s")][..];
    let check = |case: Case<'_>, expected: &str| assert_eq!(case.shown("scheduler.poll"), expected);
    check(Case::default(), "\"30s\" from built in");
    check(Case { user, ..Case::default() }, "\"1s\" from config.toml:2");
    check(Case { user, data, ..Case::default() }, "\"2s\" from baton.toml:3");
    check(Case { user, data, variables, ..Case::default() }, "\"3s\" from BATON_SCHEDULER_POLL");
    check(Case { user, data, variables, flags }, "\"4s\" from --set");
    check(Case { user, flags, ..Case::default() }, "\"4s\" from --set");
    // Key by key: what a higher layer does not say stays.
    let both = Case { user: Some("scheduler.max_attempts = 7"), data, ..Case::default() };
    assert_eq!(both.shown("scheduler.max_attempts"), "7 from config.toml:1");
}

#[test]
fn a_mistake_counts_also_where_a_higher_layer_hides_it() {
    let flags = &[("scheduler.poll", "4s")][..];
    assert!(Case { user: Some("scheduler.poll = 1"), flags, ..Case::default() }.resolve().is_err());
}

#[test]
fn tables_may_be_written_in_every_way_that_toml_has() {
    for text in [
        "[server]\ntls = { cert = \"c\", key = \"k\" }\n",
        "[server.tls]\ncert = \"c\"\nkey = \"k\"\n",
        "server.tls.cert = \"c\"\nserver.tls.key = \"k\"\n",
        "\u{feff}[server]\r\ntls.cert = \"c\"\r\ntls.key = \"k\"\r\n",
    ] {
        assert_eq!(
            Case { data: Some(text), ..Case::default() }.shown("server.tls.key")[..3],
            *"\"k\"",
            "{text:?}"
        );
    }
}

#[test]
fn unknown_names_say_which_one_is_near() {
    refused("[leger]\n", "unknown section [leger]; did you mean `ledger`?", "baton.toml:1:2");
    refused(
        "[ledger]\nsegment_byte = 5\n",
        "unknown key `segment_byte` in [ledger]; did you mean `segment_bytes`?",
        "baton.toml:2:1",
    );
    refused(
        "[server.tls]\ncrt = \"x\"\n",
        "unknown key `crt` in [server.tls]; did you mean `cert`?",
        "baton.toml:2:1",
    );
    refused(
        "[agents.x]\nharnes = \"acp\"\n",
        "unknown key `harnes` in [agents.x]; did you mean `harness`?",
        "baton.toml:2:1",
    );
    refused(
        "[agents.x.deadlines]\nhandshaek = \"1s\"\n",
        "unknown key `handshaek` in [agents.x.deadlines]; did you mean `handshake`?",
        "baton.toml:2:1",
    );
    refused("[store]\ncolour = 1\n", "unknown key `colour` in [store]; known are url", "baton.toml:2:1");
    // Below a key that is a value there is nothing.
    refused(
        "[ledger.durability]\nx = 1\n",
        "ledger.durability: expected \"commit\", \"interval\" or \"none\", got [ledger.durability]",
        "baton.toml:1:1",
    );
}

#[test]
fn wrong_values_say_key_expected_and_got() {
    refused(
        "[ledger]\nsegment_bytes = 4095\n",
        "ledger.segment_bytes: expected an integer of at least 4096, got 4095",
        "baton.toml:2:17",
    );
    refused(
        "[scheduler]\nmax_concurrent = 257\n",
        "scheduler.max_concurrent: expected an integer from 1 to 256, got 257",
        "baton.toml:2:18",
    );
    refused(
        "[scheduler]\npoll = 30\n",
        "scheduler.poll: expected a duration such as \"1h30m\", from \"10ms\" to \"1d\", got 30",
        "baton.toml:2:8",
    );
    refused(
        "[ledger]\ndurability = true\n",
        "ledger.durability: expected \"commit\", \"interval\" or \"none\", got true",
        "baton.toml:2:14",
    );
    refused("[policy]\nguarded = 1\n", "policy.guarded: expected true or false, got 1", "baton.toml:2:11");
    refused(
        "[telemetry]\notlp_endpoint = \"x\"\n",
        "telemetry.otlp_endpoint: expected a URL, \"http://…\" or \"https://…\", got \"x\"",
        "baton.toml:2:17",
    );
    refused(
        "[ci]\ncommand = 1\n",
        "ci.command: expected a text for `sh -c`, or an array of a program and its arguments, got 1",
        "baton.toml:2:11",
    );
    refused(
        "[ci]\ncommand = [\"a\", 2]\n",
        "ci.command[1]: expected a text of 1 to 4096 characters, got 2",
        "baton.toml:2:17",
    );
    refused(
        "[session]\ntool_timeouts = { bash = \"5\" }\n",
        "session.tool_timeouts.bash: expected a duration such as \"1h30m\", from \"100ms\" to \"7d\", got \"5\"",
        "baton.toml:2:26",
    );
    refused(
        "[policy]\ncritics = [\"rules\", \"dog\"]\n",
        "policy.critics[1]: expected \"agent\", \"person\" or \"rules\", got \"dog\"",
        "baton.toml:2:21",
    );
    refused(
        "[agents.x]\nharness = \"llm\"\nenv = { \"A-B\" = \"x\" }\n",
        "agents.x.env: expected a key that is the name of an environment variable (A-Z a-z 0-9 _), got \"A-B\"",
        "baton.toml:3:9",
    );
    refused("ledger = 3\n", "ledger: expected a table, got integer", "baton.toml:1:10");
    refused("server.tls = 3\n", "server.tls: expected a table, got integer", "baton.toml:1:14");
    refused("[agents]\nx = 3\n", "agents.x: expected a table, got integer", "baton.toml:2:5");
    for text in [
        "[ledger\n",
        "[ledger]\ncheckpoint_every = 0\n",
        "[ledger]\ncheckpoint_every = 99999999999999999999\n",
        "[ledger]\ncheckpoint_every = 1.0\n",
        "[ledger]\ncheckpoint_every = 1\ncheckpoint_every = 2\n",
        "[ledger]\n[ledger]\n",
        "[[ledger]]\n",
        "[ci]\ncommand = []\n",
        "[ci]\ncommand = \"\"\n",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn variables_and_flags_say_the_same_about_their_values() {
    let variables =
        |name, value| Case { variables: &[(name, value)], ..Case::default() }.resolve().unwrap_err();
    let error = variables("BATON_SCHEDULER_MAX_ATTEMPTS", "many");
    assert_eq!(error.what, "BATON_SCHEDULER_MAX_ATTEMPTS: expected an integer from 1 to 100, got \"many\"");
    assert_eq!(error.hint.as_deref(), Some("unset BATON_SCHEDULER_MAX_ATTEMPTS"));
    let error = variables("BATON_TELEMETRY_OTLP_ENDPOINT", "mysql://me:pw@db");
    assert!(error.what.ends_with("got a URL with credentials"), "{}", error.what);
    let flags = |name, value| Case { flags: &[(name, value)], ..Case::default() }.resolve().unwrap_err();
    assert_eq!(
        flags("scheduler.pol", "1s").what,
        "--set: unknown key `scheduler.pol`; did you mean `scheduler.poll`?"
    );
    assert_eq!(flags("policy.guarded", "2").what, "--set: policy.guarded: expected true or false, got \"2\"");
    assert_eq!(flags("agents.x.model", "m").what, "--set: agents are configured in a file");
    let not_text = |_: &str| {
        use std::os::unix::ffi::OsStringExt as _;
        Some(OsString::from_vec(vec![0xff]))
    };
    let error = resolve(&Layers { files: Vec::new(), variable: &not_text, flags: &[] }).unwrap_err();
    assert!(error.what.ends_with("got what is not UTF-8"), "{}", error.what);
}

#[test]
fn every_variable_of_the_table_is_read() {
    for key in TABLE {
        let variable = key.variable().unwrap();
        let resolved = Case { variables: &[(&variable, "\u{1}")], ..Case::default() }.resolve().map(|_| ());
        // A command may be any text, and so may a path; those only come alone.
        let is_free = ["command", "home_read", "tls.cert", "tls.key"].contains(&key.name);
        assert!(resolved.is_err() || is_free, "{variable}");
    }
}

#[test]
fn passwords_are_refused_in_files_and_taken_from_variables() {
    let text = "[telemetry]\notlp_endpoint = \"http://me:hunter2@db/x\"\n";
    let error = read(text).unwrap_err();
    assert!(error.what.contains("BATON_TELEMETRY_OTLP_ENDPOINT may"), "{}", error.what);
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    let error = read("[telemetry]\notlp_endpoint = \"htp://me:hunter2@db/x\"\n").unwrap_err();
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    let variables = &[("BATON_TELEMETRY_OTLP_ENDPOINT", "http://me:hunter2@db/x")][..];
    let resolved = Case { variables, ..Case::default() }.resolve().unwrap();
    assert_eq!(resolved.settings().telemetry.otlp_endpoint.as_deref(), Some("http://me:hunter2@db/x"));
}

#[test]
fn another_place_for_the_ledger_is_refused_wherever_it_is_said() {
    let url = "postgres://me:hunter2@db/x";
    let file = read(&format!("[store]\nurl = \"{url}\"\n")).unwrap_err();
    let variable = Case { variables: &[("BATON_STORE_URL", url)], ..Case::default() }.resolve().unwrap_err();
    let flag = Case { flags: &[("store.url", url)], ..Case::default() }.resolve().unwrap_err();
    for error in [file, variable, flag] {
        assert!(error.what.contains("not used by this version"), "{}", error.what);
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}

#[test]
fn harnesses_get_what_they_need_and_nothing_else() {
    for (text, what) in [
        ("[agents.x]\nmode = \"a\"\n", "agents.x: needs `harness`, one of acp, llm, exec, mock"),
        ("[agents.x]\nharness = \"acp\"\n", "agents.x: harness acp needs `command`"),
        ("[agents.x]\nharness = \"exec\"\n", "agents.x: harness exec needs `command`"),
        ("[agents.x]\nharness = \"llm\"\nmodel = \"m\"\n", "agents.x: harness llm needs `api`"),
        ("[agents.x]\nharness = \"llm\"\napi = \"openai\"\n", "agents.x: harness llm needs `model`"),
        (
            "[agents.x]\nharness = \"mock\"\nmodel = \"m\"\n",
            "agents.x.model: only goes with harness llm, and this one is mock",
        ),
        (
            "[agents.x]\nharness = \"llm\"\napi = \"openai\"\nmodel = \"m\"\ncommand = [\"c\"]\n",
            "agents.x.command: only goes with harness acp or exec, and this one is llm",
        ),
        (
            "[agents.x]\nharness = \"acp\"\ncommand = \"opencode acp\"\n",
            "agents.x.command: expected an array of a program and its arguments, got \"opencode acp\"",
        ),
        (
            "[agents.mock]\nharness = \"acp\"\ncommand = [\"x\"]\n",
            "agents.mock.harness: expected \"mock\", got \"acp\"; the agent `mock` is the built-in one",
        ),
        (
            "[agents.Big]\nharness = \"mock\"\n",
            "agents: expected an agent name (a-z 0-9, then also . _ -, at most 64), got \"Big\"",
        ),
        (
            "[agents.baton]\nharness = \"mock\"\n",
            "agents.baton: this name is taken by Baton itself; choose another",
        ),
        ("[team]\ncritic = \"mokc\"\n", "team.critic: there is no [agents.mokc]; did you mean `mock`?"),
        ("[server.tls]\ncert = \"c\"\n", "server.tls.cert needs server.tls.key beside it"),
        (
            "[notify]\nwebhook = { url = \"https://x\" }\n",
            "notify.webhook.url needs notify.webhook.secret_env beside it",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.what, what);
        assert!(error.causes[0].starts_with("baton.toml:"), "{error:?}");
    }
    read("[agents.mock]\nexit_protocol = true\n").unwrap();
    read("[agents.mock]\nharness = \"mock\"\n[team]\ncritic = \"mock\"\n").unwrap();
}

#[test]
fn an_agent_may_be_spread_over_both_files() {
    let case = Case {
        user: Some("[agents.x]\nharness = \"acp\"\ncommand = [\"old\"]\nenv_pass = [\"KEY\"]\n"),
        data: Some("[agents.x]\ncommand = [\"new\"]\n"),
        ..Case::default()
    };
    let settings = case.resolve().unwrap().settings();
    let agent = &settings.agents[&"x".parse().unwrap()];
    assert_eq!(format!("{:?}", agent.harness), "Acp { command: [\"new\"] }");
    assert_eq!(agent.env_pass, ["KEY"]);
}

#[test]
fn hostile_files_are_refused_in_bounded_words() {
    let deep = [
        format!("x = {}", "[".repeat(100_000)),
        format!("[policy]\ncritics = {}{}", "[".repeat(1000), "]".repeat(1000)),
        format!("x = {}", "{a=".repeat(100_000)),
        format!("{}b = 1", "a.".repeat(100_000)),
        format!("[{}b]", "a.".repeat(100_000)),
        format!("[agents.x]\n{}b = 1", "deadlines.".repeat(100_000)),
        format!("{} = 1", "k".repeat(1 << 20)),
        format!("[ledger]\ndurability = \"{}\"", "v".repeat(1 << 20)),
        format!("[agents.{}]", "n".repeat(1 << 20)),
        format!("[ci]\ncommand = [{}]", "\"x\",".repeat(10_000)),
        "[ledger]\ndurability = \"\u{0}\"".to_owned(),
        "\"a\\u001b[31m\" = 1".to_owned(),
        "a = \"\\ud800\"".to_owned(),
    ];
    for text in &deep {
        let error = read(text).unwrap_err();
        let words: usize = error.what.len() + error.causes.iter().map(String::len).sum::<usize>();
        assert!(words < 1000, "{} bytes for {}…", words, &text[..40.min(text.len())]);
    }
}
