//! Tests of the stepping algorithm: each module one behaviour.

mod control;
mod convergence;
mod dense_order;
mod front;
mod methods;
mod non_finite;
mod order_conditions;
mod own_tableau;
mod record;
mod reference;
mod replay;
