//! Text in columns.

/// Lines up `rows`, the first `left` columns at their left, others at their
/// right. All rows have as many cells.
pub fn text(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| {
            if at < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let line = cells.collect::<Vec<String>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names begin and numbers end at the same place in every row.
    #[test]
    fn columns_line_up() {
        let row = |cells: [&str; 3]| cells.map(str::to_string).to_vec();
        let rows = [row(["name", "n", ""]), row(["é", "100", "x"])];
        assert_eq!(text(&rows, 1), "name    n\né     100  x\n");
        assert_eq!(text(&[], 1), "");
    }
}
