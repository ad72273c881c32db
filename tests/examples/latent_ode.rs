//! Checks the results that the example states.

mod place;

use super::run;
use place::{is_picture, scratch};

#[test]
fn a_latent_ode_is_learned_from_irregular_series() {
    let folder = scratch();
    let reached = run(folder.path(), 100).unwrap();
    // A decoder that always returns zero is off by 0.9 and has an ELBO of -1,600.
    assert!(reached.off < 0.6 && reached.evidence > -700.0, "{reached:?}");
    assert!(is_picture(folder.path(), "latent_ode.png"));
}
