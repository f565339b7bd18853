"""The file system on which an archive is, as far as a classic session knows it.

What changes files in place needs it. Spark Connect gives no access to it.
"""

from __future__ import annotations

import os
from typing import Any

from pyspark.sql import SparkSession

from headrace.errors import InvalidOption
from headrace.plain import shown
from headrace.spark.pipeline.layout import path_of
from headrace.spark.progress import is_remote


class Files:
    """The files of an archive; paths are relative to its root.

    Args:
        spark: a classic session.
        root: where the archive is.

    Raises:
        InvalidOption: ``root`` is empty, or the session is one of Spark Connect.
    """

    def __init__(self, spark: SparkSession, root: str | os.PathLike[str]) -> None:
        self._root = path_of(root)
        if is_remote(spark):
            raise InvalidOption(
                "compaction and retention need a classic session, such as "
                "SparkSession.builder.master('local[*]').getOrCreate(): Spark Connect gives no "
                "access to the file system of the archive"
            )
        self._jvm: Any = spark._jvm  # noqa: SLF001 (there is no other way to it)
        settings = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 (nor to this)
        self._system = self._path("").getFileSystem(settings)

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        found: bool = self._system.exists(self._path(path))
        return found

    def found(self, pattern: str) -> list[str]:
        """Return the paths that match a pattern such as ``events/tenant=*``, sorted."""
        return sorted(path for path, _ in self._matches(pattern))

    def older(self, pattern: str, before_ms: int) -> list[str]:
        """Return those that were changed last before an instant."""
        return sorted(path for path, changed in self._matches(pattern) if changed < before_ms)

    def rename(self, path: str, to: str) -> None:
        """Move a file or folder to where there is none, in one step on a local disk and HDFS.

        Raises:
            OSError: it did not work.
        """
        target = self._path(to)
        self._system.mkdirs(target.getParent())
        if not self._system.rename(self._path(path), target):
            raise OSError(
                f"{path} of the archive in {self._root} could not be renamed to {to}: see that "
                "nothing is there, and that this user may write it; then run it again"
            )

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it; no error where there is none."""
        self._system.delete(self._path(path), True)  # noqa: FBT003 (Java's)

    def read(self, path: str) -> bytes:
        """Return what is in a small file."""
        stream = self._system.open(self._path(path))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        """Write a small file: afterwards it is there as a whole, or not at all."""
        half = f"{path}.part"
        stream = self._system.create(self._path(half), True)  # noqa: FBT003 (Java's)
        try:
            stream.write(content)
        finally:
            stream.close()
        self.rename(half, path)

    def on_this_host(self, path: str) -> Any | None:
        """Return a file as Java knows those of this host, None where the archive is elsewhere."""
        uri = self._system.makeQualified(self._path(path)).toUri()
        return self._jvm.java.io.File(uri.getPath()) if uri.getScheme() == "file" else None

    def _matches(self, pattern: str) -> list[tuple[str, int]]:
        statuses = self._system.globStatus(self._path(pattern)) or []
        return [
            (self._relative(status.getPath()), status.getModificationTime()) for status in statuses
        ]

    def _relative(self, path: Any) -> str:
        whole: str = path.toUri().getPath()
        root: str = self._system.makeQualified(self._path("")).toUri().getPath()
        return whole[len(root) :].strip("/")

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._root}/{path}".rstrip("/"))


def check_there(spark: SparkSession, root: str | os.PathLike[str]) -> None:
    """See that there is a folder for an archive; Spark Connect can't tell.

    Raises:
        InvalidOption: there is none, or ``root`` is empty.
    """
    if not is_remote(spark) and not Files(spark, root).exists(""):
        raise InvalidOption(
            f"there is no folder {shown(os.fspath(root))}: "
            '"headrace pipeline archive" makes it; is it another one that you mean?'
        )
