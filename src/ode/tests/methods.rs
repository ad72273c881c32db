//! The names of the methods, and their table in the documentation.

use crate::ode::Method;

const REFERENCE: &str = include_str!("../../../docs/reference/methods.md");
const CHOICE: &str = include_str!("../../../docs/explanation/which-solver.md");
const README: &str = include_str!("../../../README.md");

/// After a change to a method, copy the printed table into `docs/reference/methods.md`.
#[test]
fn the_table_in_the_documentation_is_the_one_the_code_generates() {
    assert!(REFERENCE.contains(&Method::table()), "\n{}", Method::table());
}

#[test]
fn every_document_gives_the_same_advice() {
    for text in [REFERENCE, CHOICE, README] {
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(Method::ADVICE), "{}", text.lines().next().unwrap_or_default());
    }
}

#[test]
fn error_orders_follow_from_the_embedded_orders() {
    for method in Method::ALL {
        let tableau = method.tableau();
        let table = Method::table();
        let line = table.lines().find(|line| line.starts_with(&format!("| {method:?} |"))).unwrap();
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!(cells[2], tableau.order.to_string(), "{method}");
        assert_eq!(cells[3].is_empty(), tableau.b_err.is_none(), "{method}");
        if let Ok(embedded) = cells[3].parse::<u32>() {
            assert_eq!(tableau.error_order, embedded.min(tableau.order) + 1, "{method}");
        }
    }
}
