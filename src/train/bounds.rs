//! Limits on the size of a run: that of the model is checked before anything is compiled, and the memory of an
//! update before the first update of a phase.
//!
//! [`super::TrainOptions::check`] checks each option by itself; this module checks combinations.

use super::{DivergenceKind, Kept, Steps, TrainConfig, TrainError};
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
pub(super) fn check_model(config: &TrainConfig) -> Result<()> {
    let model = &config.model;
    let (depth, blocks) = (model.hidden.len(), model.blocks);
    let probes = if model.solve.divergence == DivergenceKind::Exact { model.dim } else { model.solve.probes };
    let layers = (depth + 1) * blocks * (1 + probes);
    if layers > LAYERS {
        return Err(TrainError::Layers { depth, blocks, probes, layers, limit: LAYERS }.into());
    }
    let squares: usize = model.hidden.windows(2).map(|w| w[0] * w[1]).sum();
    let weights = (squares * blocks) as u64;
    check_fits(config, &format!("a model of at least {weights} weights"), COPIES * 4 * weights)
}

/// Refuses an update whose compiled program needs more than the free memory.
///
/// # Errors
/// [`TrainError::Memory`].
pub(super) fn check_update(config: &TrainConfig, objective: &str, peak_bytes: u64) -> Result<()> {
    check_fits(config, &format!("an update ({objective})"), peak_bytes)
}

fn check_fits(config: &TrainConfig, what: &str, needed: u64) -> Result<()> {
    let Some(free) = process::free_bytes().filter(|&free| needed > free) else { return Ok(()) };
    Err(TrainError::Memory { options: options(config), what: what.to_owned(), needed, free }.into())
}

/// The options that determine the memory.
fn options(config: &TrainConfig) -> String {
    let model = &config.model;
    let batch = config.phases.iter().map(|p| p.batch).max().unwrap_or(0);
    let width = model.hidden.iter().max().unwrap_or(&0);
    let steps = match model.solve.steps {
        Steps::Fixed { steps } => format!(" --fixed-steps={steps}"),
        Steps::Adaptive { .. } => String::new(),
    };
    let kept = match model.solve.kept {
        Kept::Count(n) => format!(" --checkpoints={n}"),
        _ => String::new(),
    };
    let (depth, blocks) = (model.hidden.len(), model.blocks);
    format!("--batch={batch} --width={width} --depth={depth} --blocks={blocks}{steps}{kept}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::TrainOptions;

    #[test]
    fn what_does_not_fit_is_refused_with_its_options() {
        let config = |width, depth, blocks, probes| {
            TrainConfig::new(&TrainOptions { width, depth, blocks, probes, ..TrainOptions::default() })
        };
        assert!(check_model(&config(None, None, None, None)).is_ok());
        let layers = check_model(&config(Some(8), Some(64), Some(8), None)).unwrap_err().to_string();
        assert!(layers.contains("--depth=64 --blocks=8") && layers.contains("1560 layers"), "{layers}");
        let probes = check_model(&config(Some(8), Some(31), None, Some(32))).unwrap_err().to_string();
        assert!(probes.contains("--probes=32"), "{probes}");
        let update = check_update(&config(Some(9), None, None, None), "flow_matching", 1 << 60).unwrap_err();
        let update = update.to_string();
        assert!(update.contains("--width=9") && update.contains("1152921504.6 GB"), "{update}");
    }
}
