//! Sets of images: every kind of file yields the same bytes, and the error of a faulty file names it.

use super::*;
use crate::io::raster::{Channels, Depth, encode_png};
use flate2::{Compression, write::GzEncoder};
use std::fs;
use std::io::Write;

/// Five images of 3 rows and 4 columns.
fn bytes() -> Vec<u8> {
    (0..60u8).map(|i| i.wrapping_mul(37)).collect()
}

fn idx(images: u32, body: &[u8]) -> Vec<u8> {
    [&[0, 0, 8, 3], &images.to_be_bytes()[..], &[0, 0, 0, 3, 0, 0, 0, 4], body].concat()
}

fn npy(descr: &str, fortran: &str, shape: &str, body: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({shape}), }}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), body].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

struct Place(crate::io::Scratch);

impl Place {
    fn new() -> Self {
        Self(crate::io::scratch())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn image(&self, name: &str, size: [u32; 2], channels: Channels, pixels: &[u8]) {
        self.put(name, &encode_png(size, channels, Depth::Eight, pixels).unwrap());
    }

    fn gray(&self, name: &str, size: [u32; 2], pixels: &[u8]) {
        self.image(name, size, Channels::Gray, pixels);
    }
}

#[test]
fn every_kind_of_file_gives_the_same_bytes() {
    let (place, bytes) = (Place::new(), bytes());
    let floats: Vec<u8> = bytes.iter().flat_map(|&v| f32::from(v).to_le_bytes()).collect();
    bytes.chunks(12).enumerate().for_each(|(i, image)| place.gray(&format!("folder/{i}.png"), [4, 3], image));
    place.put("folder/notes.txt", b"no image");
    let files = [
        place.put("plain", &idx(5, &bytes)),
        place.put("packed", &gzip(&idx(5, &bytes))),
        place.put("u1.npy", &npy("|u1", "False", "5, 3, 4", &bytes)),
        place.put("c.npy", &npy("|u1", "False", "5, 3, 4, 1", &bytes)),
        place.put("f4.npy", &npy("<f4", "False", "5, 3, 4", &floats)),
        place.0.path().join("folder"),
    ];
    for file in files {
        let set = ImageSet::open(&file).unwrap();
        assert_eq!(
            [set.len(), set.height, set.width, set.channels, set.dim()],
            [5, 3, 4, 1, 12],
            "{}",
            set.name
        );
        assert_eq!(set.rows(&[0, 1, 2, 3, 4]).unwrap(), bytes, "{}", set.name);
        assert_eq!(set.rows(&[3, 0]).unwrap(), [&bytes[36..48], &bytes[..12]].concat());
        assert!(set.in_memory());
    }
}

#[test]
fn a_set_over_the_budget_is_read_where_it_lies_or_refused_with_the_remedy() {
    let (place, bytes) = (Place::new(), bytes());
    for file in
        [place.put("plain", &idx(5, &bytes)), place.put("u1.npy", &npy("|u1", "False", "5, 3, 4", &bytes))]
    {
        let set = ImageSet::open_within(&file, 59).unwrap();
        assert!(!set.in_memory() && ImageSet::open_within(&file, 60).unwrap().in_memory());
        assert_eq!(set.rows(&[4, 0, 1, 1]).unwrap(), [&bytes[48..], &bytes[..24], &bytes[12..24]].concat());
        let blocks: Vec<Vec<u8>> = set.blocks(2).collect::<Result<_, _>>().unwrap();
        assert_eq!((blocks.len(), blocks.concat()), (3, bytes.clone()));
        fs::write(&file, b"gone").unwrap();
        assert!(set.rows(&[4]).unwrap_err().to_string().contains("cannot be read"));
    }
    place.gray("folder/a.png", [4, 3], &bytes[..12]);
    place.gray("folder/b.png", [4, 3], &bytes[12..24]);
    let fortran = npy("|u1", "True", "5, 3, 4", &bytes);
    for (file, remedy) in [
        (place.put("packed", &gzip(&idx(5, &bytes))), "gunzip"),
        (place.0.path().join("folder"), "one u1 .npy array"),
        (place.put("fortran.npy", &fortran), "row-major"),
    ] {
        let message = ImageSet::open_within(&file, 20).unwrap_err().to_string();
        assert!(message.contains(remedy) && message.contains("cannot be read in parts"), "{message}");
    }
}

#[test]
fn one_image_in_color_makes_the_folder_one_of_colors() {
    let place = Place::new();
    place.gray("set/1.png", [2, 1], &[7, 7]);
    place.image("set/2.png", [2, 1], Channels::Rgb, &[0, 100, 200, 1, 100, 200]);
    let set = ImageSet::open(place.0.path().join("set")).unwrap();
    assert_eq!((set.channels, set.dim()), (3, 6));
    assert_eq!(set.rows(&[0, 1]).unwrap(), [7, 7, 7, 7, 7, 7, 0, 100, 200, 1, 100, 200]);
}

#[test]
fn labels_come_from_each_kind_of_file_and_are_one_an_image() {
    let (place, bytes) = (Place::new(), bytes());
    let images = place.put("plain", &idx(5, &bytes));
    let idx1 = |n: u8, body: &[u8]| [&[0, 0, 8, 1, 0, 0, 0, n], body].concat();
    let longs: Vec<u8> = [3i64, 1, 4, 1, 5].iter().flat_map(|v| v.to_le_bytes()).collect();
    for file in [
        place.put("labels", &idx1(5, &[3, 1, 4, 1, 5])),
        place.put("labels.gz", &gzip(&idx1(5, &[3, 1, 4, 1, 5]))),
        place.put("labels.npy", &npy("<i8", "False", "5,", &longs)),
        place.put("labels.csv", b"digit\n3\n1\n4\n1\n5\n"),
    ] {
        let set = ImageSet::open(&images).unwrap().with_labels(&file).unwrap();
        assert_eq!(set.labels().unwrap(), [3, 1, 4, 1, 5]);
    }
    let message = |file| ImageSet::open(&images).unwrap().with_labels(file).unwrap_err().to_string();
    let cases = [
        (message(place.put("four", &idx1(4, &[1, 2, 3, 4]))), "four: 4 labels for 5 images"),
        (message(place.put("cut", &idx1(5, &[1, 2]))), "5 takes 13 bytes, the file has 10"),
        (message(place.put("odd.csv", b"1\n2\n2.5\n1\n1\n")), "label 3 is 2.5"),
        (message(images.clone()), "is not an IDX file of labels"),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected) && message.lines().count() == 1, "{message}");
    }
}

#[test]
fn odd_files_are_named_with_what_was_found() {
    let (place, bytes) = (Place::new(), bytes());
    place.gray("unequal/a.png", [4, 3], &[0; 12]);
    place.gray("unequal/b.png", [4, 3], &[0; 12]);
    place.gray("unequal/c.png", [3, 4], &[0; 12]);
    place.put("none/readme.md", b"");
    place.gray("one/a.png", [4, 3], &[0; 12]);
    place.put("torn/a.png", b"\x89PNG no more");
    let within = |name: &str| place.0.path().join(name);
    let half: Vec<u8> = bytes.iter().flat_map(|&v| (f64::from(v) / 2.0).to_le_bytes()).collect();
    let cases = [
        (within("unequal"), "c.png is 3 x 4 pixels, a.png is 4 x 3"),
        (within("none"), "holds no PNG"),
        (within("one"), "1 of 4 x 3 pixels"),
        (within("torn"), "a.png (12 bytes) cannot be decoded"),
        (within("missing"), "cannot be read"),
        (place.put("cut", &idx(5, &bytes[..50])), "5 x 3 x 4 takes 76 bytes, the file has 66"),
        (place.put("cut.gz", &gzip(&idx(5, &bytes[..50]))), "5 x 3 x 4 takes 76 bytes, the file has 66"),
        (
            place.put("huge.gz", &gzip(&idx(400_000, &bytes))),
            "400000 x 3 x 4 takes 4800016 bytes, the file has 76",
        ),
        (place.put("head", &idx(5, &bytes)[..9]), "its header takes 16 bytes, the file has 9"),
        (place.put("two", b"ab"), "its first word takes 4 bytes, the file has 2"),
        (
            place.put("labels", &[0, 0, 8, 1, 0, 0, 0, 2, 1, 1]),
            "is not an IDX file of images: it begins with the bytes [00, 00, 08, 01]",
        ),
        (place.put("cut.npy", &npy("|u1", "False", "5, 3, 4", &bytes[..50])), "[5, 3, 4] takes"),
        (place.put("flat.npy", &npy("|u1", "False", "60,", &bytes)), "the array has shape [60]"),
        (place.put("half.npy", &npy("<f8", "False", "5, 3, 4", &half)), "image 1 has a value of 18.5"),
        (place.put("empty", &idx(0, &[])), "0 of 4 x 3 pixels"),
    ];
    for (path, expected) in cases {
        let message = ImageSet::open(&path).unwrap_err().to_string();
        assert!(message.contains(expected) && message.lines().count() == 1, "{message}");
    }
    // A truncated gzip stream ends early.
    let packed = gzip(&idx(5, &bytes));
    let torn = place.put("torn.gz", &packed[..packed.len() - 20]);
    assert!(ImageSet::open(torn).unwrap_err().to_string().contains("truncated"));
}

#[test]
fn images_of_a_program_are_as_those_of_a_file_and_refused_for_the_same_reasons() {
    let set = ImageSet::from_bytes("given", bytes(), [3, 4, 1]).unwrap();
    assert_eq!(
        (set.len(), set.dim(), set.rows(&[4, 0]).unwrap()[..12].to_vec()),
        (5, 12, bytes()[48..].to_vec())
    );
    assert_eq!(set.with_classes(vec![0, 1, 0, 1, 2]).unwrap().labels(), Some(&[0, 1, 0, 1, 2][..]));
    let refused = |found: Result<ImageSet, DataError>| found.unwrap_err().to_string();
    let alpha = refused(ImageSet::from_bytes("given", bytes(), [3, 1, 4]));
    assert!(alpha.contains("images given have 4 channels"), "{alpha}");
    let torn = refused(ImageSet::from_bytes("given", bytes()[..50].to_vec(), [3, 4, 1]));
    assert!(torn.contains("given: 50 bytes, not a whole number of images of 4 x 3 x 1 bytes"), "{torn}");
    let one = refused(ImageSet::from_bytes("given", bytes()[..12].to_vec(), [3, 4, 1]));
    assert!(one.contains("1 of 4 x 3 pixels"), "{one}");
    let nothing = refused(ImageSet::from_bytes("given", bytes(), [3, 0, 1]));
    assert!(nothing.contains("of 0 x 3 pixels"), "{nothing}");
    let few = ImageSet::from_bytes("given", bytes(), [3, 4, 1]).unwrap();
    let few = refused(few.with_classes(vec![0; 4]));
    assert!(few.contains("the classes of given") && few.contains('4') && few.contains('5'), "{few}");
}
