"""What the tests of the Spark bridge stand on."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame

from tests.spark.support.trees import ProcessTree
from tests.support.processes import is_alive
from tests.support.until import until

PARENT = """
import os, subprocess, sys
child = subprocess.Popen(
    ["sleep", "60"], start_new_session=False, preexec_fn=lambda: os.setpgid(0, 0)
)
print(child.pid, flush=True)
child.wait()
"""


def total(spark: SparkSession) -> DataFrame:
    return spark.range(10).select(functions.sum("id"))


def test_a_session_of_connect_and_a_classic_one_are_used_beside_each_other(
    spark: SparkSession, connect_session: SparkSession
) -> None:
    assert not isinstance(total(spark), ConnectDataFrame)
    assert total(spark).collect()[0][0] == 45


def test_a_session_of_connect_makes_what_is_of_connect(connect: SparkSession) -> None:
    assert isinstance(total(connect), ConnectDataFrame)
    assert total(connect).collect()[0][0] == 45


async def test_nothing_is_left_of_a_tree_that_is_killed(tmp_path: Path) -> None:
    with ProcessTree(sys.executable, "-c", PARENT, directory=tmp_path) as tree:
        child = int(await until(lambda: tree.stdout))
        assert {process.pid for process in tree.members} == {tree.pid, child}
        tree.kill_all()
        assert tree.members == []
        assert not is_alive(child)
