"""The compose file: what is written passes its own lint, and each thing that will go wrong is found with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gates.errors import UsageError
from gates.seat.operate.compose import SeatFile, render
from gates.seat.operate.lint import lint
from gates.seat.operate.service import read_service
from tests.flow.conftest import gates

SEAT = """\
schema: gates.seat-file/1
image: vllm/vllm-openai:v0.33.0
port: 8027
model: {home}/base
served_name: voices-base
adapters_folder: {home}/adapters
adapters: {{lv-one: lv-one, lv-two: lv-two}}
kv_cache_bytes: 2G
gpu_memory_utilization: 0.11
max_model_len: 8192
max_lora_rank: 32
api_key_env: VOICES_API_KEY
labels: {{team: voices}}
"""


@pytest.fixture
def seat_file(tmp_path: Path) -> Path:
    for name, rank in (("lv-one", 8), ("lv-two", 32)):
        folder = tmp_path / "adapters" / name
        folder.mkdir(parents=True)
        (folder / "adapter_config.json").write_text(json.dumps({"r": rank}), "utf-8")
    path = tmp_path / "seat.yaml"
    path.write_text(SEAT.format(home=tmp_path), "utf-8")
    return path


@pytest.fixture
def written(seat_file: Path, tmp_path: Path) -> Path:
    out = tmp_path / "compose.yaml"
    assert gates("seat", "compose", seat_file, "--out", out).returncode == 0
    return out


def test_what_is_written_passes_its_own_lint_and_holds_no_key(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICES_API_KEY", "sk-planted-key-1234")
    text = written.read_text("utf-8")
    assert "sk-planted" not in text
    ended = gates("seat", "compose", "--lint", written)
    assert (ended.returncode, ended.stdout) == (0, "seat: nothing to complain of\n")
    assert "adapters that are only loaded were not looked for: --seat URL" in ended.stderr
    service = yaml.safe_load(text)["services"]["seat"]
    command = service["command"]
    assert command[command.index("--kv-cache-memory-bytes") + 1] == "2147483648"
    assert command[command.index("--lora-modules") + 1 :] == ["lv-one=/adapters/lv-one", "lv-two=/adapters/lv-two"]
    assert service["ports"] == ["127.0.0.1:8027:8027"]
    assert all(volume.endswith(":ro") for volume in service["volumes"])
    assert service["environment"]["VLLM_API_KEY"] == "${VOICES_API_KEY:?set VOICES_API_KEY}"
    assert service["labels"] == {"team": "voices"}


def test_an_existing_file_is_never_written_over(seat_file: Path, written: Path) -> None:
    written.write_text("mine", "utf-8")
    ended = gates("seat", "compose", seat_file, "--out", written)
    assert ended.returncode == 2
    assert written.read_text("utf-8") == "mine"
    assert "nobody's file is edited" in ended.stderr
    assert "--out compose-2.yaml" in ended.stderr


def test_the_same_file_is_left_as_it_was(seat_file: Path, written: Path) -> None:
    ended = gates("seat", "compose", seat_file, "--out", written)
    assert (ended.returncode, ended.stderr) == (0, f"as it was: {written}\n")


def test_without_a_seat_file_it_is_said_where_its_keys_stand(tmp_path: Path) -> None:
    for ended in (gates("seat", "compose", tmp_path / "seat.yaml"), gates("seat", "compose")):
        assert ended.returncode == 2
        assert "gates schema seat" in ended.stderr
    keys = json.loads(gates("schema", "seat").stdout)["properties"]
    assert set(keys) == {field.alias or name for name, field in SeatFile.model_fields.items()}
    assert all("description" in keys[name] for name in keys if name != "schema")


def _flag(name: str, value: str | None) -> Any:
    def change(service: dict[str, Any]) -> None:
        place = service["command"].index(name)
        service["command"][place : place + 2] = [] if value is None else [name, value]

    return change


def _set(**values: Any) -> Any:
    def change(service: dict[str, Any]) -> None:
        service.update(values)

    return change


def _module(item: str) -> Any:
    return lambda service: service["command"].append(item)


def _writable(service: dict[str, Any]) -> None:
    service["volumes"][1] = service["volumes"][1].removesuffix(":ro")


@pytest.mark.parametrize(
    ("change", "rule", "line"),
    [
        (_flag("--kv-cache-memory-bytes", None), "KV not pinned", "--kv-cache-memory-bytes"),
        (_flag("--gpu-memory-utilization", None), "memory fraction not set", "--gpu-memory-utilization"),
        (_flag("--max-lora-rank", "16"), "rank above the maximum: lv-two has rank 32", "--max-lora-rank 32"),
        (_flag("--max-lora-rank", None), "rank above the maximum: lv-two has rank 32, --max-lora-rank is 16", "32"),
        (_flag("--max-cpu-loras", "1"), "adapters read again and again", "--max-cpu-loras 2"),
        (_module("lv-one=/adapters/lv-two"), "name collision: two adapters are listed as lv-one", ""),
        (_module("voices-base=/adapters/lv-two"), "name collision: adapter voices-base has the base's own", ""),
        (_module('{"name": "voices-base", "path": "/adapters/lv-two"}'), "name collision: adapter voices-base", ""),
        (_module("lv-x=/adapters/lv-x"), "adapter not on disk: lv-x", ""),
        (_module("lv-x=/elsewhere/lv-x"), "adapter not mounted: lv-x", "/elsewhere/lv-x:ro"),
        (_writable, "adapters not read-only", ":/adapters:ro"),
        (_set(environment={}), "open API", "VLLM_API_KEY"),
        (_set(environment=["VLLM_API_KEY=sk-secret"]), "key in the file", "${VOICES_API_KEY:?}"),
        (_set(environment={"VLLM_API_KEY": "${K:-sk-secret}"}), "key in the file", "${VOICES_API_KEY:?}"),
        (_set(environment={"VLLM_API_KEY": "sk-secret${K:?}"}), "key in the file", "${VOICES_API_KEY:?}"),
        (_set(environment={"VLLM_API_KEY": "$$ecret"}), "key in the file", "${VOICES_API_KEY:?}"),
        (
            _set(environment={"VLLM_API_KEY": "${K}"}),
            "open API: the server asks for no key where",
            "${VOICES_API_KEY:?}",
        ),
        (_module("--api-key=sk-secret"), "key in the file", "${VOICES_API_KEY:?}"),
        (_set(network_mode="host"), "open port: network_mode is host", "--host 127.0.0.1"),
        (
            _flag("--max-lora-rank", "9" * 5000),
            "rank above the maximum: lv-two has rank 32, --max-lora-rank is 16",
            "32",
        ),
        (_set(ports=["8027:8027"]), "open port", "127.0.0.1:8027:8027"),
        (_set(ports=[{"published": 8027, "target": 8000}]), "open port", "127.0.0.1:8027:8000"),
        (_set(ports=["sk-secret"]), "open port: [api key] listens", ""),
        (_set(healthcheck={"disable": True}), "no health check", "healthcheck"),
        (_set(image="vllm/vllm-openai:latest"), "image without a version", "image:"),
        (
            _set(environment={"VLLM_API_KEY": "${K}", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": 1}),
            "runtime loading is on",
            "",
        ),
    ],
)
def test_each_trap_is_found_with_the_line_that_is_missing(written: Path, change: Any, rule: str, line: str) -> None:
    document = yaml.safe_load(written.read_text("utf-8"))
    change(document["services"]["seat"])
    written.write_text(yaml.safe_dump(document), "utf-8")
    before = written.read_bytes()
    ended = gates("seat", "compose", "--lint", written)
    assert ended.returncode == 1
    assert rule in ended.stdout
    assert line in ended.stdout
    assert "sk-secret" not in ended.stdout
    assert written.read_bytes() == before


def test_adapters_that_are_only_loaded_are_named(written: Path) -> None:
    (finding,) = lint(read_service(written), loaded={"lv-one": "/adapters/lv-one", "lv-new": "/tmp/lv-new"})
    assert "lv-new is loaded but not listed: gone at the next restart" in str(finding)
    assert "lv-new=/tmp/lv-new" in finding.write


def test_relative_paths_start_at_the_compose_file(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = written.read_text("utf-8").replace(f"{written.parent}/adapters:", "./adapters:")
    written.write_text(text, "utf-8")
    monkeypatch.chdir("/")
    assert lint(read_service(written)) == []


def test_a_volume_that_cannot_be_looked_into_is_said_so(written: Path) -> None:
    text = written.read_text("utf-8").replace(f"{written.parent}/adapters:", "voices:")
    written.write_text(text, "utf-8")
    found = [str(finding) for finding in lint(read_service(written))]
    assert len(found) == 2
    assert all(finding.startswith("adapter out of sight: ") and "do: mount a folder" in finding for finding in found)


def test_every_finding_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "services:\n  voices:\n    image: vllm/vllm-openai\n    ports: ['1:1']\n    volumes: ['./a:/a', 'v:/v']\n"
        "    environment: {VLLM_ALLOW_RUNTIME_LORA_UPDATING: 1}\n    command: --served-model-name b --max-lora-rank 12 "
        "--max-cpu-loras 1 --api-key sk --lora-modules b=/a/b x=/a/x x=/v/x y=/y\n",
        "utf-8",
    )
    (tmp_path / "a" / "x").mkdir(parents=True)
    (tmp_path / "a" / "x" / "adapter_config.json").write_text('{"r": 8, "rank_pattern": {"q": 600}}', "utf-8")
    found = lint(read_service(path), loaded={"z": "/z"})
    assert [finding.rule for finding in found if not (finding.write or finding.remedy)] == []
    assert {finding.rule for finding in found} >= {
        "adapter not mounted", "adapter not on disk", "adapter out of sight", "rank not offered",
        "rank above the maximum", "name collision", "runtime-only adapter", "runtime loading is on",
    }  # fmt: skip


def test_a_command_in_one_string_is_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "services:\n  web: {image: nginx}\n  voices:\n    image: vllm/vllm-openai:v1\n"
        "    command: >-\n      --model /m --enable-lora --lora-modules a=/x/a\n      'b=/x/b' --api-key=$KEY\n",
        "utf-8",
    )
    service = read_service(path)
    assert service.adapters == [("a", "/x/a"), ("b", "/x/b")]
    assert service.flag("api-key") == "$KEY"


def test_a_shells_command_is_the_command_and_a_path_is_from_the_files_folder(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "services:\n  voices:\n    image: vllm/vllm-openai:v1\n    volumes: [./there:/adapters:ro]\n"
        "    command: [bash, -c, 'vllm serve /m --enable-lora --lora-modules a=/adapters/a b=/adapters/../etc']\n",
        "utf-8",
    )
    service = read_service(tmp_path / "c.yaml")
    assert service.host_path("/adapters/a") == tmp_path / "there" / "a"
    # That is /etc of the container, which no volume holds.
    assert [service.host_path(path) for _, path in service.adapters] == [tmp_path / "there" / "a", None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not YAML"),
        ("a: 1", "no services"),
        ("services: {a: {image: nginx}}", "look like a seat: none"),
        ("services: {a: {image: vllm}, b: {image: vllm}}", "look like a seat: a, b"),
        ("services: !!python/object/apply:os.system ['true']", "not YAML"),
        (f"services: {'[' * 3000}", "nested too deeply|not YAML"),
    ],
)
def test_a_file_that_is_no_compose_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=message):
        read_service(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("served_name: voices-base", "served_name: lv-one", "has the base's own name"),
        ("max_lora_rank: 32", "max_lora_rank: 20", "must be one of 1, 8, 16"),
        ("kv_cache_bytes: 2G", "kv_cache_bytes: 1.5G", "takes no fraction"),
        (":v0.33.0", "", "must name a version"),
        (":v0.33.0", ":latest", "must name a version"),
        (":v0.33.0", "@main", "must name a version"),
        (":v0.33.0", ":${TAG}", "an image as Docker names it"),
        ("kv_cache_bytes: 2G", "kv_cache_bytes: '2'", "no memory is that small"),
        ("port: 8027", "prot: 8027", "did you mean `port`"),
        ("schema: gates.seat-file/1", "", "a required key is missing (add `schema: gates.seat-file/1`)"),
    ],
)
def test_a_seat_file_with_mistakes_is_listed(seat_file: Path, old: str, new: str, message: str) -> None:
    seat_file.write_text(seat_file.read_text("utf-8").replace(old, new), "utf-8")
    ended = gates("seat", "compose", seat_file)
    assert ended.returncode == 2
    assert message in ended.stderr


@pytest.mark.parametrize(
    "line",
    [
        "api_key: pass-word-77",
        "api_key_env: pass-word-77",
        "image: http://me:pass-word-77@hub/v",
        "port: sk-pass-word-77",
        "labels: [http://me:pass-word-77@hub/v]",
    ],
)
def test_a_secret_in_the_wrong_place_of_a_file_is_not_repeated(seat_file: Path, line: str) -> None:
    name = line.partition(":")[0]
    kept = [each for each in seat_file.read_text("utf-8").splitlines() if not each.startswith(f"{name}:")]
    seat_file.write_text("\n".join([*kept, line]), "utf-8")
    ended = gates("seat", "compose", seat_file)
    assert ended.returncode == 2
    assert f": {name}" in ended.stderr
    assert "pass-word" not in ended.stderr


def test_a_label_cannot_leave_its_place(seat_file: Path) -> None:
    seat_file.write_text(seat_file.read_text("utf-8").replace("team: voices", '"a: b": "c: {{d}} #e ${HOME}"'), "utf-8")
    found = yaml.safe_load(gates("seat", "compose", seat_file).stdout)
    # Compose reads `$$` as a dollar sign, and `${HOME}` as what that variable holds.
    assert found["services"]["seat"]["labels"] == {"a: b": "c: {{d}} #e $${HOME}"}


def test_an_alias_names_its_key_and_its_target() -> None:
    ended = gates("seat", "alias", "bronte=lv-bronte-475", "--seat", "http://seat:8027/v1", "--api-key-env", "SEAT_KEY")
    assert yaml.safe_load(ended.stdout) == [
        {
            "model_name": "bronte",
            "litellm_params": {
                "model": "hosted_vllm/lv-bronte-475",
                "api_base": "http://seat:8027/v1",
                "api_key": "os.environ/SEAT_KEY",
            },
        }
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("bronte",), "write ALIAS=MODEL"),
        (("b=lv-b", "--seat", "seat:8027"), "is no address"),
        (("b=lv-b", "b=lv-a"), "'b' is given twice"),
        (("b=lv-b", "--seat", "http://me:pass-word-77@h/v1"), "--seat has a user name"),
        (("b=lv-b", "--api-key-env", "sk-pass-word-77"), "takes the name of an environment variable"),
    ],
)
def test_an_alias_that_would_mix_voices_or_tell_a_secret_is_refused(words: tuple[str, ...], said: str) -> None:
    seat = () if "--seat" in words else ("--seat", "http://seat:8027/v1")
    ended = gates("seat", "alias", *words, *seat)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "pass-word" not in ended.stdout + ended.stderr


@pytest.mark.parametrize("words", [("status", "--api-key-env"), ("audit", "--proxy", "http://h", "--key-env")])
def test_a_key_in_the_place_of_its_variables_name_is_not_repeated(words: tuple[str, ...]) -> None:
    ended = gates("seat", *words, "sk-pass-word-77", "--json")
    assert ended.returncode == 2
    assert f"{words[-1]} takes the name of an environment variable" in ended.stderr
    assert "pass-word" not in ended.stdout + ended.stderr


def test_every_seat_file_that_is_read_can_be_rendered(seat_file: Path) -> None:
    document = yaml.safe_load(seat_file.read_text("utf-8"))
    seat = SeatFile.model_validate(document | {"adapters": {}, "max_cpu_loras": 9})
    command = yaml.safe_load(render(seat))["services"]["seat"]["command"]
    assert "--lora-modules" not in command
    assert command[command.index("--max-cpu-loras") + 1] == "9"
