//! Variables that look like settings and are none.

use super::table::{Key, SECTIONS, TABLE};
use baton_core::nearest::nearest;

/// The variable that was probably meant by one that begins like a section's and sets nothing. Others have names of that kind too (an agent
/// is told its session), so this is no error.
pub(crate) fn misspelt(name: &str) -> Option<String> {
    let known: Vec<String> = TABLE.iter().filter_map(Key::variable).collect();
    let section = SECTIONS.iter().find(|(section, _)| {
        name.strip_prefix("BATON_")
            .and_then(|rest| rest.strip_prefix(&section.to_ascii_uppercase()))
            .is_some_and(|rest| rest.starts_with('_'))
    });
    let (section, _) = section.filter(|_| !known.iter().any(|variable| variable == name))?;
    let skipped = "BATON_".len() + section.len() + 1;
    let keys =
        known.iter().filter(|variable| variable.len() > skipped && variable[..skipped] == name[..skipped]);
    let near = nearest(&name[skipped..], keys.map(|variable| &variable[skipped..]), 1).first().copied()?;
    Some(format!("{}{near}", &name[..skipped]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_variables_are_noticed_and_those_of_others_are_left_alone() {
        assert_eq!(misspelt("BATON_SCHEDULER_POL").as_deref(), Some("BATON_SCHEDULER_POLL"));
        assert_eq!(misspelt("BATON_SERVER_TLS_CRT").as_deref(), Some("BATON_SERVER_TLS_CERT"));
        for name in [
            "BATON_SCHEDULER_POLL",
            "BATON_SESSION_ID",
            "BATON_DATA_DIR",
            "BATON_SEED",
            "BATON_SERVER",
            "BATON_",
            "BATON_CI_",
            "PATH",
        ] {
            assert_eq!(misspelt(name), None, "{name}");
        }
    }
}
