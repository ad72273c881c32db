//! GIF: the first frame on its canvas. Pixels are transparent where the frame is transparent or does not cover
//! the canvas.

use super::{Channels, DecodeError, Depth, Format, LIMIT, Raster};
use gif::{ColorOutput, DecodeOptions, DecodingError};
use std::io::ErrorKind;

/// Bytes of a pixel: red, green, blue, opacity.
const PIXEL: usize = 4;

pub(super) fn decode(bytes: &[u8]) -> Result<Raster, DecodeError> {
    let decode_error = |error: DecodingError| match error {
        DecodingError::UnexpectedEof => Format::Gif.ends_early(bytes),
        DecodingError::Io(error) if error.kind() == ErrorKind::UnexpectedEof => Format::Gif.ends_early(bytes),
        error => Format::Gif.damaged(error),
    };
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::RGBA);
    let mut decoder = options.read_info(bytes).map_err(decode_error)?;
    let screen = [decoder.width(), decoder.height()];
    let size = screen.map(u32::from);
    let mut pixels = vec![0; Format::Gif.room(size, Channels::Rgba, Depth::Eight)?];
    let frame = match decoder.next_frame_info().map_err(decode_error)? {
        Some(frame) => Frame {
            corner: [frame.left, frame.top].map(usize::from),
            size: [frame.width, frame.height].map(usize::from),
        },
        None => return Err(Format::Gif.damaged("it has no frame")),
    };
    let screen = screen.map(usize::from);
    if let Some(rows) = frame.rows_of(screen) {
        decoder.read_into_buffer(&mut pixels[rows]).map_err(decode_error)?;
    } else {
        let taken = frame.size[0] * frame.size[1] * PIXEL;
        if (pixels.len() + taken) as u64 > LIMIT {
            let [width, height] = frame.size.map(|side| side as u32);
            let (format, bytes) = (Format::Gif, (pixels.len() + taken) as u128);
            return Err(DecodeError::TooLarge { format, width, height, bytes, limit: LIMIT });
        }
        let mut inside = vec![0; taken];
        decoder.read_into_buffer(&mut inside).map_err(decode_error)?;
        frame.put(&inside, screen, &mut pixels);
    }
    Ok(Raster::new(size, Channels::Rgba, Depth::Eight, pixels))
}

/// Position of a frame on the canvas, and its size, both as `[x, y]`.
struct Frame {
    corner: [usize; 2],
    size: [usize; 2],
}

impl Frame {
    /// The bytes of the canvas that the frame covers, if it covers whole rows.
    fn rows_of(&self, screen: [usize; 2]) -> Option<std::ops::Range<usize>> {
        let fits =
            self.corner[0] == 0 && self.size[0] == screen[0] && self.corner[1] + self.size[1] <= screen[1];
        let row = screen[0] * PIXEL;
        fits.then(|| row * self.corner[1]..row * (self.corner[1] + self.size[1]))
    }

    /// Copies the frame's pixels to a canvas, clipped.
    fn put(&self, inside: &[u8], screen: [usize; 2], pixels: &mut [u8]) {
        let row = |width: usize| (width * PIXEL).max(1);
        let below = pixels.chunks_exact_mut(row(screen[0])).skip(self.corner[1]);
        for (line, values) in below.zip(inside.chunks_exact(row(self.size[0]))) {
            let right = line.iter_mut().skip(self.corner[0] * PIXEL);
            right.zip(values).for_each(|(pixel, &value)| *pixel = value);
        }
    }
}
