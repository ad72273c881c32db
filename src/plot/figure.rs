//! A drawn figure in memory, and how it is written: completely or not at all.
use super::{
    PlotError,
    chart::LEFT,
    color::INK,
    marks::Mark,
    sheet::{Anchor, Sheet, TITLE},
    svg,
};
use crate::io::raster::encode_figure;
use std::io::Write;
use std::path::Path;

/// Height of a title row.
const BAND: u32 = 92;

/// An RGB figure, row-major from the top left. It also stores the lines and texts that were drawn, for SVG files.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Figure {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// `3 * width * height` bytes.
    pub rgb: Vec<u8>,
    /// The color around and behind lines and text.
    pub(super) paper: [u8; 3],
    pub(super) marks: Vec<Mark>,
    /// A description, stored in the files but not drawn.
    pub(super) about: String,
}

impl Figure {
    /// A white figure.
    pub(super) fn white(width: u32, height: u32) -> Self {
        Self::blank(width, height, [255; 3])
    }

    fn blank(width: u32, height: u32, paper: [u8; 3]) -> Self {
        let rgb = paper.repeat((width * height) as usize);
        Self { width, height, rgb, paper, marks: Vec::new(), about: String::new() }
    }

    /// The color of a pixel: red, green, blue.
    pub fn pixel(&self, x: u32, y: u32) -> [u8; 3] {
        let at = self.index(x, y);
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }

    /// This figure with another on its right; the color of the paper fills the space below the shorter figure.
    /// If one of them is [`dark`](Self::dark), both are drawn dark.
    pub fn hstack(&self, right: &Figure) -> Figure {
        if self.paper != right.paper {
            return self.dark().hstack(&right.dark());
        }
        let mut both = Figure::blank(self.width + right.width, self.height.max(right.height), self.paper);
        both.put(self, [0, 0]);
        both.put(right, [self.width, 0]);
        both
    }

    /// This figure with another below it; the color of the paper fills the space beside the narrower figure.
    /// If one of them is [`dark`](Self::dark), both are drawn dark.
    pub fn vstack(&self, below: &Figure) -> Figure {
        if self.paper != below.paper {
            return self.dark().vstack(&below.dark());
        }
        let mut both = Figure::blank(self.width.max(below.width), self.height + below.height, self.paper);
        both.put(self, [0, 0]);
        both.put(below, [0, self.height]);
        both
    }

    /// This figure with a title above it.
    pub fn with_title(&self, title: &str) -> Figure {
        let mut sheet = Sheet::on(Figure::blank(self.width, self.height + BAND, self.paper));
        sheet.figure.put(self, [0, BAND]);
        // The left edge of the axes in most figures.
        let left = (LEFT as i32).min(self.width as i32 / 8);
        let room = (self.width as i32 - left - 40).max(1);
        let size = TITLE.min(TITLE * room as u32 / super::text::width(title, TITLE).max(1) as u32);
        sheet.text(title, [left, BAND as i32 / 2 + 4], size.max(1), Anchor::Left, self.on_paper(INK));
        sheet.figure
    }

    /// Copies a figure into this one, with its upper left corner at (x, y).
    fn put(&mut self, figure: &Figure, [x, y]: [u32; 2]) {
        let width = 3 * figure.width as usize;
        for (row, pixels) in (y..).zip(figure.rgb.chunks_exact(width.max(1))) {
            let at = self.index(x, row);
            self.rgb[at..at + width].copy_from_slice(pixels);
        }
        self.marks.extend(figure.marks.iter().cloned().map(|mut mark| {
            mark.shift([x, y]);
            mark
        }));
        if !self.about.is_empty() && !figure.about.is_empty() {
            self.about.push_str("; ");
        }
        self.about.push_str(&figure.about);
    }

    pub(super) fn set(&mut self, x: u32, y: u32, color: [u8; 3]) {
        let at = self.index(x, y);
        self.rgb[at..at + 3].copy_from_slice(&color);
    }

    /// Mixes a color into a pixel; pixels outside are ignored.
    pub(super) fn mix(&mut self, x: i32, y: i32, color: [u8; 3], share: f64) {
        if x < 0 || y < 0 || x as u32 >= self.width || y as u32 >= self.height {
            return;
        }
        let under = self.pixel(x as u32, y as u32);
        let mixed = |c: usize| {
            let (from, to) = (f64::from(under[c]), f64::from(color[c]));
            (from + share * (to - from)).round() as u8
        };
        self.set(x as u32, y as u32, [mixed(0), mixed(1), mixed(2)]);
    }

    fn index(&self, x: u32, y: u32) -> usize {
        3 * (y as usize * self.width as usize + x as usize)
    }

    /// The figure as a PNG file in memory. The bytes are deterministic.
    ///
    /// # Errors
    /// [`PlotError::Encode`].
    pub fn to_png_bytes(&self) -> Result<Vec<u8>, PlotError> {
        let Self { width, height, ref rgb, ref about, .. } = *self;
        encode_figure([width, height], rgb, about).map_err(|source| PlotError::Encode {
            width,
            height,
            source,
        })
    }

    /// The figure as an SVG file in memory: lines and text as vectors, densities and images as pixels.
    ///
    /// Text uses the font Inter if the viewer has it, otherwise another sans-serif font.
    ///
    /// # Errors
    /// [`PlotError::Draw`], and [`PlotError::Encode`] for the pixels.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        svg::written(self)
    }

    /// Writes a file: SVG if the path ends in `.svg`, otherwise PNG. The data go to a temporary file, which is
    /// synced and then renamed to `path`.
    ///
    /// # Errors
    /// [`PlotError::Write`], or as [`to_svg`](Self::to_svg) and [`to_png_bytes`](Self::to_png_bytes). No partial file
    /// remains, and an existing file at `path` is unchanged.
    #[doc(alias = "savefig")]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), PlotError> {
        let path = path.as_ref();
        let is_svg = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg"));
        let bytes = if is_svg { self.to_svg()?.into_bytes() } else { self.to_png_bytes()? };
        save_bytes(path, &bytes)
    }
}

/// Writes a file like [`Figure::save`].
pub(super) fn save_bytes(path: &Path, bytes: &[u8]) -> Result<(), PlotError> {
    write_whole(path, bytes).map_err(|source| PlotError::Write { path: path.to_owned(), source })
}

fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let name = path.file_name().ok_or_else(|| std::io::Error::other("the path has no file name"))?;
    let temporary = path.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    let written = std::fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // Report the first error; removing a temporary file that was never created may fail too.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_file_holds_the_figure() {
        let folder = crate::io::scratch();
        let path = folder.path().join("a.png");
        let mut figure = Figure::white(7, 5);
        figure.set(3, 4, [1, 2, 3]);
        figure.save(&path).unwrap();
        figure.save(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), figure.to_png_bytes().unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_ending_of_a_path_chooses_the_format() {
        let folder = crate::io::scratch();
        for (name, first) in
            [("a.svg", b"<svg"), ("a.SVG", b"<svg"), ("a.png", b"\x89PNG"), ("a", b"\x89PNG")]
        {
            Figure::white(7, 5).save(folder.path().join(name)).unwrap();
            assert_eq!(&std::fs::read(folder.path().join(name)).unwrap()[..4], first, "{name}");
        }
    }

    #[test]
    fn stacked_figures_keep_their_pixels() {
        let (mut a, mut b) = (Figure::white(3, 2), Figure::white(2, 4));
        a.set(2, 1, [1, 2, 3]);
        b.set(0, 3, [4, 5, 6]);
        b.marks.push(Mark::Text { text: "b".into(), at: [1.0, 2.0], size: 9.0, upwards: false, color: INK });
        let both = a.hstack(&b);
        assert_eq!((both.width, both.height), (5, 4));
        assert_eq!((both.pixel(2, 1), both.pixel(3, 3), both.pixel(0, 3)), ([1, 2, 3], [4, 5, 6], [255; 3]));
        assert!(matches!(both.marks[..], [Mark::Text { at: [4.0, 2.0], .. }]), "{:?}", both.marks);
        let both = a.vstack(&b);
        assert_eq!((both.width, both.height), (3, 6));
        assert_eq!((both.pixel(2, 1), both.pixel(0, 5), both.pixel(2, 5)), ([1, 2, 3], [4, 5, 6], [255; 3]));
    }

    #[test]
    fn a_title_stands_over_the_figure_and_inside() {
        let plain = Figure::white(300, 100);
        let titled = plain.with_title("A title that is far too long for so narrow a figure");
        assert_eq!((titled.width, titled.height), (300, 100 + BAND));
        let ink = |xs: std::ops::Range<u32>| {
            xs.flat_map(|x| (0..BAND).map(move |y| (x, y)))
                .filter(|&(x, y)| titled.pixel(x, y)[0] < 128)
                .count()
        };
        assert!(ink(0..300) > 100 && ink(0..30) == 0 && ink(270..300) == 0);
    }

    #[test]
    fn failed_write_names_the_file_and_leaves_nothing() {
        let folder = crate::io::scratch();
        let taken = folder.path().join("taken.png");
        std::fs::create_dir_all(taken.join("inside")).unwrap(); // a rename onto it fails
        let missing = folder.path().join("no/such/folder.png");
        for path in [&taken, &missing] {
            let message = Figure::white(3, 2).save(path).unwrap_err().to_string();
            assert!(message.contains(&path.display().to_string()), "{message}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
