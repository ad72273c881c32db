//! The notebook `notebooks/04_images.ipynb` as a program: lines that begin with `//|` are its text, the code between
//! them is its cells.
//!
//! `cargo run --release --example notebook_images -- [FOLDER]` prints the output of the cells and writes their figures
//! to FOLDER.

#[path = "notebook/show.rs"]
mod shown;

use shown::show;

#[allow(clippy::too_many_lines, reason = "a notebook is one story")]
fn main() -> flowline::Result<()> {
    //| # Images as points
    //|
    //| An image of 12 x 12 pixels is a point in 144 dimensions, and a set of images is a sample from a density in this
    //| space. This notebook learns such a density from ten thousand small drawings of three kinds. It then samples new
    //| drawings of a chosen kind, and computes how likely other images are. To train on MNIST from the shell:
    //| `flowline train train-images-idx3-ubyte.gz`.
    //|
    //| ## The set
    //|
    //| Rings, crosses and pairs of dots with random position, size, rotation and brightness, on a background of faint
    //| noise.
    use flowline::data::ImageSet;
    use flowline::nn::prelude::*;
    use flowline::plot::{self, ImageGrid};
    use flowline::train::Trainer;

    const SIDE: usize = 12;

    /// The darkness of a drawing at (x, y), from 0 to 1, for a kind, center, size and rotation.
    fn drawing(kind: usize, [a, b, size, turn]: [f64; 4], x: f64, y: f64) -> f64 {
        let (sin, cos) = turn.sin_cos();
        let (u, v) = ((x - a) * cos + (y - b) * sin, (y - b) * cos - (x - a) * sin);
        let off = match kind {
            0 => (u.hypot(v) - size).abs(),
            1 => u.abs().min(v.abs()).max(u.abs().max(v.abs()) - 1.2 * size),
            _ => (u.abs() - size).hypot(v) - 0.9,
        };
        1.0 / (1.0 + (5.0 * (off - 0.6)).exp())
    }

    /// n drawings as gray levels [n, 12, 12, 1], and their kinds.
    fn drawings(n: usize, key: &Key) -> (Vec<u8>, Vec<u16>) {
        let [draws, noise] = key.split();
        let (draws, noise) = (draws.uniform([n, 5]).to_vec(), noise.uniform([n, SIDE * SIDE]).to_vec());
        let (mut bytes, mut kinds) = (Vec::new(), Vec::new());
        for (i, u) in draws.chunks_exact(5).enumerate() {
            let place = [4.0 + 3.0 * u[0], 4.0 + 3.0 * u[1], 2.0 + 1.5 * u[2], std::f64::consts::PI * u[3]];
            for p in 0..SIDE * SIDE {
                let dark = drawing(i % 3, place, (p % SIDE) as f64, (p / SIDE) as f64);
                bytes.push((16.0 * noise[i * SIDE * SIDE + p] + (160.0 + 79.0 * u[4]) * dark) as u8);
            }
            kinds.push((i % 3) as u16);
        }
        (bytes, kinds)
    }

    fn sheet(
        title: &str,
        images: &[u8],
        columns: usize,
        headings: &[(usize, String)],
    ) -> flowline::Result<plot::Figure> {
        Ok(plot::image_grid(&ImageGrid { title, images, size: [SIDE, SIDE, 1], columns, headings })?)
    }

    let key = Key::new(0);
    let [for_set, for_tests, for_samples, for_noise] = key.split();
    let (bytes, kinds) = drawings(10_000, &for_set);
    let (test_bytes, test_kinds) = drawings(512, &for_tests);
    show(&sheet("the first of 10,000 drawings", &bytes[..36 * SIDE * SIDE], 12, &[])?);
    //| ## Bits per dimension
    //|
    //| Gray levels are whole numbers, but a density is a function of real numbers. Therefore a uniform random number in
    //| $[0, 1)$ is added to each level, and
    //|
    //| $$\mathrm{bits/dim} = -\frac{1}{d} \, \mathbb E_u \log_2 p(x + u)$$
    //|
    //| is an upper bound on the bits per pixel of a lossless code that uses the model. A uniform density needs 8 bits.
    //| The background has sixteen equally likely levels of noise, so every model needs about 4 bits for a background
    //| pixel. The baseline is a model of independent pixels, each with the histogram of its gray levels:
    let mut independent = 0.0;
    for p in 0..SIDE * SIDE {
        let mut counts = [0.5; 256];
        bytes.iter().skip(p).step_by(SIDE * SIDE).for_each(|&level| counts[usize::from(level)] += 1.0);
        let total: f64 = counts.iter().sum();
        independent -= test_bytes
            .iter()
            .skip(p)
            .step_by(SIDE * SIDE)
            .map(|&level| (counts[usize::from(level)] / total).log2())
            .sum::<f64>();
    }
    println!("independent pixels: {:.3} bits/dim", independent / test_bytes.len() as f64);
    //| ## Training
    //|
    //| Each pixel is mapped through its own marginal distribution to a normal variable. The flow therefore starts as
    //| the model of independent pixels, and only has to learn the dependencies between pixels. Its vector field is a
    //| small U-Net with the kind of the drawing as an input. It is trained by flow matching.
    let set =
        ImageSet::from_bytes("drawings", bytes.clone(), [SIDE, SIDE, 1])?.with_classes(kinds.clone())?;
    let learned = Trainer::new(set).updates(1_500).run()?;
    let report = learned.train_report.clone().expect("a run that was just made");
    println!("{} weights, {} updates", report.weights, report.updates);
    println!(
        "bits/dim of held-out drawings: {:.3} +- {:.3}",
        report.test_bits_per_dim.unwrap_or(f64::NAN),
        report.test_bits_per_dim_stderr.unwrap_or(f64::NAN)
    );
    //| ## New drawings, by kind
    let names = ["rings", "crosses", "dots"];
    let mut rows: Vec<Vec<u8>> = Vec::new();
    for kind in 0..3 {
        let drawn = learned
            .sample_images(36, Some(kind), &for_samples)?
            .collect::<flowline::Result<Vec<_>>>()?
            .concat();
        rows.push(drawn);
    }
    let mut beside = Vec::new();
    for line in 0..4 {
        let four = 4 * SIDE * SIDE;
        rows.iter().for_each(|drawn| beside.extend(&drawn[line * four..(line + 1) * four]));
    }
    let headings: Vec<(usize, String)> =
        names.iter().enumerate().map(|(i, name)| (4 * i, (*name).to_owned())).collect();
    show(&sheet("drawn by the flow", &beside, 12, &headings)?);
    //| ## Memorization
    //|
    //| Beside each of eight samples are the three nearest drawings of the training set. A model that had memorized the
    //| training set would show the same image twice.
    fn distance(a: &[u8], b: &[u8]) -> f64 {
        a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
    }

    let mut neighbors = Vec::new();
    for sample in rows.concat().chunks_exact(SIDE * SIDE).step_by(13).take(8) {
        let mut near: Vec<(f64, &[u8])> =
            bytes.chunks_exact(SIDE * SIDE).map(|image| (distance(sample, image), image)).collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        neighbors.extend([sample, near[0].1, near[1].1, near[2].1].concat());
    }
    let headings = [(0, "sample".to_owned()), (1, "nearest of the set".to_owned())];
    let left = sheet("", &neighbors[..16 * SIDE * SIDE], 4, &headings)?;
    show(&left.hstack(&sheet("", &neighbors[16 * SIDE * SIDE..], 4, &headings)?));
    //| ## Log-probabilities
    //|
    //| The log-probability of any image with its standard error: unseen drawings, the same drawings with inverted
    //| brightness, and white noise.
    let inverted: Vec<u8> = test_bytes.iter().map(|&level| 255 - level).collect();
    let noise: Vec<u8> =
        for_noise.uniform([512, SIDE * SIDE]).to_vec().iter().map(|u| (256.0 * u) as u8).collect();
    for (name, images) in
        [("unseen drawings", test_bytes), ("their negatives", inverted), ("white noise", noise)]
    {
        let images = ImageSet::from_bytes(name, images, [SIDE, SIDE, 1])?.with_classes(test_kinds.clone())?;
        let (_, bits) = learned.image_log_probs(&images, (1e-3, 1e-3), 1, &key, |_| {})?;
        println!("{name:16} {:7.3} +- {:.3} bits/dim", bits.bits.mean, bits.bits.stderr.unwrap_or(f64::NAN));
    }
    //| The model also classifies drawings. By Bayes' rule with equal prior probabilities, the predicted kind is the one
    //| for which the image has the largest log-probability.
    let (few, kinds_of_few) = drawings(90, &for_tests.fold_in(1));
    let mut by_kind = Vec::new();
    for kind in 0..3 {
        let images =
            ImageSet::from_bytes("few", few.clone(), [SIDE, SIDE, 1])?.with_classes(vec![kind; 90])?;
        by_kind.push(learned.image_log_probs(&images, (1e-3, 1e-3), 1, &key, |_| {})?.0);
    }
    let mut right = 0;
    for (i, &kind) in kinds_of_few.iter().enumerate() {
        let guess = (0..3).max_by(|&a, &b| by_kind[a][i].total_cmp(&by_kind[b][i]));
        right += usize::from(guess == Some(usize::from(kind)));
    }
    println!("{right} of 90 unseen drawings are told by kind");
    Ok(())
}
