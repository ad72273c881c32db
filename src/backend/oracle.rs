//! A backend over the reference interpreter: safe and slow.
//!
//! It says what a program means. A backend is right if its results equal those of the oracle up to rounding errors, and
//! tests of the layers above pass on both. The oracle has no kernels and no plan: it reports no costs. The interpreter
//! stores every state and recomputes none, so the oracle counts attempted and accepted steps only.

use super::{Backend, Counters, Executable, PlanReport, Runner};
use crate::array::Array;
use crate::graph::{Func, SearchCounts, Type, Value, interpret_counted, verify};
use crate::simd::denormals::Denormals;
use std::sync::Arc;

/// The reference interpreter as a backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct Oracle;

/// A function that is interpreted at each run.
struct Interpreted {
    func: Func,
    outputs: Vec<Type>,
    report: PlanReport,
}

/// A runner of an interpreted function.
struct Interpretation {
    func: Func,
    counts: SearchCounts,
}

impl Backend for Oracle {
    fn name(&self) -> String {
        "oracle".into()
    }

    fn compile(&self, func: &Func) -> Arc<dyn Executable> {
        if let Err(error) = verify(func) {
            panic!("cannot compile a function that is not well formed: {error}");
        }
        Arc::new(Interpreted { func: func.clone(), outputs: func.output_types(), report: report() })
    }
}

impl Executable for Interpreted {
    fn output_types(&self) -> &[Type] {
        &self.outputs
    }

    fn report(&self) -> &PlanReport {
        &self.report
    }

    fn runner(&self) -> Box<dyn Runner> {
        Box::new(Interpretation { func: self.func.clone(), counts: SearchCounts::default() })
    }
}

impl Runner for Interpretation {
    fn run(&mut self, inputs: &[&Array], outputs: &mut [Array]) {
        let inputs: Vec<Value> = inputs.iter().map(|&a| a.clone().into()).collect();
        let found = {
            let _mode = Denormals::flushed();
            interpret_counted(&self.func, &inputs)
        };
        let (values, counts) =
            found.unwrap_or_else(|e| panic!("invariant: a program can be interpreted: {e}"));
        assert_eq!(values.len(), outputs.len(), "invariant: the program has {} outputs", values.len());
        for (value, output) in values.iter().zip(outputs) {
            assert!(output.is_like(value.array()), "invariant: an output has the type of its value");
            output.data_mut().copy_from(value.array().data());
        }
        self.counts = counts;
    }

    fn counters(&self) -> Counters {
        let SearchCounts { attempts, accepted } = self.counts;
        Counters { attempts, accepted, ..Counters::default() }
    }

    fn report(&self) -> PlanReport {
        report()
    }
}

/// The report of any function: no costs are known.
fn report() -> PlanReport {
    PlanReport { trips: 1, ..PlanReport::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::DType;
    use crate::graph::Builder;

    #[test]
    fn the_oracle_overwrites_its_outputs_and_keeps_their_buffers() {
        let (mut b, x) = Builder::with_inputs(&[Type::array(DType::F32, [2])]);
        let y = b.mul(x[0], x[0]);
        let program = Oracle.compile(&b.finish(&[y, x[0]]));
        let mut out = [9.0, 9.0].map(|x| Array::full(DType::F32, [2], x));
        let before = out.each_ref().map(|a| a.data().as_ptr());
        let mut runner = program.runner();
        for [a, b] in [[2.0f32, 3.0], [-1.0, 0.5]] {
            runner.run(&[&Array::from_vec([2], vec![a, b])], &mut out);
            assert_eq!(out.each_ref().map(Array::to_f64), [[a * a, b * b], [a, b]].map(|v| v.map(f64::from)));
        }
        assert_eq!(out.each_ref().map(|a| a.data().as_ptr()), before);
        assert_eq!((runner.counters(), runner.report().kernels), (Counters::default(), 0));
    }
}
