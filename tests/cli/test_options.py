"""Arguments: what they mean, and one line with exit code 2 where they mean nothing."""

import statistics
import subprocess
import sys
import time

import click
import pytest

from edgespec.cli import main
from edgespec.cli.run import run as command

HEAVY = ("numpy", "jinja2", "llama_cpp", "huggingface_hub", "textual")


def parsed(*arguments, env=None):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        return command.make_context("run", list(arguments)).params


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["-md", "d.gguf"], "model_draft", "d.gguf"),
        (["--model-draft", "d.gguf"], "model_draft", "d.gguf"),
        (["-md=d.gguf"], "model_draft", "d.gguf"),
        (["--draft", "none"], "model_draft", "none"),
        ([], "model_draft", "auto"),
        (["-hf", "org/repo:Q8_0"], "hf_repo", "org/repo:Q8_0"),
        (["-m", "-odd.gguf"], "model", "-odd.gguf"),
        (["-ngl", "99"], "gpu_layers", 99),
        (["-n", "5"], "predict", 5),
        (["-n5"], "predict", 5),
        (["-n", "-1"], "predict", -1),
        (["-c", "2048"], "ctx_size", 2048),
        (["-t", "3", "-tb", "4"], "threads_batch", 4),
        (["-tb", "4", "-t", "3"], "threads", 3),
        (["-ctk", "q8_0"], "cache_type_k", "q8_0"),
        (["-ctv", "q8_0"], "cache_type_v", "q8_0"),
        (["-fa", "off"], "flash_attn", "off"),
        (["-ub", "64", "-b", "128"], "ubatch_size", 64),
        (["-sys", "be brief"], "system", "be brief"),
        (["--sys", "be brief"], "system", "be brief"),
        (["-s", "7"], "seed", 7),
        (["-f", "-"], "file", "-"),
        (["-p", "-hello"], "prompt", "-hello"),
        (["--logit-bias", "15+1.5", "--logit-bias", "7-inf"], "logit_bias", ((15, 1.5), (7, float("-inf")))),
        (["--", "-odd.gguf"], "reference", "-odd.gguf"),
    ],
)
def test_options_mean_what_llama_cpp_means(arguments, name, value):
    assert parsed(*arguments)[name] == value


def test_every_option_can_come_from_the_environment():
    env = {"EDGESPEC_CTX_SIZE": "99", "EDGESPEC_MODEL_DRAFT": "d.gguf", "EDGESPEC_JSON": "1"}
    params = parsed(env={k: v for k, v in env.items() if k != "EDGESPEC_JSON"})
    assert (params["ctx_size"], params["model_draft"]) == (99, "d.gguf")
    assert parsed("-c", "7", env=env)["ctx_size"] == 7


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["run", "-c", "x"], "'x' is not"),
        (["run", "--nope"], "--nope"),
        (["run", "--verify", "maybe"], "'maybe'"),
        (["run", "--logit-bias", "five"], "15043+1"),
        (["run", "--temp", "nan"], "finite"),
        (["run", "--top-p", "2"], "--top-p"),
        (["run", "-p", ""], "prompt is empty"),
        (["run", "-p", "  \n"], "prompt is empty"),
        (["run", "-p", "x", "--stop", ""], "stop text is empty"),
        (["run", "-p", "x", "--raw", "--sys", "y"], "--raw"),
        (["run", "a.gguf", "-m", "b.gguf", "-p", "x"], "given twice"),
        (["run", "-p", "x", "--mlock", "--no-mmap"], "given twice"),
        (["run", "no-such-model", "-p", "x"], "no-such-model"),
        (["run", "-p", "x", "--spec", "magic"], "magic"),
        (["run", "-p", "x", "--spec", "draft", "--draft", "none"], "--draft MODEL (-md)"),
        (["run", "-p", "x", "--cascade", "a.gguf", "-md", "none"], "--cascade needs a draft model"),
        (["run", "a.gguf", "-hf", "org/repo", "-p", "x"], "given twice: as MODEL and with -hf"),
        (["walk"], "walk"),
    ],
)
def test_a_usage_error_is_one_line_and_exit_code_2(arguments, part, capfd):
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("edgespec: ")
    assert err.count("\n") == 1
    assert part in err


@pytest.mark.parametrize(
    ("arguments", "name"),
    [(["run", "-n"], "run"), (["bench", "--compare", "a"], "bench"), (["run", "--temp", "x"], "run")],
)
def test_a_usage_error_names_the_help_of_its_command(arguments, name, capfd):
    assert main(arguments) == 2
    assert capfd.readouterr().err.endswith(f"; see 'edgespec {name} --help'\n")


def test_text_of_the_user_is_shown_on_one_line_and_not_obeyed(capfd):
    assert main(["run", "x\n\x1b]52;c;AAAA\x07[/]", "-p", "hi"]) == 2
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_help_and_version(capfd):
    for arguments, part in ((["--help"], "run"), ([], "run"), (["run", "-h"], "-ngl"), (["--version"], "0.")):
        assert main(arguments) == 0
        assert part in capfd.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["replay", "--help"], ["run", "-c", "x"], ["--version"]]
)
def test_answers_without_a_model_import_nothing_heavy(arguments):
    script = f"import sys; from edgespec.cli import main; main({arguments}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(done.stdout.split())


def test_help_is_fast(capsys):
    """Target: under 0.2 s. The bound is for busy machines."""

    def measure(*arguments):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        return time.perf_counter() - began

    seconds = statistics.median(measure("-m", "edgespec", "--help") for _ in range(5))
    bare = statistics.median(measure("-c", "pass") for _ in range(5))
    with capsys.disabled():
        print(f" edgespec --help: {seconds:.3f} s (bare Python: {bare:.3f} s) ", end="")
    assert seconds < 0.5 + bare


def test_option_help_ends_with_a_point():
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help
            assert param.help.endswith(".")
