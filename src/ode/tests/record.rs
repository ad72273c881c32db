//! Records the algorithm once, with a clock and a state that only store the operations. The recorded program
//! is then run step by step and must give the same bits as the plain solve.
//!
//! It is impossible to branch on recorded values: `known` is always `None`, and no input has a value during
//! recording. A decision that depended on a value would be the same in every step, and the comparison would
//! fail.

use crate::ode::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

type Y = [f64; 2];

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(f64),
    Bit(bool),
    State(Y),
}

impl Value {
    fn number(&self) -> f64 {
        if let Value::Number(x) = self { *x } else { panic!("{self:?} is not a number") }
    }
    fn bit(&self) -> bool {
        if let Value::Bit(x) = self { *x } else { panic!("{self:?} is not a bit") }
    }
    fn state(&self) -> Y {
        if let Value::State(x) = self { *x } else { panic!("{self:?} is not a state") }
    }
}

enum Node {
    Input(usize),
    Apply(Box<dyn Fn(&[Value]) -> Value>, Vec<Traced>),
}

/// A number, a mask or a state that is computed later.
#[derive(Clone)]
struct Traced(Rc<Node>);

impl Traced {
    fn input(i: usize) -> Traced {
        Traced(Rc::new(Node::Input(i)))
    }
    fn apply(inputs: &[&Traced], f: impl Fn(&[Value]) -> Value + 'static) -> Traced {
        Traced(Rc::new(Node::Apply(Box::new(f), inputs.iter().map(|&x| x.clone()).collect())))
    }
    fn numbers(&self, other: &Traced, f: fn(f64, f64) -> f64) -> Traced {
        Traced::apply(&[self, other], move |v| Value::Number(f(v[0].number(), v[1].number())))
    }
    fn eval(&self, inputs: &[Value], done: &RefCell<HashMap<*const Node, Value>>) -> Value {
        let id = Rc::as_ptr(&self.0);
        if let Some(value) = done.borrow().get(&id) {
            return value.clone();
        }
        let value = match &*self.0 {
            Node::Input(i) => inputs[*i].clone(),
            Node::Apply(f, nodes) => f(&nodes.iter().map(|node| node.eval(inputs, done)).collect::<Vec<_>>()),
        };
        done.borrow_mut().insert(id, value.clone());
        value
    }
}

impl Clock for Traced {
    type Mask = Traced;
    fn like(&self, x: f64) -> Traced {
        Traced::apply(&[], move |_| Value::Number(x))
    }
    fn add(&self, other: &Traced) -> Traced {
        self.numbers(other, |a, b| a + b)
    }
    fn sub(&self, other: &Traced) -> Traced {
        self.numbers(other, |a, b| a - b)
    }
    fn mul(&self, other: &Traced) -> Traced {
        self.numbers(other, |a, b| a * b)
    }
    fn div(&self, other: &Traced) -> Traced {
        self.numbers(other, |a, b| a / b)
    }
    fn abs(&self) -> Traced {
        self.numbers(self, |a, _| a.abs())
    }
    fn sqrt(&self) -> Traced {
        self.numbers(self, |a, _| a.sqrt())
    }
    fn powf(&self, exponent: f64) -> Traced {
        Traced::apply(&[self], move |v| Value::Number(v[0].number().powf(exponent)))
    }
    fn lt(&self, other: &Traced) -> Traced {
        Traced::apply(&[self, other], |v| Value::Bit(v[0].number() < v[1].number()))
    }
    fn le(&self, other: &Traced) -> Traced {
        Traced::apply(&[self, other], |v| Value::Bit(v[0].number() <= v[1].number()))
    }
    fn and(a: &Traced, b: &Traced) -> Traced {
        Traced::apply(&[a, b], |v| Value::Bit(v[0].bit() & v[1].bit()))
    }
    fn or(a: &Traced, b: &Traced) -> Traced {
        Traced::apply(&[a, b], |v| Value::Bit(v[0].bit() | v[1].bit()))
    }
    fn not(m: &Traced) -> Traced {
        Traced::apply(&[m], |v| Value::Bit(!v[0].bit()))
    }
    fn select(m: &Traced, a: &Traced, b: &Traced) -> Traced {
        Traced::apply(&[m, a, b], |v| if v[0].bit() { v[1].clone() } else { v[2].clone() })
    }
    fn known(_: &Traced) -> Option<bool> {
        None
    }
    fn lookup(&self, table: &[f64]) -> Traced {
        let table = table.to_vec();
        Traced::apply(&[self], move |v| Value::Number(v[0].number().lookup(&table)))
    }
    fn count_up_to(&self, table: &[f64]) -> Traced {
        let table = table.to_vec();
        Traced::apply(&[self], move |v| Value::Number(v[0].number().count_up_to(&table)))
    }
    fn count_down_to(&self, table: &[f64]) -> Traced {
        let table = table.to_vec();
        Traced::apply(&[self], move |v| Value::Number(v[0].number().count_down_to(&table)))
    }
}

/// The values `v[skip..]`, which must be states.
fn states(v: &[Value], skip: usize) -> Vec<Y> {
    v[skip..].iter().map(Value::state).collect()
}

impl State for Traced {
    type Clock = Traced;
    fn lincomb<K: Stages<Traced> + ?Sized>(&mut self, y: &Traced, dt: &Traced, a: &[f64], k: &K) {
        let a = a.to_vec();
        let inputs: Vec<&Traced> = [y, dt].into_iter().chain((0..k.count()).map(|i| k.stage(i))).collect();
        *self = Traced::apply(&inputs, move |v| {
            let mut out = [0.0; 2];
            out.lincomb(&v[0].state(), &v[1].number(), &a, &states(v, 2));
            Value::State(out)
        });
    }
    fn error_ratio<K: Stages<Traced> + ?Sized>(
        &mut self,
        dt: &Traced,
        b: &[f64],
        k: &K,
        y0: &Traced,
        y1: &Traced,
        tol: &Tolerance,
    ) -> Traced {
        let (b, (rtol, atol)) = (b.to_vec(), tol.uniform().unwrap());
        let tol = Tolerance::new(rtol, atol);
        let inputs: Vec<&Traced> =
            [dt, y0, y1].into_iter().chain((0..k.count()).map(|i| k.stage(i))).collect();
        Traced::apply(&inputs, move |v| {
            let (y0, y1) = (v[1].state(), v[2].state());
            Value::Number([0.0; 2].error_ratio(&v[0].number(), &b, &states(v, 3), &y0, &y1, &tol))
        })
    }
    fn scaled_error<K: Stages<Traced> + ?Sized>(
        &mut self,
        _: &Traced,
        _: &[f64],
        _: &K,
        _: &Traced,
        _: &Traced,
        _: &Tolerance,
    ) {
        unreachable!("invariant: no solve here has a custom norm");
    }
    fn num_components(&self) -> usize {
        2
    }
    fn keep(&mut self, m: &Traced, new: &mut Traced) {
        *self = Traced::select(m, new, self);
    }
    fn first_non_finite(&self, _like: &Traced) -> Traced {
        Traced::apply(&[self], |v| Value::Number(v[0].state().first_non_finite(&0.0)))
    }
}

/// A vector field of plain states that can also be recorded.
#[derive(Clone, Copy)]
struct Both(fn(f64, Y) -> Y);
impl VectorField<Y> for Both {
    fn eval(&self, t: &f64, y: &Y, dy: &mut Y) -> Result<(), FieldError> {
        *dy = (self.0)(*t, *y);
        Ok(())
    }
}
impl VectorField<Traced> for Both {
    fn eval(&self, t: &Traced, y: &Traced, dy: &mut Traced) -> Result<(), FieldError> {
        let f = self.0;
        *dy = Traced::apply(&[t, y], move |v| Value::State(f(v[0].number(), v[1].state())));
        Ok(())
    }
}

/// The values passed to the next step: y, k1, the clocks, then whether the last step was accepted.
fn outputs(carry: &mut Carry<Traced>, scheme: &Scheme<Traced>) -> Vec<Traced> {
    let mut nodes = vec![carry.y.clone(), carry.k[0].clone()];
    nodes.extend(carry.clocks_mut(scheme).into_iter().map(|clock| clock.clone()));
    nodes.push(carry.accepted.clone());
    nodes
}

fn values(carry: &mut Carry<Y>, scheme: &Scheme<Y>) -> Vec<Value> {
    let mut values = vec![Value::State(carry.y), Value::State(carry.k[0])];
    values.extend(carry.clocks_mut(scheme).into_iter().map(|clock| Value::Number(*clock)));
    values.push(Value::Bit(carry.accepted));
    values
}

fn run(program: &[Traced], inputs: &[Value]) -> Vec<Value> {
    let done = RefCell::new(HashMap::new());
    program.iter().map(|node| node.eval(inputs, &done)).collect()
}

/// Asserts that both have the same bits; k1 may differ if it is not carried.
fn assert_same(recorded: &[Value], plain: &[Value], carries_k1: bool) {
    for (i, (a, b)) in recorded.iter().zip(plain).enumerate() {
        let same = match (a, b) {
            (Value::Number(a), Value::Number(b)) => a.to_bits() == b.to_bits(),
            (Value::State(a), Value::State(b)) => a.map(f64::to_bits) == b.map(f64::to_bits),
            _ => a == b,
        };
        assert!(same || (i == 1 && !carries_k1), "output {i}: {a:?} against {b:?}");
    }
}

/// Records `start` and `attempt` once each, and compares a whole solve by the two programs with the plain
/// solve. Returns the final status.
fn compare(f: Both, method: Method, controller: &Controller, span: (f64, f64), y0: Y) -> f64 {
    compare_with(f, method, controller, span, y0, (false, 1000))
}

/// [`compare`] with at most `max_steps` steps and, if `stopping`, with two stops, one of them a
/// discontinuity.
fn compare_with(
    f: Both,
    method: Method,
    controller: &Controller,
    (t0, t1): (f64, f64),
    y0: Y,
    (stopping, max_steps): (bool, u64),
) -> f64 {
    // At the tight tolerance, methods of low order would take tens of thousands of steps.
    let rtol = if method.tableau().order < 4 { 1e-4 } else { 1e-6 };
    let tolerance = Tolerance::new(rtol, 1e-2 * rtol);
    let (stops, discontinuities) =
        (vec![t0 + 0.31 * (t1 - t0), t0 + 0.6 * (t1 - t0)], vec![t0 + 0.6 * (t1 - t0)]);
    let sides = OwnSides::new(&stops, &discontinuities, (t0, t1));
    let limits = if stopping {
        Limits { stops: &stops, sides: sides.view(), ..Limits::steps(max_steps) }
    } else {
        Limits::steps(max_steps)
    };
    let tableau = method.tableau();
    let traced_scheme = Scheme::<Traced>::trusted(*tableau, controller, tolerance, limits);
    let scheme = Scheme::<Y>::trusted(*tableau, controller, tolerance, limits);
    let traced_span = Span::new(Traced::input(0), Traced::input(1));
    let mut first = start(&f, &traced_scheme, &traced_span, Traced::input(2)).ok().unwrap();
    let begin = outputs(&mut first, &traced_scheme);

    // The inputs of an attempt are t0, t1, and the outputs of the attempt before.
    let mut carry = Carry::new(Traced::input(0), Traced::input(2), scheme.tableau.num_stages());
    carry.k[0] = Traced::input(3);
    for (i, clock) in carry.clocks_mut(&traced_scheme).into_iter().enumerate() {
        *clock = Traced::input(4 + i);
    }
    attempt(&f, &traced_scheme, &traced_span, &mut carry).ok().unwrap();
    let program = outputs(&mut carry, &traced_scheme);

    let span = Span::new(t0, t1);
    let carries_k1 = scheme.carries_first();
    let ends = [Value::Number(t0), Value::Number(t1)];
    let mut plain = start(&f, &scheme, &span, y0).unwrap();
    let mut recorded = run(&begin, &[&ends[..], &[Value::State(y0)]].concat());
    assert_same(&recorded, &values(&mut plain, &scheme), carries_k1);
    // Goes on for three attempts after the end, which must agree as well.
    let mut beyond = 3;
    while beyond > 0 {
        beyond -= usize::from(plain.status != status::RUNNING);
        attempt(&f, &scheme, &span, &mut plain).unwrap();
        recorded = run(&program, &[&ends[..], &recorded].concat());
        assert_same(&recorded, &values(&mut plain, &scheme), carries_k1);
    }
    plain.status
}

#[test]
fn a_recorded_attempt_gives_the_bits_of_a_plain_one() {
    let f = Both(|t, y| [t.cos() * y[1], (-100.0 * (t - 5.0).powi(2)).exp() - 0.1 * y[1]]);
    let ts = |t0: f64, t1: f64| (0..=20).map(|i| t0 + (t1 - t0) * f64::from(i) / 20.0).collect();
    for (t0, t1) in [(0.0, 8.0), (8.0, 0.0)] {
        let controllers: [Controller; 8] = [
            PidController::default().into(),
            PidController { dt0: Some(0.01), ..PidController::default() }.into(),
            PidController { pcoeff: 0.2, icoeff: 0.3, dcoeff: 0.1, ..PidController::default() }.into(),
            PidController::h211b(4.0).into(),
            HairerController::dopri5().into(),
            PidController::h312pid().into(),
            ConstantStepSize { dt0: 0.3 }.into(),
            StepTo { ts: ts(t0, t1) }.into(),
        ];
        for controller in controllers {
            for method in Method::EXPLICIT {
                let tableau = method.tableau();
                if controller.is_adaptive() && tableau.b_err.is_none() {
                    continue;
                }
                let end = compare_with(f, method, &controller, (t0, t1), [1.0, 0.5], (false, 2000));
                assert_eq!(end, status::COMPLETED, "{method} {controller:?}");
                if !matches!(controller, Controller::StepTo(_)) {
                    let end = compare_with(f, method, &controller, (t0, t1), [1.0, 0.5], (true, 2000));
                    assert_eq!(end, status::COMPLETED, "{method} {controller:?} with stops");
                }
            }
        }
    }
}

#[test]
fn a_recorded_attempt_fails_like_a_plain_one() {
    let pid = PidController::default().into();
    let wall = Both(|t, y| [-y[0], if t > 0.5 { f64::NAN } else { -y[1] }]);
    assert_eq!(compare(wall, Method::Tsit5, &pid, (0.0, 1.0), [1.0, 1.0]), status::NON_FINITE);
    assert_eq!(compare(wall, Method::Tsit5, &pid, (0.6, 1.0), [1.0, 1.0]), status::NON_FINITE);
    let constant = ConstantStepSize { dt0: 0.1 }.into();
    assert_eq!(compare(wall, Method::Rk4, &constant, (0.0, 1.0), [1.0, 1.0]), status::NON_FINITE);
    let blow_up = Both(|_, y| [y[0] * y[0], 1.0]);
    let end = compare(blow_up, Method::Dopri5, &pid, (0.0, 2.0), [1.0, 1.0]);
    assert!(end == status::STEP_SIZE_TOO_SMALL || end == status::NON_FINITE);
    let fast = Both(|_, y| [1000.0 * y[1], -1000.0 * y[0]]);
    assert_eq!(compare(fast, Method::Tsit5, &pid, (0.0, 100.0), [1.0, 1.0]), status::MAX_STEPS);
    let tiny = PidController { dt0: Some(1e-20), ..PidController::default() }.into();
    assert_eq!(compare(fast, Method::Tsit5, &tiny, (1.0, 2.0), [1.0, 1.0]), status::STEP_SIZE_TOO_SMALL);
}

#[test]
fn a_recorded_start_knows_an_empty_interval() {
    let f = Both(|_, y| y);
    let pid = PidController::default().into();
    let scheme = Scheme::new(Method::Tsit5.tableau(), &pid, Tolerance::new(1e-6, 1e-8), 1000).unwrap();
    let span = Span::new(Traced::input(0), Traced::input(1));
    let begin = start(&f, &scheme, &span, Traced::input(2)).ok().unwrap();
    for (t1, end) in [(1.0, status::COMPLETED), (2.0, status::RUNNING)] {
        let inputs = [Value::Number(1.0), Value::Number(t1), Value::State([3.0, 4.0])];
        let values = run(&[begin.status.clone(), begin.y.clone()], &inputs);
        assert_eq!(values, [Value::Number(end), Value::State([3.0, 4.0])]);
    }
}
