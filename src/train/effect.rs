//! Which options have an effect, by the kind of data and the objective.
//!
//! An option without effect for the data is refused. An option of solves is stored with the flow, so in a run without
//! maximum likelihood it is accepted, and a note says that the training does not use it.

use super::options::{Needs, OPTIONS, TrainOption, plain};
use super::{Objective, TargetKind, TrainConfig, TrainError, TrainOptions, TrainingData};
use crate::error::Error;

impl TrainConfig {
    /// Refuses exact targets for data whose density is not known.
    ///
    /// # Errors
    /// [`TrainError::Useless`].
    pub(super) fn check_target(&self, data: &TrainingData) -> Result<(), Error> {
        let options = TrainOptions { target: Some(self.target), ..TrainOptions::default() };
        options.check_kind(data)
    }

    /// Refuses early stopping, if asked for, in a run that has no checks for its best weights.
    ///
    /// # Errors
    /// [`TrainError::Useless`].
    pub(super) fn check_patience(&self, data: &TrainingData, asked: Option<u64>) -> Result<(), Error> {
        let is_checked =
            self.selects_by_estimate() || matches!(data, TrainingData::Points(..) | TrainingData::Images(..));
        match asked.filter(|_| !is_checked) {
            None => Ok(()),
            Some(checks) => Err(TrainError::Useless {
                option: "patience",
                value: checks.to_string(),
                reason: "it needs a table or a set of images, or exact targets without maximum likelihood; \
                         other runs on an image or a toy density have no checks, as every update has new points",
            }
            .into()),
        }
    }
}

impl TrainOptions {
    /// Refuses options without effect for these data.
    ///
    /// # Errors
    /// [`TrainError::Useless`] for the first such option.
    pub(super) fn check_kind(&self, data: &TrainingData) -> Result<(), Error> {
        let is_images = matches!(data, TrainingData::Images(..));
        let is_points = matches!(data, TrainingData::Points(..));
        let is_held_out = is_images || is_points;
        let given = self.to_map();
        let is_exact = self.target == Some(TargetKind::Exact);
        for &TrainOption { name, needs, .. } in OPTIONS {
            let reason = match needs {
                Needs::Density if is_exact && is_held_out => {
                    "it needs an image or a toy density; the density of other data is not known"
                }
                Needs::Density if is_exact && data.is_weighted() => {
                    "the points of this image have weights, which belong to drawn targets"
                }
                Needs::Images if !is_images => "it needs a set of images, but the data are of another kind",
                Needs::Points | Needs::Start if !is_points => "it needs a table",
                _ => continue,
            };
            if let Some(value) = given.get(name) {
                return Err(TrainError::Useless { option: name, value: plain(value), reason }.into());
            }
        }
        Ok(())
    }

    /// A note if the training uses no solves or no flow matching, but options of these are given.
    pub(super) fn unused(&self, config: &TrainConfig) -> Option<String> {
        let has = |objective| config.phases.iter().any(|phase| phase.objective == objective);
        let (needs, reason): (&[Needs], _) = match Objective::MaximumLikelihood {
            solves if !has(solves) => (&[Needs::Solves], "flow matching has no solves"),
            _ if !has(Objective::FlowMatching) => (
                &[Needs::Paths, Needs::Density, Needs::Start],
                "maximum likelihood draws no times and no paths",
            ),
            _ => return None,
        };
        let given = self.to_map();
        let unused = OPTIONS.iter().filter(|of| needs.contains(&of.needs) && given.contains_key(of.name));
        let options: Vec<String> = unused.map(|option| format!("`{}`", option.name)).collect();
        let verb = if options.len() == 1 { "has" } else { "have" };
        let text = format!("note: {} {verb} no effect on the training: {reason}", options.join(", "));
        (!options.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tests::boxes;
    use crate::data::{Given, ImageSet, Points, ToyDensity};
    use crate::train::options::Resume;
    use crate::train::{ObjectiveKind, SolveConfig, Trainer};
    use serde_json::{Map, Value, json};
    use std::collections::BTreeMap;
    use std::sync::Arc;

    /// A value of each option that is no default.
    fn values() -> Map<String, Value> {
        let values = json!({
            "preset": "points", "updates": 7, "time_limit": 9.0, "batch": 64, "width": 8, "depth": 1, "blocks": 2,
            "divergence": "hutchinson", "probes": 3, "solver": "dopri5", "rtol": 0.01, "atol": 0.01, "fixed_steps": 3,
            "checkpoints": 2, "optimizer": "lamb", "objective": "maximum-likelihood", "times": "likelihood",
            "target": "exact", "start": "normal", "field": "mlp",
            "pixels": "logit", "kinetic": 0.5, "jacobian": 0.5, "patience": 2, "dequantize": true, "lr": 0.1, "shards": 2, "seed": 5
        });
        values.as_object().unwrap().clone()
    }

    fn data() -> [TrainingData; 4] {
        let points = Points::from_rows((0..40).map(|i| [f64::from(i), f64::from(i * i)]).collect::<Vec<_>>());
        let pixels: Vec<u8> = (0..40 * 8).map(|i| (i * 37 % 251) as u8).collect();
        let images = ImageSet::from_bytes("dots", pixels, [2, 4, 1]).unwrap();
        [
            boxes().into(),
            points.unwrap().into(),
            ToyDensity::Moons.into(),
            TrainingData::Images(Arc::new(images), Given::default()),
        ]
    }

    /// What determines the training.
    fn used(config: &TrainConfig, data: &TrainingData) -> TrainConfig {
        let mut config = config.clone();
        if config.phases.iter().all(|phase| phase.objective == Objective::FlowMatching) {
            config.model.solve = SolveConfig::adaptive(1.0);
        }
        if config.phases.iter().all(|phase| phase.objective == Objective::MaximumLikelihood) {
            (config.times, config.target) = Default::default();
        }
        if matches!(data, TrainingData::Image(_) | TrainingData::Toy(_)) && !config.selects_by_estimate() {
            config.patience = None;
        }
        config
    }

    /// Every option with every kind of data and every objective: an option that changes nothing of what determines the
    /// training is refused or noted by its name, and no other.
    #[test]
    fn an_option_without_effect_is_refused_or_noted() {
        let all: Vec<String> = values().keys().cloned().collect();
        let stored = || OPTIONS.iter().filter(|option| option.resume != Resume::Change);
        let mut known: Vec<&str> = stored().map(|option| option.name).collect();
        known.sort_unstable();
        assert_eq!(known, all.iter().map(String::as_str).collect::<Vec<_>>());
        let mut found = BTreeMap::<(&str, usize), u32>::new();
        for data in data() {
            let objectives: Vec<_> = ObjectiveKind::ALL.iter().copied().map(Some).chain([None]).collect();
            for objective in objectives {
                let base = TrainOptions { objective, ..TrainOptions::default() };
                let settled = |options: &TrainOptions| Trainer::new(data.clone()).options(options).settle();
                let (_, plain) = settled(&base).unwrap();
                assert_eq!(base.unused(&plain), None);
                for &TrainOption { name, .. } in stored() {
                    let option = &format!("`{name}`");
                    let is_images = matches!(data, TrainingData::Images(..));
                    if name == "objective" || (name == "preset" && is_images) {
                        continue;
                    }
                    let mut map = base.to_map();
                    map.insert(name.to_owned(), values()[name].clone());
                    if name == "target" && matches!(data, TrainingData::Image(_)) {
                        // The target of an image is exact already.
                        map.insert(name.to_owned(), "drawn".into());
                    }
                    let with = TrainOptions::from_map(map);
                    // The preset of points and toys is "points" already.
                    let with = match &data {
                        TrainingData::Points(..) | TrainingData::Toy(_) if name == "preset" => {
                            TrainOptions { preset: Some(super::super::Preset::Default), ..with }
                        }
                        _ => with,
                    };
                    let kind = match settled(&with) {
                        Err(e) => {
                            let message = e.to_string();
                            assert!(message.contains(option) && message.contains("leave"), "{message}");
                            0
                        }
                        Ok((options, config)) => {
                            let has_effect =
                                name == "time_limit" || used(&config, &data) != used(&plain, &data);
                            let note = options.unused(&config);
                            assert_eq!(
                                note.is_none(),
                                has_effect,
                                "{} {objective:?} {name}: {note:?}",
                                data.name()
                            );
                            assert!(note.iter().all(|note| note.contains(option)), "{note:?}");
                            1 + usize::from(has_effect)
                        }
                    };
                    *found.entry((name, kind)).or_default() += 1;
                }
            }
        }
        let count = |name: &str, kind: usize| found.get(&(name, kind)).copied().unwrap_or(0);
        assert_eq!([count("patience", 0), count("patience", 2)], [6, 10]);
        assert_eq!([count("pixels", 0), count("pixels", 2)], [12, 4]);
        assert_eq!([count("dequantize", 0), count("dequantize", 2)], [12, 4]);
        assert_eq!([count("solver", 1), count("solver", 2)], [8, 8]);
        assert_eq!([count("start", 0), count("start", 1), count("start", 2)], [12, 1, 3]);
        assert_eq!([count("target", 0), count("target", 1), count("target", 2)], [8, 2, 6]);
        assert_eq!([count("times", 1), count("times", 2)], [4, 12]);
        assert_eq!(count("width", 2), 16);
    }
}
