//! What the example of this name claims.

mod place;

use super::run;
use place::{is_picture, scratch};

#[test]
fn a_latent_motion_is_learned_from_series_with_times_of_their_own() {
    let folder = scratch();
    let reached = run(folder.path(), 100).unwrap();
    // A decoder that always says zero is off by 0.9, and has an evidence of -1,600.
    assert!(reached.off < 0.6 && reached.evidence > -700.0 && reached.traces == 1, "{reached:?}");
    assert!(is_picture(folder.path(), "latent_ode.png"));
}
