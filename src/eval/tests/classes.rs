//! Every call of a density with classes, on drawn flows: under a class it gives the bits of the flow of this class alone, and
//! without one it names the classes.

use crate::cnf::config::{FieldConfig, Flow, ModelConfig, SolveConfig, of_class};
use crate::data::{Points, Rows};
use crate::error::Result;
use crate::eval::{Fitted, Frames, PointsFrame};
use crate::ode::tests::draw::{Draw, num_cases};
use crate::tensor::{Key, Tree};

fn drawn(draw: &mut Draw, dim: usize, classes: usize) -> Flow {
    let field = FieldConfig::Fourier {
        features: 1 + draw.below(8),
        log_frequency_max: 1.0,
        damping: 0.0,
        preconditioned: draw.below(2) == 0,
        normals: 0,
        classes,
    };
    let (hidden, solve) = (vec![4 + draw.below(8)], SolveConfig::adaptive(1e-3));
    let config = ModelConfig { field, hidden, blocks: 1, dim, t1: 1.0, solve, unlike: vec![] };
    // Gentle fields, so that rows given a coordinate have a large effective sample size.
    config.build(&Key::new(draw.bits())).unwrap().map_leaves(|leaf| leaf * 0.5)
}

fn frames(draw: &mut Draw, dim: usize) -> Frames {
    let row = |draw: &mut Draw| (0..dim).map(|_| draw.uniform(-9.0, 9.0)).collect::<Vec<f64>>();
    let rows: Vec<Vec<f64>> = (0..20 + dim).map(|_| row(draw)).collect();
    let frame = PointsFrame::of(&Points::from_rows(rows).unwrap(), String::new());
    Frames { points: Some(frame), ..Frames::default() }
}

/// The numbers of every call that evaluates a flow, with the name of the call.
fn all_calls(of: &Fitted, rows: &Rows, key: &Key) -> Vec<(&'static str, Result<Vec<f64>>)> {
    let joined = |(rows, log_probs): (Rows, Vec<f64>)| [rows.into_values(), log_probs].concat();
    let mut given = rows.values()[..of.dim()].to_vec();
    given[of.dim() - 1] = f64::NAN;
    let mut in_steps = Fitted::new(of.flow.clone(), &of.frames, None);
    in_steps.settings.steps = Some(3);
    if let Some(class) = of.settings.class {
        in_steps.set_class(class);
    }
    let parts = |of: &Fitted| -> Result<Vec<f64>> {
        let parts: Vec<Vec<f64>> = of.log_prob_parts(rows)?.collect::<Result<_>>()?;
        Ok(parts.concat())
    };
    let drawn_parts = |of: &Fitted| -> Result<Vec<f64>> {
        let parts: Vec<Rows> = of.sample_parts(9, key)?.collect::<Result<_>>()?;
        Ok(parts.into_iter().flat_map(Rows::into_values).collect())
    };
    let mut calls = vec![
        ("sample", of.sample(9, key).map(Rows::into_values)),
        ("sample in steps", in_steps.sample(9, key).map(Rows::into_values)),
        ("sample_parts", drawn_parts(of)),
        ("sample_with_log_prob", of.sample_with_log_prob(9, key).map(joined)),
        ("log_prob", of.log_prob(rows)),
        ("log_prob_parts", parts(of)),
        (
            "anomaly_scores",
            of.anomaly_scores(rows, 300, key)
                .map(|all| all.iter().flat_map(|score| [score.p_value, score.z_squared]).collect()),
        ),
    ];
    if of.dim() > 1 {
        let of_given = of.sample_given(&given, 9, key);
        calls.push(("sample_given", of_given.map(|found| [found.rows, vec![found.log_prob_given]].concat())));
    }
    calls
}

/// Draws flows of 1 to 4 columns and 1 to 4 classes; `FLOWLINE_CASES` sets their number.
#[test]
fn every_call_under_a_class_is_that_of_the_flow_of_the_class() {
    let (mut draw, mut calls) = (Draw(11), 0);
    for case in 0..num_cases(6) {
        let (dim, classes) = (1 + case % 4, 1 + draw.below(4));
        let (flow, without) = (drawn(&mut draw, dim, classes), frames(&mut draw, dim));
        let mut with = without.clone();
        let names = (0..classes).map(|class| format!("kind {class}")).collect();
        with.points.as_mut().expect("points").class_names = names;
        let standard = without.standard(dim);
        let row = |draw: &mut Draw| -> Vec<f64> {
            let z: Vec<f64> = (0..dim).map(|_| draw.uniform(-1.0, 1.0)).collect();
            standard.inverse_transform(&z)
        };
        let rows = Rows::from((0..5).map(|_| row(&mut draw)).collect::<Vec<_>>());
        let key = Key::new(draw.bits());

        let mut fitted = Fitted::new(flow.clone(), &with, None);
        for (call, found) in all_calls(&fitted, &rows, &key) {
            let message = found.err().unwrap_or_else(|| panic!("{call} without a class")).to_string();
            assert!(message.contains("this run has ") && message.contains("class"), "{call}: {message}");
        }
        let class = draw.below(classes);
        fitted.set_class(class);
        let alone = Fitted::new(of_class(&flow, class).expect("a flow with classes"), &without, None);
        for ((call, found), (_, wanted)) in
            all_calls(&fitted, &rows, &key).into_iter().zip(all_calls(&alone, &rows, &key))
        {
            let (found, wanted) = (found.unwrap(), wanted.unwrap());
            assert!(
                !found.is_empty() && found == wanted,
                "{call}, class {class} of {classes}, {dim} columns"
            );
            calls += 1;
        }
        fitted.set_class(classes);
        for (call, found) in all_calls(&fitted, &rows, &key) {
            let message = found.err().unwrap_or_else(|| panic!("{call} of class {classes}")).to_string();
            assert!(message.contains(&format!("`class`={classes}")), "{call}: {message}");
        }
    }
    assert!(calls >= 7 * num_cases(6), "{calls}");
}
