"""Templates of Helm and Jinja: what they say themselves is found where it stands, and their tags stay."""

from pathlib import Path

import pytest
from answers import PROJECT, RULES, findings, found

from tpuport import kinds
from tpuport.kinds import template

CHART = """\
{{- $nodes := div .Values.gpus 8 }}
{{ if .Values.enabled -}}
apiVersion: batch/v1
kind: Job
metadata:
  labels: {{ include "chart.labels" . | nindent 4 }}
    app: torch-{{ .Release.Name }}
  annotations:
    networks: |
      {{- if .Values.networks }}
      [
        {{- range .Values.networks }}
        {"name": "{{ . }}"},
        {{- end }}
      ]
      {{- end }}
spec:
  tolerations:
  {{- with .Values.tolerations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  containers:
  - name: {{ .Values.name | default "train" }}
    image: "nvcr.io/nvidia/pytorch:{{ .Values.tag }}"
    env:
    - name: NCCL_DEBUG
      value: {{ .Values.debug | quote }}
    command:
    - bash
    - -c
    - |
      {{- if .Values.setup }}
      {{ .Values.setup }}
      {{- end }}
      torchrun --nproc_per_node={{ .Values.processes }} train.py
    resources:
      limits:
        nvidia.com/gpu: {{ $gpus }}
{{ end }}
"""


def test_a_chart_is_read_where_it_is_yaml() -> None:
    assert found("templates/job.yaml", CHART) == ["TP550:24", "TP554:35", "TP557:38"]
    assert [f.span.line for f in findings("templates/job.yaml", CHART) if f.code == "TP553"] == [26]


def test_places_are_the_same_without_the_tags() -> None:
    plain = template.without_tags(CHART)
    assert len(plain) == len(CHART)
    assert [at for at, sign in enumerate(plain) if sign == "\n"] == [
        at for at, sign in enumerate(CHART) if sign == "\n"
    ]
    assert "{{" not in plain


@pytest.mark.parametrize("text", [CHART, "a: {{ x }}\nrun: torchrun --nproc_per_node gpu {{ script }}\n"])
def test_tags_survive_a_rewrite_and_comments(text: str) -> None:
    handler = kinds.handler("yaml")
    done = handler.rewrite(text, PROJECT, RULES, unsafe=True, line_length=None)
    annotated = handler.annotate(done.text, findings("job.yaml", done.text))
    for tag in ("{{ .Values.tag }}", "{{ script }}", "{{ $gpus }}"):
        assert annotated.count(tag) == text.count(tag)
    assert handler.rewrite(done.text, PROJECT, RULES, unsafe=True, line_length=None).text == done.text


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("job.sh.j2", "shell"),
        ("job.slurm.jinja", "shell"),
        ("deployment.yaml.gotmpl", "yaml"),
        ("Dockerfile.j2", "dockerfile"),
        ("train.py.j2", ""),
        ("_helpers.tpl", ""),
    ],
)
def test_a_template_is_of_the_kind_that_it_makes(name: str, kind: str) -> None:
    assert kinds.of(name) == kind


def test_a_script_of_jinja_is_read() -> None:
    text = "{% if gpus %}\n#SBATCH --gres=gpu:{{ gpus }}\n{% endif %}\nsrun torchrun {{ script }}\n"
    assert found("job.sbatch.j2", text) == ["TP556:2", "TP554:4"]
    assert (
        kinds.handler_of(Path("job.sbatch.j2")).annotate(text, findings("job.sbatch.j2", text)).count("{{ gpus }}") == 1
    )
