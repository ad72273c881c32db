//! A grid of images: samples, samples along the flow, or samples beside their nearest training images.
//!
//! Pixels are repeated, never interpolated, so artifacts stay visible.
use super::{
    Figure, PlotError,
    color::INK,
    sheet::{Anchor, LABEL, Rect, Sheet},
};

/// Space around the images, above them for the title and headings, and between them.
const MARGIN: u32 = 40;
const TOP: u32 = 104;
const HEADING: u32 = 50;
const GAP: u32 = 8;
/// Space between two groups of columns.
const APART: u32 = 40;
/// Approximate longer side of an image, and maximum total width of the columns.
const SIDE: u32 = 112;
const WIDEST: u32 = 2_400;

/// Images of one size in rows.
#[derive(Debug, Clone, Copy)]
pub struct ImageGrid<'a> {
    /// The title.
    pub title: &'a str,
    /// Images `[n, height, width, channels]`, row-major, 1 channel for gray or 3 for red, green and blue.
    pub images: &'a [u8],
    /// Height, width, channels.
    pub size: [usize; 3],
    /// Images per row.
    pub columns: usize,
    /// Headings, each above its first column: `(column, text)`; may be empty. A heading starts a group of columns, which is
    /// set apart.
    pub headings: &'a [(usize, String)],
}

/// Draws a grid of images.
///
/// # Errors
/// [`PlotError::Nothing`] without an image or a column.
///
/// # Panics
/// If the number of bytes is not a whole number of images, or the number of channels is not 1 or 3.
#[track_caller]
pub fn image_grid(sheet: &ImageGrid) -> Result<Figure, PlotError> {
    let ImageGrid { title, images, size: [height, width, channels], columns, headings } = *sheet;
    let one = height * width * channels;
    assert!(channels == 1 || channels == 3, "images have 1 or 3 channels, not {channels}");
    assert!(
        images.len().is_multiple_of(one.max(1)),
        "{} bytes are not a whole number of images of {one}",
        images.len()
    );
    if images.is_empty() || columns == 0 {
        return Err(PlotError::Nothing { what: "images or columns" });
    }
    let zoom = zoom([height, width], columns);
    let [down, across] = [height, width].map(|side| side as u32 * zoom);
    let groups = |column: usize| headings.iter().filter(|(at, _)| *at > 0 && *at <= column).count() as u32;
    let left = |column: usize| MARGIN + column as u32 * (across + GAP) + groups(column) * APART;
    let rows = (images.len() / one).div_ceil(columns) as u32;
    let top = if title.is_empty() { MARGIN } else { TOP } + if headings.is_empty() { 0 } else { HEADING };
    let end = left(columns - 1) + across;
    let mut drawn = Sheet::new(end + MARGIN, top + rows * (down + GAP) - GAP + MARGIN);
    drawn.title(title, Rect { x: MARGIN, y: TOP, width: end - MARGIN, height: down });
    for (column, text) in headings {
        let at = [left(*column) as i32, (top - HEADING / 2) as i32];
        drawn.text(text, at, LABEL, Anchor::Left, INK);
    }
    for (i, image) in images.chunks_exact(one).enumerate() {
        let (x0, y0) = (left(i % columns), top + (i / columns) as u32 * (down + GAP));
        drawn.raster(Rect { x: x0, y: y0, width: across, height: down }, |x, y| {
            let at = ((y / zoom) as usize * width + (x / zoom) as usize) * channels;
            [image[at], image[at + channels / 2], image[at + channels - 1]]
        });
    }
    Ok(drawn.figure)
}

/// How often a pixel is repeated along each side.
fn zoom([height, width]: [usize; 2], columns: usize) -> u32 {
    let fits = WIDEST / (columns as u32 * width as u32).max(1);
    (SIDE / height.max(width).max(1) as u32).min(fits).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_is_drawn_pixel_for_pixel() {
        // Five images of 2 x 3 gray pixels in rows of two.
        let images: Vec<u8> = (0..30).map(|i| i * 8).collect();
        let headings = [(0, "a".to_owned()), (1, "b".to_owned())];
        let sheet =
            ImageGrid { title: "t", images: &images, size: [2, 3, 1], columns: 2, headings: &headings };
        let figure = image_grid(&sheet).unwrap();
        let zoom = 112 / 3;
        let top = TOP + HEADING;
        for (i, image) in images.chunks(6).enumerate() {
            let (row, column) = (i as u32 / 2, i as u32 % 2);
            for (p, &gray) in image.iter().enumerate() {
                let x = MARGIN + column * (3 * zoom + GAP + APART) + p as u32 % 3 * zoom;
                let y = top + row * (2 * zoom + GAP) + p as u32 / 3 * zoom;
                assert_eq!(figure.pixel(x, y), [gray; 3], "{i} {p}");
                assert_eq!(figure.pixel(x + zoom - 1, y + zoom - 1), [gray; 3], "{i} {p}");
            }
        }
        assert_eq!(figure.height, top + 3 * (2 * zoom + GAP) - GAP + MARGIN);
    }

    #[test]
    fn colors_are_kept_and_an_empty_grid_is_refused() {
        let sheet = ImageGrid { title: "", images: &[9, 8, 7], size: [1, 1, 3], columns: 1, headings: &[] };
        assert_eq!(image_grid(&sheet).unwrap().pixel(MARGIN, MARGIN), [9, 8, 7]);
        let none = image_grid(&ImageGrid { images: &[], ..sheet }).unwrap_err().to_string();
        assert!(none.contains("images"), "{none}");
    }
}
