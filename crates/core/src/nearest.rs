//! The name that was probably meant.

/// Up to `limit` of the known names, nearest first; those that resemble the given one too little are left out.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, limit: usize) -> Vec<&'a str> {
    let name = name.to_ascii_lowercase();
    let mut close: Vec<(usize, &str)> = known
        .into_iter()
        .map(|known| (distance(&name, &known.to_ascii_lowercase()), known))
        .filter(|(distance, known)| *distance <= known.chars().count().max(3) / 2)
        .collect();
    close.sort_unstable();
    close.into_iter().take(limit).map(|(_, known)| known).collect()
}

/// Edits between two words: insertions, deletions, replacements and exchanges of neighbours.
fn distance(a: &str, b: &str) -> usize {
    // A name beyond this length is not a typo of one of ours.
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_find_the_word_and_strangers_find_nothing() {
        let known = ["durability", "segment_bytes", "checkpoint_every"];
        assert_eq!(nearest("segment_byte", known, 1), ["segment_bytes"]);
        assert_eq!(nearest("durabiltiy", known, 1), ["durability"]);
        assert_eq!(nearest("colour", known, 1), [""; 0]);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("ab", "ba"), 1);
    }
}
