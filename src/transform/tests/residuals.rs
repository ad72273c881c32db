//! Residuals that are not worth storing are removed before a program is compiled.

use super::*;
use crate::graph::Op;
use crate::graph::tests::arbitrary::{Recipe, function};
use crate::transform::{Searches, batch_with, optimize, with_worthy_residuals};

/// Programs with gradients of loops. `FLOWLINE_CASES=<n>` sets another number of programs.
const CASES: u64 = 60;

fn num_residuals(f: &Func) -> usize {
    let of = |op: &Op| match op {
        Op::Solve(s) => s.num_residuals(),
        Op::Replay(l) => l.num_residuals,
        _ => 0,
    };
    f.nodes().iter().map(|node| of(&node.op)).sum()
}

/// Gradients of drawn programs of 8 to 32 operations, of one row or of 2 to 4 rows in lockstep.
#[test]
fn removed_residuals_change_no_bit_of_a_gradient() {
    let cases = std::env::var("FLOWLINE_CASES").map_or(CASES, |n| n.parse().expect("a number"));
    // Programs of which residuals were removed; those in lockstep among them.
    let (mut removed, mut in_lockstep) = (0, 0);
    for seed in 0..cases {
        let recipe = Recipe {
            ops: 8 + seed as usize % 25,
            float: DType::F64,
            loops: true,
            short: false,
            singular: false,
        };
        let (num, floats) = (seed as usize % 4, |types: &[Type]| {
            (0..types.len()).filter(|&k| types[k].is_float()).collect::<Vec<usize>>()
        });
        let f = function(seed, recipe).0;
        let f = match num {
            2.. => batch_with(&f, &vec![true; f.num_inputs()], num, Searches::Lockstep),
            _ => f,
        };
        let gradient = vjp(&f, &floats(&f.output_types()), &floats(&f.input_types()));
        let gradient = optimize(&gradient.expect("none of its loops is a gradient"));
        let fewer = with_worthy_residuals(&gradient);
        let mut draws = Draws::new(seed);
        let x: Vec<Array> = gradient.input_types().iter().map(|ty| draws.array(ty)).collect();
        let bits = |f: &Func| eval(f, &x).iter().map(|y| format!("{:?}", y.data())).collect::<Vec<_>>();
        assert_eq!(bits(&fewer), bits(&gradient), "program {seed}:\n{gradient}");
        let again = with_worthy_residuals(&fewer);
        assert_eq!(again.to_string(), fewer.to_string(), "program {seed}: a second removal removes more");
        let [before, after] = [&gradient, &fewer].map(num_residuals);
        assert!(after <= before, "program {seed}");
        removed += usize::from(after < before);
        in_lockstep += usize::from(after < before && num > 1);
    }
    assert!(removed >= 10 && in_lockstep >= 5, "removed from {removed} programs, {in_lockstep} in lockstep");
}
