"""A kind of GPU is there once; what is not known of its price is no zero."""

from sqlalchemy import inspect


def test_a_kind_is_there_once_and_its_price_may_be_unknown(engine):
    assert inspect(engine).get_pk_constraint("gpu_types")["constrained_columns"] == ["name"]
    nullable = {
        column["name"]: column["nullable"] for column in inspect(engine).get_columns("gpu_types")
    }
    assert nullable["low_pusd_per_hour"]
    assert not nullable["bandwidth_bytes_s"]
