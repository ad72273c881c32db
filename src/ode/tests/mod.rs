//! Tests of the stepping algorithm: each module one behaviour.

mod accuracy;
mod control;
mod convergence;
mod front;
mod non_finite;
mod order_conditions;
mod problems;
mod record;
mod reference;
mod replay;
