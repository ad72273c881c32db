//! Whether the options of a resumed run agree with the run.
//!
//! Configurations are compared, not options, so that `--batch 4096` agrees with a default of 4096. An option may also
//! change what another option sets: `--rtol` alone sets `--atol`. The error shows what differs, with both values.

use super::config::DataShape;
use super::options::{Resume, TrainOption, causes_first, plain};
use super::{Preset, TrainConfig, TrainError, TrainOptions};
use crate::error::Error;
use serde_json::Value;
use std::path::Path;

/// What differs between a run and an option given at its resume.
struct Change {
    /// The option, or a field of the configuration.
    what: String,
    was: String,
    asked: String,
}

impl TrainOptions {
    /// The options of a resumed run: its original options, if the options given now agree with them.
    ///
    /// # Errors
    /// [`TrainError::OtherOption`] for the first option that differs.
    pub(super) fn resume(
        &self,
        run: &TrainOptions,
        config: &TrainConfig,
        shape: DataShape,
        folder: &Path,
    ) -> Result<TrainOptions, Error> {
        for (name, value) in &self.to_map() {
            let change = run.change((TrainOption::named(name), value), config, shape);
            if let Some(Change { what, was, asked }) = change {
                let folder = folder.to_owned();
                return Err(TrainError::OtherOption { folder, option: what, was, asked }.into());
            }
        }
        Ok(run.clone())
    }

    /// What one more option changes in the configuration of a run with these options.
    fn change(
        &self,
        (option, value): (&TrainOption, &Value),
        config: &TrainConfig,
        shape: DataShape,
    ) -> Option<Change> {
        let mut with = self.to_map();
        let given = with.insert(option.name.to_owned(), value.clone());
        let was = plain(&given.unwrap_or_else(|| option.value_in(config)));
        let change = |was: String| Some(Change { what: option.name.to_owned(), was, asked: plain(value) });
        let with = TrainOptions::from_map(with);
        match option.resume {
            Resume::Change => return None,
            Resume::Updates => {
                return match self.time_limit {
                    Some(limit_s) => change(format!("none (`time_limit` {limit_s})")),
                    None => change(config.updates().to_string()).filter(|c| c.was != c.asked),
                };
            }
            Resume::TimeLimit => return change(was).filter(|_| with.time_limit != self.time_limit),
            // The run may have this preset of an earlier version.
            Resume::Preset if with.preset.as_ref() == Some(&config.preset) => return None,
            Resume::Preset | Resume::PartOfPreset | Resume::Config => {}
        }
        if with.check().is_err() {
            return change(was);
        }
        let found = match &with.preset {
            // A configuration given by the user is known only from the checkpoint.
            Some(given @ Preset::Given { .. }) if *given != config.preset => return change(was),
            // The run may have the presets of an earlier version, so only an option that chooses a part of the preset
            // applies to that of this version.
            None | Some(Preset::Default | Preset::Points | Preset::Images)
                if option.resume != Resume::Config =>
            {
                TrainConfig::of(&with, shape).with_start_of(config)
            }
            _ => config.clone().with(&with),
        };
        let found = found.with_updates_of(config);
        (found != *config).then(|| differing((option, value), config, &found))
    }
}

/// The first difference between the configurations of a run before and after an option: the option itself, another one
/// that it sets, or a field that no option sets.
fn differing((option, value): (&TrainOption, &Value), config: &TrainConfig, found: &TrainConfig) -> Change {
    let differs = |other: &&TrainOption| other.value_in(config) != other.value_in(found);
    let by = format!(" (by `{}`={})", option.name, plain(value));
    if let Some(other) = std::iter::once(option).chain(causes_first()).find(differs) {
        let [was, asked] = [config, found].map(|config| plain(&other.value_in(config)));
        // The value as it was typed, unless it is only a part of what differs.
        let typed = plain(value);
        let asked = match other.name == option.name {
            true if typed != was => typed,
            true => asked,
            false => asked + &by,
        };
        return Change { what: other.name.to_owned(), was, asked };
    }
    let json =
        |config: &TrainConfig| serde_json::to_value(config).expect("invariant: plain values with text keys");
    let (what, was, asked) = difference("config".to_owned(), &json(config), &json(found))
        .expect("invariant: configurations that differ have a field that differs");
    Change { what, was, asked: asked + &by }
}

/// The path of the first difference, and both values.
pub(super) fn difference(path: String, a: &Value, b: &Value) -> Option<(String, String, String)> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let of = |map: &serde_json::Map<String, Value>, key: &str| {
                map.get(key).cloned().unwrap_or(Value::Null)
            };
            let mut keys = x.keys().chain(y.keys().filter(|key| !x.contains_key(*key)));
            keys.find_map(|key| difference(format!("{path}.{key}"), &of(x, key), &of(y, key)))
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            x.iter().zip(y).enumerate().find_map(|(i, (v, w))| difference(format!("{path}.{i}"), v, w))
        }
        _ => (a != b).then(|| (path, a.to_string(), b.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};
    use serde_json::{Map, json};
    use std::collections::BTreeMap;

    /// Values of each option, valid by themselves.
    fn values() -> Vec<(&'static str, Vec<Value>)> {
        let of = |values: Value| values.as_array().unwrap().clone();
        vec![
            ("preset", of(json!(["default", "points"]))),
            ("updates", of(json!([1, 7, 12_000, 16_000, 16_160]))),
            ("time_limit", of(json!([0.5, 15.0, 280.0]))),
            ("batch", of(json!([64, 512, 2048, 4096]))),
            ("width", of(json!([8, 52, 56, 72]))),
            ("depth", of(json!([1, 3]))),
            ("blocks", of(json!([1, 2]))),
            ("divergence", of(json!(["exact", "hutchinson"]))),
            ("probes", of(json!([1, 3]))),
            ("solver", of(json!(["tsit5", "dopri5", "rk4"]))),
            ("rtol", of(json!([1e-4, 1e-3, 0.01]))),
            ("atol", of(json!([1e-4, 1e-3, 0.01]))),
            ("fixed_steps", of(json!([3, 16]))),
            ("checkpoints", of(json!([2, 5]))),
            ("optimizer", of(json!(["adam", "adamw", "lion"]))),
            ("objective", of(json!(["flow-matching", "maximum-likelihood", "both"]))),
            ("start", of(json!(["normal", "mixture"]))),
            ("dequantize", of(json!([false, true]))),
            ("kinetic", of(json!([0.0, 0.5]))),
            ("jacobian", of(json!([0.0, 0.25]))),
            ("patience", of(json!([1, 3]))),
            ("lr", of(json!([6e-3, 0.1, 1e-3]))),
            ("shards", of(json!([1, 4]))),
            ("seed", of(json!([0, 1]))),
        ]
    }

    /// Runs with 0 to 4 options, resumed with each value of each option: an option is accepted exactly if the
    /// configuration is the same with it. Otherwise the message names the option and two different values.
    #[test]
    fn a_message_names_the_option_of_a_resume_and_two_different_values() {
        let (mut rng, folder) = (SmallRng::seed_from_u64(7), Path::new("run"));
        let (mut counts, mut set_others) = (BTreeMap::<&str, [u32; 2]>::new(), 0);
        let mut runs = 0;
        while runs < 400 {
            let mut options = Map::new();
            for _ in 0..rng.random_range(0..5) {
                let (name, values) = &values()[rng.random_range(0..values().len())];
                options.insert((*name).to_owned(), values[rng.random_range(0..values.len())].clone());
            }
            let run = TrainOptions::from_map(options.clone());
            if run.check().is_err() {
                continue;
            }
            runs += 1;
            let config = TrainConfig::of(&run, DataShape::PLANE);
            for (name, values) in values() {
                for value in values {
                    let asked = TrainOptions::from_map(Map::from_iter([(name.to_owned(), value.clone())]));
                    let mut with = options.clone();
                    with.insert(name.to_owned(), value.clone());
                    let with = TrainOptions::from_map(with);
                    let is_same = match name {
                        "time_limit" => with.time_limit == run.time_limit,
                        "updates" => run.time_limit.is_none() && with.updates == Some(config.updates()),
                        _ => with.check().is_ok() && TrainConfig::of(&with, DataShape::PLANE) == config,
                    };
                    let found = asked.resume(&run, &config, DataShape::PLANE, folder);
                    let count = counts.entry(name).or_default();
                    count[usize::from(is_same)] += 1;
                    let Err(e) = found else {
                        assert!(is_same, "{options:?}: {name}={value} is accepted");
                        continue;
                    };
                    let message = e.to_string();
                    assert!(
                        !is_same && message.contains(&format!("`{name}`=")),
                        "{options:?}: {name}={value}: {message}"
                    );
                    let rest = message.strip_prefix("the run in run was begun with ").unwrap();
                    let (was, rest) = rest.split_once(", not ").unwrap();
                    let asked = rest.split_once("; ").unwrap().0;
                    let asked = asked.split_once(" (by ").map_or(asked, |(value, _)| value);
                    assert_ne!(was, asked, "{options:?}: {name}={value}: {message}");
                    set_others += u32::from(message.contains(" (by "));
                }
            }
        }
        assert!(
            counts.len() == values().len() && counts.values().all(|[other, same]| *other > 0 && *same > 0),
            "{counts:?}"
        );
        assert!(set_others > 0);
    }

    #[test]
    fn a_tolerance_that_sets_the_other_is_told_with_the_other() {
        let asked = TrainOptions { rtol: Some(1e-3), ..TrainOptions::default() };
        let run = TrainOptions::default();
        let found = asked.resume(&run, &TrainConfig::new(&run), DataShape::PLANE, Path::new("pr"));
        let message = found.unwrap_err().to_string();
        assert!(
            message.contains("begun with `atol`=0.001, not `atol`=0.0001 (by `rtol`=0.001)"),
            "{message}"
        );
    }
}
