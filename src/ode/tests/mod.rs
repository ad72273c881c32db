//! Tests of the stepping algorithm: each module one behaviour.

mod control;
mod convergence;
mod dense_order;
mod front;
mod non_finite;
mod order_conditions;
mod record;
mod reference;
mod replay;
