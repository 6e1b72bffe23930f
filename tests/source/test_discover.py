import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpuport.errors import UsageError
from tpuport.model import Outcome, Status
from tpuport.source.discover import discover


def write(root: Path, *names: str, content: str = "") -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def names(found: list[Path | Outcome], root: Path) -> list[str]:
    return [str(item.relative_to(root)) for item in found if isinstance(item, Path)]


def outcomes(found: list[Path | Outcome]) -> dict[str, tuple[Status, str]]:
    return {item.path.name: (item.status, item.reason) for item in found if isinstance(item, Outcome)}


def test_python_files_come_in_order_once(tmp_path: Path) -> None:
    write(tmp_path, "b.py", "a/z.py", "a/a.pyi", "a/readme.md", "c.txt")
    found = discover([tmp_path, tmp_path / "a", tmp_path / "b.py"], tmp_path)
    assert names(found, tmp_path) == ["a/a.pyi", "a/z.py", "b.py"]


def test_programs_without_a_suffix_say_that_python_runs_them(tmp_path: Path) -> None:
    write(tmp_path, "train", "bin/test", content="#!/usr/bin/env python3\nimport torch\n")
    write(tmp_path, "run", content="#!/bin/sh\npython train\n")
    write(tmp_path, "notes", content="#!/usr/bin/python, they say\n")
    write(tmp_path, "main.py", "LICENSE")
    for name in ("train", "bin/test", "run", "LICENSE"):
        (tmp_path / name).chmod(0o755)
    assert names(discover([tmp_path], tmp_path), tmp_path) == ["bin/test", "main.py", "train"]


def test_given_files_are_always_taken(tmp_path: Path) -> None:
    write(tmp_path, "build/x.py", "tool")
    write(tmp_path, ".gitignore", content="build\n")
    found = discover([tmp_path / "build/x.py", tmp_path / "tool"], tmp_path, ["*"])
    assert names(found, tmp_path) == ["build/x.py", "tool"]


def test_default_excludes_and_environments_are_not_entered(tmp_path: Path) -> None:
    write(tmp_path, "x.py", ".git/a.py", "node_modules/a.py", "build/a.py", "mine/pyvenv.cfg", "mine/lib/a.py")
    assert names(discover([tmp_path], tmp_path), tmp_path) == ["x.py"]
    assert names(discover([tmp_path / "build"], tmp_path), tmp_path) == ["build/a.py"]


def test_gitignore_files_apply_below_them_and_the_deepest_decides(tmp_path: Path) -> None:
    write(
        tmp_path,
        "a.py",
        "gen.py",
        "sub/gen.py",
        "sub/b.py",
        "sub/deep/gen.py",
        "out/a.py",
        "sub/out/a.py",
        "..x/gen.py",
    )
    write(tmp_path, ".gitignore", content="gen.py\n/out/\n# note\n\n")
    write(tmp_path, "sub/.gitignore", content="!gen.py\nb.py\n")
    assert names(discover([tmp_path], tmp_path), tmp_path) == ["a.py", "sub/deep/gen.py", "sub/gen.py", "sub/out/a.py"]


def test_gitignore_above_the_path_applies_up_to_the_repository(tmp_path: Path) -> None:
    write(tmp_path, ".gitignore", content="x.py\n")
    write(tmp_path, "repo/.git/info/exclude", content="z.py\n")
    write(tmp_path, "repo/.gitignore", content="y.py\nscratch/\n")
    write(tmp_path, *(f"repo/{folder}/{name}.py" for folder in ("src", "scratch") for name in "wxyz"))
    assert names(discover([tmp_path / "repo/src"], tmp_path), tmp_path) == ["repo/src/w.py", "repo/src/x.py"]
    assert len(names(discover([tmp_path / "repo/scratch"], tmp_path), tmp_path)) == 4


def test_a_pattern_that_means_nothing_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "b.py")
    write(tmp_path, ".gitignore", content="!\nb.py\n")
    assert names(discover([tmp_path], tmp_path), tmp_path) == ["a.py"]


def test_exclude_is_relative_to_the_root(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "third/a.py", "sub/third/a.py")
    assert names(discover([tmp_path], tmp_path, ["/third"]), tmp_path) == ["a.py", "sub/third/a.py"]


def test_links_inside_are_followed_once_and_loops_end(tmp_path: Path) -> None:
    write(tmp_path, "real/a.py", "z.py")
    (tmp_path / "again").symlink_to("real")
    (tmp_path / "real/loop").symlink_to("..")
    (tmp_path / "a_link.py").symlink_to("z.py")
    found = discover([tmp_path], tmp_path)
    assert names(found, tmp_path) == ["real/a.py", "z.py"]
    assert not outcomes(found)


def test_links_that_lead_out_are_named(tmp_path: Path) -> None:
    write(tmp_path, "root/a.py", "outside/b.py")
    (tmp_path / "root/dir").symlink_to(tmp_path / "outside")
    (tmp_path / "root/file.py").symlink_to(tmp_path / "outside/b.py")
    found = discover([tmp_path / "root"], tmp_path / "root")
    assert names(found, tmp_path) == ["root/a.py"]
    assert set(outcomes(found)) == {"dir", "file.py"}
    assert all(status is Status.SKIPPED and "leads out" in reason for status, reason in outcomes(found).values())
    assert "leads out" in outcomes(discover([tmp_path / "root/file.py"], tmp_path / "root"))["file.py"][1]


def test_a_link_out_of_the_path_but_inside_the_root_is_followed(tmp_path: Path) -> None:
    write(tmp_path, "lib/a.py", "app/b.py")
    (tmp_path / "app/lib").symlink_to("../lib")
    assert names(discover([tmp_path / "app"], tmp_path), tmp_path) == ["app/b.py", "app/lib/a.py"]


def test_broken_links_and_links_to_themselves_fail(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    (tmp_path / "gone.py").symlink_to("nowhere")
    (tmp_path / "self.py").symlink_to("self.py")
    found = discover([tmp_path], tmp_path)
    assert {name: status for name, (status, _) in outcomes(found).items()} == {
        "gone.py": Status.FAILED,
        "self.py": Status.FAILED,
    }
    assert discover([tmp_path / "self.py"], tmp_path)[0].status is Status.FAILED  # type: ignore[union-attr]


def test_pipes_are_named_and_not_opened(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    os.mkfifo(tmp_path / "pipe.py")
    assert outcomes(discover([tmp_path], tmp_path)) == {"pipe.py": (Status.SKIPPED, "not a regular file")}
    assert outcomes(discover([tmp_path / "pipe.py"], tmp_path)) == {"pipe.py": (Status.SKIPPED, "not a regular file")}


def test_kernels_are_named(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "k.cu", "k.cuh")
    found = outcomes(discover([tmp_path], tmp_path))
    assert "CUDA kernel source" in found["k.cu"][1]
    assert "CUDA kernel source" in found["k.cuh"][1]


def test_a_directory_that_cannot_be_searched_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.py", "secret/b.py")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("secret"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = discover([tmp_path], tmp_path)
    assert names(found, tmp_path) == ["a.py"]
    assert outcomes(found) == {"secret": (Status.FAILED, "cannot be searched: Permission denied")}


def test_a_directory_called_like_a_file_is_searched(tmp_path: Path) -> None:
    write(tmp_path, "pkg.py/a.py", "k.cu/b.py")
    assert names(discover([tmp_path], tmp_path), tmp_path) == ["k.cu/b.py", "pkg.py/a.py"]


def test_missing_paths_are_all_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone, .*lost"):
        discover([tmp_path / "gone", tmp_path, tmp_path / "lost"], tmp_path)


def test_no_python_at_all_is_an_error_that_says_what_there_was(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to read under"):
        discover([tmp_path], tmp_path)
    write(tmp_path, "k.cu")
    with pytest.raises(UsageError, match=r"1 skipped, such as .*k\.cu"):
        discover([tmp_path], tmp_path)
    assert len(discover([tmp_path / "k.cu"], tmp_path)) == 1


def test_odd_names_are_only_names(tmp_path: Path) -> None:
    odd = [os.fsdecode(b"\xff.py"), "new\nline.py", "-dash.py", "sp ace.py", "#hash.py", "!bang.py"]
    write(tmp_path, *odd)
    write(tmp_path, ".gitignore", content="nothing\n")
    assert sorted(names(discover([tmp_path], tmp_path), tmp_path)) == sorted(odd)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(["a", "b", "build"]), max_size=3),
            st.sampled_from(["file", "link", "dirlink", "fifo"]),
        ),
        max_size=8,
    )
)
def test_any_tree_is_searched_to_its_end(
    tmp_path_factory: pytest.TempPathFactory, tree: list[tuple[list[str], str]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    write(root, "always.py")
    for number, (folders, kind) in enumerate(tree):
        directory = root.joinpath(*folders)
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / f"x{number}.py"
        match kind:
            case "file":
                file.touch()
            case "link":
                file.symlink_to(root / "always.py")
            case "dirlink":
                (directory / f"d{number}").symlink_to(root)
            case "fifo":
                os.mkfifo(file)
    found = discover([root], root)
    real = [os.path.realpath(item.path if isinstance(item, Outcome) else item) for item in found]
    assert len(real) == len(set(real))
    expected = {
        os.path.realpath(file)
        for file in root.rglob("*.py")
        if "build" not in file.parts and not any(parent.is_symlink() for parent in file.parents)
    }
    assert set(real) == expected
    assert found == discover([root], root)
