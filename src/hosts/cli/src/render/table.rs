//! Columns.

use portcullis::display;
use unicode_width::UnicodeWidthStr;

/// Rows under a heading, each column as wide as its widest cell; cells are escaped.
#[must_use]
pub fn text(heading: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = std::iter::once(heading.iter().map(|cell| (*cell).to_owned()).collect())
        .chain(rows.iter().map(|row| row.iter().map(|cell| display::escape(cell).into_owned()).collect::<Vec<_>>()))
        .collect();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.width() + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
