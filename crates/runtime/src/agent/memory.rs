//! Whether the kernel ended something for want of memory: a count that only rises.

/// Processes that the kernel has ended for want of memory: in this control group where that is known, else on this machine.
///
/// Not whose they were: together with a kill that nobody here sent, a count that has risen is evidence enough.
pub(super) fn kernel_kills() -> Option<u64> {
    let group = std::fs::read_to_string("/proc/self/cgroup").ok();
    let group = group.as_deref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("0::")));
    let events = group.map(|group| format!("/sys/fs/cgroup{}/memory.events", group.trim_end_matches('/')));
    let events = events.and_then(|path| std::fs::read_to_string(path).ok());
    let events = events.or_else(|| std::fs::read_to_string("/proc/vmstat").ok())?;
    count(&events)
}

fn count(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_either_file() {
        assert_eq!(count("low 0\noom 3\noom_kill 2\noom_group_kill 9\n"), Some(2));
        assert_eq!(count("nr_free_pages 1\noom_kill 7\n"), Some(7));
        assert_eq!(count("nothing of the kind\n"), None);
    }
}
