//! Leaves have the structure of the tree that they were made from.

use crate::adjoint::leaves::{Layout, Leaves};
use crate::adjoint::state::TensorState;
use crate::adjoint::{Adjoint, Batching, PartNorm};
use crate::array::DType;
use crate::ode::{Event, Ode, State, Tol, Tolerance};
use crate::tensor::{Key, Tensor, Tree, grad};
use crate::tree;

tree! {
struct Pools { fast: Tensor, slow: Vec<Tensor>, stage: usize }
}
type Nested = (Tensor, (Pools, Tensor));

/// Four random tensors of f64 and one of f32, in a tree in a tuple in a tuple.
fn nested(key: u64) -> Nested {
    let [a, b, c, d] = Key::new(key).split();
    let numbers = |key: &Key, n: usize| key.normal([n]).cast(DType::F64);
    let slow = vec![numbers(&b, 3), c.normal([2])];
    (numbers(&a, 2), (Pools { fast: numbers(&c, 5), slow, stage: 1 }, numbers(&d, 4)))
}

fn bits(leaves: &[Tensor]) -> Vec<Vec<u64>> {
    leaves.iter().map(|x| x.to_vec().iter().map(|x| x.to_bits()).collect()).collect()
}

#[test]
fn leaves_have_the_paths_of_the_tree_that_they_were() {
    let (y, prints) = (nested(0), |leaves: Vec<(String, Tensor)>| format!("{leaves:?}"));
    assert_eq!(prints(Leaves::of(&y).named_leaves()), prints(y.named_leaves()));
}

#[test]
fn errors_and_sums_of_leaves_have_the_bits_of_the_tree_that_they_were() {
    let each = |x: f64| Tol::Each((0..16).map(|j| x * f64::from(j + 1)).collect());
    let bounds = [(Tol::All(1e-3), Tol::All(1e-6)), (each(1e-3), each(1e-6))];
    for (seed, (rtol, atol)) in (0..20).flat_map(|seed| bounds.each_ref().map(|b| (seed, b))) {
        let tol = Tolerance::of(rtol, atol);
        let [y0, y1, k0, k1] = [0, 1, 2, 3].map(|i| nested(4 * seed + i));
        let (dt, b) = (Tensor::from(0.1), [0.3, -0.7]);
        let (mut tree, mut leaves) = (y0.clone(), Leaves::of(&y0));
        let [l0, l1] = [&y0, &y1].map(Leaves::of);
        let (k, lk) = ([k0.clone(), k1.clone()], [Leaves::of(&k0), Leaves::of(&k1)]);

        let ratios = [
            tree.error_ratio(&dt, &b, &k[..], &y0, &y1, &tol),
            leaves.error_ratio(&dt, &b, &lk[..], &l0, &l1, &tol),
        ];
        assert_eq!(bits(&ratios[..1]), bits(&ratios[1..]), "seed {seed}");
        tree.scaled_error(&dt, &b, &k[..], &y0, &y1, &tol);
        leaves.scaled_error(&dt, &b, &lk[..], &l0, &l1, &tol);
        assert_eq!(bits(&tree.leaves()), bits(leaves.tensors()), "seed {seed}");
        tree.lincomb(&y0, &dt, &b, &k[..]);
        leaves.lincomb(&l0, &dt, &b, &lk[..]);
        assert_eq!(bits(&tree.leaves()), bits(leaves.tensors()), "seed {seed}");
        assert_eq!((tree.num_components(), tree.parts()), (leaves.num_components(), leaves.parts()));
    }
}

#[test]
fn the_first_component_that_is_not_finite_is_counted_as_in_the_tree() {
    for bad in [None, Some(0), Some(2), Some(9), Some(11), Some(15)] {
        let mut y = nested(1);
        let mut first = 0;
        y.each_mut(&mut |x| {
            let at = Tensor::iota(DType::F64, [x.size()], 0) + f64::from(first);
            let is_bad = bad.map_or(at.lt(0.0), |bad| at.ge(f64::from(bad)));
            *x = is_bad.select(&Tensor::scalar(x.dtype(), f64::NAN), x);
            first += x.size() as u32;
        });
        let like = Tensor::from(0.0);
        let found = [y.first_non_finite(&like), Leaves::of(&y).first_non_finite(&like)].map(|x| x.item());
        assert_eq!(found, [bad.map_or(-1.0, f64::from); 2]);
    }
}

#[test]
fn errors_of_integrals_are_not_measured_and_carried_tensors_stay_unchanged() {
    let each = |x: f64| Tol::Each((0..4).map(|j| x * f64::from(j + 1)).collect());
    let (rtol, atol) = (each(1e-3), each(1e-6));
    let tol = Tolerance::of(&rtol, &atol);
    let state = |x: f64| Tensor::from([x, -2.0 * x, 0.3 * x, x * x]);
    let of = |x: f64, beside: f64| {
        let beside = Tensor::from([beside, f64::NAN]);
        Leaves::join([
            (Layout::Carried(1), vec![beside.clone()]),
            (state(x).layout(), vec![state(x)]),
            (Layout::Quadrature(1), vec![beside]),
        ])
    };
    let (dt, b) = (Tensor::from(0.5), [1.0]);
    let (y0, y1, k) = (of(1.0, 7.0), of(1.1, 8.0), [of(0.2, 2.0)]);
    let mut scratch = y0.clone();
    let alone = state(0.0).error_ratio(&dt, &b, &[state(0.2)][..], &state(1.0), &state(1.1), &tol);
    assert_eq!(scratch.error_ratio(&dt, &b, &k[..], &y0, &y1, &tol).item(), alone.item());
    assert_eq!((y0.num_components(), y0.parts()), (4, vec![4]));
    assert_eq!(y0.first_non_finite(&dt).item(), -1.0);
    scratch.lincomb(&y0, &dt, &b, &k[..]);
    let moved: Vec<f64> = scratch.tensors().iter().map(|x| x.to_vec()[0]).collect();
    assert_eq!(moved, [7.0, 1.1, 8.0]);
}

#[test]
fn bounds_of_each_component_hold_for_its_adjoint_and_for_the_states_of_a_reversible_solve() {
    let gradient = |adjoint: Adjoint, rtol: Tol| {
        let loss = |y: &Tensor| {
            let field = |_t: Tensor, y: &Tensor| Tensor::stack(&[&-y.index(1), &(y.index(0) * y.index(0))]);
            let ode = Ode::new(field).adjoint(adjoint).rtol(rtol).atol(1e-9);
            ode.solve(0.0, 1.5, y).unwrap().y1.square().sum()
        };
        bits(&[grad(loss, &Tensor::from([1.0, 0.5]))])
    };
    for adjoint in [Adjoint::Direct, Adjoint::backsolve(), Adjoint::reversible()] {
        let all = gradient(adjoint, Tol::All(1e-6));
        assert_eq!(gradient(adjoint, Tol::Each(vec![1e-6; 2])), all, "{adjoint:?}");
        assert_ne!(gradient(adjoint, Tol::Each(vec![1e-6, 1e-2])), all, "{adjoint:?}");
    }
}

#[test]
fn a_derivative_of_another_shape_is_refused_with_the_path_in_the_tree() {
    let (y, mut dy) = (nested(2), nested(3));
    dy.1.0.slow[1] = Tensor::zeros([4]);
    let messages = [dy.conforms(&y), Leaves::of(&dy).conforms(&Leaves::of(&y))]
        .map(|said| said.unwrap_err().of_derivative("the vector field").to_string());
    let expected = "part 1: part 0: slow.1: the vector field returned a derivative of type f32[4] for a state of type f32[2]";
    assert_eq!(messages[0], expected);
    assert_eq!(messages[0], messages[1]);
}

#[test]
#[should_panic(
    expected = "one branch returns leaf stage: static 2, but the other returns leaf stage: static 1"
)]
fn a_state_reset_that_changes_a_static_leaf_is_refused() {
    let y0 = Pools { fast: Tensor::from(1.0), slow: vec![], stage: 1 };
    let ode = Ode::new(|_t, y: &Pools| Pools { fast: -y.fast.clone(), ..y.clone() });
    let ode = ode.on_event(Event::falling(), |_t, y| &y.fast - 0.5, |_t, y| y.stage += 1);
    let _ = ode.solve(0.0, 2.0, &y0);
}

#[test]
fn parts_measured_separately_have_their_largest_norm_or_the_first() {
    let tol = Tolerance::new(1e-3, 1e-6);
    let ([y0, y1, k], dt) = ([0, 1, 2].map(nested), Tensor::from(0.1));
    let ratio = |norm: PartNorm| {
        let [l0, l1, lk] = [&y0, &y1, &k].map(|y| Leaves::measured_by(y, norm));
        l0.clone().error_ratio(&dt, &[1.0], &[lk][..], &l0, &l1, &tol).item()
    };
    let first = y0.0.clone().error_ratio(&dt, &[1.0], &[k.0.clone()][..], &y0.0, &y1.0, &tol).item();
    let second = y0.1.clone().error_ratio(&dt, &[1.0], &[k.1.clone()][..], &y0.1, &y1.1, &tol).item();
    assert_eq!((ratio(PartNorm::First), ratio(PartNorm::Largest)), (first, first.max(second)));
    let joint = ratio(PartNorm::Joint);
    assert!(joint < first.max(second) && joint > first.min(second));
}

/// The state is y, which decays, and q, which does not depend on y: `q' = 5 sin 40 t`.
fn beside(norm: PartNorm, adjoint: Adjoint, y0: &Tensor) -> (Tensor, f64) {
    let field = |t: Tensor, (y, q): &(Tensor, Tensor)| (-y, q * 0.0 + (t * 40.0).sin() * 5.0);
    let ode = Ode::new(field).rtol(1e-4).atol(1e-4).adjoint(adjoint).part_norm(norm);
    let start = (y0.clone(), Tensor::zeros([1]).cast(DType::F64));
    let solution = ode.solve(0.0, 1.0, &start).unwrap();
    let steps = if solution.stats.num_steps.is_traced() { f64::NAN } else { solution.stats.num_steps.item() };
    ((solution.y1.0.square().sum() + solution.y1.1.sum()), steps)
}

#[test]
fn every_adjoint_takes_the_steps_of_the_norm_of_parts() {
    let y0 = Tensor::full(DType::F64, [64], 0.5);
    let exact = 0.5 * 2.0 * (-2.0_f64).exp();
    for adjoint in [Adjoint::Direct, Adjoint::default(), Adjoint::backsolve(), Adjoint::reversible()] {
        let [joint, largest, first] =
            [PartNorm::Joint, PartNorm::Largest, PartNorm::First].map(|norm| beside(norm, adjoint, &y0).1);
        assert!(first < joint && joint < largest, "{adjoint:?}: {first} {joint} {largest}");
        let gradient = grad(|y: &Tensor| beside(PartNorm::Largest, adjoint, y).0, &y0);
        assert!((gradient - exact).abs().max().item() < 1e-3, "{adjoint:?}");
    }
}

#[test]
fn rows_are_measured_part_by_part_in_lockstep_too() {
    let field = |t: Tensor, (y, q): &(Tensor, Tensor)| (-y, q * 0.0 + (t * 40.0).sin() * 5.0);
    let ode = Ode::new(field).rtol(1e-4).atol(1e-4).part_norm(PartNorm::Largest);
    let y0 = |rows: usize| (Tensor::full(DType::F64, [rows, 64], 0.5), Tensor::full(DType::F64, [rows], 0.0));
    let rows = ode.clone().batching(Batching::PerRow).solve(0.0, 1.0, y0(3)).unwrap();
    let alone = ode.solve(0.0, 1.0, y0(1)).unwrap();
    assert_eq!(rows.stats.num_steps.to_vec(), [alone.stats.num_steps.item(); 3]);
    assert_eq!(rows.y1.1.to_vec(), [alone.y1.1.item(); 3]);
}
