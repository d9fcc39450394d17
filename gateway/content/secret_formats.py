"""Keys and secrets: formats that providers document, and values that a text itself calls secret."""

import re
from collections.abc import Iterator, Sequence
from math import log2
from typing import Final, NamedTuple

LONGEST: Final = 4096  # characters of a secret that are looked at


class SecretFormat(NamedTuple):
    """`sign`: what every such secret begins with; `form`: the whole, from its sign on.

    Both are regular expressions without case folding; `loose`: it is long enough to be told from
    words where its characters stand apart.
    """

    issuer: str
    sign: str
    form: str
    loose: bool = True


_B: Final = "[A-Za-z0-9_-]"

SECRET_FORMATS: Final = (
    SecretFormat("AWS", "(?:AKIA|ASIA|ABIA|ACCA)", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"),
    SecretFormat("GitHub", "gh[pousr]_", r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    SecretFormat("GitHub", "github_pat_", r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{40,255}"),
    SecretFormat("GitLab", "glpat-", rf"glpat-{_B}{{20,60}}"),
    SecretFormat("Anthropic", "sk-ant-", rf"sk-ant-{_B}{{24,255}}"),
    SecretFormat("OpenAI", "sk-", rf"sk-(?:proj-|svcacct-|admin-|None-)?{_B}{{32,255}}"),
    SecretFormat("OpenRouter", "sk-or-", rf"sk-or-v1-{_B}{{32,255}}"),
    SecretFormat(
        "Slack", "xox[abeoprs]-", r"xox[abeoprs]-(?:[A-Za-z0-9]+-){1,5}[A-Za-z0-9]{8,255}"
    ),
    SecretFormat("Slack", "xapp-", r"xapp-\d-[A-Z0-9]+-\d+-[A-Za-z0-9]{16,255}"),
    SecretFormat(
        "Slack", r"hooks\.slack\.com/",
        r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_]{20,255}",
        loose=False,
    ),
    SecretFormat("Stripe", "[rs]k_(?:live|test)_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    SecretFormat("Stripe", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,255}"),
    SecretFormat("Google", "AIza", rf"AIza{_B}{{35}}"),
    SecretFormat("Google", "GOCSPX-", rf"GOCSPX-{_B}{{28}}"),
    SecretFormat("Google", r"ya29\.", rf"ya29\.{_B}{{30,500}}", loose=False),
    SecretFormat("Hugging Face", "hf_", r"hf_[A-Za-z0-9]{34}"),
    SecretFormat("npm", "npm_", r"npm_[A-Za-z0-9]{36}"),
    SecretFormat("PyPI", "pypi-AgE", rf"pypi-AgE{_B}{{50,500}}"),
    SecretFormat("SendGrid", r"SG\.", rf"SG\.{_B}{{22}}\.{_B}{{43}}", loose=False),
    SecretFormat("Twilio", "SK[0-9a-f]", r"SK[0-9a-f]{32}"),
    SecretFormat("DigitalOcean", "do[opr]_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    SecretFormat("Groq", "gsk_", r"gsk_[A-Za-z0-9]{40,64}"),
    SecretFormat("xAI", "xai-", r"xai-[A-Za-z0-9]{60,120}"),
    SecretFormat("Vault", "hvs\\.", rf"hvs\.{_B}{{24,255}}", loose=False),
    SecretFormat("Databricks", "dapi[0-9a-f]", r"dapi[0-9a-f]{32}"),
    SecretFormat(
        "JWT", "eyJ", rf"eyJ{_B}{{8,2000}}\.eyJ{_B}{{8,2000}}\.{_B}{{10,1000}}", loose=False
    ),
    SecretFormat("Shopify", "shp(?:at|ca|pa|ss)_", r"shp(?:at|ca|pa|ss)_[0-9a-f]{32}"),
    SecretFormat("Square", "sq0(?:atp|csp|idp)-", rf"sq0(?:atp|csp|idp)-{_B}{{22,64}}"),
    SecretFormat("Mailgun", "key-[0-9a-f]", r"key-[0-9a-f]{32}", loose=False),
    SecretFormat("Brevo", "xkeysib-", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    SecretFormat("Postman", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    SecretFormat(
        "Doppler", r"dp\.(?:pt|st|ct|sa|scim|audit)\.",
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{1,40}\.)?[A-Za-z0-9]{40,44}",
        loose=False,
    ),
    SecretFormat("New Relic", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    SecretFormat("Grafana", "glsa_", r"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}"),
    SecretFormat("Grafana", "glc_", r"glc_[A-Za-z0-9+/=]{32,400}"),
    SecretFormat("Atlassian", "AT(?:ATT|CTT)3x", r"AT(?:ATT|CTT)3x[A-Za-z0-9_=-]{60,400}"),
    SecretFormat("Cloudflare", r"v1\.0-[0-9a-f]{24}-", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    SecretFormat("RubyGems", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    SecretFormat("Docker Hub", "dckr_[po]at_", rf"dckr_[po]at_{_B}{{27,64}}"),
    SecretFormat(
        "Terraform", r"[A-Za-z0-9]{14}\.atlasv1\.", rf"[A-Za-z0-9]{{14}}\.atlasv1\.{_B}{{60,70}}",
        loose=False,
    ),
    SecretFormat("Supabase", "sbp_", r"sbp_[0-9a-f]{40}"),
    SecretFormat("Pulumi", "pul-", r"pul-[0-9a-f]{40}"),
    SecretFormat("Figma", "figd_", rf"figd_{_B}{{38,48}}"),
    SecretFormat("Replicate", "r8_", r"r8_[A-Za-z0-9]{37}"),
    SecretFormat("Perplexity", "pplx-", r"pplx-[A-Za-z0-9]{40,64}"),
    SecretFormat("Linear", "lin_(?:api|oauth)_", r"lin_(?:api|oauth)_[A-Za-z0-9]{40,64}"),
    SecretFormat("Notion", "ntn_", r"ntn_[A-Za-z0-9]{40,60}"),
    SecretFormat("Sentry", "sntry[su]_", r"sntry[su]_[A-Za-z0-9+/=_]{60,400}"),
    SecretFormat("PlanetScale", "pscale_tkn_", rf"pscale_tkn_{_B}{{32,64}}"),
    SecretFormat("PlanetScale", "pscale_pw_", rf"pscale_pw_{_B}{{32,64}}"),
    SecretFormat("NVIDIA", "nvapi-", rf"nvapi-{_B}{{60,80}}"),
    SecretFormat("Heroku", "HRKU-", rf"HRKU-{_B}{{36,64}}"),
    SecretFormat("LangSmith", "lsv2_(?:pt|sk)_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    SecretFormat("Pinecone", "pcsk_", r"pcsk_[A-Za-z0-9_]{60,80}"),
    SecretFormat("Telegram", "[0-9]{8,10}:AA", rf"[0-9]{{8,10}}:AA{_B}{{33}}", loose=False),
    SecretFormat("Mailchimp", "[0-9a-f]{32}-us[0-9]", "[0-9a-f]{32}-us[0-9]{1,2}", loose=False),
    SecretFormat("Facebook", "EAACEdEose0cBA", r"EAACEdEose0cBA[A-Za-z0-9]{20,300}"),
    SecretFormat("age", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    SecretFormat(
        "private key", "-----BEGIN [A-Z ]{0,24}PRIVATE KEY",
        r"-----BEGIN [A-Z ]{0,24}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s:,.\\-]{0,4000}"
        r"(?:-----END [A-Z ]{0,24}PRIVATE KEY(?: BLOCK)?-----)?",
        loose=False,
    ),
)  # fmt: skip

# What names a secret in front of its value, in configurations, code and headers.
_NAMES: Final = (
    r"(?:passw(?:or)?d|passphrase|pwd|passwor[td]|kennwort|mot de passe|contrase\xc3\xb1a|"
    r"wachtwoord|secret|token|api[_-]?key|access[_-]?key|"
    r"auth[_-]?key|private[_-]?key|credentials?)"
)
ASSIGNED_SIGNS: Final = (
    rf"(?i){_NAMES}[\"'\]]{{0,3}}[ \t]{{0,3}}(?:[:=]|is |ist |lautet |est |es )",
    "(?i)(?:bearer|basic|password|passwort) ",
)
# The last line of a private key, of which a log or a limit has cut the beginning.
KEY_END_SIGN: Final = "-----END [A-Z ]{0,24}PRIVATE KEY"
_KEY_END: Final = re.compile(rf"{KEY_END_SIGN}(?: BLOCK)?(?:-----)?")
_KEY_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_KEY_LINE: Final = 16  # letters that a line of a key has at least
_VALUE: Final = re.compile(
    r">?[ \t]{0,3}(?:(?i:bearer|basic)[ \t]+)?[\"']?"
    r"([A-Za-z0-9+/_!@#$%^&*.~=-]{10,256})(?![A-Za-z0-9(\[])"
)
# A password in an address: postgres://user:password@host
URL_SIGN: Final = r"://[^\s/@]{1,64}:[^\s/@]{1,64}@"
_IN_URL: Final = re.compile(r"://[^\s:/@\"'<>]{1,64}:([^\s/@\"'<>{}$]{6,128})@")
_BARE: Final = re.compile(r"[A-Za-z0-9+/_-]{40,128}={0,2}")
_HEXADECIMAL: Final = re.compile(r"[0-9a-fA-F-]+")
_WORDS: Final = re.compile(r"[A-Za-z][a-z]{3,}|[A-Z]{4,}")
# Digests stand behind their algorithm's name, and nobody keeps them secret.
_DIGEST: Final = re.compile(r"(?:sha\d{1,3}[-:=]|md5[-:=]|h1:|integrity\W{1,4})$", re.IGNORECASE)
_DIGEST_BEGIN: Final = re.compile(r"(?:sha\d{1,3}|md5)[-_]", re.IGNORECASE)
_PART_OF_PATH: Final = frozenset("/.:%?&#")
_BARE_LEAST: Final = 40
_LEAST_BITS: Final = 3.1  # a character of a value that is called secret
_BARE_BITS: Final = 4.3  # of one that nothing names


def bits_per_character(text: str) -> float:
    """Return the entropy of a text's characters, as if drawn one by one."""
    size = len(text)
    return sum(-(many := text.count(letter) / size) * log2(many) for letter in set(text))


def find_assigned(text: str, places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield where values stand that the text before a place calls secret, and that look so."""
    for place in places:
        match = _VALUE.match(text, place)
        if match is not None and _looks_secret(match[1]):
            yield match.span(1)
        elif text[place - 1] == "@":
            inside = _IN_URL.search(text, max(0, place - 140), place)
            if inside is not None and not inside[1].isalpha():
                yield inside.span(1)


def find_key_ends(text: str, places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield where lines of a private key and its last one stand."""
    for place in places:
        match = _KEY_END.search(text, max(0, place - 52), place + 16)
        if match is None:
            continue
        first = max(0, match.start() - LONGEST)
        begin = end = match.start()
        while True:
            end = first + len(text[first:end].rstrip(" \t\r\n\\>"))
            line = first + len(text[first:end].rstrip(_KEY_LETTERS))
            if end - line < _KEY_LINE:
                break
            begin = end = line
        if begin < match.start():
            yield begin, match.end()


def is_bare_secret(run: str, before: str) -> bool:
    """Return whether a long random word that nothing names is no digest; `before`: its text."""
    if len(run) < _BARE_LEAST or run.islower() or before[-1:] in _PART_OF_PATH:
        return False
    if _BARE.fullmatch(run) is None or _DIGEST_BEGIN.match(run) or _DIGEST.search(before[-12:]):
        return False
    return _is_random(run)


def _looks_secret(value: str) -> bool:
    kinds = _kinds_of(value)
    if kinds < 2 or not any(letter.isdigit() for letter in value):
        return False
    if re.fullmatch(r"[a-z]+(?:[._-][a-z0-9]+)*", value) and _WORDS.search(value):
        return False  # a name in code: max_tokens_per_minute_2
    return bits_per_character(value) >= _LEAST_BITS and not value.startswith(
        ("os.", "process.", "$")
    )


def _is_random(value: str) -> bool:
    if (
        _HEXADECIMAL.fullmatch(value)
        or _kinds_of(value) < 3
        or ("/" in value[1:-1] and value.count("/") > 4)
    ):
        return False
    named = sum(len(word) for word in _WORDS.findall(value))
    return named * 2 < len(value) and bits_per_character(value) >= _BARE_BITS


def _kinds_of(value: str) -> int:
    """Return how many of small letters, capitals, digits and others it has."""
    small, large = any(map(str.islower, value)), any(map(str.isupper, value))
    digit = any(map(str.isdigit, value))
    return small + large + digit + (not value.isalnum())
