//! Two columns of text for people.

/// Names and values, one a line, values aligned.
#[derive(Default)]
pub struct Table {
    rows: Vec<(String, String)>,
}

impl Table {
    /// Adds a row.
    pub fn row(&mut self, name: &str, value: impl Into<String>) -> &mut Self {
        self.rows.push((name.to_owned(), value.into()));
        self
    }

    /// The text, without a line break at the end.
    pub fn text(&self) -> String {
        let width = self.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let lines: Vec<String> =
            self.rows.iter().map(|(name, value)| format!("  {name:width$}  {value}")).collect();
        lines.join("\n")
    }
}

/// A whole number with its thousands apart: 18,448.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let first = digits.len() % 3;
    let mut out = digits[..first].to_owned();
    for (i, chunk) in digits.as_bytes()[first..].chunks(3).enumerate() {
        if i > 0 || first > 0 {
            out.push(',');
        }
        out.extend(chunk.iter().map(|&b| char::from(b)));
    }
    out
}

/// Bytes in the unit that suits them.
pub fn bytes(n: u64) -> String {
    match n {
        0..=9_999 => format!("{n} B"),
        10_000..=9_999_999 => format!("{:.1} kB", n as f64 / 1e3),
        _ => format!("{:.1} MB", n as f64 / 1e6),
    }
}

/// Seconds as people say them.
pub fn seconds(s: f64) -> String {
    match s {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 100.0 => format!("{s:.1} s"),
        s => format!("{:.0} min {:02.0} s", (s / 60.0).floor(), (s % 60.0).floor()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(
            [7, 999, 1000, 18_448, 1_234_567].map(grouped),
            ["7", "999", "1,000", "18,448", "1,234,567"]
        );
        assert_eq!([12, 52_300, 12_345_678].map(bytes), ["12 B", "52.3 kB", "12.3 MB"]);
        assert_eq!([0.02, 12.34, 150.7].map(seconds), ["20 ms", "12.3 s", "2 min 30 s"]);
    }
}
