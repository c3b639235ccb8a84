"""Cost models in files: plain data that predicts the same to the last bit, and of which nothing runs or goes astray."""

import hashlib
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from threadpoolctl import threadpool_limits

import loopwright as lw
from loopwright.search.cost_model import CostModel, CostModelError, Linear, Pretrained, make_model, relative_speed
from loopwright.search.cost_model.forest import Forest
from loopwright.search.cost_model.saved import MAGIC
from loopwright.search.cost_model.trees import COLUMNS_A_SPLIT, RANDOMISED, grow, randomised
from loopwright.search.cost_model.trend import Trend
from loopwright.search.features.catalogue import names

WIDTH = len(names()) + 1


def samples(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features `(n, f)` of which some matter, and scores `(n,)`."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, WIDTH)).astype(np.float32)
    return features, relative_speed(np.exp(features[:, 0] + np.sin(3 * features[:, 1]) + 0.1 * features[:, 2]))


def trained(name: str) -> Any:
    features, scores = samples(40)
    if name == "pretrained":
        return Pretrained(make_model("trees", 3), features, scores, np.arange(40) % 3)
    model = make_model(name, 3)
    model.fit(features, scores)
    return model


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a model that has learnt."""
    path = tmp_path_factory.mktemp("trees") / "trees"
    trained("trees").save(path)
    return path.read_bytes()


def test_trees_as_arrays_predict_what_scikit_learn_does() -> None:
    features, scores = samples(300)
    wide = features.astype(np.float64)
    wide[::7, 0] = 1e30
    unseen = np.concatenate([samples(500, 1)[0].astype(np.float64), wide, np.full((1, WIDTH), -1e30)])
    with threadpool_limits(1):
        for values in (scores, np.full(300, 0.5)):
            model = grow(wide, values, seed=1)
            np.testing.assert_array_equal(Forest.of(model).predict(unseen), model.predict(unseen))


def test_randomised_trees_as_arrays_predict_their_mean() -> None:
    features, scores = samples(300)
    unseen = samples(500, 1)[0]
    share = max(0.3, COLUMNS_A_SPLIT / features.shape[1])
    model = ExtraTreesRegressor(RANDOMISED, max_features=share, random_state=1).fit(features, scores)
    with ThreadPoolExecutor(2) as pool:
        forest = randomised(features, scores, 1, pool)
    np.testing.assert_allclose(forest.predict(unseen), model.predict(unseen), rtol=1e-12)


@pytest.mark.parametrize("name", ("trees", "rank", "linear", "pretrained"))
@pytest.mark.few(1)
def test_a_loaded_model_predicts_the_same_and_goes_on_learning(name: str, tmp_path: Path) -> None:
    model = trained(name)
    path = tmp_path / "one.model"
    model.save(path)
    again = lw.load_cost_model(path)
    unseen, their_scores = samples(2000, 1)
    for one, other in zip(model.predict(unseen), again.predict(unseen), strict=True):
        np.testing.assert_array_equal(one, other)
    again.save(tmp_path / "two.model")
    assert (tmp_path / "two.model").read_bytes() == path.read_bytes()
    for each in (model, again):
        each.fit(unseen[:40], their_scores[:40])
    for one, other in zip(model.predict(unseen), again.predict(unseen), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match=f"was trained on {WIDTH} features, these are 3"):
        again.predict(unseen[:, :3])


def test_a_model_that_has_not_learned_is_kept_as_such(tmp_path: Path) -> None:
    for name in ("trees", "rank", "linear", "random", "roofline"):
        make_model(name).save(tmp_path / "new")
        assert lw.load_cost_model(tmp_path / "new").ready == (name == "roofline")


class Marker:
    """An object whose pickle makes a folder when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return os.mkdir, (str(self.path),)


def test_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    import joblib

    marker = Marker(tmp_path / "ran")
    for compress in (0, 3, ("gzip", 3)):
        joblib.dump({"origin": {}, "model": marker}, tmp_path / "old", compress=compress)
        with pytest.raises(CostModelError, match=r"old is a pickle.*train the model again from the records"):
            lw.load_cost_model(tmp_path / "old")
    (tmp_path / "old").write_bytes(f"{MAGIC}\n".encode() + pickle.dumps(marker))
    with pytest.raises(CostModelError, match="no cost model: its checksum"):
        lw.load_cost_model(tmp_path / "old")
    assert not marker.path.exists()


def test_a_file_that_is_no_model_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError):
        lw.load_cost_model(tmp_path / "none")
    for text in ("", "hello", MAGIC, f"{MAGIC}\n", f"{MAGIC}\n{'0' * 64}\n{{}}\n"):
        (tmp_path / "text").write_text(text)
        with pytest.raises(CostModelError, match="text is no cost model"):
            lw.load_cost_model(tmp_path / "text")
    Linear().save(tmp_path / "linear")
    monkeypatch.setattr("loopwright.search.cost_model.saved.names", lambda: ["other"])
    with pytest.raises(CostModelError, match="made with other features; train it again from the records"):
        lw.load_cost_model(tmp_path / "linear")


class Foreign(Linear):
    """A model of somebody else, which a file would give back as `Linear`."""


def test_files_hold_no_models_of_others(tmp_path: Path) -> None:
    known = np.zeros((1, 3)), np.zeros(1), np.zeros(1, np.int64)
    for model in (Foreign(), Pretrained(Foreign(), *known), Pretrained(cast(CostModel, object()), *known, alone=False)):
        with pytest.raises(TypeError, match=r"files hold the cost models of loopwright, not (Foreign|object)"):
            model.save(tmp_path / "other")
    assert not list(tmp_path.iterdir())


def rewritten(path: Path, change: Any) -> None:
    """Change the header and the arrays of a file, and give it the checksum that fits."""
    magic, _, rest = path.read_bytes().split(b"\n", 2)
    line, _, data = rest.partition(b"\n")
    header, raw = json.loads(line), bytearray(data)
    change(header, raw)
    body = json.dumps(header).encode() + b"\n" + bytes(raw)
    path.write_bytes(magic + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def offset_of(header: Any, wanted: Any) -> int:
    """Return the place of the bytes of an array, which is described by the object `wanted` in the header."""
    position, waiting, arrays = 0, [header], []
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict) and "array" in value:
            arrays.append(value)
        else:
            waiting += list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    for array in sorted(arrays, key=lambda a: a["array"]):
        if array is wanted:
            return position
        position += int(np.prod(array["shape"])) * int(array["dtype"][2:])
    raise AssertionError("not there")


def trees_of(header: Any) -> Any:
    return header["state"]["fitted"]["members"][0]["trees"][0]


def set_node(name: str, node: int, value: float) -> Any:
    def change(header: Any, raw: bytearray) -> None:
        array = trees_of(header)[name]
        start = offset_of(header, array) + 8 * node
        raw[start : start + 8] = np.array(value, array["dtype"]).tobytes()

    return change


def set_value(*names_and_value: Any) -> Any:
    *place, last, value = names_and_value

    def change(header: Any, raw: bytearray) -> None:
        for name in place:
            header = header[name]
        header[last] = value

    return change


CRAFTED = {
    "a node that leads back": set_node("left", 1, 0),
    "a node that leads to itself": set_node("left", 0, 0),
    "a node of another tree": set_node("right", 0, 200),
    "a node below all": set_node("right", 0, -5),
    "a node above all": set_node("left", 0, 1 << 40),
    "a feature below all": set_node("feature", 0, -1),
    "a feature above all": set_node("feature", 0, 1 << 33),
    "a threshold that is no number": set_node("threshold", 0, np.nan),
    "a value that is infinite": set_node("value", 0, np.inf),
    "a tree that begins before the others": set_node("starts", 1, -4),
    "a tree without nodes": set_node("starts", 1, 0),
    "a kind that is none": set_value("kind", "os.system"),
    "a kind in a kind": set_value("kind", "pretrained"),
    "no state": set_value("state", None),
    "members that are no list": set_value("state", "fitted", "members", {}),
    "many members": set_value("state", "fitted", "members", [{}] * 100),
    "a seed below all": set_value("state", "seed", -1),
    "a seed above all": set_value("state", "seed", 10**400),
    "threads without end": set_value("state", "threads", 10**6),
    "a width of none": set_value("state", "fitted", "width", 0),
    "columns that are not there": set_value("state", "fitted", "width", 3),
    "an array of objects": set_value("state", "fitted", "columns", "dtype", "|O"),
    "an array of another size": set_value("state", "fitted", "columns", "shape", [1 << 50]),
    "an array of a negative size": set_value("state", "fitted", "columns", "shape", [-1]),
    "an array of arrays": set_value("state", "fitted", "columns", "shape", [[1]]),
    "an array out of its place": set_value("state", "fitted", "columns", "array", 7),
    "an array that is none": set_value("state", "fitted", "columns", {"path": "/etc/passwd"}),
    "an offset that is none": set_value("state", "fitted", "members", 0, "trend", "offset", 10**400),
    "features that are none": set_value("features", [1, 2]),
}


@pytest.mark.parametrize("what", CRAFTED)
def test_a_crafted_model_is_refused_in_a_sentence(what: str, trees: bytes, tmp_path: Path) -> None:
    path = tmp_path / "crafted"
    path.write_bytes(trees)
    rewritten(path, CRAFTED[what])
    with pytest.raises(CostModelError) as refused:
        lw.load_cost_model(path)
    assert str(refused.value).isprintable() and len(str(refused.value)) < 300


def test_a_trend_of_an_older_file_knows_no_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, state = trained("linear"), Trend.state
    model.save(tmp_path / "now")
    monkeypatch.setattr(
        Trend, "state", lambda trend: {k: v for k, v in state(trend).items() if k not in ("low", "high")}
    )
    model.save(tmp_path / "older")
    inside, beyond = samples(50)[0], 100 + samples(50)[0]
    now, older = (lw.load_cost_model(tmp_path / name) for name in ("now", "older"))
    assert np.array_equal(now.predict(inside)[0], model.predict(inside)[0])
    assert np.isfinite(older.predict(beyond)[0]).all()
    assert not np.array_equal(older.predict(beyond)[0], now.predict(beyond)[0])


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    trained("rank").save(whole)
    data, rng = whole.read_bytes(), np.random.default_rng(0)
    for _ in range(40):
        place = int(rng.integers(len(data)))
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(rng.integers(8))
        for content in (bytes(damaged), data[:place]):
            (tmp_path / "damaged").write_bytes(content)
            with pytest.raises(CostModelError, match="is no cost model"):
                lw.load_cost_model(tmp_path / "damaged")
