//! The bar of a run: phase, update, loss with its unit, time an update, time left.

use crate::train::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

const TEMPLATE: &str = "{prefix:.bold} {bar:28.cyan/blue} {pos}/{len}  {msg}";
/// How often the text is made anew; a bar redrawn at every update would cost more than it tells.
const EVERY: Duration = Duration::from_millis(100);

/// A bar on standard error; nothing where that is no terminal.
pub struct Bar {
    bar: ProgressBar,
    drawn: Option<Instant>,
}

impl Bar {
    /// A hidden bar until the first progress.
    pub fn new() -> Bar {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(TEMPLATE).expect("invariant: the template is well formed");
        bar.set_style(style.progress_chars("━╸─"));
        Bar { bar, drawn: None }
    }

    /// Shows where the run stands.
    pub fn show(&mut self, progress: &Progress) {
        let last = progress.update == progress.updates;
        if !last && self.drawn.is_some_and(|t| t.elapsed() < EVERY) {
            return;
        }
        self.drawn = Some(Instant::now());
        self.bar.set_length(progress.updates);
        self.bar.set_position(progress.update);
        self.bar.set_prefix(format!(
            "{}/{} {}",
            progress.phase + 1,
            progress.phases,
            progress.objective.title()
        ));
        self.bar.set_message(message(progress));
    }

    /// Prints a line above the bar.
    pub fn note(&self, text: &str) {
        if self.bar.is_hidden() { super::note(text) } else { self.bar.println(text) }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn message(p: &Progress) -> String {
    let gap = p.gap_nats.map_or_else(String::new, |gap| format!("  gap {gap:.3} nats"));
    let left = super::table::seconds(p.seconds_left.max(0.0));
    format!("loss {:.4} {}  {:.1} ms/update  {left} left{gap}", p.loss, p.objective.unit(), p.ms)
}
