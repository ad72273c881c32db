//! Setters of the trainer in any order, and settings that are refused before anything runs.

use super::*;

#[test]
fn the_order_of_what_is_set_does_not_matter() {
    let settled = |trainer: Trainer| trainer.plan().unwrap().iter().map(|phase| phase.updates).sum::<u64>();
    let new = || Trainer::from_flow(flow(0), image());
    assert_eq!(settled(new().updates(7).config(small())), 7);
    assert_eq!(settled(new().config(small()).updates(7)), 7);
    let batch = TrainOptions { batch: Some(8), ..TrainOptions::default() };
    assert_eq!(settled(new().updates(7).options(&batch).config(small())), 7);
    assert_eq!(settled(new().config(small())), 30);
    let config = TrainConfig { weight_decay: 0.5, optimizer: OptimizerKind::Lamb, ..small() };
    assert_eq!(config.clone().with(&TrainOptions::default()), config);
}

#[test]
fn setters_fill_the_options() {
    let trainer = Trainer::new(image()).width(9).solver("rk4").dequantize().lr(2e-3).plots(PlotsKind::None);
    let trainer =
        trainer.options(&TrainOptions { width: Some(7), batch: Some(5), ..TrainOptions::default() });
    let expected = TrainOptions {
        width: Some(8),
        solver: Some("rk4".to_owned()),
        dequantize: Some(true),
        lr: Some(2e-3),
        plots: Some(PlotsKind::None),
        batch: Some(5),
        ..TrainOptions::default()
    };
    assert_eq!(trainer.width(8).options, expected);
}

#[test]
fn what_a_given_flow_or_config_decides_is_refused_as_an_option() {
    let message = |trainer: Trainer| trainer.plan().map(|_| ()).unwrap_err().to_string();
    let given = |options: TrainOptions| message(Trainer::from_flow(flow(0), image()).options(&options));
    let width = given(TrainOptions { width: Some(9), ..TrainOptions::default() });
    assert!(width.contains("`width`=9") && width.contains("the given flow"), "{width}");
    let rtol = given(TrainOptions { rtol: Some(1e-3), ..TrainOptions::default() });
    assert!(rtol.contains("`rtol`=0.001"), "{rtol}");
    let preset = TrainOptions { preset: Some(Preset::Points), ..TrainOptions::default() };
    let preset = message(Trainer::new(image()).config(small()).options(&preset));
    assert!(preset.contains("`preset`=points") && preset.contains("config"), "{preset}");
    let nan = TrainOptions { lr: Some(f64::NAN), ..TrainOptions::default() };
    let nan = message(Trainer::new(image()).options(&nan));
    assert!(nan.contains("`lr`=NaN"), "{nan}");
    let both = message(Trainer::new(image()).updates(3).time_limit(9.0));
    assert!(both.contains("`updates`") && both.contains("`time_limit`"), "{both}");
    let line = Points::from_rows([[0.0], [1.0], [3.0]]).unwrap();
    let dims = message(Trainer::from_flow(flow(0), line));
    assert!(dims.contains("the flow has 2 dimensions, but the points of given have 1"), "{dims}");
}

#[test]
fn the_example_of_diffrax_has_one_name_in_files() {
    let [new, old] = ["diffrax", "documented"].map(|name| Preset::from(name.to_owned()));
    assert_eq!((&new, new.name()), (&old, "documented"));
}

#[test]
fn the_preset_of_an_image_fits_its_budget() {
    assert_eq!(Trainer::new(image()).num_params().unwrap(), 18_362);
}
