//! How many weights a header promises, before any of them is allocated.

use super::{FieldConfig, ModelConfig};

/// `a * b + c`, at most `usize::MAX`.
fn plus(c: usize, a: usize, b: usize) -> usize {
    a.saturating_mul(b).saturating_add(c)
}

/// The elements of the matrices between layers of these sizes.
fn matrices(sizes: &[usize]) -> usize {
    sizes.windows(2).fold(0, |sum, pair| plus(sum, pair[0], pair[1]))
}

impl ModelConfig {
    /// A lower bound on the number of weights, at least a quarter of it for all but tiny flows: the elements of the matrices,
    /// without biases and other vectors.
    ///
    /// A file whose header promises more than the file holds is refused before its flow is built. Otherwise a file of a few
    /// kilobytes could allocate all memory.
    pub(crate) fn fewest_weights(&self) -> usize {
        if self.unlike.is_empty() {
            return self.fewest_of(self.field, &self.hidden).saturating_mul(self.blocks);
        }
        let all = self.unlike.iter().map(|(field, hidden)| self.fewest_of(*field, hidden));
        all.fold(0, usize::saturating_add)
    }

    fn fewest_of(&self, field: FieldConfig, hidden: &[usize]) -> usize {
        let ends = |inputs: usize| [&[inputs], hidden, &[self.dim]].concat();
        match field {
            FieldConfig::Fourier { features, normals, classes, .. } => {
                let rotations = self.dim.saturating_mul(self.dim);
                plus(matrices(&ends(features.saturating_add(classes))), rotations, normals)
            }
            FieldConfig::ConcatSquash => matrices(&ends(self.dim)),
            FieldConfig::Mlp { classes, .. } => matrices(&ends(self.dim.saturating_add(classes))),
            FieldConfig::UNet {
                ends,
                image,
                patch,
                blocks_down,
                blocks_middle,
                blocks_up,
                time,
                classes,
            } => {
                let (Some(&finest), Some(&coarsest)) = (hidden.first(), hidden.last()) else { return 0 };
                // A block has two convolutions of 3 x 3, and a matrix from the embedding of time to two numbers per channel.
                let block = |c: usize| plus(c.saturating_mul(c).saturating_mul(18), 2 * c, time);
                let down_and_up = blocks_down.saturating_add(blocks_up);
                let mut sum = plus(time.saturating_mul(classes), block(coarsest), blocks_middle);
                for pair in hidden.windows(2) {
                    sum = plus(plus(sum, block(pair[0]), down_and_up), 8 * pair[0], pair[1]);
                }
                // The convolutions at both ends, and a number per position and channel of the finest level.
                let pixels = patch.saturating_mul(patch).saturating_mul(image[2]).saturating_mul(ends + 1);
                let scale = hidden.len() as u32 - 1;
                let coarse = patch.saturating_mul(1 << scale);
                let side = |pixels: usize| pixels.div_ceil(coarse.max(1)).saturating_mul(1 << scale);
                let positions = side(image[0]).saturating_mul(side(image[1]));
                sum = plus(plus(sum, 18 * finest, pixels), positions, finest);
                plus(sum, ends, self.dim)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FieldConfig;
    use super::super::tests::drawn;
    use crate::tensor::{Key, Tensor, Tree};

    /// Draws 50 architectures of each of the four kinds, every fifth with unlike blocks.
    #[test]
    fn the_bound_is_below_the_number_of_weights_and_at_least_a_quarter_of_it() {
        let mut kinds = [0; 4];
        for seed in 0..200 {
            let mut config = drawn(seed);
            if seed % 5 == 0 {
                let unlike = [(config.field, config.hidden.clone()), (FieldConfig::ConcatSquash, vec![7, 3])];
                (config.blocks, config.unlike) = (2, unlike.to_vec());
            }
            kinds[seed as usize % 4] += 1;
            let flow = config.build(&Key::new(seed)).unwrap();
            let weights: usize = flow.leaves().iter().map(Tensor::size).sum();
            let fewest = config.fewest_weights();
            assert!(fewest <= weights && weights <= 4 * fewest + 400, "{config:?}: {fewest} of {weights}");
        }
        assert!(kinds.iter().all(|&n| n == 50));
    }
}
