//! Named cases: headings, columns, delimiters, places of errors. `drawn.rs` draws tables of all kinds.

use super::*;
use crate::ode::tests::draw::Draw;

fn parse(options: &CsvOptions, text: &str) -> Result<Table, String> {
    options.parse("p.csv", text.as_bytes()).map_err(|e| e.to_string())
}

fn default(text: &str) -> Table {
    parse(&CsvOptions::default(), text).unwrap()
}

#[test]
fn the_separator_splits_all_lines_into_equally_many_cells() {
    for text in ["x,y\n1,2\n3,4", "x;y\n1;2\n3;4", "x\ty\n1\t2\n3\t4", "x y\n1  2\n 3 4"] {
        let table = default(text);
        assert_eq!((table.columns.join("|"), table.data), ("x|y".to_owned(), vec![1.0, 2.0, 3.0, 4.0]));
    }
    assert_eq!(default("height cm,weight kg\n1,2").columns, ["height cm", "weight kg"]);
    assert_eq!(default("one name\n1\n2").columns, ["one name"]);
    assert_eq!(default("1,5;2\n3,5;4").data, [1.5, 2.0, 3.5, 4.0]);
    let error = |text| parse(&CsvOptions::default(), text).unwrap_err();
    assert!(error("1;2\n3;4;5").contains("\"3;4;5\" is not a number; if ';' delimits the cells, set"));
}

/// Tables that were read by the wrong delimiter, or with shifted names.
#[test]
fn delimiters_at_ends_of_lines_numbers_in_text_and_single_columns_change_no_cell() {
    let numeric = CsvOptions::default().numeric_only();
    let read = |text: &str| parse(&numeric, text).map(|table| (table.columns.join("|"), table.data));
    assert!(read("id,h,w\n1,170,60,\n2,180,70,\n3,190,80,\n").unwrap_err().contains("line 2"));
    let days = read("name,value\nday 1,5\nday 2,7\nday 3,16\n").unwrap();
    assert_eq!(days, ("value".to_owned(), vec![5.0, 7.0, 16.0]));
    let sodium = read("RI,Na,Mg\n1.5,13.6,4.5\n1.6,13.9,3.6\n").unwrap();
    assert_eq!((&*sodium.0, sodium.1.len()), ("RI|Na|Mg", 6));
    assert_eq!(read("0.5, 0.25").unwrap().1, [0.5, 0.25]);
    let single = read("t\n1,0\n2,1\n3,3\n");
    assert!(
        single.as_ref().map_or(true, |found| found.1.len() == 6 || found.1 == [1.0, 2.1, 3.3]),
        "{single:?}"
    );
}

#[test]
fn columns_are_chosen_by_heading_or_number_and_keep_their_headings() {
    let text = "id,name,2,y\n1,ann,5,6\n2,bob,7,8\n";
    // The third heading is a number, so the first line is not a heading.
    let chosen = |columns: &[&str], text| parse(&CsvOptions::default().columns(columns.to_vec()), text);
    assert!(chosen(&["3", "4"], text).unwrap_err().contains("p.csv line 1: column 4: \"y\" is not a number"));
    let text = text.replace(",2,", ",x,");
    let table = chosen(&["y", "1"], &text).unwrap();
    assert_eq!((table.columns, table.data), (vec!["y".into(), "id".into()], vec![6.0, 1.0, 8.0, 2.0]));
    assert!(
        chosen(&["z"], &text).unwrap_err().contains("has no column \"z\"; its columns are id, name, x, y")
    );
    assert!(chosen(&["5"], &text).unwrap_err().contains("no column \"5\""));
    assert!(chosen(&["y", "4"], &text).unwrap_err().contains("column \"y\" is chosen twice"));
    assert!(chosen(&["name"], &text).unwrap_err().contains("line 2: column name: \"ann\" is not a number"));
}

#[test]
fn columns_of_text_are_left_out_on_request_and_single_words_are_not() {
    let numeric = CsvOptions::default().numeric_only();
    let table = parse(&numeric, "id,name,x\n1,ann,5\n2,7,6\n3,bob,7\n").unwrap();
    assert_eq!((table.columns, table.left_out), (vec!["id".into(), "x".into()], vec!["name".to_owned()]));
    assert_eq!((table.data, table.lines), (vec![1.0, 5.0, 2.0, 6.0, 3.0, 7.0], vec![2, 3, 4]));
    let error = parse(&numeric, "a;b\n1;2\n3;4;5\n").unwrap_err();
    assert!(error.contains("line 3: 3 columns instead of 2"), "{error}");
    let error = parse(&numeric, "x\n1\noops\n2\n").unwrap_err();
    assert!(error.ends_with("line 3: column x: \"oops\" is not a number"), "{error}");
}

#[test]
fn invalid_lines_are_named() {
    let folder = crate::io::scratch();
    let path = folder.path().join("p.csv");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        read_csv(&path).map(|table| table.data).map_err(|e| e.to_string())
    };
    assert_eq!(read("x,y\n1,2\n\n 3 , 4e0\n").unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(read("1,2").unwrap(), [1.0, 2.0]);
    assert_eq!(read("t,y0\n1,2").unwrap(), [1.0, 2.0]);
    assert!(read("1,y0\n1,2").unwrap_err().contains("line 1: column 2: \"y0\" is not a number"));
    assert!(
        read("x,y\n1,2\n3,oops\n").unwrap_err().contains("p.csv line 3: column y: \"oops\" is not a number")
    );
    assert!(read("x,y\n1,2,3").unwrap_err().contains("line 2: 3 columns instead of 2"));
    assert_eq!(read("\u{feff}1,2\r\n3,4").unwrap(), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_table_is_as_wide_as_its_first_row_and_keeps_its_heading() {
    let folder = crate::io::scratch();
    let path = folder.path().join("p.csv");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        read_csv(&path)
    };
    let table = read("a, b,c\n1,2,3\n4,5,6\n").unwrap();
    assert_eq!((table.columns, table.lines), (["a", "b", "c"].map(str::to_owned).to_vec(), vec![2, 3]));
    assert_eq!(table.data, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(read("1\n2\n").unwrap().data, [1.0, 2.0]);
    let bare = read("1,2\n3,4\n").unwrap();
    assert_eq!((bare.columns, bare.has_heading), (["x1", "x2"].map(str::to_owned).to_vec(), false));
    let ragged = read("1,2\n3,4\n5,6,7\n").unwrap_err().to_string();
    assert!(ragged.contains("p.csv line 3: 3 columns instead of 2"), "{ragged}");
}

#[test]
fn columns_are_found_by_their_names_and_cells_may_be_quoted() {
    let folder = crate::io::scratch();
    let path = folder.path().join("p.csv");
    std::fs::write(&path, "\"t, s\", \"the \"\"y\"\"\",\n\"0.5\",2,3\n1,-4,5\n").unwrap();
    let table = read_csv(&path).unwrap();
    assert_eq!(table.columns, ["t, s", "the \"y\"", "x3"]);
    assert_eq!(table.column("t, s").unwrap(), [0.5, 1.0]);
    assert_eq!(table.column("x3").unwrap(), [3.0, 5.0]);
    let message = table.column("y").unwrap_err().to_string();
    assert!(message.contains("p.csv has no column \"y\"") && message.contains("t, s"), "{message}");
    #[cfg(feature = "autodiff")]
    {
        let found = table.tensor(&["x3", "t, s"]).unwrap();
        assert_eq!((&found.shape()[..], found.to_vec()), (&[2, 2][..], vec![3.0, 0.5, 5.0, 1.0]));
        let message = table.tensor(&["x3", "z"]).unwrap_err().to_string();
        assert!(message.contains("p.csv has no column \"z\""), "{message}");
    }
}

#[test]
fn bytes_that_are_not_text_are_named_with_their_line() {
    let folder = crate::io::scratch();
    let path = folder.path().join("p.csv");
    std::fs::write(&path, b"x,y\n1,2\n3,\xff4\n").unwrap();
    let message = read_csv(&path).unwrap_err().to_string();
    assert!(message.contains("p.csv line 3: byte 11 of the file is not UTF-8 text"), "{message}");
}

#[test]
fn missing_cells_are_named_dropped_or_kept() {
    let text = "a,b,note\n1,2,\n3, NA ,x\n4,,\n5,?,y\n6,7,z\n";
    let numeric = CsvOptions::default().numeric_only();
    let error = parse(&numeric, text).unwrap_err();
    let expected = "p.csv line 3: column b: \"NA\" stands for a missing value; 3 of 5 rows have missing cells; leave such rows out with `CsvOptions::drop_missing`";
    assert!(error.starts_with(expected), "{error}");
    let error = parse(&CsvOptions::default(), "1,2\n3,\n").unwrap_err();
    assert!(
        error.starts_with("p.csv line 2: column 2: the cell is empty; 1 of 2 rows has missing cells"),
        "{error}"
    );
    let table = parse(&numeric.clone().drop_missing(), text).unwrap();
    assert_eq!((table.num_dropped, table.data, table.lines), (3, vec![1.0, 2.0, 6.0, 7.0], vec![2, 6]));
    let table = parse(&numeric.clone().keep_missing(), text).unwrap();
    assert!(table.num_dropped == 0 && table.data[3].is_nan() && table.lines.len() == 5);
    // Only columns that are read count.
    assert_eq!(parse(&numeric.columns(["a"]), text).unwrap().data, [1.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn decimal_commas_are_found_or_chosen_and_thousands_are_not_guessed() {
    assert_eq!(default("a;b\n1,5;2\n1,234;3\n").data, [1.5, 2.0, 1.234, 3.0]);
    assert_eq!(default("1,5\t2,25\n3\t4").data, [1.5, 2.25, 3.0, 4.0]);
    let error = |text: &str| parse(&CsvOptions::default(), text).unwrap_err();
    let found = error("a;b\n1,234;5\n");
    assert!(
        found.contains(
            "line 2: the comma of 1,234 is a decimal mark or separates thousands; set `CsvOptions::decimal`"
        ),
        "{found}"
    );
    let found = error("a;b\n1,5;2\n1;2.5\n");
    assert!(found.contains("line 2: 1,5 has a decimal comma, but 2.5 in line 3 has a point"), "{found}");
    let found = error("x\n1\n2\n1.5\n3,5");
    assert!(found.contains("line 5: 2 columns instead of 1"), "{found}");
    let comma = CsvOptions::default().decimal(',');
    assert_eq!(parse(&comma, "x\n1,5\n2,5\n").unwrap().data, [1.5, 2.5]);
    let found = parse(&comma, "a;b\n1,5;2.5\n").unwrap_err();
    assert!(
        found.contains("line 2: column b: \"2.5\" is not a number; if '.' is the decimal mark, set"),
        "{found}"
    );
    let found = parse(&comma.delimiter(','), "a,b\n1,2\n").unwrap_err();
    assert!(found.contains("',' is given as delimiter and as decimal mark"), "{found}");
    assert!(error("a,b\n1,1e999\n").contains("column b: \"1e999\" is beyond the range of 64-bit numbers"));
}

/// Draws 300 tables beside commas: decimal commas in quotes are refused until the decimal mark is given, unless a number has a
/// point or all of these commas may separate thousands.
#[test]
fn decimal_commas_in_quotes_are_asked_for_beside_commas() {
    let (mut draw, mut found) = (Draw(4), [0; 4]);
    for case in 0..300 {
        let kind = draw.below(4);
        let (columns, rows) = (2 + draw.below(4), 2 + draw.below(6));
        let mut values = Vec::new();
        let mut lines = vec![(0..columns).map(|i| format!("c{i}")).collect::<Vec<_>>().join(",")];
        for _ in 0..rows {
            let mut cell = |draw: &mut Draw, i: usize| {
                let (whole, tenths) = (1 + draw.below(99), 1 + draw.below(9));
                values.push(whole as f64 + if kind == 2 { 0.0 } else { tenths as f64 / 10.0 });
                match kind {
                    1 if i == 0 => format!("{whole}.{tenths}"),
                    2 => whole.to_string(),
                    3 => format!("\"{whole},{tenths}00\""),
                    _ => format!("\"{whole},{tenths}\""),
                }
            };
            let cells: Vec<String> = (0..columns).map(|i| cell(&mut draw, i)).collect();
            lines.push(cells.join(","));
        }
        let text = lines.join("\n");
        let read = parse(&CsvOptions::default(), &text);
        match kind {
            0 => assert!(
                read.unwrap_err().contains("is a decimal mark or belongs to text; set"),
                "case {case}\n{text}"
            ),
            2 => assert_eq!(read.unwrap().data, values, "case {case}\n{text}"),
            _ => assert!(read.unwrap_err().contains("is not a number"), "case {case}\n{text}"),
        }
        if kind == 0 || kind == 3 {
            for given in
                [CsvOptions::default().decimal(','), CsvOptions::default().delimiter(',').decimal(',')]
            {
                assert_eq!(parse(&given, &text).unwrap().data, values, "case {case}\n{text}");
            }
        }
        found[kind] += 1;
    }
    assert!(found.iter().all(|&n| n > 40), "{found:?}");
    let plain = parse(&CsvOptions::default().delimiter(',').decimal(','), "a,b\n1,2\n3,4").unwrap_err();
    assert!(plain.contains("',' is given as delimiter and as decimal mark"), "{plain}");
}

#[test]
fn a_table_with_two_delimiters_is_refused() {
    let error = parse(&CsvOptions::default(), "1\t\t3\n4\t\t6\n").unwrap_err();
    assert!(error.contains("p.csv line 1: tabs and spaces both divide the lines into"), "{error}");
    assert_eq!(
        default("ann;1,5\nbob;2,5\n".replace("ann", "1").replace("bob", "2").as_str()).data,
        [1.0, 1.5, 2.0, 2.5]
    );
    assert_eq!(default("x\ty\n1 \t 2\n").data, [1.0, 2.0]);
    assert_eq!(default("1, 2\n3, 4\n").data, [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn counters_are_left_out_on_request_unless_a_run_learned_them() {
    let text = "\"\",id,year,x\n\"1\",7,2001,5\n\"2\",9,2002,3\n\"3\",8,2003,4\n";
    let skip = CsvOptions::default().skip_counters();
    let table = parse(&skip, text).unwrap();
    assert_eq!((table.columns.join(" "), table.counters), ("id year x".to_owned(), vec!["x1".to_owned()]));
    assert_eq!(table.data, [7.0, 2001.0, 5.0, 9.0, 2002.0, 3.0, 8.0, 2003.0, 4.0]);
    let of_run = ["x1", "x"].map(str::to_owned);
    let table = parse(&skip.clone().like(&of_run), text).unwrap();
    assert_eq!(
        (table.columns, table.counters, table.data),
        (of_run.to_vec(), vec![], vec![1.0, 5.0, 2.0, 3.0, 3.0, 4.0])
    );
    assert_eq!(parse(&skip.clone().like(&["z".to_owned()]), text).unwrap().columns.len(), 3);
    // R writes no name for the column of row names.
    let table = parse(&skip, "x y\n\"1\" 5 6\n\"2\" 7 8\n\"3\" 7 8\n").unwrap();
    assert_eq!((table.columns.join(" "), table.counters), ("x y".to_owned(), vec!["x1".to_owned()]));
    // One column is always left.
    assert_eq!(parse(&skip, "id\n1\n2\n3\n").unwrap().columns, ["id"]);
}

#[cfg(feature = "train")]
#[test]
fn gzip_files_are_tables_too() {
    use std::io::Write;
    let text = b"x,y\n1,2\n3,4\n";
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text).unwrap();
    let packed = packed.finish().unwrap();
    let read = |bytes: &[u8]| CsvOptions::default().parse("p.csv.gz", bytes);
    assert_eq!(read(&packed).unwrap(), read(text).unwrap());
    let damaged = read(&packed[..packed.len() - 9]).unwrap_err().to_string();
    assert!(
        damaged.contains("p.csv.gz is damaged") && damaged.contains("cannot be decompressed"),
        "{damaged}"
    );
}

#[test]
fn tables_are_known_by_their_names() {
    let is_table = |name: &str| is_table_name(Path::new(name));
    assert!(
        ["a.csv", "a.TSV", "a.b.txt", "a.dat", "a.csv.gz", "a.dat.GZ"]
            .map(is_table)
            .iter()
            .all(|&known| known)
    );
    assert!(
        ["a.png", "a.gz", "csv", "a.npy", "train-images-idx3-ubyte.gz"]
            .map(is_table)
            .iter()
            .all(|&known| !known)
    );
}

/// Draws 200 tables of 0 to 2 columns of text and 2 to 7 columns of numbers, whose headings would be years that rise or fall by
/// uneven steps.
#[test]
fn years_as_headings_are_refused_and_never_read_as_a_row() {
    let (mut draw, mut found) = (Draw(3), [0; 2]);
    for case in 0..200 {
        let (texts, columns, rows) = (draw.below(3), 2 + draw.below(6), 1 + draw.below(5));
        let mut numbers: Vec<usize> = vec![1850 + draw.below(250)];
        let falls = draw.coin();
        for _ in 1..columns {
            let (last, step) = (numbers[numbers.len() - 1], 1 + draw.below(8));
            numbers.push(if falls { last - step } else { last + step });
        }
        let line = |draw: &mut Draw, number: &dyn Fn(&mut Draw, usize) -> String| {
            let words = (0..texts).map(|i| format!("w{i}")).collect::<Vec<_>>();
            let numbers = (0..columns).map(|i| number(draw, i)).collect::<Vec<_>>();
            [words, numbers].concat().join(",")
        };
        let years = line(&mut draw, &|_, i| numbers[i].to_string());
        let named = line(&mut draw, &|_, i| format!("y{}", numbers[i]));
        let data: Vec<String> = (0..rows)
            .map(|_| line(&mut draw, &|draw, _| format!("{:.2}", draw.uniform(-9.0, 9.0))))
            .collect();
        let read = |first: &str, rest: &[String]| {
            let text = [&[first.to_owned()], rest].concat().join("\n");
            CsvOptions::default().numeric_only().parse("t.csv", text.as_bytes()).map(|table| table.data.len())
        };
        let message = read(&years, &data).unwrap_err().to_string();
        assert!(
            message.starts_with(&format!("t.csv line 1: {}, {}", numbers[0], numbers[1]))
                && message.contains("if they are headings, write a letter before each"),
            "case {case}: {message}"
        );
        assert_eq!(read(&named, &data).unwrap(), rows * columns, "case {case}");
        assert_eq!(read(&data[0], &data[1..]).unwrap(), rows * columns, "case {case}");
        // Years in more than half of the rows are numbers.
        let alike = draw.below(rows + 1);
        let mixed = [vec![years.clone(); alike], data[alike..].to_vec()].concat();
        match read(&years, &mixed) {
            Ok(numbers) => assert!(2 * alike > rows && numbers == (rows + 1) * columns, "case {case}"),
            Err(_) => assert!(2 * alike <= rows, "case {case}"),
        }
        found[usize::from(2 * alike > rows)] += 1;
        assert_eq!(read(&years, &[years.clone(), years.clone()]).unwrap(), 3 * columns, "case {case}");
    }
    assert!(found.iter().all(|&n| n > 40), "{found:?}");
}
