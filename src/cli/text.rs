//! What makes a summary readable: aligned columns, sizes, shapes, times.

use std::time::Duration;

/// Which side of a column its cells are pushed to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Rows under a header. Columns are as wide as their widest cell; a column without content is left out.
pub(crate) struct Table {
    columns: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Side)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// A row; cells beyond those given are empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text, each line indented by `indent` spaces.
    pub(crate) fn render(&self, indent: usize) -> String {
        let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
        let width = |column: usize| self.rows.iter().map(|row| chars(&cell(row, column))).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| match width(column) {
                0 => 0,
                content => content.max(chars(self.columns.get(column).map_or("", |(title, _)| title))),
            })
            .collect();
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| (*title).to_owned()).collect();
        let mut text = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let mut line = " ".repeat(indent);
            let shown = self.columns.iter().zip(&widths).enumerate().filter(|(_, (_, width))| **width > 0);
            for (column, ((_, side), width)) in shown {
                let content = cell(row, column);
                let space = " ".repeat(width.saturating_sub(chars(&content)));
                match side {
                    Side::Left => line.push_str(&(content + &space)),
                    Side::Right => line.push_str(&(space + &content)),
                }
                line.push_str("  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// `name` and `value` with the values of several lines below each other.
pub(crate) fn field(name: &str, value: impl AsRef<str>) -> String {
    format!("  {name:<9}  {}\n", value.as_ref())
}

/// `1 layer`, `2 layers`
pub(crate) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// `[1, 4, 13, 13]`
pub(crate) fn shape(dims: &[usize]) -> String {
    format!("{dims:?}")
}

/// `3.3 kB`
pub(crate) fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 1000.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{} {unit}", digits(value)) };
        }
        value /= 1000.0;
    }
    format!("{} TB", digits(value))
}

/// `83.1 thousand`
pub(crate) fn amount(number: usize) -> String {
    let value = number as f64;
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{} thousand", digits(value / 1e3)),
        1_000_000..1_000_000_000 => format!("{} million", digits(value / 1e6)),
        _ => format!("{} billion", digits(value / 1e9)),
    }
}

/// `12 ms`
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 { format!("{} ms", digits(seconds * 1e3)) } else { format!("{} s", digits(seconds)) }
}

/// Three digits that matter.
fn digits(value: f64) -> String {
    let places = if value < 10.0 {
        2
    } else if value < 100.0 {
        1
    } else {
        0
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let mut table =
            Table::new(&[("key", Side::Left), ("n", Side::Right), ("none", Side::Left), ("at", Side::Left)]);
        table.row(["logits", "", "", "x"].map(String::from));
        table.row(["a", "12", "", "y"].map(String::from));
        assert_eq!(table.render(1), " key      n  at\n logits      x\n a       12  y\n");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(33_280), "33.3 kB");
        assert_eq!(amount(135_000_000), "135 million");
        assert_eq!(time(Duration::from_millis(1234)), "1.23 s");
    }
}
