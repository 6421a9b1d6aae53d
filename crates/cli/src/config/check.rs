//! What concerns several keys at once: keys that need each other, what each harness needs, names that must exist.

use baton_core::roles::{OPERATOR, OWN_AGENT, RULES, VERIFIER};

use super::read::{Agent, Origin, Resolved, Setting, did_you_mean};
use super::table::{AGENT, HARNESSES};
use super::value::Value;
use crate::error::CliError;

/// The agent that is always there.
pub(super) const MOCK: &str = "mock";

/// Names that agents act under without being configured: Baton itself, and the person at the terminal.
pub(super) const TAKEN: [&str; 4] = [OWN_AGENT, OPERATOR, RULES, VERIFIER];

/// Keys that only work together: a section and two names in it.
const PAIRS: [(&str, &str, &str); 2] =
    [("server", "tls.cert", "tls.key"), ("notify", "webhook.url", "webhook.secret_env")];

/// What each harness cannot do without.
pub(super) const NEEDS: [(&str, &[&str]); 4] =
    [("acp", &["command"]), ("exec", &["command"]), ("llm", &["api", "model"]), ("mock", &[])];

/// Judges the whole, and completes the agent that is always there.
pub(super) fn check(resolved: &mut Resolved) -> Result<(), CliError> {
    for (section, one, other) in PAIRS {
        let values = &resolved.sections[section];
        for (here, missing) in [(one, other), (other, one)] {
            if let (Some(setting), None) = (values.get(here), values.get(missing)) {
                return Err(setting
                    .origin
                    .fail(format!("{section}.{here} needs {section}.{missing} beside it")));
            }
        }
    }
    for (name, agent) in &mut resolved.agents {
        let name = name.as_str();
        if TAKEN.contains(&name) {
            let what = format!("agents.{name}: this name is taken by Baton itself; choose another");
            return Err(agent.place.fail(what));
        }
        if name == MOCK {
            complete_mock(agent)?;
        }
        check_agent(name, agent)?;
    }
    for (role, setting) in &resolved.sections["team"] {
        let Value::Text(agent) = &setting.value else { continue };
        let mut names = resolved.agents.keys().map(|name| name.as_str());
        if !names.any(|name| name == agent) {
            let near = did_you_mean(agent, resolved.agents.keys().map(|name| name.as_str()));
            return Err(setting.origin.fail(format!("team.{role}: there is no [agents.{agent}]{near}")));
        }
    }
    Ok(())
}

/// The mock agent needs no word about its harness, and has no other.
fn complete_mock(agent: &mut Agent) -> Result<(), CliError> {
    let mock = Value::Text(MOCK.to_owned());
    match agent.values.get("harness") {
        Some(setting) if setting.value != mock => {
            let what = format!(
                "agents.mock.harness: expected \"mock\", got {}; the agent `mock` is the built-in one",
                setting.value.to_toml()
            );
            Err(setting.origin.fail(what))
        }
        Some(_) => Ok(()),
        None => {
            agent.values.insert("harness", Setting { value: mock, origin: Origin::BuiltIn });
            Ok(())
        }
    }
}

fn check_agent(name: &str, agent: &mut Agent) -> Result<(), CliError> {
    let Some(Value::Text(harness)) = agent.values.get("harness").map(|setting| setting.value.clone()) else {
        let what = format!("agents.{name}: needs `harness`, one of {}", HARNESSES.join(", "));
        return Err(agent.place.fail(what));
    };
    for key in AGENT.iter().filter(|key| !key.only.is_empty() && !key.only.contains(&harness.as_str())) {
        // What is built in for another harness is not there for this one.
        if let Some(setting) = agent.values.remove(key.name)
            && setting.origin != Origin::BuiltIn
        {
            let what = format!(
                "agents.{name}.{}: only goes with harness {}, and this one is {harness}",
                key.name,
                key.only.join(" or ")
            );
            return Err(setting.origin.fail(what));
        }
    }
    let needs = NEEDS.iter().filter(|(of, _)| *of == harness).flat_map(|(_, keys)| keys.iter());
    for key in needs {
        if !agent.values.contains_key(key) {
            return Err(agent.place.fail(format!("agents.{name}: harness {harness} needs `{key}`")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_harness_says_what_it_needs() {
        assert!(HARNESSES.iter().all(|harness| NEEDS.iter().any(|(of, _)| of == harness)));
        for (harness, needs) in NEEDS {
            for need in needs {
                let key = AGENT.iter().find(|key| key.name == *need).unwrap();
                assert!(key.only.contains(&harness), "{harness} {need}");
            }
        }
    }
}
