"""Reports, saved results, and what two of them have changed."""

import csv
import io
import json
from dataclasses import replace

import pytest
from bench_kit import scripted_model

from edgespec.bench import report, saved
from edgespec.bench.answers import Answer, First
from edgespec.bench.local import LocalContender
from edgespec.bench.machine import EnergyMeter
from edgespec.bench.prompts import BenchPrompt
from edgespec.bench.rows import rows
from edgespec.bench.runner import Plan, measure
from edgespec.errors import UsageError

PROMPTS = [BenchPrompt(f"{c}/{i}", c, (f"{c} {i} {c} {i} {c}",)) for c in ("chat", "code") for i in range(2)]
PLAN = Plan(24, 2)


def measured(prompts=PROMPTS, plan=PLAN, mode="exact"):
    with scripted_model(mode=mode) as model:
        made = [
            LocalContender(name, model, model.speculation(spec), EnergyMeter())
            for name, spec in (("plain", "off"), ("suffix", "suffix"))
        ]
        out = list(measure(made, prompts, plan))
        answers = tuple(row for row in out if isinstance(row, Answer))
        firsts = tuple(row for row in out if isinstance(row, First))
        planned = plan.steps(prompts, 2)
        facts = saved.facts(
            model, ["suffix"], ("mine", prompts), plan, "edgespec bench | x", (answers, firsts), planned
        )
    return saved.Results(facts, answers, firsts)


@pytest.fixture(scope="module")
def results():
    return measured()


def table(results):
    return rows(results.answers, results.firsts)


def test_markdown_says_what_was_measured_with_what(results):
    text = report.written("md", results.facts, table(results))
    for told in ("edgespec bench | x", "target", "mine, 4", "at most 24 tokens, 2 repetitions", "exact"):
        assert told in text
    assert "Every answer is the plain one" in text
    assert "J a token" not in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 6
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize(("mode", "why"), [("exact", "must not happen"), ("near", "near numerics")])
def test_a_difference_is_told_with_its_reason(mode, why):
    results = measured(mode=mode)
    *answers, last = results.answers
    changed = replace(last, configuration="suffix", taken=replace(last.taken, tokens=(1, 2)))
    answers = [a for a in answers if (a.place, a.configuration) != (last.place, "suffix")] + [
        replace(last, configuration="plain"),
        changed,
    ]
    facts = results.facts | {
        "differences": [{"configuration": "suffix", "prompt": "p", "turn": 0, "repetition": 0, "position": 3}]
    }
    text = report.written("md", facts, rows(answers, results.firsts))
    assert "suffix, p, turn 1, repetition 1, from 3 on" in text
    assert why in text
    assert "1 of 8" in text


def test_machine_forms_have_the_same_rows(results):
    whole = json.loads(report.written("json", results.facts, table(results)))
    lines = [json.loads(line) for line in report.written("jsonl", results.facts, table(results)).splitlines()]
    records = list(csv.DictReader(io.StringIO(report.written("csv", results.facts, table(results)))))
    assert whole["model"]["name"] == lines[0]["model"]["name"] == "target"
    assert [line["type"] for line in lines] == ["header", *["row"] * 6]
    assert [{"type": "row", **row} for row in whole["rows"]] == lines[1:]
    assert [r["configuration"] for r in records] == ["plain", "suffix"] * 3
    assert float(records[1]["speedup"]) == whole["rows"][1]["speedup"] > 0
    assert records[0]["speedup"] == ""


def test_results_are_read_as_they_were_saved(results, tmp_path):
    path = tmp_path / "deep" / "a.json"
    saved.save(path, results)
    again = saved.read(path)
    assert again.facts == results.facts
    assert again.firsts == results.firsts
    assert [a.place for a in again.answers] == [a.place for a in results.answers]
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]


def test_the_default_place_is_the_users_data_directory(results, tmp_path, monkeypatch):
    monkeypatch.setenv("EDGESPEC_DATA", str(tmp_path))
    path = saved.default_path(results.facts)
    assert path.parent == tmp_path / "bench"
    assert path.name.endswith("-target.json")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "5",
        '{"version": 2}',
        '{"version": 1}',
        '{"version": 1, "answers": [{}]}',
        "[" * 99999,
    ],
)
def test_what_is_no_result_is_told_in_one_line(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(UsageError) as error:
        saved.read(path)
    assert "\n" not in str(error.value)


def test_a_full_disk_is_told(results, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(saved.SaveError, match="cannot save"):
        saved.save(tmp_path / "file" / "a.json", results)


def test_two_runs_are_compared_by_category(results):
    text = saved.compare(results, measured())
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 6
    assert all("0 changed" in line for line in lines[2:])
    assert "different" not in text


def test_changes_of_settings_and_texts_are_told(results):
    answers = tuple(replace(a, taken=replace(a.taken, text="new")) for a in results.answers)
    facts = results.facts | {"machine": "another", "versions": results.facts["versions"] | {"numpy": "0"}}
    text = saved.compare(results, saved.Results(facts, answers, results.firsts))
    assert "-> another" in text
    assert "version of numpy" in text
    assert "4 changed" in text
    assert "8 changed" in text


def test_other_prompts_models_and_limits_are_refused_unless_told(results):
    other = measured(PROMPTS[:3], Plan(16, 1))
    model = other.facts["model"] | {"fingerprint": "f", "file": "other.gguf"}
    other = replace(other, facts=other.facts | {"model": model})
    with pytest.raises(UsageError, match="not comparable") as error:
        saved.compare(results, other)
    for told in (
        "models (target.gguf and other.gguf)",
        "prompts (mine, 4 and mine, 3)",
        "limits (24 and 16)",
    ):
        assert told in str(error.value)
    assert "different models" in saved.compare(results, other, anyway=True)
