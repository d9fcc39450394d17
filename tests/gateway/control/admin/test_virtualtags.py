"""Virtual tags over HTTP: entered by name, refused by field, withdrawn."""

import pytest

FOR = "/v1/organization/virtual-tags"


@pytest.fixture(scope="module")
def finance(stack):
    return stack.key("allocates", scopes=("contracts:apply", "usage:all")).token


def test_a_virtual_tag_is_entered_and_withdrawn(stack, finance) -> None:
    rules = ["support: team=support|helpdesk", " ", "rest: model=chat"]
    given = {"name": "product", "rules": rules}
    assert stack.post(FOR, given, finance).status_code == 200
    (found,) = stack.get(FOR, finance).json()["data"]
    assert (found["name"], found["says"]) == ("product", {"rules": [rules[0], rules[2]]})
    name = {"name": "product"}
    assert stack.post(f"{FOR}/withdraw", name, finance).status_code == 200
    assert stack.get(FOR, finance).json()["data"] == []
    answer = stack.post(f"{FOR}/withdraw", name, finance)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "name")


@pytest.mark.parametrize(
    ("given", "param", "said"),
    [
        ({"name": "a b", "rules": ["x: team=a"]}, "name", "letters, digits"),
        ({"name": "a", "rules": ["x: team=a\0"]}, "rules", ""),
        ({"name": "a", "rules": ["x team=a"]}, "rules", "Rule 1, `x team=a`"),
    ],
)
def test_what_is_wrong_names_its_field(stack, finance, given, param, said) -> None:
    answer = stack.post(FOR, given, finance)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert said in error["message"]


def test_who_may_only_look_enters_nothing(stack) -> None:
    looks = stack.key("looks-tags", scopes=("usage:all", "contracts")).token
    assert stack.post(FOR, {"name": "a", "rules": ["x: team=a"]}, looks).status_code == 403
    assert stack.get(FOR, looks).status_code == 200
