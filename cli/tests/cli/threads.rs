//! `--threads` and the output of every command that has it.

use crate::place::Place;
use std::fs;

/// A table of 300 rows in three columns, which fill a volume: for rows on a curve, samples given a column take long.
fn table(place: &Place) {
    let row = |i: i32| [0.7, 0.9, 1.1].map(|by| (by * f64::from(i)).sin() * (0.13 * f64::from(i * i)).cos());
    let rows = (0..300).map(row).map(|[a, b, c]| format!("{},{},{}\n", 10.0 * a, b + 0.3 * c, a * b + c));
    fs::write(place.path("p.csv"), format!("a,b,c\n{}", rows.collect::<String>())).unwrap();
}

/// Every command with `--threads` in its help, on 1 and 3 threads: its files and output have the same bytes.
#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let place = Place::new();
    table(&place);
    let small = "--updates 3 --width 4 --depth 1 --batch 32 --plots none";
    place.done(&format!("train p.csv --columns a,b {small} --out plane"));
    place.done(&format!("train p.csv {small} --out run"));
    let commands = [
        (format!("train p.csv {small} --out OUT"), "/model.safetensors"),
        ("sample run -n 600 -o OUT.npy".to_owned(), ""),
        ("sample run -n 60 --given a=1 -o OUT.csv".to_owned(), ""),
        ("sample run -n 60 --steps 3 -o OUT.csv".to_owned(), ""),
        ("density plane --grid 12 -o OUT.npy".to_owned(), ""),
        ("density plane --grid 12 -o OUT.png".to_owned(), ""),
        ("plot run -n 300 --columns a,c -o OUT.png".to_owned(), ""),
        ("log-prob run p.csv -o OUT.csv".to_owned(), ""),
        ("log-prob run p.csv --anomaly=200 -o OUT.csv".to_owned(), ""),
    ];
    for (command, file) in &commands {
        let written = |threads: usize| {
            let out = format!("out{threads}");
            place.done(&format!("{} --threads {threads}", command.replace("OUT", &out)));
            let named = command.split(' ').find_map(|word| word.strip_prefix("OUT")).unwrap();
            fs::read(place.path(&format!("{out}{named}{file}"))).unwrap()
        };
        let first = written(1);
        assert!(written(3) == first, "{command}");
        for number in ["0", "1025", "-1", "many", "1.5"] {
            let refused = format!("{} --threads {number}", command.replace("OUT", "none"));
            place.fails(&refused, 2, &["--threads"]);
        }
    }
    // No command with the option was forgotten.
    for name in ["train", "sample", "density", "log-prob", "info", "runs", "plot"] {
        let help = place.run(&format!("{name} --help"));
        let has_option = String::from_utf8_lossy(&help.stdout).contains("--threads <N>");
        let is_run = commands.iter().any(|(command, _)| command.starts_with(&format!("{name} ")));
        assert_eq!(has_option, is_run, "{name}");
    }
}
