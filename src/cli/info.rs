//! `flowline info`: tell what a run folder holds.

use super::table::{Table, grouped};
use super::{Result, result};
use crate::train::{FieldConfig, Learned, Steps, num_weights};
use std::path::PathBuf;

/// Arguments of `flowline info`.
#[derive(clap::Args)]
pub struct Args {
    /// A run folder
    dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// No run in the folder.
pub fn run(args: &Args) -> Result<()> {
    let learned = Learned::open(&args.dir)?;
    if args.json {
        let json = serde_json::json!({
            "update": learned.update, "weights": num_weights(&learned.flow), "header": learned.header,
        });
        result(&json.to_string());
    } else {
        result(&text(&learned));
    }
    Ok(())
}

fn text(learned: &Learned) -> String {
    let (recipe, header) = (&learned.header.recipe, &learned.header);
    let model = &recipe.model;
    let field = match model.field {
        FieldConfig::Fourier { features, .. } => format!("perceptron of {features} Fourier features"),
        FieldConfig::ConcatSquash => "ConcatSquash layers".to_owned(),
        FieldConfig::Mlp { .. } => "perceptron".to_owned(),
    };
    let steps = match model.solve.steps {
        Steps::Fixed { steps } => format!("{steps} fixed steps"),
        Steps::Adaptive { rtol, atol } => format!("rtol {rtol:e}, atol {atol:e}"),
    };
    let mut table = Table::default();
    match (&header.points, &header.image) {
        (None, Some(image)) => table.row("image", format!("{} x {} pixels", image.width, image.height)),
        (points, _) => {
            let name = points.as_ref().map_or("", |points| &points.name);
            table.row("points", format!("{name}: {}", learned.columns().join(", ")))
        }
    };
    if let Some(entropy) = header.entropy_nats() {
        table.row("entropy", format!("{entropy:.4} nats"));
    }
    table
        .row("preset", recipe.preset.name())
        .row("flow", format!("{} x {field}, hidden {:?}, t in [0, {}]", model.blocks, model.hidden, model.t1))
        .row("weights", grouped(num_weights(&learned.flow) as u64))
        .row("solver", format!("{}, {steps}, {} divergence", model.solve.solver, model.solve.divergence))
        .row("seed", recipe.seed.to_string())
        .row("updates", format!("{} of {}", grouped(learned.update), grouped(recipe.updates())));
    for phase in &recipe.phases {
        let (updates, batch, lr) = (grouped(phase.updates), grouped(phase.batch as u64), phase.lr);
        let text = format!("{updates} updates of {batch} points, {} at {lr:e}", recipe.optimizer);
        table.row(phase.objective.title(), text);
    }
    table.text()
}
