//! Real agents at work on tasks, by way of the commands that people use: `make agents` installs them and names them in the environment.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::ChildStdout;
use std::time::{Duration, Instant};

use baton_testkit::model_server::ModelServer;
use baton_testkit::real_agents::{AGENTS, Installed};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::conducted::expect_accounted;
use crate::runs::configure;
use crate::support::{Home, finish, until};

/// A data directory whose configuration has one real agent.
struct Tried {
    name: &'static str,
    home: Home,
    server: ModelServer,
}

fn each(test: impl Fn(&Tried)) {
    for (name, find) in AGENTS {
        let (home, server) = (Home::new(), ModelServer::start().unwrap());
        let Some(Installed { words, env, mode }) = find(&home.path("agent"), &server).unwrap() else {
            continue;
        };
        println!("{name}");
        let quoted = |text: &String| format!("{text:?}");
        let words: Vec<String> = words.iter().map(quoted).collect();
        let env: Vec<String> = env.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
        let mode = mode.map(|mode| format!("mode = {mode:?}\n")).unwrap_or_default();
        let config = format!(
            "[agents.{name}]\nharness = \"acp\"\ncommand = [{}]\nenv = {{ {} }}\n{mode}\
             deadlines = {{ handshake = \"2m\" }}\n",
            words.join(", "),
            env.join(", ")
        );
        fs::write(home.data().join("baton.toml"), config).unwrap();
        test(&Tried { name, home, server });
    }
}

impl Tried {
    /// Runs and gives the last object that was printed.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let words = [&["run", "--agent", self.name, "--yes", "--json"], arguments].concat();
        let ended = self.home.run(&words);
        let last = ended.stdout.lines().last().unwrap_or_else(|| panic!("{}: {}", self.name, ended.stderr));
        (ended.code, serde_json::from_str(last).unwrap())
    }

    fn task(&self, id: &str) -> Value {
        let shown = self.home.run(&["task", "show", id, "--json"]);
        shown.expect(0);
        serde_json::from_str(&shown.stdout).unwrap()
    }

    /// The process of the only session that lives.
    fn process(&self) -> Pid {
        let sessions: Vec<PathBuf> = fs::read_dir(self.home.data().join("sessions"))
            .unwrap()
            .map(|entry| entry.unwrap().path().join("session.json"))
            .collect();
        let kept = sessions.iter().filter_map(|path| fs::read(path).ok());
        let mut live = kept
            .map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap())
            .filter(|session| session["endedAt"].is_null());
        let pid = live.next().unwrap()["process"]["pid"].as_i64().unwrap();
        assert!(live.next().is_none(), "only one lives");
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }
}

/// Reads objects until one has this type.
fn until_type(output: &mut BufReader<ChildStdout>, wanted: &str) -> Value {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "no {wanted} came");
        let object: Value = serde_json::from_str(&line).unwrap();
        if object["type"] == wanted {
            return object;
        }
    }
}

#[test]
#[ignore = "needs real agents: make agents"]
fn a_real_agent_reports_its_task_as_done_with_batons_own_tool() {
    each(|tried| {
        let (code, end) = tried.run(&["complete"]);
        let seen: Vec<String> = tried.server.seen().into_iter().map(|seen| format!("{seen:?}")).collect();
        assert_eq!(end["outcome"], "done", "{}: {end}\n{seen:#?}", tried.name);
        assert_eq!(code, Some(0), "{}", tried.name);
        let id = end["taskId"].as_str().unwrap();
        let task = tried.task(id);
        assert_eq!(task["status"], "review", "{}: {task}", tried.name);
        let summary = tried.home.data().join(format!("tasks/review/{id}/outputs/summary.md"));
        assert_eq!(fs::read_to_string(summary).unwrap(), "Done as asked.\n", "{}", tried.name);
        assert_eq!(end["terminationInfo"]["reason"], "terminated", "{}: Baton ended it", tried.name);
        tried.home.run(&["verify"]).expect(0);
    });
}

#[test]
#[ignore = "needs real agents: make agents"]
fn a_real_agent_that_is_killed_costs_an_attempt_and_the_next_one_works() {
    each(|tried| {
        let words = ["run", "--agent", tried.name, "--yes", "--json", "slow"];
        let mut child = tried.home.command(&words).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        until_type(&mut output, "text_delta");
        let killed = Instant::now();
        kill_process_group(tried.process(), Signal::KILL).unwrap();
        let end = until_type(&mut output, "run.ended");
        assert!(killed.elapsed() < Duration::from_secs(5), "{}: {:?}", tried.name, killed.elapsed());
        assert_eq!(finish(child, None).code, Some(6), "{}: the agent failed", tried.name);
        assert_eq!(end["outcome"], "failed", "{}: {end}", tried.name);
        let termination = &end["terminationInfo"];
        assert_eq!(
            (&termination["reason"], &termination["terminated_by"], &termination["cause"]),
            (&"error".into(), &"agent".into(), &"crash".into()),
            "{}: {termination}",
            tried.name
        );
        assert_eq!(termination["signal"]["number"], 9, "{}", tried.name);
        let id = end["taskId"].as_str().unwrap();
        let task = tried.task(id);
        assert_eq!((&task["status"], &task["attempts"]), (&"ready".into(), &1.into()), "{}", tried.name);
        tried.home.run(&["task", "edit", id, "--title", "complete"]).expect(0);
        let (code, end) = tried.run(&["--task", id]);
        assert_eq!((code, &end["outcome"]), (Some(0), &"done".into()), "{}: {end}", tried.name);
        assert_eq!(tried.task(id)["status"], "review", "{}", tried.name);
        tried.home.run(&["verify"]).expect(0);
    });
}

#[test]
#[ignore = "needs real agents: make agents"]
fn baton_that_is_killed_leaves_no_real_agent_behind_and_begins_anew() {
    each(|tried| {
        let words = ["run", "--agent", tried.name, "--yes", "--json", "slow"];
        let mut child = tried.home.command(&words).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        until_type(&mut output, "text_delta");
        let process = tried.process();
        child.kill().unwrap();
        child.wait().unwrap();
        let list = tried.home.json(&["task", "ls"]);
        let id = list["tasks"][0]["id"].as_str().unwrap().to_owned();
        // Whoever owns the directory next sees to it; a task that waits is worked on again.
        tried.home.run(&["task", "edit", &id, "--title", "complete"]).expect(0);
        let (code, end) = tried.run(&["--task", &id]);
        assert_eq!((code, &end["outcome"]), (Some(0), &"done".into()), "{}: {end}", tried.name);
        until("its process is gone", || kill_process_group(process, Signal::CONT).is_err());
        tried.home.run(&["verify"]).expect(0);
    });
}

#[test]
#[ignore = "needs real agents: make agents"]
fn a_real_agent_executes_a_guarded_task_and_its_tools_wait_for_their_reviews() {
    each(|tried| {
        let home = &tried.home;
        let exe = env!("CARGO_BIN_EXE_baton");
        for name in ["ada", "cleo"] {
            configure(
                home,
                &format!("[agents.{name}]\nharness = \"acp\"\ncommand = [{exe:?}, \"mock-agent\"]\n"),
            );
        }
        configure(
            home,
            &format!("[team]\nplanner = \"ada\"\nexecutor = {:?}\ncritic = \"cleo\"\n", tried.name),
        );
        for (name, is_written) in [("good.txt", true), ("forbidden.txt", false)] {
            // Some take whole paths only.
            let file = home.work().join(name);
            let task = home.guarded(&format!("write {} fine", file.display()));
            let (_, end) = tried.run(&["--task", &task]);
            let events = home.told(&home.guard_of(&task));
            let shown = home.run(&["trace", "show", &home.guard_of(&task)]).stdout;
            expect_accounted(&events);
            assert_eq!(file.exists(), is_written, "{}: {end}\n{shown}", tried.name);
            let verified = home.last(&task, "task.verified");
            let state = if is_written { "completed" } else { "failed" };
            assert_eq!(verified["payload"]["state"], state, "{}: {end}\n{shown}", tried.name);
            if is_written {
                assert_eq!(verified["payload"]["verdict"], "pass", "{}: {shown}", tried.name);
                home.run(&["verify", &home.guard_of(&task)]).expect(0);
            }
            println!("{}: {name}: {state}", tried.name);
        }
        home.run(&["verify"]).expect(0);
    });
}
