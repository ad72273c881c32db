//! Random programs for `tests/reference`, where numpy evaluates and differentiates them without this crate.
//!
//! `REFERENCE=<file> REFERENCE_PROGRAMS=<n>` writes n programs, and a tenth as many that solve large linear systems, at the
//! current level, as one JSON object per line. An object has the text of a function, its arguments, and its results:
//! evaluated one operation at a time, compiled as a whole, its derivatives in both modes, the derivative of its derivative,
//! and the function mapped over examples.

mod systems;

use super::{Rng, run};
use crate::array::{Array, DType};
use crate::backend::cpu::Plan;
use crate::graph::tests::arbitrary::{Draws, Recipe, function};
use crate::graph::{Builder, Func, Op, Type};
use crate::simd::Level;
use crate::transform::{batch, jvp, optimize, vjp};
use std::fmt::Write;

/// Examples of a mapped function.
const EXAMPLES: usize = 3;

/// A function, its arguments, directions and cotangents.
struct Program {
    func: Func,
    x: Vec<Array>,
    /// The indices of the float inputs, and in `outs` of the float outputs.
    wrt: Vec<usize>,
    outs: Vec<usize>,
    /// Directions of the inputs.
    dx: Vec<Array>,
    /// Cotangents of the outputs.
    u: Vec<Array>,
    /// Which inputs are mapped; `xs` has all inputs of the mapped function.
    mapped: Vec<bool>,
    xs: Vec<Array>,
}

impl Program {
    fn new(seed: u64) -> Program {
        let float = if seed.is_multiple_of(2) { DType::F32 } else { DType::F64 };
        let (func, x) = function(
            seed,
            Recipe { ops: 4 + seed as usize % 12, float, loops: false, short: true, singular: true },
        );
        let floats = |types: Vec<Type>| (0..types.len()).filter(|&k| types[k].is_float()).collect::<Vec<_>>();
        let (wrt, outs) = (floats(func.input_types()), floats(func.output_types()));
        let (mut draws, mut rng) = (Draws::new(seed + 1), Rng(seed + 2));
        let dx = wrt.iter().map(|&k| draws.array(func.input_type(k))).collect();
        let u = outs.iter().map(|&k| draws.array(func.output_type(k))).collect();
        let mapped: Vec<bool> = (0..x.len()).map(|k| k == 0 || rng.below(2) == 0).collect();
        let many = |k: usize| {
            let ty = func.input_type(k);
            Type::array(ty.dtype(), [&[EXAMPLES][..], ty.shape()].concat())
        };
        let xs = (0..x.len()).map(|k| if mapped[k] { draws.array(&many(k)) } else { x[k].clone() }).collect();
        Program { func, x, wrt, outs, dx, u, mapped, xs }
    }

    /// Results by name.
    fn results(&self) -> [(&'static str, Vec<Array>); 6] {
        let jit = |f: &Func, x: &[&[Array]]| run(&Plan::compile(&optimize(f), Level::detect()), &x.concat());
        let (f, num) = (&self.func, self.func.num_outputs());
        let back = vjp(f, &self.outs, &self.wrt).expect("it has no loop");
        let grads: Vec<usize> = (num..back.num_outputs()).collect();
        let args: Vec<usize> = self.wrt.iter().copied().chain(f.num_inputs()..back.num_inputs()).collect();
        let second = vjp(&back, &grads, &args).expect("it has no loop");
        let mut of_back = jit(&second, &[&self.x, &self.u, &self.dx]);
        [
            ("eager", one_by_one(f, &self.x)),
            ("jit", jit(f, &[&self.x])),
            ("jvp", jit(&jvp(f, &self.wrt), &[&self.x, &self.dx]).split_off(num)),
            ("vjp", jit(&back, &[&self.x, &self.u]).split_off(num)),
            ("second", of_back.split_off(back.num_outputs())),
            ("vmap", jit(&batch(f, &self.mapped, EXAMPLES), &[&self.xs])),
        ]
    }

    /// One JSON object.
    fn line(&self, group: &str, seed: u64) -> String {
        let text = self.func.to_string();
        let mut line = format!("{{\"group\":{group:?},\"seed\":{seed},\"text\":{text:?}");
        let lists = [("x", &self.x), ("dx", &self.dx), ("u", &self.u), ("xs", &self.xs)];
        let lists = lists.into_iter().map(|(name, arrays)| (name, arrays.clone()));
        for (name, arrays) in lists.chain(self.results()) {
            let arrays: Vec<String> = arrays.iter().map(numbers).collect();
            write!(line, ",{name:?}:[{}]", arrays.join(",")).expect("writing to a string cannot fail");
        }
        let counts = [("wrt", &self.wrt), ("outs", &self.outs)];
        counts
            .iter()
            .for_each(|(name, v)| write!(line, ",{name:?}:{v:?}").expect("writing to a string cannot fail"));
        line + &format!(",\"mapped\":{:?}}}\n", self.mapped)
    }
}

/// The numbers of an array, row-major, in a form that can be read back exactly.
fn numbers(a: &Array) -> String {
    let number = |x: f64| match x {
        _ if x.is_nan() => "NaN".to_owned(),
        _ if x.is_infinite() => {
            if x > 0.0 {
                "Infinity".to_owned()
            } else {
                "-Infinity".to_owned()
            }
        }
        _ => format!("{x:?}"),
    };
    format!("[{}]", a.to_f64().into_iter().map(number).collect::<Vec<_>>().join(","))
}

/// Each operation with its own plan, as outside `jit`.
fn one_by_one(f: &Func, x: &[Array]) -> Vec<Array> {
    let mut values: Vec<Array> = Vec::new();
    for node in f.nodes() {
        let args: Vec<Array> = node.args.iter().map(|a| values[a.index()].clone()).collect();
        values.push(match &node.op {
            Op::Input(k) => x[*k].clone(),
            op => {
                let types: Vec<Type> =
                    args.iter().map(|a| Type::array(a.dtype(), a.shape().clone())).collect();
                let (mut b, ids) = Builder::with_inputs(&types);
                let y = b.push(op.clone(), &ids, Some(&node.ty));
                run(&Plan::compile(&b.finish(&[y]), Level::detect()), &args).remove(0)
            }
        });
    }
    f.outputs().iter().map(|o| values[o.index()].clone()).collect()
}

#[test]
fn programs_of_the_reference_read_back_and_are_written_where_asked() {
    let (file, asked) = (std::env::var_os("REFERENCE"), std::env::var("REFERENCE_PROGRAMS"));
    let num = asked.map_or(4, |n| n.parse().expect("REFERENCE_PROGRAMS is a number"));
    let mut lines = String::new();
    let programs = (0..num).map(|seed| ("programs", seed, Program::new(seed)));
    let systems = (0..num.div_ceil(10)).map(|seed| ("systems", seed, systems::program(seed)));
    for (group, seed, program) in programs.chain(systems) {
        let text = program.func.to_string();
        assert_eq!(Func::parse(&text).map(|f| f.to_string()), Ok(text));
        lines += &program.line(group, seed);
    }
    if let Some(file) = file {
        std::fs::write(file, lines).unwrap();
    }
}
