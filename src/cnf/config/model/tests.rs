//! Headers that are refused, and flows that are rebuilt from their headers.

use super::*;
use crate::ode::tests::draw::Draw;
use crate::tensor::Tree;

fn config(field: FieldConfig, hidden: Vec<usize>, dim: usize) -> ModelConfig {
    let solve = SolveConfig::adaptive(1e-3);
    ModelConfig { field, hidden, blocks: 2, dim, t1: 0.5, solve, unlike: vec![] }
}

#[test]
fn sizes_of_no_flow_are_refused() {
    let config = config(FieldConfig::ConcatSquash, vec![5], 2);
    let message = |config: ModelConfig| config.build(&Key::new(0)).unwrap_err().to_string();
    assert!(message(ModelConfig { blocks: 0, ..config.clone() }).contains("the number of blocks is 0"));
    assert!(message(ModelConfig { hidden: vec![0], ..config.clone() }).contains("width of a layer is 0"));
    let unlike = |widths: &[usize]| widths.iter().map(|&n| (FieldConfig::ConcatSquash, vec![n])).collect();
    let blocks = |widths: &[usize]| ModelConfig { blocks: 2, unlike: unlike(widths), ..config.clone() };
    assert!(message(blocks(&[3, 0])).contains("width of a layer is 0"));
    assert!(message(blocks(&[3])).contains("the header describes 1 blocks, but the flow has 2"));
    assert!(message(ModelConfig { dim: 0, ..config.clone() }).contains("the length of a row is 0"));
    assert!(message(ModelConfig { t1: f64::INFINITY, ..config }).contains("t1 must be finite, got inf"));
}

fn unet(ends: usize, blocks_middle: usize, classes: usize) -> FieldConfig {
    let (blocks_down, blocks_up) = (1, 1);
    let image = [8, 8, 1];
    FieldConfig::UNet { ends, image, patch: 2, blocks_down, blocks_middle, blocks_up, time: 16, classes }
}

#[test]
fn u_nets_beyond_the_bounds_are_refused() {
    let message =
        |field, levels| config(field, vec![32; levels], 64).build(&Key::new(0)).unwrap_err().to_string();
    assert!(message(unet(0, 2, 3), 17).contains("the number of levels is 17"));
    assert!(message(unet(0, usize::MAX, 3), 2).contains("the number of blocks of a level"));
    assert!(message(unet(0, 2, usize::MAX), 2).contains("the number of classes"));
    assert!(message(unet(usize::MAX, 2, 3), 2).contains("the number of range ends per pixel is"));
    let mlp = FieldConfig::Mlp { activation: ActivationKind::Silu, time: true, classes: usize::MAX };
    assert!(message(mlp, 2).contains("the number of classes"));
}

fn fourier(damping: f64, preconditioned: bool, normals: usize) -> FieldConfig {
    FieldConfig::Fourier { features: 4, log_frequency_max: 1.0, damping, preconditioned, normals, classes: 0 }
}

#[test]
fn a_header_names_the_number_of_normals_only_where_there_are_some() {
    let text = |normals| serde_json::to_string(&fourier(0.0, true, normals)).unwrap();
    let without = r#"{"fourier":{"features":4,"log_frequency_max":1.0,"preconditioned":true}}"#;
    assert_eq!(text(0), without);
    assert_eq!(serde_json::from_str::<FieldConfig>(without).unwrap(), fourier(0.0, true, 0));
    assert_eq!(serde_json::from_str::<FieldConfig>(&text(3)).unwrap(), fourier(0.0, true, 3));
    let many = config(fourier(0.0, true, 1 << 11), vec![5], 2).build(&Key::new(0)).unwrap_err();
    assert!(many.to_string().contains("the number of normal densities is 2048"), "{many}");
}

/// An architecture of one of the four kinds.
pub(super) fn drawn(seed: u64) -> ModelConfig {
    let mut draw = Draw(seed);
    let mut within = |least: usize, most: usize| least + draw.below(most - least + 1);
    let (dim, classes) = (within(1, 9), [0, 0, 3][within(0, 2)]);
    let (field, dim) = match seed % 4 {
        0 => {
            let (features, normals) = (within(1, 40), [0, 0, 1, 5][within(0, 3)]);
            let (log_frequency_max, damping, preconditioned) = (1.0, 0.0, normals > 0 || within(0, 1) == 1);
            (
                FieldConfig::Fourier {
                    features,
                    log_frequency_max,
                    damping,
                    preconditioned,
                    normals,
                    classes,
                },
                dim,
            )
        }
        1 => (FieldConfig::ConcatSquash, dim),
        2 => (FieldConfig::Mlp { activation: ActivationKind::Tanh, time: within(0, 1) == 1, classes }, dim),
        _ => {
            let image = [within(1, 12), within(1, 12), [1, 3][within(0, 1)]];
            let [blocks_down, blocks_middle, blocks_up] = [(); 3].map(|()| within(0, 2));
            let (ends, patch, time) = ([0, 0, 2][within(0, 2)], within(1, 3), within(1, 20));
            let field = FieldConfig::UNet {
                ends,
                image,
                patch,
                blocks_down,
                blocks_middle,
                blocks_up,
                time,
                classes,
            };
            (field, image.iter().product())
        }
    };
    let hidden = (0..within(1, 3)).map(|_| within(1, 30)).collect();
    ModelConfig { blocks: within(1, 2), ..config(field, hidden, dim) }
}

/// Each is a file of a few numbers whose header describes a flow of more than 2^28 weights.
#[test]
fn a_header_with_more_weights_than_its_file_is_refused_before_they_are_allocated() {
    let mlp = FieldConfig::Mlp { activation: ActivationKind::Tanh, time: true, classes: 0 };
    let image = [1, 1, 1];
    let levels = |blocks_down, blocks_middle, patch, time, classes| FieldConfig::UNet {
        ends: 0,
        image,
        patch,
        blocks_down,
        blocks_middle,
        blocks_up: 0,
        time,
        classes,
    };
    for config in [
        config(mlp, vec![1 << 16; 1000], 2),
        config(mlp, vec![1 << 16], 1 << 23),
        config(FieldConfig::ConcatSquash, vec![1 << 16; 4], 2),
        config(fourier(0.0, true, 0), vec![1 << 16; 4], 2),
        config(levels(0, 1 << 10, 1, 1, 0), vec![1 << 12], 1),
        config(levels(1 << 10, 0, 1, 1, 0), vec![1 << 12; 2], 1),
        config(levels(0, 0, 1 << 16, 1, 0), vec![1 << 4], 1),
        config(levels(0, 0, 1, 1, 0), vec![1 << 6; 16], 1),
        config(levels(0, 1 << 10, 1, 1 << 16, 0), vec![1 << 8], 1),
        config(levels(0, 0, 1, 1 << 16, 1 << 16), vec![1], 1),
        ModelConfig { unlike: vec![(mlp, vec![1]), (mlp, vec![1 << 16; 3])], ..config(mlp, vec![1], 2) },
    ] {
        let message = config.build_like(1_000).unwrap_err().to_string();
        assert!(message.contains("but the file has 1000 numbers"), "{config:?}: {message}");
        assert!(config.fewest_weights() > 1 << 28, "{config:?}: {}", config.fewest_weights());
    }
}

/// Files have these names.
#[test]
fn activations_keep_their_names() {
    let all = [
        (Activation::Tanh, "tanh"),
        (Activation::Silu, "silu"),
        (Activation::Softplus, "softplus"),
        (Activation::Relu, "relu"),
        (Activation::Gelu, "gelu"),
        (Activation::Elu, "elu"),
        (Activation::LeakyRelu, "leaky_relu"),
        (Activation::Sigmoid, "sigmoid"),
        (Activation::Identity, "identity"),
    ];
    for (activation, name) in all {
        let text = serde_json::to_string(&ActivationKind::from(activation)).unwrap();
        assert_eq!(text, format!("\"{name}\""));
        assert_eq!(Activation::from(serde_json::from_str::<ActivationKind>(&text).unwrap()), activation);
    }
}

#[test]
fn a_flow_is_rebuilt_from_its_description() {
    let classes = 3;
    let mlp = FieldConfig::Mlp { activation: ActivationKind::Silu, time: true, classes };
    let all = [
        config(fourier(0.0, false, 0), vec![5, 6], 2),
        config(fourier(0.5, true, 0), vec![5, 6], 2),
        config(fourier(0.5, true, 3), vec![5, 6], 2),
        config(FieldConfig::ConcatSquash, vec![5, 6], 3),
        config(mlp, vec![5, 6], 3),
        config(unet(0, 2, classes), vec![32, 32], 64),
        config(unet(2, 2, classes), vec![32, 32], 64),
    ];
    for config in all {
        let flow = config.build(&Key::new(1)).unwrap();
        let again = ModelConfig::of(&flow).build(&Key::new(2)).unwrap();
        assert_eq!(flow.settings, again.settings);
        let shapes = |flow: &Flow| {
            flow.named_leaves().into_iter().map(|(p, t)| (p, t.shape().clone())).collect::<Vec<_>>()
        };
        assert_eq!(shapes(&flow), shapes(&again));
    }
}

#[test]
#[should_panic(expected = "run folders support ConcatSquash only with tanh, got Softplus")]
fn a_concat_squash_that_no_description_rebuilds_is_refused() {
    let field = ConcatSquash::new(2, [5], &Key::new(1)).activation(Activation::Softplus);
    let _ = ModelConfig::of(&Cnf::new(field.into()));
}

#[test]
fn blocks_that_are_not_alike_are_rebuilt_each_by_its_own_kind() {
    let (key, dim) = (Key::new(1), 2);
    let blocks: Vec<AnyVelocityField> = vec![
        ConcatSquash::new(dim, [5], &key).into(),
        Mlp::new([dim + 1, 4, 3, dim], Activation::Silu, &key).into(),
        ConcatSquash::new(dim, [7, 6], &key).into(),
    ];
    let flow = Cnf::from_blocks(blocks);
    let config = ModelConfig::of(&flow);
    let stored = serde_json::to_string(&config).unwrap();
    let again: ModelConfig = serde_json::from_str(&stored).unwrap();
    assert_eq!(again, config);
    let built = again.build(&Key::new(2)).unwrap();
    let shapes = |flow: &Flow| {
        flow.named_leaves().into_iter().map(|(p, t)| (p, t.shape().clone())).collect::<Vec<_>>()
    };
    assert_eq!(shapes(&built), shapes(&flow));
    assert_eq!(ModelConfig::of(&built), config);
    // Equal blocks are described once, as in older headers.
    let alike = Cnf::from_blocks(vec![flow.blocks[0].clone(); 2]);
    let stored = serde_json::to_string(&ModelConfig::of(&alike)).unwrap();
    assert!(!stored.contains("unlike") && !stored.contains("per_row"), "{stored}");
}
