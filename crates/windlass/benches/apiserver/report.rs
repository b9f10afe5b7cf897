//! Tables in Markdown, as `docs/performance.md` has them, with the raw rounds below.
#![allow(clippy::print_stdout, reason = "figures are what this program is for")]

/// One section's figures.
pub struct Table {
    heading: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl Table {
    pub fn new(heading: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { heading: heading.to_owned(), columns, rows: Vec::new(), notes: Vec::new() }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// A line below the table.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub fn print(&self) {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).chain(self.columns.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let line = |cells: &[String]| {
            let padded: Vec<String> =
                cells.iter().enumerate().map(|(i, cell)| format!(" {cell:<width$} ", width = width(i))).collect();
            println!("|{}|", padded.join("|"));
        };
        println!("\n### {}\n", self.heading);
        line(&self.columns);
        let rules: Vec<String> = (0..self.columns.len()).map(|i| "-".repeat(width(i) + 2)).collect();
        println!("|{}|", rules.join("|"));
        self.rows.iter().for_each(|row| line(row));
        println!();
        self.notes.iter().for_each(|note| println!("{note}"));
    }
}

/// A line before the tables.
pub fn say(text: &str) {
    println!("{text}");
}

/// A number of operations, or of bytes, with its thousands apart.
pub fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Seconds, as milliseconds.
pub fn milliseconds(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

/// Bytes, as millions of them.
pub fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}
