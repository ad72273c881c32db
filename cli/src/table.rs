//! Human-readable text: tables and numbers.

pub(super) use flowline::__internal::grouped;

/// Names and values, one pair per line, values aligned.
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

/// Columns under a heading: the first is aligned left, the others right unless they are set otherwise.
#[derive(Default)]
pub struct Columns {
    lines: Vec<Vec<String>>,
    /// The columns that are aligned left, besides the first.
    left: Vec<usize>,
}

/// The smallest width to which [`Columns::squeezed`] shortens a column.
const LEAST: usize = 7;

impl Columns {
    /// Columns with these headings.
    pub fn new<'a>(heading: impl IntoIterator<Item = &'a str>) -> Columns {
        Columns { lines: vec![heading.into_iter().map(str::to_owned).collect()], left: Vec::new() }
    }

    /// Adds a line.
    pub fn line(&mut self, cells: impl IntoIterator<Item = String>) -> &mut Self {
        self.lines.push(cells.into_iter().collect());
        self
    }

    /// Aligns these columns left.
    pub fn aligned_left(&mut self, columns: impl IntoIterator<Item = usize>) -> &mut Self {
        self.left.extend(columns);
        self
    }

    fn widths(&self) -> Vec<usize> {
        let count = self.lines.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..count).map(width).collect()
    }

    /// The number of characters of the longest line.
    pub fn width(&self) -> usize {
        self.widths().iter().map(|width| width + 2).sum()
    }

    /// These columns with the cells of some of them shortened in their middle, until a line has at most `width`
    /// characters or each of them has [`LEAST`].
    pub fn squeezed(mut self, columns: impl IntoIterator<Item = usize>, width: usize) -> Columns {
        let (columns, mut widths) = (Vec::from_iter(columns), self.widths());
        let mut excess = self.width().saturating_sub(width);
        while let Some(&widest) =
            columns.iter().filter(|&&at| widths[at] > LEAST).max_by_key(|&&at| widths[at])
            && excess > 0
        {
            widths[widest] -= 1;
            excess -= 1;
        }
        for line in &mut self.lines {
            columns.iter().for_each(|&at| line[at] = shortened_within(&line[at], widths[at]));
        }
        self
    }

    /// The text with a rule below the heading, without a line break at the end.
    pub fn text(&self) -> String {
        let (widths, count) = (self.widths(), self.widths().len());
        let joined = |line: &Vec<String>| {
            let cell = |(i, (text, &width)): (usize, (&String, &usize))| match i {
                i if i == 0 || self.left.contains(&i) => format!("{text:width$}"),
                _ => format!("{text:>width$}"),
            };
            let cells: Vec<String> = line.iter().zip(&widths).enumerate().map(cell).collect();
            format!("  {}", cells.join("  ")).trim_end().to_owned()
        };
        let mut lines: Vec<String> = self.lines.iter().map(joined).collect();
        let rule = "─".repeat(widths.iter().sum::<usize>() + 2 * count.saturating_sub(1));
        lines.insert(1.min(lines.len()), format!("  {rule}"));
        lines.join("\n")
    }
}

/// A text of at most `width` characters: the middle of a longer one is replaced by dots. Names often differ at the end.
fn shortened_within(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let (kept, end) = (width - 1, (width - 1) / 2);
    let middle = std::iter::once(&'…');
    letters[..kept - end].iter().chain(middle).chain(&letters[letters.len() - end..]).collect()
}

/// A number with three digits and an SI prefix: 18.6 G, 512 µ; zero has no prefix.
pub fn quantity(x: f64, unit: &str) -> String {
    const PREFIXES: [(f64, &str); 7] =
        [(1e-6, "µ"), (1e-3, "m"), (1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];
    // 999.5 and above would be printed as 1000.
    let fitting = PREFIXES.iter().find(|(scale, _)| x.abs() < 999.5 * scale);
    let &(scale, prefix) = fitting.unwrap_or(&PREFIXES[PREFIXES.len() - 1]);
    let scaled = x / scale;
    let digits = match scaled.abs() {
        _ if x == 0.0 => return format!("0 {unit}"),
        y if y < 9.995 => 2,
        y if y < 99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$} {prefix}{unit}")
}

/// Seconds in a readable unit.
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
        assert_eq!([0.02, 12.34, 150.7].map(seconds), ["20 ms", "12.3 s", "2 min 30 s"]);
        assert_eq!(
            [0.0, 2.567e-7, 0.03214, 1.0, 42.0, 999.6, 18.61e9, 2.5e16].map(|x| quantity(x, "s")),
            ["0 s", "0.26 µs", "32.1 ms", "1.00 s", "42.0 s", "1.00 ks", "18.6 Gs", "25000 Ts"]
        );
    }

    /// Every width from 1 to 60: lines are as short as asked, down to the least width of the column.
    #[test]
    fn long_cells_are_shortened_in_their_middle() {
        for width in 1..60 {
            let mut columns = Columns::new(["run", "n"]);
            columns
                .line(["a_long_name_of_a_run-12".to_owned(), "5".to_owned()])
                .line(["µ".into(), "1".into()]);
            let squeezed = columns.squeezed([0], width);
            assert!(squeezed.width() <= width.max(LEAST + 5), "{width}");
            let text = squeezed.text();
            assert_eq!(text.contains("a_long_name_of_a_run-12"), width >= 28, "{width}: {text}");
            assert!(text.contains("-12"), "{text}");
        }
        assert_eq!(shortened_within("abcdefghij", 8), "abcd…hij");
    }

    #[test]
    fn columns_stand_below_their_headings() {
        let mut columns = Columns::new(["of", "n"]);
        columns.line(["flow".to_owned(), "1,024".to_owned()]).line(["µ".to_owned(), "7".to_owned()]);
        let lines = ["  of        n", "  ───────────", "  flow  1,024", "  µ         7"];
        assert_eq!(columns.text(), lines.join("\n"));
    }
}
