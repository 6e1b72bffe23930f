"""Images of containers, by what they are called and by the commands that run them."""

import re

from tpuport.kinds.document import Command, Document, Image

_TAGGED = re.compile(r"[\w.$\-{}]+(?:/[\w.$\-{}]+)+(?::[\w.$\-{}]+|@sha256:\w+)")
_REGISTRY = r"nvcr\.io|ghcr\.io|gcr\.io|quay\.io|docker\.io|public\.ecr\.aws|registry\.[\w.-]+|[\w-]+-docker\.pkg\.dev"
_HOSTED = re.compile(rf"(?:{_REGISTRY})[/#][\w.$\-{{}}/]+(?::[\w.$\-{{}}]+)?(?:@sha256:\w+)?")

_ENGINES = {"docker", "podman", "nerdctl", "singularity", "apptainer", "enroot"}
_STARTS = {"run", "create", "pull", "exec", "build", "import"}
_OPTION = "--container-image="
"""How SLURM is told of an image."""


def is_hosted(text: str) -> bool:
    """Whether a text is an image of a registry of images."""
    return _HOSTED.fullmatch(text) is not None


def is_tagged(text: str) -> bool:
    """Whether a text is an image with its owner and a tag or digest; a file's name may look like one too."""
    return _TAGGED.fullmatch(text) is not None


def from_command(document: Document, command: Command) -> None:
    """Add the images that a command runs or fetches."""
    names = {word.text.rpartition("/")[2] for word in command.words}
    runs = bool(_ENGINES & names and _STARTS & names)
    for word in command.words:
        text = word.text.removeprefix(_OPTION).removeprefix("docker://").replace("#", "/")
        if (runs or text != word.text) and (is_hosted(text) or is_tagged(text)):
            document.images.append(Image(text, word.span))
