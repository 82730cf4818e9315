"""Reading YAML: plain data only, nothing bent, everything bounded (BR-135)."""

from __future__ import annotations

import pytest

from handoffwatch.errors import ConfigError
from handoffwatch.values.yaml_text import BYTES_MAX, read_yaml, resolve_scalar


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-3", -3),
        ("604800", 604800),
        ("0.1", 0.1),
        ("-2.5", -2.5),
    ],
)
def test_resolve_scalar_gives_a_value_when_writing_it_back_gives_the_text(text: str, meaning: object) -> None:
    """Only true, false, null and decimal numbers that survive the round trip are no texts."""
    found = resolve_scalar(text)

    assert found == meaning
    assert type(found) is type(meaning)


@pytest.mark.parametrize(
    "text",
    [
        *("no", "yes", "on", "Off", "True", "NULL", "y", "="),
        *("1.10", "007", "0o17", "0x1F", "1_000", "+49", "12e3", ".5", "1.", "-0", ".inf", ".nan"),
        *("2026-11-30", "2026-11-30T10:00:00Z", "12:30:45"),
        *("9999999999999999999999999999999", "11111111111111111111.5"),
    ],
)
def test_resolve_scalar_keeps_the_text_when_yaml_1_1_would_bend_it(text: str) -> None:
    """Country codes, versions, octals, dates, times and identifiers stay what was written."""
    assert resolve_scalar(text) == text


def test_read_yaml_gives_data_and_lines_when_the_text_is_sound() -> None:
    """Every key and every list entry has its line."""
    source = b"tools:\n  attempts_max: 3\n\npolls:\n- 0\n- {name: 'no', 404: x}\n"

    document = read_yaml(source, name="handoffwatch.yaml")

    assert document.name == "handoffwatch.yaml"
    assert document.data == {"tools": {"attempts_max": 3}, "polls": [0, {"name": "no", "404": "x"}]}
    assert document.lines == {
        (): 1,
        ("tools",): 1,
        ("tools", "attempts_max"): 2,
        ("polls",): 4,
        ("polls", 0): 5,
        ("polls", 1): 6,
        ("polls", 1, "name"): 6,
        ("polls", 1, "404"): 6,
    }


@pytest.mark.parametrize("source", [b"", b"# only a comment\n", b"\xef\xbb\xbf", b"---\n"])
def test_read_yaml_gives_none_when_the_document_is_empty(source: bytes) -> None:
    """An empty file is no error; what it means is the reader's business."""
    assert read_yaml(source, name="f.yaml").data is None


@pytest.mark.parametrize(
    ("source", "data"),
    [
        ('a: "3"', {"a": "3"}),
        ("a: !!str 3", {"a": "3"}),
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("a: |\n  no\n", {"a": "no\n"}),
        ("%YAML 1.1\n---\na: yes", {"a": "yes"}),
    ],
)
def test_read_yaml_reads_what_the_author_said_when_quotes_anchors_or_blocks_are_used(source: str, data: object) -> None:
    """Quoted and block texts are texts, an alias repeats its anchor, a version directive bends nothing."""
    assert read_yaml(source, name="f.yaml").data == data


def _anchors_of_anchors() -> str:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for inner, outer in zip("abcde", "bcdef", strict=True):
        lines.append(f"{outer}: &{outer} [{','.join(['*' + inner] * 9)}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        (
            "a: 1\nb: !!python/object/apply:os.system ['echo']",
            "f.yaml:2: b: tags are not allowed",
            "remove the tag; quote a value that must stay a text",
        ),
        ("a: !!int 3", "f.yaml:1: a: tags are not allowed", "remove the tag; quote a value that must stay a text"),
        ("- !!set {a}", "f.yaml:1: 0: tags are not allowed", "remove the tag; quote a value that must stay a text"),
        ("!x 1", "f.yaml:1: document: tags are not allowed", "remove the tag; quote a value that must stay a text"),
        (
            "a: 1\nb:\n  c: 1\n  c: 2",
            "f.yaml:4: b.c: must be given once, got it on line 3 too",
            "remove one of the two",
        ),
        (
            "1: x\n'1': y",
            "f.yaml:2: 1: must be given once, got it on line 1 too",
            "remove one of the two",
        ),
        ("? [a]\n: 1", "f.yaml:1: document: a key must be a text", "quote the key"),
        ("? \n: 1", "f.yaml:1: document: a key must be a text", "quote the key"),
        ("a: &a {b: 1}\nc:\n  <<: *a", "f.yaml:3: c.<<: merge keys are not supported", "write the keys out"),
        ("a: &a [*a]", "f.yaml:1: a.0: an alias must not contain itself", "write the value out"),
        (
            "password: *hunter2",
            "f.yaml:1: document: an alias must follow its anchor",
            "quote a text that starts with *",
        ),
        (
            _anchors_of_anchors(),
            "f.yaml:1: e.1.5.2.3: aliases must expand to at most 20000 nodes",
            "write the values out",
        ),
        (
            "a: &a 1\nb: [" + ",".join(["*a"] * 101) + "]",
            "f.yaml:2: document: must have at most 100 aliases",
            "write the values out",
        ),
        ("[" * 5000, "f.yaml:1: document: must be nested at most 32 levels deep", "flatten the document"),
        (
            "a: [1,\n",
            "f.yaml:2: not valid YAML: expected the node content, but found '<stream end>'",
            "check indentation and quotes",
        ),
        (
            "a: !secret!x 1",
            "f.yaml:1: not valid YAML: found undefined tag handle a text",
            "check indentation and quotes",
        ),
        ("a: 1\n---\nb: 2", "f.yaml:2: not valid YAML: but found another document", "check indentation and quotes"),
        ("a: 1\nb: \x07", "f.yaml:2: file: a control character is not allowed", "remove the character"),
        (b"a: 1\nb: \xff", "f.yaml:2: file: must be UTF-8 text", "save the file as UTF-8"),
        (
            b"#" * (BYTES_MAX + 1),
            "f.yaml: file: must be at most 262144 bytes, got 262145",
            "split the file",
        ),
    ],
)
def test_read_yaml_refuses_with_file_line_and_key_when_a_rule_is_broken(
    source: bytes | str, message: str, hint: str
) -> None:
    """Every refusal says where and what, and never shows a value."""
    with pytest.raises(ConfigError) as caught:
        read_yaml(source, name="f.yaml")

    assert (caught.value.message, caught.value.hint) == (message, hint)
