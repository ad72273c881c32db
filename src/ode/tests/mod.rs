//! Tests of solves of plain values, one topic per module.

mod accuracy;
mod bounds;
mod control;
mod convergence;
mod dense_order;
mod events;
mod front;
mod inlined;
mod instants;
mod lanes;
mod methods;
mod non_finite;
mod order_conditions;
mod own_tableau;
mod problems;
mod record;
mod reference;
mod replay;
mod rosenbrock_conditions;
mod saving;
mod sensitivity;
mod states;
mod stiff;
mod stiff_problems;
mod stiff_refusals;
mod switching;
