//! Tests of solves of plain values, one topic per module.

mod accuracy;
mod bounces;
mod bounds;
mod constrained;
mod control;
mod convergence;
mod dense_order;
pub(crate) mod draw;
pub(crate) mod event_records;
mod events;
mod exact_ends;
mod field_functions;
mod front;
mod given_times;
mod inlined;
mod instants;
mod jacobians;
mod lanes;
mod methods;
mod non_finite;
mod odd_settings;
mod order_conditions;
mod own_tableau;
mod problems;
#[cfg(feature = "rayon")]
#[cfg(feature = "rayon")]
mod ranks;
mod record;
mod reference;
mod replay;
mod replays;
mod rosenbrock_conditions;
mod saving;
mod sensitivity;
mod sensitivity_closed;
mod sensitivity_discrete;
mod sensitivity_reference;
mod sensitivity_stiff;
mod settings_twice;
mod shapes;
mod states;
mod stiff;
mod stiff_instants;
mod stiff_problems;
mod stiff_refusals;
mod switching;
mod switching_cases;
