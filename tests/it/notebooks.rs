//! The notebooks contain the code of the programs in `examples/`, which `cargo test` compiles. Their cells were run in
//! order.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const NAMES: [&str; 6] = ["01_solve", "02_neural_ode", "03_density", "04_images", "05_table", "06_stiff_fit"];

fn read(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn notebook(name: &str) -> Vec<Value> {
    let text = read(&format!("notebooks/{name}.ipynb"));
    let parsed: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
    parsed["cells"].as_array().expect("a notebook has cells").clone()
}

fn source(cell: &Value) -> String {
    let lines = cell["source"].as_array().expect("a cell has lines");
    lines.iter().map(|line| line.as_str().expect("a line is text")).collect()
}

/// Texts (`//|`) and code of a program's `main` in order: (whether it is code, its content).
fn cells(program: &str) -> Vec<(bool, String)> {
    let (_, body) =
        program.split_once("\nfn main() -> flowline::Result<()> {\n").expect("a program has a main");
    let (body, _) = body.rsplit_once("    Ok(())\n}").expect("main ends in Ok");
    let mut found: Vec<(bool, Vec<&str>)> = Vec::new();
    for line in body.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)) {
        let text = line.strip_prefix("//|").map(|text| text.strip_prefix(' ').unwrap_or(text));
        if found.last().is_none_or(|(is_code, _)| *is_code != text.is_none()) {
            found.push((text.is_none(), Vec::new()));
        }
        found.last_mut().expect("one was just pushed").1.push(text.unwrap_or(line));
    }
    let joined =
        found.into_iter().map(|(is_code, lines)| (is_code, lines.join("\n").trim_matches('\n').to_owned()));
    joined.filter(|(_, text)| !text.is_empty()).collect()
}

#[test]
fn notebooks_hold_the_code_of_the_examples() {
    for name in NAMES {
        let program = cells(&read(&format!("examples/notebook_{}.rs", &name[3..])));
        let mut held: Vec<(bool, String)> =
            notebook(name).iter().map(|cell| (cell["cell_type"] == "code", source(cell))).collect();
        let setup = held.remove(1);
        assert!(setup.0 && setup.1.starts_with(":dep flowline = { path = \"..\""), "{name}: {}", setup.1);
        assert!(
            held == program,
            "{name} differs from its example; write and run it again with `notebooks/run {name}`"
        );
    }
}

#[test]
fn notebooks_were_run_from_first_to_last_cell() {
    for name in NAMES {
        let codes: Vec<Value> =
            notebook(name).into_iter().filter(|cell| cell["cell_type"] == "code").collect();
        let run_as = |cell: &Value| cell["execution_count"].as_u64();
        let first = run_as(&codes[0]);
        for (i, cell) in codes.iter().enumerate() {
            let (count, wanted) = (run_as(cell), first.map(|first| first + i as u64));
            assert!(count.is_some() && count == wanted, "{name}: cell {} was run as number {count:?}", i + 1);
            let outputs = cell["outputs"].as_array().expect("a cell has outputs");
            assert!(outputs.iter().all(|out| out["output_type"] != "error"), "{name}: cell {} failed", i + 1);
            let shows = source(cell).contains("\nshow(");
            let figure = outputs.iter().any(|out| out["data"]["image/png"].is_string());
            assert!(!shows || figure, "{name}: cell {} shows no figure", i + 1);
        }
    }
}
