//! The first division of points into groups: k-means from well separated points.
//!
//! Reference: Arthur and Vassilvitskii (2007), k-means++: the advantages of careful seeding.

use super::em::Rows;
use crate::tensor::Key;

/// The largest number of updates of the centers.
const UPDATES: usize = 10;

/// The group of each point, below `count`.
pub(super) fn divide(rows: &Rows, count: usize, key: &Key) -> Vec<usize> {
    if count == 1 {
        return vec![0; rows.count()];
    }
    let mut centers = spread(rows, &key.uniform([count]).to_vec());
    let mut labels = nearest(rows, &centers);
    for _ in 0..UPDATES {
        centers = means(rows, &labels, &centers);
        let next = nearest(rows, &centers);
        if next == labels {
            break;
        }
        labels = next;
    }
    labels
}

/// Centers at points: the first is uniform, each further one is drawn in proportion to the squared distance from those
/// before it. `draws` are uniform numbers below 1, one per center.
fn spread(rows: &Rows, draws: &[f64]) -> Vec<Vec<f64>> {
    let uniform = |u: f64| ((u * rows.count() as f64) as usize).min(rows.count() - 1);
    let mut centers = vec![rows.point(uniform(draws[0]))];
    let mut least = rows.squares(&centers[0]);
    for &u in &draws[1..] {
        let total: f64 = least.iter().sum();
        let mut left = u * total;
        let passes = |square: &f64| {
            left -= square;
            left < 0.0
        };
        // Without a distance, all points are equal to centers.
        let row = if total > 0.0 { least.iter().position(passes) } else { None };
        centers.push(rows.point(row.unwrap_or_else(|| uniform(u))));
        let last = rows.squares(&centers[centers.len() - 1]);
        least.iter_mut().zip(last).for_each(|(least, square)| *least = least.min(square));
    }
    centers
}

/// The nearest center of each point, the first of equals.
fn nearest(rows: &Rows, centers: &[Vec<f64>]) -> Vec<usize> {
    let mut best = vec![(f64::INFINITY, 0); rows.count()];
    for (k, center) in centers.iter().enumerate() {
        for (best, square) in best.iter_mut().zip(rows.squares(center)) {
            if square < best.0 {
                *best = (square, k);
            }
        }
    }
    best.into_iter().map(|(_, k)| k).collect()
}

/// The mean of each group; an empty group keeps its center.
fn means(rows: &Rows, labels: &[usize], centers: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut sums: Vec<Vec<f64>> = centers.iter().map(|center| vec![0.0; center.len()]).collect();
    let mut sizes = vec![0.0; centers.len()];
    for (row, &label) in labels.iter().enumerate() {
        sizes[label] += 1.0;
        sums[label].iter_mut().zip(rows.point(row)).for_each(|(sum, x)| *sum += x);
    }
    let mean = |((sum, size), center): ((Vec<f64>, f64), &Vec<f64>)| match size > 0.0 {
        true => sum.into_iter().map(|sum| sum / size).collect(),
        false => center.clone(),
    };
    sums.into_iter().zip(sizes).zip(centers).map(mean).collect()
}
