//! The CPU as a backend: plans, each run on a workspace.

use super::{Plan, Workspace};
use crate::array::Array;
use crate::backend::{Backend, Counters, Executable, PlanReport, Runner};
use crate::graph::{Func, Type};
use crate::simd::Level;
use std::sync::Arc;

/// The CPU at an instruction set level.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    level: Level,
}

impl Cpu {
    /// The CPU at a level up to the one in use.
    pub fn new(level: Level) -> Cpu {
        Cpu { level }
    }
}

/// A plan and its workspace.
struct PlanRunner {
    plan: Plan,
    workspace: Workspace,
}

impl Backend for Cpu {
    fn name(&self) -> String {
        format!("cpu at level {}", self.level)
    }

    fn compile(&self, func: &Func) -> Arc<dyn Executable> {
        Arc::new(Plan::compile(func, self.level))
    }
}

impl Executable for Plan {
    fn output_types(&self) -> &[Type] {
        Plan::output_types(self)
    }

    fn report(&self) -> &PlanReport {
        Plan::report(self)
    }

    fn runner(&self) -> Box<dyn Runner> {
        Box::new(PlanRunner { plan: self.clone(), workspace: Workspace::new() })
    }
}

impl Runner for PlanRunner {
    fn run(&mut self, inputs: &[&Array], outputs: &mut [Array]) {
        self.plan.run_arrays(&mut self.workspace, inputs, outputs);
    }

    fn counters(&self) -> Counters {
        self.workspace.counters()
    }

    fn report(&self) -> PlanReport {
        let mut report = self.plan.report().clone();
        self.workspace.report_loops(&mut report);
        report
    }
}
