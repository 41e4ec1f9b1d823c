"""A build backend that builds nothing.

`pip download` of a source package asks the package's backend for its metadata, which would run a backend from the
registry that nothing here pins. Only the archive is wanted, so this answers with the name and version that the
archive's own pyproject.toml states.
"""

import pathlib
import tomllib


def get_requires_for_build_wheel(config_settings=None):
    """Nothing is needed to say a name and a version."""
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Writes the smallest metadata that pip takes."""
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    folder = f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    target = pathlib.Path(metadata_directory, folder)
    target.mkdir(parents=True)
    fields = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    target.joinpath("METADATA").write_text(fields, encoding="utf-8")
    return folder
