//! Tests of every format: pixels, refusals, and that no bytes make a reader panic or allocate much memory.

mod files;

use super::Format::*;
use super::*;
use files::{FILES, file};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

fn refusal(bytes: &[u8]) -> String {
    let message = decode(bytes).unwrap_err().to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

/// `bytes` overwritten with others from `at` on.
fn with(mut bytes: Vec<u8>, at: usize, others: &[u8]) -> Vec<u8> {
    bytes[at..at + others.len()].copy_from_slice(others);
    bytes
}

fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).position(|found| found == wanted).unwrap()
}

/// A PNG file with a valid checksum for the chunk at `at`.
fn with_checksum(mut png: Vec<u8>, at: usize) -> Vec<u8> {
    let length = u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
    let mut sum = flate2::Crc::new();
    sum.update(&png[at + 4..at + 8 + length]);
    png[at + 8 + length..at + 12 + length].copy_from_slice(&sum.sum().to_be_bytes());
    png
}

#[test]
fn each_file_has_its_pixels() {
    for file in FILES {
        let image = decode(&file.bytes()).unwrap();
        let name = format!("{}, {}", file.format, file.what);
        assert_eq!([image.width(), image.height()], file.size, "{name}");
        assert_eq!(image.is_gray(), file.gray, "{name}");
        let wide = file.pixels.find(' ') == Some(16);
        let pixels: Vec<String> = if wide {
            image.rgba16().map(|pixel| pixel.map(|v| format!("{v:04x}")).concat()).collect()
        } else {
            image.rgba8().map(|pixel| pixel.map(|v| format!("{v:02x}")).concat()).collect()
        };
        assert_eq!(pixels.join(" "), file.pixels, "{name}");
    }
}

#[test]
fn a_file_truncated_anywhere_is_read_or_refused_by_its_format() {
    for file in FILES {
        let (name, whole) = (format!("{}, {}", file.format, file.what), file.bytes());
        for length in 0..whole.len() {
            let _ = decode(&whole[..length]);
        }
        let message = refusal(&whole[..60.min(whole.len() / 2)]);
        assert!(message.contains(&format!("the {} data", file.format)), "{name}: {message}");
    }
    // A JPEG image is complete without its last marker; without half of its scan, the missing part is gray.
    let jpeg = file(Jpeg, "gray");
    let whole = decode(&jpeg).unwrap();
    assert_eq!(decode(&jpeg[..jpeg.len() - 2]).unwrap(), whole);
    let part = decode(&jpeg[..jpeg.len() - 14]).unwrap();
    assert!(part != whole && part.width() == whole.width());
}

#[test]
fn claims_of_a_header_are_refused_before_allocation() {
    let (side, long) = (&[0xff, 0xff][..], &[0xff, 0xff, 0, 0][..]);
    let png = with(file(Png, "colors, one transparent"), 16, &[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    let jpeg = file(Jpeg, "CMYK");
    let frame = find(&jpeg, &[0xff, 0xc0]);
    let gif = file(Gif, "a frame beyond the edge");
    let inside = find(&gif, &[0x2c, 2, 0, 1, 0]);
    let too_large = [
        (with_checksum(png, 8), "65535 x 65535 PNG"),
        (with(jpeg, frame + 5, &[side, side].concat()), "65535 x 65535 JPEG"),
        (with(gif.clone(), 6, &[side, side].concat()), "65535 x 65535 GIF"),
        (with(gif, inside + 5, &[side, side].concat()), "65535 x 65535 GIF"),
        (with(file(WebP, "animated"), 24, &[0x5f, 0xea, 0, 0x5f, 0xea, 0]), "60000 x 60000 WebP"),
        (with(file(Bmp, "24 bits"), 18, &[long, long].concat()), "65535 x 65535 BMP"),
        (with(file(Bmp, "runs of 4 bits with a move"), 18, &[long, long].concat()), "65535 x 65535 BMP"),
    ];
    for (bytes, expected) in too_large {
        let message = refusal(&bytes);
        assert!(message.contains(expected) && message.contains("the limit is 536870912 bytes"), "{message}");
    }
    // Within the limit, but not within the file: 490 MB that are never allocated.
    let bytes =
        with(file(Bmp, "24 bits"), 18, &[13_000_i32.to_le_bytes(), 12_500_i32.to_le_bytes()].concat());
    assert_eq!(
        refusal(&bytes),
        "the BMP data are truncated: row 1 of 12500 (39000 bytes) is not within the 78 bytes found"
    );
}

#[test]
fn bytes_of_no_format_are_reported() {
    assert!(refusal(b"II*\0no TIFF").contains("49, 49, 2a, 00"));
    assert!(refusal(b"").contains("first bytes [] are not"));
    assert!(
        refusal(&file(Gif, "transparent, interlaced")[1..])
            .contains("not those of a PNG, JPEG, GIF, WebP or BMP")
    );
}

#[test]
fn an_odd_bitmap_is_refused_with_its_value() {
    let whole = || file(Bmp, "24 bits");
    let runs = || file(Bmp, "runs of 8 bits, one beyond the row");
    let cases = [
        (with(whole(), 14, &[41]), "header length = 41"),
        (with(whole(), 18, &[0; 4]), "width = 0"),
        (with(whole(), 18, &[0xff; 4]), "width = -1"),
        (with(whole(), 22, &[0; 4]), "height = 0"),
        (with(whole(), 22, &[0, 0, 1, 0]), "height = 65536"),
        (with(whole(), 22, &[0, 0, 0, 0x80]), "height = 2147483648"),
        (with(whole(), 26, &[2]), "planes = 2"),
        (with(whole(), 28, &[3]), "bits per pixel = 3"),
        (with(whole(), 30, &[4]), "compression = 4"),
        (with(whole(), 10, &[70]), "row 1 of 2 (12 bytes) is not within the 78 bytes"),
        (with(whole(), 10, &[55]), "row 2 of 2"),
        (with(file(Bmp, "1 bit"), 46, &[3]), "colors = 3"),
        (with(file(Bmp, "16 bits, 5-6-5"), 54, &[0xf0, 0xf0]), "mask is 0xf0f0"),
        (with(file(Bmp, "16 bits, 5-6-5"), 54, &[0, 0]), "mask is 0x0"),
        (with(file(Bmp, "16 bits, 5-6-5"), 54, &[0, 0x80, 1]), "mask is 0x18000"),
        (with(file(Bmp, "4 bits, OS/2"), 24, &[2]), "bits per pixel = 2"),
        (with(runs(), 22, &[0xfd, 0xff, 0xff, 0xff]), "compression = 1"),
        (with(runs(), 71, &[5]), "5 pixels from column 0 do not fit in row 2 of 4 x 3 pixels"),
        (with(runs(), 78, &[5]), "a move to column 8, row 3 leaves the image"),
        (with(runs(), 79, &[2]), "a move to column 4, row 4 leaves the image"),
        (runs()[..80].to_vec(), "row 3 of 3 (from byte 80)"),
        (runs()[..74].to_vec(), "row 2 of 3 (from byte 70)"),
        (whole()[..53].to_vec(), "its header is not within the 53 bytes"),
        (file(Bmp, "4 bits, OS/2")[..60].to_vec(), "its palette of 16 colors"),
    ];
    for (bytes, expected) in cases {
        let message = refusal(&bytes);
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

/// Input on which a decoder would index past its buffers and panic.
#[test]
fn input_that_a_decoder_does_not_check_is_refused_before_it() {
    let png = file(Png, "palette of 2 bits with opacities");
    let palette = find(&png, b"PLTE");
    let mut torn = with(png, palette - 4, &[0, 0, 0, 11]);
    torn.remove(palette + 4 + 11);
    assert!(refusal(&with_checksum(torn, palette - 4)).contains("its palette has 11 bytes"));

    let webp = file(WebP, "animated, lossy with opacity");
    let (frame, data) = (find(&webp, b"ANMF"), find(&webp, &[0x9d, 0x01, 0x2a]));
    for (bytes, expected) in [
        (with(webp.clone(), frame + 14, &[1]), "its first frame is 2 x 2 pixels, its data are 3 x 2"),
        (with(webp.clone(), data + 5, &[9]), "its data are 3 x 9"),
        (with(webp.clone(), data - 3, &[webp[data - 3] | 1]), "its data are 0 x 0"),
    ] {
        let message = refusal(&bytes);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn no_bytes_make_a_reader_panic() {
    const ODD: [u8; 6] = [0, 1, 0x7f, 0x80, 0xfe, 0xff];
    let mut draw = SmallRng::seed_from_u64(3);
    let files: Vec<Vec<u8>> = FILES.iter().map(files::File::bytes).collect();
    let mut read = 0;
    for i in 0..200 * files.len() {
        let mut bytes = files[i % files.len()].clone();
        for _ in 0..draw.random_range(1..4) {
            let (at, other) = (draw.random_range(0..bytes.len()), &files[draw.random_range(0..files.len())]);
            match draw.random_range(0..6) {
                0 | 1 => bytes[at] ^= 1 << draw.random_range(0..8),
                2 => bytes[at] = ODD[draw.random_range(0..ODD.len())],
                3 => bytes.truncate(at.max(1)),
                4 => bytes.insert(at, draw.random()),
                _ => bytes = [&bytes[..at], &other[at.min(other.len() - 1)..]].concat(),
            }
        }
        if bytes.starts_with(b"\x89PNG") && bytes.len() > 40 && bytes[8..11] == [0; 3] && bytes[11] < 16 {
            bytes = with_checksum(bytes, 8);
        }
        read += usize::from(decode(&bytes).is_ok());
    }
    assert!(read > 0, "every file was refused: no code after the headers was reached");
}

#[test]
fn a_written_file_has_the_pixels_it_was_given() {
    let bytes: Vec<u8> = (0..240_u32).map(|i| (i * i % 251) as u8).collect();
    for channels in [Channels::Gray, Channels::GrayAlpha, Channels::Rgb, Channels::Rgba] {
        for depth in [Depth::Eight, Depth::Sixteen] {
            let size = [5, (48 / channels.count() / depth.bytes()) as u32];
            let file = encode_png(size, channels, depth, &bytes).unwrap();
            assert_eq!(decode(&file).unwrap(), Raster::new(size, channels, depth, bytes.clone()));
            assert_eq!(encode_png(size, channels, depth, &bytes).unwrap(), file);
        }
    }
    for (size, found) in [([5, 3], 14), ([5, 3], 16), ([0, 3], 0), ([5, 0], 0)] {
        let error = encode_png(size, Channels::Gray, Depth::Eight, &bytes[..found]).unwrap_err();
        assert_eq!([error.width, error.height, error.found as u32], [size[0], size[1], found as u32]);
        assert!(error.to_string().contains(&format!("{} x {} pixels", size[0], size[1])), "{error}");
    }
}
