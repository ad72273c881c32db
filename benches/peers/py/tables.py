"""Densities of tables: flowline beside scikit-learn's GaussianMixture and KernelDensity, on the same rows.

    PYTHON=$(benches/peers/run --environment requirements-tables.txt)
    $PYTHON benches/peers/py/tables.py [--tables iris,wine | --set report|choose] [--seconds 60] [--preset NAME] [--splits 2]
        [--folds N] [--args "--patience 3"] [--flowline PATH] [--folder DIR]

Every number is a difference of held-out log-densities per row in nats, flowline minus a peer, with the standard error of its mean
over the test rows, which all methods share. The rows are prepared before any method sees them:

- columns: the numeric ones with at least 20 different values, without those in which values repeat but have no step, because no
  density of them has a bound; at most the first 50;
- dequantization: a column that is rounded to a step gets uniform noise of one step, by the rule of `flowline train --dequantize`,
  once, so that all methods have the same values;
- parts: tables below 500 rows have 5 folds, others one test part of a fifth; each of the splits shuffles the rows anew;
- standardization by mean and standard deviation of the training rows.

The peers: GaussianMixture with full covariances and the number of components from 1 to 30 with the least BIC; KernelDensity with a
Gaussian kernel and the bandwidth of the best likelihood in 5 folds of the training rows. Each fits all training rows. flowline
reserves rows of its own for validation among the same rows.

**The tables of the set `report` serve for reports only. No setting of flowline may be chosen by them: choose with the set `choose`,
which has other tables and toy densities.**

Results of each fold are stored in the folder (default `target/peers/tables`), so a run that is cut off continues. A result of
flowline belongs to its preset, seconds and further arguments; delete the folder after a change of flowline itself.
"""
import argparse
import hashlib
import json
import pathlib
import shlex
import subprocess
import sys
import warnings

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
LEAST_VALUES = 20
MOST_DISTINCT = 0.9
MOST_COLUMNS = 50
MOST_ROWS = 20_000
# From here on, the bandwidths are tried in parallel.
MANY_ROWS = 2_000
FOLDS, FOLDS_BELOW = 5, 500
COMPONENTS = range(1, 31)
BANDWIDTHS = np.logspace(-1.5, 0.5, 21)
# A loss counts from so many standard errors in one split, or so many in each split.
LOSS_ONCE, LOSS_TWICE = 3.0, 2.0


def of_sklearn(name):
    def load():
        from sklearn import datasets

        return getattr(datasets, f"load_{name}")().data

    return load


def of_statsmodels(name, *columns):
    def load():
        import importlib

        frame = importlib.import_module(f"statsmodels.datasets.{name}").load_pandas().data
        return frame[list(columns) or frame.columns].select_dtypes("number").dropna().to_numpy(float)

    return load


def colors(name):
    """The colors of the pixels of a photograph, at most 20,000 of them."""

    def load():
        from sklearn.datasets import load_sample_image

        pixels = load_sample_image(name).reshape(-1, 3).astype(float)
        return pixels[np.random.default_rng(0).permutation(len(pixels))[:MOST_ROWS]]

    return load


def lagged(name, column, lags):
    """Values of a series and the values before them."""

    def load():
        series = of_statsmodels(name, column)()[:, 0]
        return np.stack([series[i : len(series) - lags + i] for i in range(lags + 1)], 1)

    return load


def moons(rows, noise):
    def load():
        from sklearn.datasets import make_moons

        return make_moons(rows, noise=noise, random_state=0)[0]

    return load


def mixture(rows, dim, components):
    """A mixture of normals with random means and covariances."""

    def load():
        rng = np.random.default_rng(dim)
        which = rng.integers(components, size=rows)
        means, factors = 2 * rng.normal(size=(components, dim)), rng.normal(size=(components, dim, dim)) / np.sqrt(dim)
        return means[which] + np.einsum("nij,nj->ni", factors[which], rng.normal(size=(rows, dim)))

    return load


def student(rows, dim):
    """Correlated Student t with five degrees of freedom: heavier tails than any normal."""

    def load():
        rng = np.random.default_rng(dim)
        scale = np.sqrt(5 / rng.chisquare(5, size=(rows, 1)))
        return rng.normal(size=(rows, dim)) @ rng.normal(size=(dim, dim)) * scale

    return load


SETS = {
    "report": {
        "iris": of_sklearn("iris"),
        "wine": of_sklearn("wine"),
        "breast_cancer": of_sklearn("breast_cancer"),
        "diabetes": of_sklearn("diabetes"),
        "engel": of_statsmodels("engel"),
        "grunfeld": of_statsmodels("grunfeld", "invest", "value", "capital"),
        "macrodata": of_statsmodels("macrodata"),
        "star98": of_statsmodels("star98"),
        "elnino": of_statsmodels("elnino"),
        "china": colors("china.jpg"),
    },
    "choose": {
        "moons": moons(2_000, 0.1),
        "few_moons": moons(300, 0.2),
        "mixture": mixture(400, 5, 3),
        "student": student(300, 6),
        "anes96": of_statsmodels("anes96"),
        "fair": of_statsmodels("fair"),
        "modechoice": of_statsmodels("modechoice"),
        "heart": of_statsmodels("heart"),
        "sunspots": lagged("sunspots", "SUNACTIVITY", 2),
        "nile": lagged("nile", "volume", 1),
        "flower": colors("flower.jpg"),
    },
}
ALL = {name: load for tables in SETS.values() for name, load in tables.items()}


def step_of(column):
    """The step to which a column is rounded, or 0: the rule of `src/data/rounding.rs`."""
    values = np.unique(column)
    if len(column) < 20 or len(values) < 2 or len(values) > MOST_DISTINCT * len(column):
        return 0.0
    gap, extent = np.diff(values).min(), values[-1] - values[0]
    for divisions in range(1, 11):
        step = extent / np.round(extent * divisions / gap)
        steps = (values - values[0]) / step
        if np.abs(steps - np.round(steps)).max() < 1e-3:
            return float(step)
    return 0.0


def prepared(name):
    """The dequantized rows of a table, and its number of rounded columns."""
    rows = ALL[name]()
    distinct = np.array([len(np.unique(column)) for column in rows.T])
    steps = np.array([step_of(column) for column in rows.T])
    is_continuous = (distinct >= LEAST_VALUES) & ((steps > 0) | (distinct > MOST_DISTINCT * len(rows)))
    rows, steps = rows[:, is_continuous][:, :MOST_COLUMNS], steps[is_continuous][:MOST_COLUMNS]
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
    return rows + steps * (np.random.default_rng(seed).random(rows.shape) - 0.5), int((steps > 0).sum())


def folds(rows, split, most):
    """Training and test rows of each fold of a split."""
    order = np.random.default_rng(1_000 + split).permutation(len(rows))
    parts = np.array_split(order, FOLDS)
    count = FOLDS if len(rows) < FOLDS_BELOW else 1
    for test in parts[: min(count, most or count)]:
        yield rows[np.setdiff1d(order, test)], rows[np.sort(test)]


def standardized(train, test):
    mean, std = train.mean(0), train.std(0)
    return (train - mean) / std, (test - mean) / std


def gaussian_mixture(train, test, _):
    from sklearn.mixture import GaussianMixture
    from threadpoolctl import threadpool_limits

    fits = []
    # On matrices this small, several threads are slower than one.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for components in COMPONENTS:
            if components <= len(train) // 2:
                fits.append(GaussianMixture(components, random_state=0).fit(train))
    best = min(fits, key=lambda fit: fit.bic(train))
    return best.score_samples(test), best.n_components


def kernel_density(train, test, _):
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.neighbors import KernelDensity

    folds = KFold(5, shuffle=True, random_state=0)
    jobs = -1 if len(train) > MANY_ROWS else 1
    search = GridSearchCV(KernelDensity(rtol=1e-5), {"bandwidth": BANDWIDTHS}, cv=folds, n_jobs=jobs).fit(train)
    return search.best_estimator_.score_samples(test), round(search.best_params_["bandwidth"], 4)


def flowline(train, test, work):
    """Trains on a CSV file in the folder of a fold, and evaluates the test rows."""
    options, folder = work
    folder.mkdir(parents=True, exist_ok=True)
    heading = ",".join(f"x{i + 1}" for i in range(train.shape[1]))
    files = [folder / "train.csv", folder / "test.csv"]
    for path, rows in zip(files, (train, test)):
        np.savetxt(path, rows, delimiter=",", header=heading, comments="", fmt="%.17g")
    run = folder / "run"
    command = [options.flowline, "train", files[0], "--test", files[1], "--time-limit", options.seconds, "--plots", "none"]
    command += ["--preset", options.preset] if options.preset else []
    command += [*shlex.split(options.args), "--out", run, "--restart", "--json"]
    report = json.loads(called(command))
    values = json.loads(called([options.flowline, "log-prob", run, files[1], "--json"]))["log_prob"]
    return np.array(values), report["updates"]


def called(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{shlex.join(map(str, command))} failed with status {done.returncode}:\n{done.stderr}")
    return done.stdout


METHODS = {"flowline": flowline, "GaussianMixture": gaussian_mixture, "KernelDensity": kernel_density}


def scored(method, name, split, fold, parts, options):
    """The log-densities of the test rows and what the method chose; from the folder if it has them."""
    own = f"{options.preset} {options.seconds} {options.args}" if method == "flowline" else ""
    called = hashlib.sha256(own.encode()).hexdigest()[:8] if own else "peer"
    place = options.folder / f"{name}-{split}-{fold}-{method}-{called}.json"
    hash_of_rows = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]
    if place.exists():
        found = json.loads(place.read_text())
        if found["rows"] == hash_of_rows:
            return np.array(found["log_prob"]), found["chosen"]
    print(f"{name}, split {split + 1}, fold {fold + 1}: {method}", file=sys.stderr, flush=True)
    log_prob, chosen = METHODS[method](*parts, (options, place.with_suffix("")))
    text = json.dumps({"rows": hash_of_rows, "options": own, "chosen": chosen, "log_prob": list(map(float, log_prob))})
    written = place.with_suffix(".part")
    written.write_text(text)
    written.replace(place)
    return log_prob, chosen


def compared(name, options):
    """Prints a table's line per split; returns for each split and peer the difference and its standard error."""
    rows, rounded = prepared(name)
    found = []
    for split in range(options.splits):
        values, chosen = {method: [] for method in METHODS}, {method: [] for method in METHODS}
        for fold, parts in enumerate(folds(rows, split, options.folds)):
            parts = standardized(*parts)
            for method in METHODS:
                log_prob, choice = scored(method, name, split, fold, parts, options)
                values[method].append(log_prob)
                chosen[method].append(choice)
        values = {method: np.concatenate(parts) for method, parts in values.items()}
        means = "  ".join(f"{method} {x.mean():.3f} ({min(chosen[method])}-{max(chosen[method])})" for method, x in values.items())
        differences = {}
        for peer in list(METHODS)[1:]:
            apart = values["flowline"] - values[peer]
            differences[peer] = (apart.mean(), apart.std(ddof=1) / np.sqrt(len(apart)))
        text = "  ".join(f"- {peer} {mean:+.3f} ± {error:.3f}" for peer, (mean, error) in differences.items())
        size = f"{len(rows)} x {rows.shape[1]} ({rounded} rounded)"
        print(f"{name:14} {size:24} split {split + 1}: {text}   [{means}]", flush=True)
        found.append(differences)
    return found


def summary(all_found):
    """Says on which tables flowline is better or loses, by the rule of losses above."""
    for peer in list(METHODS)[1:]:
        better, lost = [], []
        for name, found in all_found.items():
            errors = [mean / error for mean, error in (split[peer] for split in found)]
            if np.mean([split[peer][0] for split in found]) > 0:
                better.append(name)
            if min(errors) <= -LOSS_ONCE or (len(errors) > 1 and max(errors) <= -LOSS_TWICE):
                lost.append(name)
        print(f"{peer}: better on {len(better)} of {len(all_found)}; lost: {', '.join(lost) or 'none'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=SETS, default="report", help="which tables")
    parser.add_argument("--tables", help="names separated by commas, in place of a set")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--folds", type=int, help="at most so many folds of each split")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of a run of flowline")
    parser.add_argument("--preset", help="preset of flowline")
    parser.add_argument("--args", default="", help="further arguments of flowline train")
    parser.add_argument("--flowline", type=pathlib.Path, default=ROOT / "target" / "release" / "flowline")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "target" / "peers" / "tables")
    options = parser.parse_args()
    names = options.tables.split(",") if options.tables else list(SETS[options.set])
    unknown = [name for name in names if name not in ALL]
    if unknown:
        parser.error(f"no table {', '.join(unknown)}; the tables are {', '.join(ALL)}")
    if not options.flowline.exists():
        parser.error(f"{options.flowline} does not exist; build it with cargo build --release -p flowline-cli, or give --flowline")
    options.folder.mkdir(parents=True, exist_ok=True)
    summary({name: compared(name, options) for name in names})


if __name__ == "__main__":
    main()
