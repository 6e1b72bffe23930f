import json
from pathlib import Path

from tpuport.profile.records import Frame, Note, Phase, RecordWriter, Step, read_records

STEP = Step(0, Phase.COUNTED, 0.5, 2, (1.0, float("nan")), {3: 4})
NOTE = Note("code", "text", Frame("a.py", 3, "f"))


def written(path: Path) -> Path:
    writer = RecordWriter(path)
    writer.write(NOTE)
    writer.write(Step(1, Phase.TIMED, 0.25, 0))
    writer.close()
    return path


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    records = read_records(written(tmp_path / "records"))
    assert records.items == (NOTE, Step(1, Phase.TIMED, 0.25, 0))
    assert records.of(Note) == (NOTE,)
    assert records.last(Step) == Step(1, Phase.TIMED, 0.25, 0)
    assert (records.unknown, records.damaged) == (0, 0)


def test_executions_and_unusual_losses_survive(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "records")
    writer.write(STEP)
    writer.close()
    (step,) = read_records(tmp_path / "records").of(Step)
    assert step.executions == {3: 4}
    assert str(step.losses) == "(1.0, nan)"


def test_what_is_not_understood_is_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "records")
    with path.open("a") as file:
        file.write(json.dumps({"v": 1, "kind": "from-the-future", "data": {}}) + "\n")
        file.write(json.dumps({"v": 2, "kind": "note", "data": {}}) + "\n")
        file.write(json.dumps({"v": 1, "kind": "note", "data": {"code": 3}}) + "\n")
        file.write("[1, 2]\n")
        file.write('{"v": 1, "kind": "no')
    records = read_records(path)
    assert (len(records.items), records.unknown, records.damaged) == (2, 2, 3)


def test_a_missing_file_has_no_records(tmp_path: Path) -> None:
    assert read_records(tmp_path / "nothing").items == ()
