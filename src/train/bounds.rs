//! Limits on the size of a run: that of the model is checked before anything is compiled, and the memory of an
//! update before the first update of a phase.
//!
//! [`super::TrainOptions::check`] checks each option by itself; this module checks combinations.

use super::options::plain;
use super::{DivergenceKind, Kept, Steps, TrainConfig, TrainError, TrainOptions};
use crate::error::Result;
use crate::io::process;

/// Maximum number of layers of a model that may be compiled, counted over all blocks, once for the velocity
/// and once per direction of the divergence. Compiling 1,024 layers takes about 20 s.
const LAYERS: usize = 1024;
/// Values stored per weight: model, average, two moments, gradient, and copies of three of them during an update.
const COPIES: u64 = 8;

/// Refuses models that do not fit into memory or take too long to compile.
///
/// # Errors
/// [`TrainError::Layers`], [`TrainError::Memory`].
pub(super) fn check_model(options: &TrainOptions, config: &TrainConfig) -> Result<()> {
    let model = &config.model;
    let (depth, blocks) = (model.hidden.len(), model.blocks);
    let probes = if model.solve.divergence == DivergenceKind::Exact { model.dim } else { model.solve.probes };
    let layers = (depth + 1) * blocks * (1 + probes);
    if layers > LAYERS {
        let options = typed(options, &["depth", "blocks", "divergence", "probes"]);
        return Err(TrainError::Layers { options, depth, blocks, probes, layers, limit: LAYERS }.into());
    }
    let squares: usize = model.hidden.windows(2).map(|w| w[0] * w[1]).sum();
    let weights = (squares * blocks) as u64;
    check_fits((options, config), &format!("a model of at least {weights} weights"), COPIES * 4 * weights)
}

/// Refuses an update whose compiled program needs more than the free memory.
///
/// # Errors
/// [`TrainError::Memory`].
pub(super) fn check_update(
    (options, config): (&TrainOptions, &TrainConfig),
    objective: &str,
    peak_bytes: u64,
) -> Result<()> {
    check_fits((options, config), &format!("an update ({objective})"), peak_bytes)
}

fn check_fits((options, config): (&TrainOptions, &TrainConfig), what: &str, needed: u64) -> Result<()> {
    let Some(free) = process::free_bytes().filter(|&free| needed > free) else { return Ok(()) };
    let names = ["batch", "width", "depth", "blocks", "fixed_steps", "checkpoints"];
    let (options, what) = (typed(options, &names), format!("{what} with {}", sizes(config)));
    Err(TrainError::Memory { options, what, needed, free }.into())
}

/// Those of these options that were given, as the beginning of a message.
fn typed(options: &TrainOptions, names: &[&str]) -> String {
    let given = options.to_map();
    let option = |name: &&str| Some(format!("`{name}`={}", plain(given.get(*name)?)));
    let found: Vec<String> = names.iter().filter_map(option).collect();
    if found.is_empty() { String::new() } else { format!("{}: ", found.join(" ")) }
}

/// The sizes that determine the memory.
fn sizes(config: &TrainConfig) -> String {
    let model = &config.model;
    let batch = config.phases.iter().map(|p| p.batch).max().unwrap_or(0);
    let width = model.hidden.iter().max().unwrap_or(&0);
    let steps = match model.solve.steps {
        Steps::Fixed { steps } => format!(", {steps} steps"),
        Steps::Adaptive { .. } => String::new(),
    };
    let kept = match model.solve.kept {
        Kept::Count(n) => format!(", {n} stored states"),
        _ => String::new(),
    };
    let (depth, blocks) = (model.hidden.len(), model.blocks);
    format!("batch {batch}, width {width}, depth {depth}, blocks {blocks}{steps}{kept}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::TrainOptions;

    #[test]
    fn what_does_not_fit_is_refused_with_its_options() {
        let options = |width, depth, blocks, probes| TrainOptions {
            width,
            depth,
            blocks,
            probes,
            ..TrainOptions::default()
        };
        let model = |options: TrainOptions| check_model(&options, &TrainConfig::new(&options));
        assert!(model(options(None, None, None, None)).is_ok());
        let layers = model(options(Some(8), Some(64), Some(8), None)).unwrap_err().to_string();
        assert!(layers.starts_with("`depth`=64 `blocks`=8: ") && layers.contains("1560 layers"), "{layers}");
        assert!(!layers.contains("`probes`") && !layers.contains("`width`"), "{layers}");
        let probes = model(options(Some(8), Some(31), None, Some(32))).unwrap_err().to_string();
        assert!(probes.starts_with("`depth`=31 `probes`=32: ") && probes.contains("32 probes"), "{probes}");
        let update = |options: TrainOptions| {
            let found = check_update((&options, &TrainConfig::new(&options)), "flow_matching", 1 << 60);
            found.unwrap_err().to_string()
        };
        let typed = update(options(Some(9), None, None, None));
        assert!(typed.starts_with("`width`=9: an update (flow_matching) with batch "), "{typed}");
        assert!(typed.contains("1152921504.6 GB"), "{typed}");
        let bare = update(options(None, None, None, None));
        assert!(bare.starts_with("an update (flow_matching) with batch 4096, width 72"), "{bare}");
    }
}
