//! Help on a terminal of 80 columns, completions and man pages.

use crate::place::{Place, text};
use std::fs;

const COMMANDS: [&str; 9] =
    ["train", "sample", "density", "plot", "log-prob", "info", "runs", "completions", "man"];

fn help(place: &Place, arguments: &str) -> String {
    let output = place.command(arguments).env("COLUMNS", "80").output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn help_fits_80_columns_and_has_examples() {
    let place = Place::new();
    for arguments in COMMANDS.map(|name| format!("{name} --help")).into_iter().chain(["--help".to_owned()]) {
        let help = help(&place, &arguments);
        let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{arguments}: {wide:#?}");
        assert!(help.contains("Example"), "{arguments}: {help}");
    }
    for name in COMMANDS {
        assert_eq!(help(&place, &format!("help {name}")), help(&place, &format!("{name} --help")));
    }
    assert!(help(&place, "--help").contains("Exit codes: 0 success, 1 failure, 2 wrong usage"));
}

/// Options that take a value and have no default.
const WITHOUT_DEFAULT: [&str; 7] = [
    "--labels",
    "--validation-labels",
    "--test-labels",
    "--fixed-steps",
    "--time-limit",
    "--config",
    "--label",
];

#[test]
fn every_option_with_a_default_shows_it() {
    let place = Place::new();
    for name in COMMANDS {
        let help = help(&place, &format!("{name} --help"));
        let mut entries: Vec<String> = Vec::new();
        for line in help.lines() {
            if line.trim_start().starts_with('-') {
                entries.push(line.trim().to_owned());
            } else if line.starts_with("      ") {
                entries.iter_mut().last().into_iter().for_each(|entry| *entry += line);
            }
        }
        assert!(entries.len() > 4, "{name}: {help}");
        for entry in entries.iter().filter(|entry| entry.contains(" <")) {
            let words = || entry.split([' ', ',']);
            let is_free = words().any(|word| WITHOUT_DEFAULT.contains(&word));
            assert!(is_free || entry.contains("[default: "), "{name}: {entry}");
        }
    }
}

#[test]
fn the_short_help_of_train_omits_the_model_and_names_the_long_help() {
    let place = Place::new();
    let (short, long) = (help(&place, "train -h"), help(&place, "train --help"));
    for heading in ["Input:", "Run:", "Output:"] {
        assert!(short.contains(heading) && long.contains(heading), "{heading}: {short}");
    }
    for heading in ["Model:", "Objective:", "Solver (maximum likelihood):", "Optimizer:"] {
        assert!(!short.contains(heading) && long.contains(heading), "{heading}: {short}");
    }
    assert!(short.contains("train --help") && short.lines().count() < long.lines().count());
}

/// The letter of an option is named as it was typed, and names of earlier versions are unknown.
#[test]
fn an_option_has_one_long_name() {
    let place = Place::new();
    place.fails("sample run --count 0", 2, &["--count=0"]);
    place.fails("sample run -n 0", 2, &["-n=0"]);
    for old in
        ["train --model mlp", "train --method rk4", "train --kinetic-weight 1", "train --jacobian-weight 1"]
    {
        place.fails(old, 2, &["unexpected argument"]);
    }
    for old in ["sample run --class 1", "density run --resolution 9", "log-prob run p.csv --noise-samples 2"]
    {
        place.fails(old, 2, &["unexpected argument"]);
    }
}

#[test]
fn errors_are_colored_on_request() {
    let place = Place::new();
    for arguments in ["train --color always --updates many", "train --color=always --updates 0"] {
        let message = text(&place.run(arguments).stderr);
        assert!(message.contains("\x1b[") && message.contains("error:"), "{message:?}");
    }
    let message = text(&place.run("train --updates many").stderr);
    assert!(
        !message.contains('\x1b') && message.ends_with("For more information, try '--help'.\n"),
        "{message:?}"
    );
}

#[test]
fn shells_get_completions_and_man_gets_a_page_per_command() {
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = place.done(&format!("completions {shell}"));
        assert!(script.contains("log-prob") && script.contains("time-limit"), "{shell}");
    }
    place.fails("completions tcsh", 2, &["tcsh", "bash"]);
    place.done("man --out pages");
    for name in COMMANDS {
        let page = fs::read_to_string(place.path(&format!("pages/flowline-{name}.1"))).unwrap();
        assert!(page.contains(".SH"), "{name}");
    }
    assert!(fs::read_to_string(place.path("pages/flowline.1")).unwrap().contains("flowline"));
}
