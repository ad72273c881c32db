//! Attention: its formula, masks and gradients.

use super::*;

/// Rows `[n, d]` of a flat vector.
fn rows(x: &[f64], d: usize) -> Vec<&[f64]> {
    x.chunks(d).collect()
}

/// The formula for one batch entry; `bias(head, i, j)` is added to the scores.
fn naive(
    a: &MultiHeadAttention,
    x: &[f64],
    c: &[f64],
    bias: impl Fn(usize, usize, usize) -> f64,
) -> Vec<f64> {
    let map = |l: &Linear, x: &[f64]| -> Vec<Vec<f64>> {
        rows(x, l.inputs()).into_iter().map(|row| affine(l, row)).collect()
    };
    let (q, k, v) = (map(&a.query, x), map(&a.key, c), map(&a.value, c));
    let size = q[0].len() / a.heads;
    let mut y = Vec::new();
    for i in 0..q.len() {
        let mut joined = Vec::new();
        for h in 0..a.heads {
            let part = h * size..(h + 1) * size;
            let dot = |j: usize| part.clone().map(|l| q[i][l] * k[j][l]).sum::<f64>();
            let e: Vec<f64> =
                (0..k.len()).map(|j| (dot(j) / (size as f64).sqrt() + bias(h, i, j)).exp()).collect();
            let sum: f64 = e.iter().sum();
            joined.extend(part.map(|l| (0..k.len()).map(|j| e[j] / sum * v[j][l]).sum::<f64>()));
        }
        y.extend(affine(&a.output, &joined));
    }
    y
}

/// Attention with nonzero biases.
fn attention(context: usize) -> MultiHeadAttention {
    let a = MultiHeadAttention::to_context(6, context, 3, &Key::new(1)).with_edges(4, &Key::new(2));
    let mut seed = 20;
    double(&a).map_leaves(|x| {
        seed += 1;
        if x.rank() == 1 { draws([x.size()], seed) } else { x.clone() }
    })
}

#[test]
fn self_attention_is_its_formula_in_every_entry_of_a_batch() {
    let (a, x) = (attention(6), draws([2, 5, 6], 3));
    let v = x.to_vec();
    let want: Vec<f64> = v.chunks(30).flat_map(|x| naive(&a, x, x, |_, _, _| 0.0)).collect();
    close(&a.forward(&x, AttentionOptions::default()), &want);
    close(&a.forward(&x.index(1), AttentionOptions::default()), &want[30..]);
    close(&a.forward(&x.reshape([1, 2, 5, 6]), AttentionOptions::default()), &want);
}

#[test]
fn edges_and_biases_add_to_the_scores_of_each_head() {
    let a = attention(4);
    let (x, context) = (draws([2, 3, 6], 4), draws([2, 5, 4], 5));
    let (edges, bias) = (draws([2, 3, 5, 4], 6), draws([3, 3, 5], 7));
    let (e, b, w) = (edges.to_vec(), bias.to_vec(), a.edge.as_ref().unwrap().weight.to_vec());
    let (v, c) = (x.to_vec(), context.to_vec());
    let mut want = Vec::new();
    for n in 0..2 {
        want.extend(naive(&a, &v[n * 18..][..18], &c[n * 20..][..20], |h, i, j| {
            let edge: f64 = (0..4).map(|f| e[((n * 3 + i) * 5 + j) * 4 + f] * w[f * 3 + h]).sum();
            edge + b[(h * 3 + i) * 5 + j]
        }));
    }
    let with = AttentionOptions { edges: Some(&edges), bias: Some(&bias), ..AttentionOptions::default() };
    let y = a.cross_attend(&x, &context, with);
    assert_eq!(**y.shape(), [2, 3, 6]);
    close(&y, &want);
}

#[test]
fn rows_of_weights_sum_to_one_and_are_zero_where_masked() {
    let (a, x) = (attention(6), draws([2, 5, 6], 8));
    let mask = causal_mask(5);
    let weights = a.weights(&x, &x, AttentionOptions { mask: Some(&mask), ..AttentionOptions::default() });
    assert_eq!(**weights.shape(), [2, 3, 5, 5]);
    for (i, row) in weights.to_vec().chunks(5).enumerate() {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-14, "{row:?}");
        let sees = i % 5 + 1;
        assert!(row[..sees].iter().all(|w| *w > 0.0) && row[sees..].iter().all(|w| *w == 0.0), "{row:?}");
    }
}

#[test]
fn what_is_masked_does_not_act_be_it_nan() {
    let (a, x) = (attention(6), draws([1, 4, 6], 9));
    // Only the last row of the second batch entry is masked: no row attends to it.
    let both = Tensor::concat(&[&x, &x], 0);
    let mask = Tensor::iota(DType::I32, [2, 1, 4], 2) + Tensor::iota(DType::I32, [2, 1, 4], 0) * 10;
    let mask = mask.ne(13);
    let y = a.forward(&both, AttentionOptions { mask: Some(&mask), ..AttentionOptions::default() });
    close(&y.index(0), &a.forward(&x, AttentionOptions::default()).to_vec());
    let short = x.slice(1, 0..3);
    close(&y.index(1).slice(0, 0..3), &a.forward(&short, AttentionOptions::default()).to_vec());
    let bias = Tensor::from([[0.0, 0.0, 0.0, f64::NAN]]);
    let with = AttentionOptions { mask: Some(&mask), bias: Some(&bias), ..AttentionOptions::default() };
    close(&a.forward(&both, with).index(1), &y.index(1).to_vec());
}

#[test]
fn a_row_that_sees_nothing_is_the_bias_of_the_output_and_its_gradient_is_a_number() {
    let (a, x) = (attention(6), draws([3, 6], 10));
    let mask = Tensor::iota(DType::I32, [3, 3], 0).gt(0);
    let with =
        |x: &Tensor| a.forward(x, AttentionOptions { mask: Some(&mask), ..AttentionOptions::default() });
    close(&with(&x).index(0), &a.output.bias.as_ref().unwrap().to_vec());
    assert_gradients(&a, &x, |a, x| {
        a.forward(x, AttentionOptions { mask: Some(&mask), ..AttentionOptions::default() })
    });
}

#[test]
fn gradients_of_attention_are_those_of_differences() {
    let (a, edges) = (attention(4), draws([2, 3, 5, 4], 11));
    let (context, mask) = (draws([2, 5, 4], 12), causal_mask(5).slice(0, 1..4));
    assert_gradients(&(a, context, edges), &draws([2, 3, 6], 13), |(a, context, edges), x| {
        a.cross_attend(
            x,
            context,
            AttentionOptions { mask: Some(&mask), edges: Some(edges), ..AttentionOptions::default() },
        )
    });
}

#[test]
fn dropped_weights_change_the_result_and_a_rate_of_zero_does_not() {
    let (a, x, key) = (attention(6), draws([2, 5, 6], 14), Key::new(15));
    let with = |rate: f64| {
        a.forward(&x, AttentionOptions { dropout: Some((rate, &key)), ..AttentionOptions::default() })
            .to_vec()
    };
    let plain = a.forward(&x, AttentionOptions::default()).to_vec();
    assert_eq!(with(0.0), plain);
    assert_ne!(with(0.5), plain);
}

#[test]
fn softmax_is_its_formula_and_large_scores_do_no_harm() {
    let x = Tensor::from([[1.0, 2.0, 4.0], [1e4, -1e4, 1e4]]);
    let sum = 1.0 + 1f64.exp() + 3f64.exp();
    let row = [0.0, 1.0, 3.0f64].map(|x| x.exp() / sum);
    close(&softmax(&x), &[row[0], row[1], row[2], 0.5, 0.0, 0.5]);
    let logs = [0.0, 1.0, 3.0].map(|x| x - sum.ln());
    close(&log_softmax(&x), &[logs[0], logs[1], logs[2], -2f64.ln(), -2e4 - 2f64.ln(), -2f64.ln()]);
    assert_gradients(&(), &draws([2, 4], 16), |(), x| softmax(x));
    assert_gradients(&(), &draws([2, 4], 17), |(), x| log_softmax(x));
}

#[test]
fn weights_are_glorots_and_biases_zero() {
    let a = MultiHeadAttention::new(128, 8, &Key::new(0)).with_edges(128, &Key::new(1));
    assert_eq!(num_elements(&a), 4 * (128 * 128 + 128) + 128 * 8);
    let bound = (6.0f64 / 256.0).sqrt();
    for (path, x) in a.named_leaves() {
        let largest = x.to_vec().iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        match path.as_str() {
            "edge.weight" => {
                let bound = (6.0f64 / 136.0).sqrt();
                assert!(largest > 0.95 * bound && largest < bound * 1.000_001, "{largest}");
            }
            p if p.ends_with("bias") => assert_eq!(largest, 0.0),
            _ => assert!(largest > 0.98 * bound && largest < bound * 1.000_001, "{path}: {largest}"),
        }
    }
}

#[test]
#[should_panic(expected = "3 heads do not divide rows of length 8")]
fn heads_that_do_not_divide_are_refused() {
    MultiHeadAttention::new(8, 3, &Key::new(0));
}

#[test]
#[should_panic(expected = "attention got edges [5,5,4] but has no map for edge features: call `with_edges`")]
fn edges_without_a_map_are_refused() {
    let (x, edges) = (Tensor::zeros([5, 6]), Tensor::zeros([5, 5, 4]));
    let a = MultiHeadAttention::new(6, 2, &Key::new(0));
    a.forward(&x, AttentionOptions { edges: Some(&edges), ..AttentionOptions::default() });
}
