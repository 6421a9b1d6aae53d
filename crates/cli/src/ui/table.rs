//! Aligned columns. Cells are measured without their colours; the last column is not padded, and is what gives way where the terminal is
//! narrow: it holds the free text.

use super::text::shorten;

/// What stands between two columns.
const GAP: &str = "  ";

/// The last column keeps this many characters, however narrow the terminal is.
const LAST_CHARS_MIN: usize = 12;

/// Which side of a column is straight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of text under headings.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines, headings first. Where they do not fit into `width`, the last column is cut, and only that one.
    pub(crate) fn lines(mut self, width: Option<usize>) -> Vec<String> {
        let widths = self.widths();
        if let (Some(width), Some((_, others))) = (width, widths.split_last()) {
            let taken: usize = others.iter().map(|other| other + GAP.len()).sum();
            self.cut_last(width.saturating_sub(taken).max(LAST_CHARS_MIN));
        }
        let head: Vec<String> = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        std::iter::once(&head).chain(&self.rows).map(|row| self.line(row, &widths)).collect()
    }

    fn cut_last(&mut self, chars_max: usize) {
        let last = self.columns.len().saturating_sub(1);
        // A cell with colours is a word from a table of ours, and short.
        for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(last)) {
            if !cell.contains('\u{1b}') {
                *cell = shorten(cell, chars_max);
            }
        }
    }

    fn widths(&self) -> Vec<usize> {
        self.columns
            .iter()
            .enumerate()
            .map(|(i, (name, _))| {
                let cells = self.rows.iter().filter_map(|row| row.get(i)).map(|cell| width(cell));
                cells.chain([width(name)]).max().unwrap_or(0)
            })
            .collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let mut out = String::new();
        for (i, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[i].saturating_sub(width(cell)));
            if i > 0 {
                out.push_str(GAP);
            }
            match self.columns[i].1 {
                Align::Right => out.push_str(&pad),
                Align::Left => {}
            }
            out.push_str(cell);
            if self.columns[i].1 == Align::Left {
                out.push_str(&pad);
            }
        }
        out.trim_end().to_owned()
    }
}

/// Characters that a terminal shows: colour codes are left out.
fn width(text: &str) -> usize {
    let (mut shown, mut in_code) = (0, false);
    for c in text.chars() {
        match c {
            '\u{1b}' => in_code = true,
            'm' if in_code => in_code = false,
            _ if in_code => {}
            _ => shown += 1,
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_colours_take_no_room() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right), ("end", Align::Left)]);
        table.row(vec!["\u{1b}[32mab\u{1b}[0m".into(), "5".into(), "x".into()]);
        table.row(vec!["abcdef".into(), "100".into(), String::new()]);
        let expected = ["name      n  end", "\u{1b}[32mab\u{1b}[0m        5  x", "abcdef  100"];
        assert_eq!(table.lines(None), expected);
    }

    #[test]
    fn a_narrow_terminal_cuts_the_last_column_and_no_other() {
        let table = || {
            let mut table = Table::new(&[("task", Align::Left), ("title", Align::Left)]);
            table.row(vec!["TASK-1".into(), "a title of thirty characters ..".into()]);
            table.row(vec!["TASK-2".into(), "short".into()]);
            table
        };
        let head = "task    title";
        let whole = [head, "TASK-1  a title of thirty characters ..", "TASK-2  short"];
        assert_eq!(table().lines(None), whole);
        assert_eq!(table().lines(Some(39)), whole);
        assert_eq!(table().lines(Some(28)), [head, "TASK-1  a title of thirty c…", "TASK-2  short"]);
        assert_eq!(
            table().lines(Some(3)),
            [head, "TASK-1  a title of …", "TASK-2  short"],
            "something is left"
        );
    }
}
