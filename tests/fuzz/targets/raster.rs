//! Images of five formats.
#![no_main]

use flowline::io::raster::decode;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(picture) = decode(bytes) {
        let pixels = picture.rgba8().take(1 << 20).count();
        let all = u64::from(picture.width()) * u64::from(picture.height());
        assert_eq!(pixels as u64, all.min(1 << 20));
    }
});
