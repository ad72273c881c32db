//! Loops equal the same trips written out: values, derivatives of first and second order, batches.

use super::Stored;
use crate::adjoint::{Batching, Checkpoints};
use crate::array::{DType, refusal};
use crate::ode::Ode;
use crate::ode::tests::draw::{Draw, num_cases};
use crate::tensor::{
    Scan, Tensor, WhileLoop, cond, fori_loop, grad, hvp, jit, jvp, map, scan, trace, value_and_grad, vmap,
    while_loop,
};

/// init `[m]`, rows `[n, m]`, weights `[m, m]`
type Args = (Tensor, Tensor, Tensor);

/// A loop with integer rows beside the float ones, and an integer in the state.
#[derive(Clone)]
struct Case {
    num: usize,
    labels: Tensor,
    stored: Stored,
    is_reversed: bool,
}

fn trip(
    w: &Tensor,
    (c, k): (&Tensor, &Tensor),
    (x, label): (&Tensor, &Tensor),
) -> ((Tensor, Tensor), Tensor) {
    let pull = c.expand_dims(0).matmul(w).reshape(c.shape().clone());
    let next = (pull + x * (label + 1)).tanh() + c * 0.5 + k * 0.1;
    let y = &next * x - c.square();
    ((next, k + label), y)
}

impl Case {
    fn looped(&self, (init, xs, w): &Args) -> Tensor {
        let mut of =
            Scan::new(|(c, k): &(Tensor, Tensor), (x, l): &(Tensor, Tensor)| trip(w, (c, k), (x, l)));
        (of.stored, of.is_reversed) = (self.stored, self.is_reversed);
        let start = (init.clone(), Tensor::from(0));
        let ((end, k), ys) = of.call(&start, &(xs.clone(), self.labels.clone()));
        loss(&end, &k, &ys)
    }

    fn unrolled(&self, (init, xs, w): &Args) -> Tensor {
        let (mut c, mut k) = (init.clone(), Tensor::from(0));
        let mut ys = vec![Tensor::full(init.dtype(), init.shape().clone(), 0.0); self.num];
        let order: Vec<usize> =
            if self.is_reversed { (0..self.num).rev().collect() } else { (0..self.num).collect() };
        for i in order {
            ((c, k), ys[i]) = trip(w, (&c, &k), (&xs.index(i), &self.labels.index(i)));
        }
        let m = init.shape()[0];
        let ys = match self.num {
            0 => Tensor::full(init.dtype(), [0, m], 0.0),
            _ => Tensor::stack(&ys.iter().collect::<Vec<_>>()),
        };
        loss(&c, &k, &ys)
    }
}

fn loss(end: &Tensor, k: &Tensor, ys: &Tensor) -> Tensor {
    let weights = Tensor::iota(end.dtype(), ys.shape().clone(), 0).cos();
    end.square().sum() * (k + 1) + (ys * weights).sum()
}

/// The largest number; infinity if one is NaN.
fn largest(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.map(|x| if x.is_nan() { f64::INFINITY } else { x }).fold(0.0, f64::max)
}

/// The largest difference, relative to the larger of the numbers and 1.
fn off(a: &[Tensor], b: &[Tensor]) -> f64 {
    let one = |(a, b): (&Tensor, &Tensor)| {
        assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
        let pairs = a.to_vec().into_iter().zip(b.to_vec());
        largest(pairs.map(|(a, b)| (a - b).abs() / (1.0 + b.abs())))
    };
    largest(a.iter().zip(b).map(one))
}

fn leaves(x: &Args) -> Vec<Tensor> {
    vec![x.0.clone(), x.1.clone(), x.2.clone()]
}

/// Values and derivatives of a loss at x along v: the value, gradient, tangent, Hessian times v; if `twice`, also in
/// reverse over reverse.
fn all(f: impl Fn(&Args) -> Tensor, x: &Args, v: &Args, twice: bool) -> Vec<Tensor> {
    let (value, gradient) = value_and_grad(&f, x);
    let along = jvp(&f, x, v).1;
    let curved = hvp(&f, x, v).1;
    let mut out = [vec![value, along], leaves(&gradient), leaves(&curved)].concat();
    if twice {
        let slope = |x: &Args| {
            let g = grad(&f, x);
            (g.0 * &v.0).sum() + (g.1 * &v.1).sum() + (g.2 * &v.2).sum()
        };
        out.extend(leaves(&grad(slope, x)));
    }
    out
}

/// Ranges: 0 to 9 trips, states of 0 to 3 numbers, f32 and f64, both directions; every state stored, those that fit, 1
/// to 4 of them. Each derivative, and gradients mapped over states, rows or weights.
#[test]
fn a_scan_equals_its_trips_written_out() {
    let (mut draw, mut seen) = (Draw(391), [0; 6]);
    for case in 0..num_cases(24) {
        let (num, m) = (draw.below(10), draw.below(4));
        let dtype = if draw.below(3) == 0 { DType::F32 } else { DType::F64 };
        let mut of = |shape: &[usize]| {
            let numbers: Vec<f64> = (0..shape.iter().product()).map(|_| draw.uniform(-1.0, 1.0)).collect();
            Tensor::from_vec(shape.to_vec(), numbers).cast(dtype)
        };
        let (x, v) = ((of(&[m]), of(&[num, m]), of(&[m, m])), (of(&[m]), of(&[num, m]), of(&[m, m])));
        let batch: [Tensor; 3] = [of(&[2, m]), of(&[2, num, m]), of(&[2, m, m])];
        let labels: Vec<i32> = (0..num).map(|_| draw.below(3) as i32).collect();
        let stored = match draw.below(4) {
            0 => Stored::All,
            1 => Stored::Fitting,
            2 => Stored::Few(Checkpoints::Auto),
            _ => Stored::Few(Checkpoints::Count(1 + draw.below(4))),
        };
        let is_direct = !matches!(stored, Stored::Few(_));
        let of = Case { num, labels: Tensor::from(labels), stored, is_reversed: draw.coin() };
        let tol = if dtype == DType::F32 { 2e-4 } else { 1e-11 };
        let (got, want) =
            (all(|x| of.looped(x), &x, &v, is_direct), all(|x| of.unrolled(x), &x, &v, is_direct));
        assert!(off(&got, &want) < tol, "case {case}, {num} x {m}, {stored:?}: {:e}", off(&got, &want));
        let which = draw.below(3);
        // Integer rows are read from the whole tensor, also if they are mapped.
        let labels = Tensor::stack(&[&of.labels, &((&of.labels + 1).rem(3))]);
        let by_label = |of: &Case, looped: bool| {
            let loss = |x: &Args| if looped { of.looped(x) } else { of.unrolled(x) };
            leaves(&vmap(
                |l: &Tensor| {
                    let of = Case { labels: l.clone(), ..of.clone() };
                    grad(|x: &Args| if looped { of.looped(x) } else { of.unrolled(x) }, &x)
                },
                &labels,
            ))
            .into_iter()
            .chain([loss(&x)])
            .collect::<Vec<_>>()
        };
        if case % 4 == 0 && num > 0 {
            assert!(off(&by_label(&of, true), &by_label(&of, false)) < tol, "case {case}, mapped labels");
        }
        if num > 0 {
            let at = |one: &Tensor| {
                let mut all = leaves(&x);
                all[which] = one.clone();
                (all[0].clone(), all[1].clone(), all[2].clone())
            };
            let mapped = |rows: &Tensor| vmap(|one: &Tensor| grad(|x: &Args| of.looped(x), &at(one)), rows);
            let traced = trace(&[batch[which].ty()], &mut |rows| leaves(&mapped(&rows[0])));
            assert!(
                !traced.func.to_string().contains(" tiles{"),
                "case {case}: one loop serves all examples"
            );
            let got = mapped(&batch[which]);
            let want = vmap(|one: &Tensor| grad(|x: &Args| of.unrolled(x), &at(one)), &batch[which]);
            assert!(off(&leaves(&got), &leaves(&want)) < tol, "case {case}, mapped {which}");
        }
        let found = [num == 0, num == 1, m == 0, dtype == DType::F32, of.is_reversed, !is_direct];
        seen.iter_mut().zip(found).for_each(|(seen, found)| *seen += usize::from(found));
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
}

/// x -> x w + cos x, until the first element has moved by 1 or `most` trips have run.
fn wander(stored: Stored, most: i32) -> impl Fn(&(Tensor, Tensor)) -> Tensor {
    move |(x, w): &(Tensor, Tensor)| {
        let start = x.clone();
        let mut of = WhileLoop::new(
            move |(x, k): &(Tensor, Tensor)| (x - &start).abs().max().lt(1.0).and(&k.lt(most)),
            |(x, k): &(Tensor, Tensor)| (x * w + x.cos() * 0.3, k + 1),
        );
        of.stored = stored;
        let (end, k) = of.call(&(x.clone(), Tensor::from(0)));
        end.square().sum() * (k + 1)
    }
}

fn wander_unrolled(num: i32) -> impl Fn(&(Tensor, Tensor)) -> Tensor {
    move |(start, w): &(Tensor, Tensor)| {
        let end = (0..num).fold(start.clone(), |x, _| &x * w + x.cos() * 0.3);
        end.square().sum() * f64::from(num + 1)
    }
}

/// The number of trips.
fn count(x: &Tensor, w: &Tensor, most: i32) -> i32 {
    let (mut at, mut k) = (x.clone(), 0);
    while k < most && (&at - x).abs().max().item() < 1.0 {
        (at, k) = (&at * w + at.cos() * 0.3, k + 1);
    }
    k
}

/// Ranges: states of 1 to 3 numbers, 0 to about 12 trips, each choice of stored states.
#[test]
fn a_while_loop_equals_its_trips_written_out() {
    let (mut draw, mut seen) = (Draw(392), [0; 3]);
    for case in 0..num_cases(24) {
        let m = 1 + draw.below(3);
        let mut of =
            |scale: f64| Tensor::from((0..m).map(|_| draw.uniform(-scale, scale)).collect::<Vec<_>>());
        let (x, v) = ((of(0.5), of(1.2)), (of(1.0), of(1.0)));
        let most = draw.below(13) as i32;
        let stored = match draw.below(3) {
            0 => Stored::All,
            1 => Stored::Fitting,
            _ => Stored::Few(Checkpoints::Count(1 + draw.below(4))),
        };
        let num = count(&x.0, &x.1, most);
        let (f, g) = (wander(stored, most), wander_unrolled(num));
        let both = |f: &dyn Fn(&(Tensor, Tensor)) -> Tensor| {
            let (value, gradient) = value_and_grad(f, &x);
            let curved = hvp(f, &x, &v).1;
            let mut out = vec![value, jvp(f, &x, &v).1, gradient.0, gradient.1, curved.0, curved.1];
            if matches!(stored, Stored::All) {
                let slope = |x: &(Tensor, Tensor)| {
                    let g = grad(f, x);
                    (g.0 * &v.0).sum() + (g.1 * &v.1).sum()
                };
                let twice = grad(slope, &x);
                out.extend([twice.0, twice.1]);
            }
            out
        };
        let (got, want) = (both(&f), both(&g));
        assert!(off(&got, &want) < 1e-11, "case {case}, {stored:?}: {:e}", off(&got, &want));
        let rows = Tensor::stack(&[&x.0, &(&x.0 * 0.5), &(&x.0 * 0.0)]);
        let each = vmap(|x0: &Tensor| grad(|p: &(Tensor, Tensor)| f(p), &(x0.clone(), x.1.clone())), &rows);
        for (i, row) in [x.0.clone(), &x.0 * 0.5, &x.0 * 0.0].into_iter().enumerate() {
            let one = grad(&f, &(row, x.1.clone()));
            assert!(
                off(&[each.0.index(i), each.1.index(i)], &[one.0, one.1]) < 1e-12,
                "case {case}, row {i}"
            );
        }
        for (seen, found) in seen.iter_mut().zip([num == 0, num > 4, matches!(stored, Stored::All)]) {
            *seen += usize::from(found);
        }
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
}

#[test]
fn loops_nest_and_run_inside_jit_and_cond() {
    // Row sums by an inner loop, powers by a while loop with another number of trips in each row.
    let f = jit(|(xs, n): (Tensor, Tensor)| {
        let step = |total: &Tensor, (row, n): &(Tensor, Tensor)| {
            let sum = scan(|s: &Tensor, x: &Tensor| (s + x, ()), &Tensor::from(0.0), row).0;
            let power = |(p, k): &(Tensor, Tensor)| (p * &sum, k + 1);
            let (power, _) =
                while_loop(|(_, k): &(Tensor, Tensor)| k.lt(n), power, &(Tensor::from(1.0), Tensor::from(0)));
            (total + &power, power)
        };
        value_and_grad(|xs: &Tensor| scan(step, &Tensor::from(0.0), &(xs.clone(), n.clone())).0, &xs)
    });
    let xs = Tensor::from([[1.0, 2.0], [0.5, 1.5], [3.0, 4.0]]);
    let (y, dy) = f.call((xs.clone(), Tensor::from([2, 0, 3]))).unwrap();
    assert_eq!(y.item(), 9.0 + 1.0 + 343.0);
    assert_eq!(dy.to_vec(), [6.0, 6.0, 0.0, 0.0, 147.0, 147.0]);
    let (y, _) = f.call((xs, Tensor::from([0, 5, 0]))).unwrap();
    assert_eq!((y.item(), f.num_traces()), (34.0, 1));
    let pick = |p: &Tensor| {
        let x = Tensor::from(2.0);
        let five = |x: &Tensor| fori_loop(0..5, |_, y: &Tensor| y * 2.0, x);
        cond(&p.lt(1.0), &x, five, Clone::clone)
    };
    assert_eq!(jit(move |p: Tensor| pick(&p)).call(0.0).unwrap().item(), 64.0);
    let squares = map(|x: &(Tensor, Tensor)| &x.0 * &x.1, &(Tensor::from([1.0, 2.0]), Tensor::from([3, 4])));
    assert_eq!(squares.to_vec(), [3.0, 8.0]);
    let gradient = grad(|x: &Tensor| map(|x: &Tensor| x.powi(3), x).sum(), &Tensor::from([1.0, 2.0]));
    assert_eq!(gradient.to_vec(), [3.0, 12.0]);
}

/// The inner loop does not end at 0, and the outer condition does not hold there.
#[test]
fn a_loop_whose_condition_never_holds_does_not_run_its_function() {
    let odd = |n: &Tensor| while_loop(|n: &Tensor| n.rem(2).eq(0), |n: &Tensor| n.div_floor(2), n);
    let count = |n: &Tensor| {
        let step = |(n, k): &(Tensor, Tensor)| (odd(n) - 1, k + 1);
        while_loop(|(n, _): &(Tensor, Tensor)| n.gt(0), step, &(n.clone(), Tensor::from(0))).1
    };
    let all: Vec<f64> = [0, 1, 12, 7].map(|n| count(&Tensor::from(n)).item()).to_vec();
    assert_eq!(all, [0.0, 1.0, 2.0, 3.0]);
    let calls = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = calls.clone();
    let watched = jit(move |x: Tensor| {
        let counted = counted.clone();
        let seen = move |_: crate::tensor::extra::CallbackValue<'_>| {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        };
        while_loop(|x: &Tensor| x.lt(3.0), |x: &Tensor| x.debug_callback(seen.clone()) + 1.0, &x)
    });
    for (x, want) in [(5.0, 0), (0.5, 3)] {
        calls.store(0, std::sync::atomic::Ordering::Relaxed);
        watched.call(x).unwrap();
        assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), want);
    }
}

#[test]
fn a_solve_in_a_loop_that_ends_early_is_an_error_of_the_loop() {
    let solved = |y0: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| y.square()).max_steps(40);
        Ok::<_, crate::Error>(ode.solve(0.0, 1.0, y0.clone())?.y1)
    };
    let steps = |c: &Tensor, x: &Tensor| {
        let end = solved(x)?;
        Ok::<_, crate::Error>((c + &end, end))
    };
    let start = Tensor::from(0.0);
    assert!(scan(steps, &start, &Tensor::from([0.1, 0.5])).is_ok());
    for all in [[0.1, 2.0, 0.3], [0.1, 0.2, 2.0]] {
        let e = scan(steps, &start, &Tensor::from(all)).unwrap_err().to_string();
        let told = jit(move |xs: Tensor| Ok(scan(steps, &Tensor::from(0.0), &xs)?.0)).call(Tensor::from(all));
        assert_eq!(told.unwrap_err().to_string(), e);
    }
    let grow = |goes_to: f64| while_loop(move |y: &Tensor| y.lt(goes_to), solved, &Tensor::from(0.3));
    assert!(grow(0.6).is_ok() && grow(1e9).is_err());
    let grouped = |y0: &Tensor| {
        let ode = Ode::new(|_t, y: &Tensor| y.square()).max_steps(40).batching(Batching::Groups(1));
        Ok::<_, crate::Error>(ode.solve(0.0, 1.0, y0.clone())?.y1)
    };
    let rows = |x: f64| Tensor::from([0.1, x]).reshape([2, 1]);
    let grow = |goes_to: f64| while_loop(move |y: &Tensor| y.max().lt(goes_to), grouped, &rows(0.3));
    assert!(grow(0.6).is_ok() && grow(1e9).is_err());
    assert!(fori_loop(0..5, |_, y: &Tensor| grouped(y), &rows(0.3)).is_err());
    // Without a trip, the solve that would fail does not count.
    assert_eq!(while_loop(|y: &Tensor| y.lt(1.0), solved, &Tensor::from(5.0)).unwrap().item(), 5.0);
}

#[test]
fn what_does_not_fit_is_named() {
    let add = |c: &Tensor, x: &Tensor| (c + x, ());
    let start = Tensor::from(0.0f32);
    let said = refusal(|| scan(add, &start, &Tensor::from([1.0f64])));
    assert_eq!(
        said,
        "scan: the state starts as f32[], but the function returns f64[]: cast or reshape one of them"
    );
    let said = refusal(|| scan(|c: &Tensor, (): &()| (c.clone(), ()), &start, &()));
    assert!(
        said.starts_with("scan: xs has no tensor leaf; for n trips without rows use fori_loop"),
        "{said}"
    );
    let pair = (Tensor::from([1.0, 2.0]), Tensor::from([1.0]));
    let said = refusal(|| map(|x: &(Tensor, Tensor)| &x.0 + &x.1, &pair));
    assert_eq!(said, "map: leaf 1 of xs has shape [1], 1 rows, but leaf 0 of xs has 2 rows");
    let said = refusal(|| scan(add, &start, &Tensor::from(1.0)));
    assert_eq!(said, "scan: xs is one f64, which has no rows: capture it");
    let said = refusal(|| while_loop(|x: &Tensor| x.clone(), |x: &Tensor| x.clone(), &start));
    assert_eq!(said, "while_loop: the condition is f32[], expected one bool, bool[]");
    let said = refusal(|| fori_loop(0..1 << 31, |_, x: &Tensor| x.clone(), &start));
    assert!(said.ends_with("ends beyond the largest i32, 2147483647"), "{said}");
    let few = Scan::new(|c: &Tensor, x: &Tensor| (c * x, c * x)).checkpoints(Checkpoints::Count(1));
    let loss = |x: &Tensor| few.call(&Tensor::from(1.0), x).0;
    let said = refusal(|| grad(|x: &Tensor| grad(loss, x).sum(), &Tensor::from([2.0, 3.0])));
    assert!(said.contains("store_all"), "{said}");
}
