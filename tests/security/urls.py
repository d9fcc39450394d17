"""Ways to write an address that somebody should not be led to, by whoever may be fooled by them.

`forms(port)` has over 300; made, not listed, so that
each canary is there in each spelling.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address

V4 = (
    "127.0.0.1", "127.0.0.2", "10.0.0.7", "172.16.0.9", "192.168.0.7", "169.254.169.254",
    "100.100.100.200",
)  # fmt: skip
V6 = ("::1", "fd00:ec2::254", "fd12::7")
PUBLIC = (
    "9.9.9.9"  # what a careful look-up is shown; also on this host's loopback, and counted apart
)
OUTSIDE = "api.example.com"  # leads there
ZONE = "canary.test"


def forms(port: int) -> list[str]:
    found = [f"http://{host}:{port}/v1" for host in hosts()]
    found += list(_misread(port))
    found += [
        f"{scheme}://127.0.0.1:{port}/x" for scheme in ("ftp", "file", "gopher", "dict", "ws")
    ]
    return list(dict.fromkeys(found))


def hosts() -> list[str]:
    """As the authority of an address has them: digits in odd spellings, and names."""
    found: list[str] = []
    for text in V4:
        found += _v4(IPv4Address(text))
    for text in V6:
        found += [f"[{text}]", f"[{text}%25lo]", f"[{text.upper()}]"]
    return [*found, *names()]


def names() -> list[str]:
    """Of the zone: each address plainly, mapped, behind a public one, before one, and by turns."""
    found = ["localhost.", "LOCALHOST.", "localhost.localdomain"]
    for number in range(len(V4)):
        found += [f"{kind}{number}.{ZONE}" for kind in ("a", "map", "nat", "mix", "xim", "flip")]
        found += [f"{kind}{number}.{ZONE}." for kind in ("a", "map", "mix", "flip")]
        found += [f"A{number}.{ZONE.upper()}", f"cname{number}.{ZONE}"]
    found += [f"six{number}.{ZONE}" for number in range(len(V6))]
    return found


def answers(name: str, asked: int) -> list[str]:
    """What the zone says of a name at its `asked`-th time; a flipping one is public at first."""
    name = name.rstrip(".").lower()
    if name == OUTSIDE:
        return [PUBLIC]
    if not name.endswith("." + ZONE):
        return []
    kind = name.removesuffix("." + ZONE)
    word, number = kind.rstrip("0123456789"), int(kind.lstrip("abcdefghijklmnopqrstuvwxyz") or 0)
    if word == "six":
        return [V6[number]]
    v4 = V4[number]
    return {
        "a": [v4], "cname": [v4], "map": [f"::ffff:{v4}"], "mix": [PUBLIC, v4], "xim": [v4, PUBLIC],
        "nat": [f"64:ff9b::{v4}"], "flip": [v4 if asked else PUBLIC],
    }[word]  # fmt: skip


def _v4(address: IPv4Address) -> Iterator[str]:
    number, octets = int(address), address.packed
    a, b, c, d = octets
    yield str(address)
    yield f"{address}."
    yield str(number)
    yield f"{number:#x}"
    yield f"{number:#o}".replace("0o", "0")
    yield f"0x{number:08X}"
    yield ".".join(f"{octet:#x}" for octet in octets)
    yield ".".join(f"0{octet:o}" for octet in octets)
    yield ".".join(f"{octet:04o}" for octet in octets)
    yield ".".join(f"{octet:03d}" for octet in octets)
    yield f"{a}.{int.from_bytes(octets[1:], 'big')}"
    yield f"{a}.{b}.{int.from_bytes(octets[2:], 'big')}"
    yield f"{a:#x}.{b}.0{c:o}.{d}"
    yield f"[::ffff:{address}]"
    yield f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]"
    yield f"[0:0:0:0:0:ffff:{address}]"
    yield f"[64:ff9b::{address}]"
    yield f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::]"
    yield f"[::{address}]"
    yield "".join(f"%{byte:02x}" for byte in str(address).encode())
    yield (
        str(address).replace("1", "\N{CIRCLED DIGIT ONE}").replace(".", "\N{IDEOGRAPHIC FULL STOP}")
    )
    yield "".join(chr(ord(item) + 0xFEE0) if item.isdigit() else item for item in str(address))


def _misread(port: int) -> Iterator[str]:
    """Where two readers of the same text see two hosts."""
    for text in V4:
        here = f"{text}:{port}"
        yield f"http://{OUTSIDE}@{here}/"
        yield f"http://{OUTSIDE}:80@{here}/"
        yield f"http://{here}#@{OUTSIDE}/"
        yield f"http://{here}?@{OUTSIDE}/"
        yield f"http://{OUTSIDE}\\@{here}/"
        yield f"http://{here}\\@{OUTSIDE}/"
        yield f"http:/\\{here}/"
        yield f"http:////{here}/"
        yield f"//{here}/"
        yield f"http://{OUTSIDE}%0d%0aHost:%20{here}/"
        yield f"http://{OUTSIDE}\r\nHost: {here}/"
        yield f"HTTP://{here}/"
        yield f" http://{here}/"
        yield f"http://{here}\t/"
        yield f"http://{text}\u200b:{port}/"
