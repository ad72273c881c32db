//! Embeddings of indices and times.

use super::*;

#[test]
fn an_embedding_looks_rows_up_and_its_gradient_counts_them() {
    let table = Embedding { weight: Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]) };
    let index = Tensor::from([2, 0, 2]);
    close(&table.forward(&index), &[5.0, 6.0, 1.0, 2.0, 5.0, 6.0]);
    let (_, grads) = value_and_grad(|table: &Embedding| table.forward(&index).sum(), &table);
    close(&grads.weight, &[1.0, 1.0, 0.0, 0.0, 2.0, 2.0]);
    let square = table.forward(&Tensor::from([[0, 1], [1, 2]]));
    assert_eq!(**square.shape(), [2, 2, 2]);
}

#[test]
fn sinusoids_fall_geometrically_from_one_turn_to_the_longest() {
    let t = [0.0, 1.0, 37.5];
    let want: Vec<f64> = t
        .iter()
        .flat_map(|t| {
            let angles = [1.0, 0.1, 0.01, 0.001].map(|w| t * w);
            angles.map(f64::sin).into_iter().chain(angles.map(f64::cos))
        })
        .collect();
    close(&timestep_embedding(&Tensor::from(t), 8, 1e4), &want);
    assert_eq!(**timestep_embedding(&Tensor::from([[1.0f32], [2.0]]), 6, 1e4).shape(), [2, 1, 6]);
    close(
        &timestep_embedding(&Tensor::from([3]), 2, 1e4).cast(DType::F32),
        &[f64::from(3f32.sin()), f64::from(3f32.cos())],
    );
}

#[test]
fn fourier_times_are_turns_of_trained_frequencies() {
    let embedding = GaussianFourierProjection { frequencies: Tensor::from([0.25, -1.5]) };
    let angle = |w: f64| 2.0 * PI * w * 0.7;
    let (a, b) = (angle(0.25), angle(-1.5));
    close(&embedding.forward(&Tensor::from([0.7])), &[a.sin(), b.sin(), a.cos(), b.cos()]);
    assert_gradients(&embedding, &draws([3], 1), GaussianFourierProjection::forward);
    let drawn = GaussianFourierProjection::new(4000, 16.0, &Key::new(2)).frequencies.to_vec();
    let std = (drawn.iter().map(|x| x * x).sum::<f64>() / 4e3).sqrt();
    assert!((std - 16.0).abs() < 0.6, "{std}");
}
