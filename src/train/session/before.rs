//! The check before the first update, in a run that starts from a mixture.

use super::Session;
use crate::error::Result;
use crate::train::StartKind;
use crate::train::best::{Criterion, Measured};

impl Session<'_> {
    /// Checks the flow before the first update, once per run: the weights of later checks must be better. A run that was
    /// killed after this check and resumed from update 0 has its result already.
    pub(super) fn check_start(&mut self, phase: usize) -> Result<()> {
        let is_new = self.update == 0 && self.best.as_ref().is_some_and(|best| best.measured.is_none());
        if !is_new || self.header.config.start == StartKind::Normal {
            return Ok(());
        }
        let score = self.check(phase)?;
        let nll = score.best_nll(self.header.frames.entropy_nats());
        if let Some(best) = self.best.as_mut().filter(|_| score.lost.is_none()) {
            let by = Criterion::Validation { nll_nats: nll.mean, nll_stderr_nats: nll.stderr };
            let measured = Measured { by, update: 0, rows: self.rows_checked };
            best.keep(measured, &self.state.ema, self.folder.as_ref(), &self.header.run)?;
        }
        Ok(())
    }
}
