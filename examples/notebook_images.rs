//! The notebook `notebooks/04_images.ipynb` as a program. Lines that begin with `//|` are the text of the notebook,
//! and the code between them is its cells.
//!
//! `cargo run --release --example notebook_images -- [FOLDER]` prints the output of the cells and writes their figures
//! to FOLDER.

#[path = "notebook/show.rs"]
mod shown;

use shown::show;

#[allow(clippy::too_many_lines, reason = "all cells of a notebook are in `main`")]
fn main() -> flowline::Result<()> {
    //| # Images as points
    //|
    //| An image of 12 x 12 pixels is a point in 144 dimensions, and a set of images is a sample from a density in
    //| this space. This notebook learns such a density from 10,000 small drawings of three classes. It then samples
    //| new drawings of a chosen class, and computes how likely other images are. The command
    //| `flowline train train-images-idx3-ubyte.gz` trains a flow on MNIST.
    //|
    //| ## The data
    //|
    //| The drawings are rings, crosses and pairs of dots. They have a random position, size, rotation and brightness,
    //| and a background of faint noise.
    use flowline::data::ImageSet;
    use flowline::nn::prelude::*;
    use flowline::plot::{self, ImageGrid};
    use flowline::train::Trainer;

    const SIDE: usize = 12;

    /// The brightness at (x, y), from 0 to 1, of a drawing with this class, center, size and rotation angle.
    fn drawing(class: usize, [x0, y0, size, angle]: [f64; 4], x: f64, y: f64) -> f64 {
        let (sin, cos) = angle.sin_cos();
        let (u, v) = ((x - x0) * cos + (y - y0) * sin, (y - y0) * cos - (x - x0) * sin);
        let distance = match class {
            0 => (u.hypot(v) - size).abs(),
            1 => u.abs().min(v.abs()).max(u.abs().max(v.abs()) - 1.2 * size),
            _ => (u.abs() - size).hypot(v) - 0.9,
        };
        1.0 / (1.0 + (5.0 * (distance - 0.6)).exp())
    }

    /// The pixel values [n, 12, 12, 1] of n drawings, and their classes.
    fn drawings(n: usize, key: &Key) -> (Vec<u8>, Vec<u16>) {
        let [draws, noise] = key.split();
        let (draws, noise) = (draws.uniform([n, 5]).to_vec(), noise.uniform([n, SIDE * SIDE]).to_vec());
        let (mut pixels, mut classes) = (Vec::new(), Vec::new());
        for (i, u) in draws.chunks_exact(5).enumerate() {
            let pose = [4.0 + 3.0 * u[0], 4.0 + 3.0 * u[1], 2.0 + 1.5 * u[2], std::f64::consts::PI * u[3]];
            for p in 0..SIDE * SIDE {
                let brightness = drawing(i % 3, pose, (p % SIDE) as f64, (p / SIDE) as f64);
                pixels.push((16.0 * noise[i * SIDE * SIDE + p] + (160.0 + 79.0 * u[4]) * brightness) as u8);
            }
            classes.push((i % 3) as u16);
        }
        (pixels, classes)
    }

    /// A figure of images in `columns` columns. A heading is a column and its text.
    fn image_grid(
        title: &str,
        images: &[u8],
        columns: usize,
        headings: &[(usize, String)],
    ) -> flowline::Result<plot::Figure> {
        Ok(plot::image_grid(&ImageGrid { title, images, size: [SIDE, SIDE, 1], columns, headings })?)
    }

    let key = Key::new(0);
    let [data_key, test_key, sample_key, noise_key] = key.split();
    let (pixels, classes) = drawings(10_000, &data_key);
    let (test_pixels, test_classes) = drawings(512, &test_key);
    show(&image_grid("the first of 10,000 drawings", &pixels[..36 * SIDE * SIDE], 12, &[])?);
    //| ## Bits per dimension
    //|
    //| Pixel values are whole numbers from 0 to 255, but a density is a function of real numbers. Therefore a random
    //| number $u$, uniform in $[0, 1)$, is added to each pixel value (dequantization). For an image $x$ with $d$
    //| pixels,
    //|
    //| $$\mathrm{bits/dim} = -\frac{1}{d} \, \mathbb E_u \log_2 p(x + u)$$
    //|
    //| is an upper bound on the bits per pixel of a lossless code that uses the model. A uniform density needs 8
    //| bits. The noise of the background has sixteen equally likely values, so every model needs at least about 4
    //| bits for a background pixel. The baseline is a model of independent pixels: the distribution of each pixel is
    //| the histogram of its values in the data.
    let mut independent_bits = 0.0;
    for p in 0..SIDE * SIDE {
        let mut counts = [0.5; 256];
        pixels.iter().skip(p).step_by(SIDE * SIDE).for_each(|&value| counts[usize::from(value)] += 1.0);
        let total: f64 = counts.iter().sum();
        independent_bits -= test_pixels
            .iter()
            .skip(p)
            .step_by(SIDE * SIDE)
            .map(|&value| (counts[usize::from(value)] / total).log2())
            .sum::<f64>();
    }
    println!("independent pixels: {:.3} bits/dim", independent_bits / test_pixels.len() as f64);
    //| ## Training
    //|
    //| `Trainer` maps each pixel through its own marginal distribution to a normal variable. The untrained flow is
    //| therefore a model of independent pixels, and training only has to learn the dependencies between pixels. The
    //| vector field is a small U-Net. The class of the drawing is one of its inputs. The flow is trained by flow
    //| matching. A tenth of the drawings are the validation part, which selects the best weights. Another tenth are
    //| the test part.
    let set =
        ImageSet::from_bytes("drawings", pixels.clone(), [SIDE, SIDE, 1])?.with_classes(classes.clone())?;
    let learned = Trainer::new(set).updates(1_500).run()?.noise_seed(0);
    let report = learned.report.clone().expect("`run` adds a report");
    println!("{} weights, {} updates", report.weights, report.updates);
    println!(
        "bits/dim of the test part: {:.3} ± {:.3}",
        report.test_bits_per_dim.unwrap_or(f64::NAN),
        report.test_bits_per_dim_stderr.unwrap_or(f64::NAN)
    );
    //| ## Samples of each class
    //|
    //| The next cell samples 36 drawings of each class. The figure shows the first 16.
    let names = ["rings", "crosses", "dots"];
    let mut samples: Vec<Vec<u8>> = Vec::new();
    for class in 0..3 {
        samples.push(learned.clone().class(class).sample(36, &sample_key)?.to_pixel_bytes());
    }
    let mut grid = Vec::new();
    for row in 0..4 {
        let four = 4 * SIDE * SIDE;
        samples.iter().for_each(|of_class| grid.extend(&of_class[row * four..(row + 1) * four]));
    }
    let headings: Vec<(usize, String)> =
        names.iter().enumerate().map(|(i, name)| (4 * i, (*name).to_owned())).collect();
    show(&image_grid("samples of the flow", &grid, 12, &headings)?);
    //| ## Memorization
    //|
    //| Does the model reproduce drawings of the data? The figure shows eight samples, each with the three nearest of
    //| the 10,000 drawings. If the model had memorized the data, the samples would be equal to their nearest
    //| drawings.
    /// The squared distance of two images.
    fn distance(a: &[u8], b: &[u8]) -> f64 {
        a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
    }

    let mut neighbors = Vec::new();
    for sample in samples.concat().chunks_exact(SIDE * SIDE).step_by(13).take(8) {
        let mut nearest: Vec<(f64, &[u8])> =
            pixels.chunks_exact(SIDE * SIDE).map(|image| (distance(sample, image), image)).collect();
        nearest.sort_by(|a, b| a.0.total_cmp(&b.0));
        neighbors.extend([sample, nearest[0].1, nearest[1].1, nearest[2].1].concat());
    }
    let headings = [(0, "sample".to_owned()), (1, "nearest drawings".to_owned())];
    let left = image_grid("", &neighbors[..16 * SIDE * SIDE], 4, &headings)?;
    show(&left.hstack(&image_grid("", &neighbors[16 * SIDE * SIDE..], 4, &headings)?));
    //| ## Log-probabilities
    //|
    //| The model assigns a log-probability to any image of this size. The next cell prints the mean bits/dim, with
    //| its standard error, of 512 unseen drawings, of the same drawings with inverted brightness, and of white noise.
    //| A more likely image has fewer bits/dim.
    let inverted: Vec<u8> = test_pixels.iter().map(|&value| 255 - value).collect();
    let noise: Vec<u8> =
        noise_key.uniform([512, SIDE * SIDE]).to_vec().iter().map(|u| (256.0 * u) as u8).collect();
    for (name, images) in [("unseen drawings", test_pixels), ("inverted", inverted), ("white noise", noise)] {
        let images =
            ImageSet::from_bytes(name, images, [SIDE, SIDE, 1])?.with_classes(test_classes.clone())?;
        let score = learned.bits_per_dim(&images)?;
        println!("{name:16} {:7.3} ± {:.3} bits/dim", score.bits.mean, score.bits.stderr.unwrap_or(f64::NAN));
    }
    //| The model also classifies drawings. By Bayes' rule with equal prior probabilities, the predicted class is the
    //| class that gives the image the largest log-probability.
    let (unseen_pixels, unseen_classes) = drawings(90, &test_key.fold_in(1));
    let mut log_probs = Vec::new();
    for class in 0..3 {
        let images = ImageSet::from_bytes("unseen", unseen_pixels.clone(), [SIDE, SIDE, 1])?
            .with_classes(vec![class; 90])?;
        log_probs.push(learned.log_prob(&images)?);
    }
    let mut correct = 0;
    for (i, &class) in unseen_classes.iter().enumerate() {
        let predicted = (0..3).max_by(|&a, &b| log_probs[a][i].total_cmp(&log_probs[b][i]));
        correct += usize::from(predicted == Some(usize::from(class)));
    }
    println!("{correct} of 90 unseen drawings are classified correctly");
    Ok(())
}
