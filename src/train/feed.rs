//! Batches of images, a function of (seed, update): read, dequantized and transformed during the previous update.
//!
//! Row i of update u is image `u * batch + i` of an endless sequence of shuffled epochs: every image occurs
//! once before any image occurs again, and a batch may span two epochs. The noise of a shard depends on the
//! seed and the indices of update and shard alone, so a rank reads only its own shards, and a resumed run
//! reads the same batches as an uninterrupted one. Only one batch is prefetched.

use crate::data::{DataError, ImageSet, PixelTransform, dequantize};
use crate::error::Result;
use crate::tensor::{Key, KeyRng, Tensor};
use rand::seq::SliceRandom;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Combined with a run's seed, so that these two uses have their own random numbers.
const ORDER_STREAM: u64 = 0x70f5_0f7e_57da_7a12;
const NOISE_STREAM: u64 = 0x70f5_0f7e_57da_7a13;

/// Reads batches of an image set.
pub struct Feed {
    reader: Arc<Reader>,
    /// The batch that is being prefetched.
    ahead: Mutex<Option<Ahead>>,
}

/// Selected shards of an update's batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The index of the update, from 0.
    pub update: u64,
    /// Rows of the whole batch.
    pub batch: usize,
    /// Number of shards in the batch.
    pub shards: usize,
    /// The selected shards.
    pub which: Range<usize>,
}

/// The rows of each shard and, with labels, the classes of its images.
type Made = Result<Vec<(Vec<f32>, Option<Vec<u32>>)>, DataError>;

struct Ahead {
    wanted: Wanted,
    made: JoinHandle<Made>,
}

struct Reader {
    images: Arc<ImageSet>,
    /// Indices of the training images.
    train: Vec<u32>,
    transform: PixelTransform,
    seed: u64,
    /// The index of an epoch, and its images in shuffled order.
    order: Mutex<(u64, Vec<u32>)>,
}

impl Feed {
    /// A feed of the images whose indices are in `train`.
    pub(super) fn new(images: Arc<ImageSet>, train: &[usize], transform: PixelTransform, seed: u64) -> Feed {
        let train: Vec<u32> = train.iter().map(|&i| i as u32).collect();
        let reader = Reader { images, train, transform, seed, order: Mutex::new((u64::MAX, Vec::new())) };
        Feed { reader: Arc::new(reader), ahead: Mutex::new(None) }
    }

    /// Number of pixel values of an image.
    pub fn dim(&self) -> usize {
        self.reader.images.dim()
    }

    /// Whether the images have classes.
    pub fn has_labels(&self) -> bool {
        self.reader.images.labels().is_some()
    }

    /// The rows `[batch / shards, dim]` of each selected shard and, with labels, the classes `[batch /
    /// shards]`; starts to prefetch the next update.
    ///
    /// # Errors
    /// As [`ImageSet::rows`].
    pub(super) fn batch(&self, wanted: &Wanted) -> Result<Vec<(Tensor, Option<Tensor>)>> {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let ready = ahead.take().filter(|ahead| ahead.wanted == *wanted);
        let made = match ready {
            Some(ready) => ready.made.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => self.reader.make(self.reader.draw(wanted)),
        };
        let made = made?;
        let (reader, next) = (self.reader.clone(), Wanted { update: wanted.update + 1, ..wanted.clone() });
        let drawn = reader.draw(&next);
        *ahead = Some(Ahead { wanted: next, made: std::thread::spawn(move || reader.make(drawn)) });
        let rows = wanted.batch / wanted.shards;
        let tensors = |(x, labels): (Vec<f32>, Option<Vec<u32>>)| {
            (Tensor::from_vec([rows, self.dim()], x), labels.map(Tensor::from))
        };
        Ok(made.into_iter().map(tensors).collect())
    }
}

impl Reader {
    /// The images of each shard and the generator of its noise. Keys are tensors: they are made and dropped on the thread
    /// of the training, so that the number of live buffers after an update does not depend on how far the next batch is.
    fn draw(&self, wanted: &Wanted) -> Vec<(Vec<usize>, KeyRng)> {
        let Wanted { update, batch, shards, ref which } = *wanted;
        let (all, rows) = (self.which(update, batch), batch / shards);
        let noise = Key::new(self.seed ^ NOISE_STREAM).fold_in(Tensor::from(update as u32));
        let shard = |shard: usize| {
            let noise = if shards == 1 { noise.clone() } else { noise.fold_in(shard as u32) };
            (all[shard * rows..(shard + 1) * rows].to_vec(), noise.rng())
        };
        which.clone().map(shard).collect()
    }

    fn make(&self, drawn: Vec<(Vec<usize>, KeyRng)>) -> Made {
        let shard = |(which, mut noise): (Vec<usize>, KeyRng)| {
            let x = dequantize(&self.images.rows(&which)?, &mut noise);
            let labels = self.images.labels().map(|all| which.iter().map(|&i| u32::from(all[i])).collect());
            Ok((self.transform.points(&x), labels))
        };
        drawn.into_iter().map(shard).collect()
    }

    /// Indices of the images in a batch.
    fn which(&self, update: u64, batch: usize) -> Vec<usize> {
        let (n, first) = (self.train.len() as u64, update * batch as u64);
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let at = |place: u64| {
            let (pass, place) = (place / n, place % n);
            if order.0 != pass {
                let mut rng = Key::new(self.seed ^ ORDER_STREAM).fold_in(Tensor::from(pass as u32)).rng();
                order.1.clone_from(&self.train);
                order.1.shuffle(&mut rng);
                order.0 = pass;
            }
            order.1[place as usize] as usize
        };
        (first..first + batch as u64).map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::MarginalTransform;

    fn feed(folder: &crate::io::Scratch) -> Feed {
        let path = folder.path().join("set.idx");
        let header = [[0, 0, 8, 3], [0, 0, 0, 10], [0, 0, 0, 1], [0, 0, 0, 2]].concat();
        std::fs::write(&path, [header, (0..20).map(|i| i * 5).collect()].concat()).unwrap();
        let labels = folder.path().join("labels.csv");
        let text: String = (0..10).map(|i| format!("{i}\n")).collect();
        std::fs::write(&labels, format!("label\n{text}")).unwrap();
        let images = Arc::new(ImageSet::open(&path).unwrap().with_labels(&labels).unwrap());
        let train: Vec<usize> = (0..7).collect();
        let transform = MarginalTransform::fit(&images, &train).unwrap().into();
        Feed::new(images, &train, transform, 3)
    }

    fn whole(update: u64, batch: usize) -> Wanted {
        Wanted { update, batch, shards: 1, which: 0..1 }
    }

    #[test]
    fn every_image_comes_once_before_any_comes_again() {
        let folder = crate::io::scratch();
        let feed = feed(&folder);
        let labels: Vec<f64> = (0..7)
            .flat_map(|update| feed.batch(&whole(update, 4)).unwrap().remove(0).1.unwrap().to_vec())
            .collect();
        for pass in labels.chunks(7) {
            let mut sorted = pass.to_vec();
            sorted.sort_by(f64::total_cmp);
            assert_eq!(sorted, (0..7).map(f64::from).collect::<Vec<_>>());
        }
        assert_ne!(labels[..7], labels[7..14]);
    }

    #[test]
    fn a_batch_is_a_function_of_its_update_whatever_came_before() {
        let folder = crate::io::scratch();
        let one = feed(&folder);
        let rows = |feed: &Feed, update| feed.batch(&whole(update, 3)).unwrap().remove(0).0.to_vec();
        let in_turn: Vec<_> = (0..6).map(|update| rows(&one, update)).collect();
        let other = feed(&folder);
        assert_eq!(
            [rows(&other, 4), rows(&other, 5), rows(&other, 0)],
            [in_turn[4].clone(), in_turn[5].clone(), in_turn[0].clone()]
        );
        // An image gets new noise in each epoch.
        let all = in_turn.concat();
        assert!((0..all.len()).all(|i| (0..i).all(|j| all[i] != all[j])));
    }

    #[test]
    fn a_shard_is_the_same_whoever_reads_it_and_shards_have_the_images_of_the_batch() {
        let folder = crate::io::scratch();
        let read = |which| {
            let shards = feed(&folder).batch(&Wanted { update: 5, batch: 6, shards: 3, which }).unwrap();
            shards.into_iter().map(|(x, labels)| (x.to_vec(), labels.unwrap().to_vec())).collect::<Vec<_>>()
        };
        let all = read(0..3);
        assert_eq!([read(0..1), read(1..3)].concat(), all);
        let labels: Vec<f64> = all.into_iter().flat_map(|(_, labels)| labels).collect();
        assert_eq!(labels, feed(&folder).batch(&whole(5, 6)).unwrap()[0].1.as_ref().unwrap().to_vec());
    }
}
