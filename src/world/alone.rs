//! A world with a single rank.

use super::{Collective, Parts, WaitLimit, WorldError};

/// The transport of a single rank, which receives only its own bytes.
pub(super) struct Alone;

impl Collective for Alone {
    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        1
    }
    fn host(&self, _rank: usize) -> String {
        super::threads::HERE.to_owned()
    }
    fn all_gather(&mut self, mine: &[u8], all: &mut Parts, _: &mut WaitLimit<'_>) -> Result<(), WorldError> {
        all.clear();
        all.push(mine);
        Ok(())
    }
    fn all_to_all(&mut self, mine: &Parts, all: &mut Parts, _: &mut WaitLimit<'_>) -> Result<(), WorldError> {
        all.clone_from(mine);
        Ok(())
    }
    fn broadcast(&mut self, _: &mut Vec<u8>, _: &mut WaitLimit<'_>) -> Result<(), WorldError> {
        Ok(())
    }
}
