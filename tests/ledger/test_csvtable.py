"""Tables as spreadsheets write them are read; what could be misread is refused with its line."""

import pytest

from ledger.csvtable import SIZE_LIMIT, CsvTableError, read_table


def lines(data: bytes):
    faults: list[str] = []
    table = read_table(data, "f.csv", faults)
    return table.columns, [(line.number, dict(line.cells)) for line in table.lines], faults


@pytest.mark.parametrize(
    "data",
    [
        b"name,price\na/b,1\n",
        b"\xef\xbb\xbfname,price\r\na/b,1\r\n",  # Excel's CSV UTF-8
        b"name;price\na/b;1\n",  # where the comma is the decimal sign
        b"name\tprice\na/b\t1\n",
        b'"Name","Price"\n"a/b","1"\n',  # LibreOffice, text quoted
        b" name , price ,\na/b, 1 ,\n",
    ],
)
def test_all_of_these_are_the_same_table(data):
    assert lines(data) == (("name", "price"), [(2, {"name": "a/b", "price": "1"})], [])


def test_lines_keep_the_numbers_of_the_file():
    data = b'sep=;\n\nname;note\n\na/b;"two\nlines"\n;\nc/d;x\n'
    columns, found, faults = lines(data)
    assert columns == ("name", "note")
    assert found == [(5, {"name": "a/b", "note": "two\nlines"}), (8, {"name": "c/d", "note": "x"})]
    assert faults == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "f.csv: the file is empty"),
        (b"\n \n", "f.csv: the file is empty"),
        (b"\xff\xfen\0", "f.csv: is UTF-16"),
        (b"name,price\nG\xfcnther,1\n", "f.csv: line 2: is not UTF-8"),
        (b"name,price\na\0b,1\n", "f.csv: line 2: has a NUL"),
        (b'name,price\na/b,1\n"c/d,2\n', "f.csv: line 3: unexpected end"),
        (b"n" * (SIZE_LIMIT + 1), "f.csv: larger than 16 MiB"),
    ],
)
def test_what_is_no_table_is_refused(data, words):
    with pytest.raises(CsvTableError, match=words):
        lines(data)


def test_faults_of_form_are_all_told():
    _, _, faults = lines(b"name,name,,price\na/b,x,y,1\na/b,x,,1,75\n")
    assert faults == [
        "f.csv: line 1, column `name`: is named twice",
        "f.csv: line 1: column 3 has no name",
        "f.csv: line 3: `75` in column 5, which has no name: a comma inside a number?",
    ]
