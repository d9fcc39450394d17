"""Recognition of pictures: data that begin like one, or a web URL.

Targets also read a PDF or a film from a picture's member, and charge for pages and seconds. So data
count as a picture if they are declared as one and begin like a known format. A URL counts if
neither its ending nor its host is that of a file or a film.
"""

import binascii
import re
from typing import Any, Final
from urllib.parse import unquote, urlsplit

_FORMATS: Final = frozenset((
    "apng", "avif", "bmp", "gif", "heic", "heic-sequence", "heif", "heif-sequence", "ico", "jfif",
    "jp2", "jpe", "jpeg", "jpg", "jxl", "pjpeg", "png", "tif", "tiff", "vnd.microsoft.icon", "webp",
    "x-icon", "x-ms-bmp", "x-png",
))  # fmt: skip
# Without a format, or with any: Qwen's examples have `data:image;base64,`.
_DATA: Final = re.compile(r"data:image(?:/([a-z0-9.+*-]+))?;base64,", re.IGNORECASE)
_SIGNS: Final = (
    b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"II*\0", b"MM\0*",
    b"\xff\x0a", b"\0\0\0\x0cJXL ", b"\0\0\0\x0cjP  ", b"\0\0\1\0",
)  # fmt: skip
# Brands of HEIC and AVIF; a film has the same box with another brand.
_BRANDS: Final = frozenset((
    b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1", b"avif", b"avis",
))  # fmt: skip
_SIGN_CHARACTERS: Final = 32  # of Base64: 24 bytes
_BLANKS: Final = re.compile(r"\s+")
_ENDINGS: Final = re.compile(r"\.([a-z0-9]+)")
# Films, sounds, and files that targets open as documents.
_OTHER_ENDINGS: Final = frozenset((
    "3g2", "3gp", "3gpp", "aac", "ac3", "aif", "aiff", "amr", "asf", "avi", "caf", "csv", "doc",
    "docm", "docx", "eml", "epub", "f4v", "flac", "flv", "gz", "htm", "html", "json", "log", "m2ts",
    "m3u", "m3u8", "m4a", "m4b", "m4v", "md", "mid", "mka", "mkv", "mov", "mp2", "mp3", "mp4",
    "mpe", "mpeg", "mpegps", "mpg", "mpga", "mpd", "msg", "mts", "mxf", "odp", "ods", "odt", "oga",
    "ogg", "ogv", "opus", "pdf", "ppt", "pptm", "pptx", "ps", "qt", "rar", "rtf", "tar", "ts",
    "tsv", "txt", "vob", "wav", "wave", "weba", "webm", "wma", "wmv", "wv", "xls", "xlsm", "xlsx",
    "xml", "yaml", "yml", "zip",
))  # fmt: skip
_FILM_HOSTS: Final = re.compile(
    r"(?:.*\.)?(?:youtube\.com|youtu\.be|youtube-nocookie\.com|vimeo\.com|dailymotion\.com|dai\.ly"
    r"|tiktok\.com|bilibili\.com|twitch\.tv|drive\.google\.com|docs\.google\.com)\.?",
    re.IGNORECASE,
)
_KEPT_FILES: Final = re.compile(r"/files/", re.IGNORECASE)  # Gemini's files, of any kind
_KEEPERS: Final = re.compile(r"(?:.*\.)?googleapis\.com\.?", re.IGNORECASE)
_STATED: Final = ("format", "mime_type", "mimeType", "content_type", "contentType", "media_type")
_OF_FILMS: Final = ("video_metadata", "videoMetadata", "fps", "start_offset", "end_offset")
_MEDIA: Final = frozenset(("application", "audio", "image", "text", "video"))
_MEDIA_TYPE: Final = re.compile(r"\s*([a-z]+)/", re.IGNORECASE)


def is_picture(source: str) -> bool:
    """Return whether a URL or data are a picture's; data may lack the `data:` prefix."""
    if (data := _DATA.match(source)) is not None:
        word = (data[1] or "*").lower()
        # A second colon may be read as a URL: LiteLLM searches for `gs://` anywhere.
        one_address = source.count(":") == 1
        return one_address and (word == "*" or word in _FORMATS) and _begins(source, data.end())
    if source[:8].lower().startswith(("http://", "https://")):
        return _is_picture_address(source)
    return ":" not in source and _begins(source, 0)


def has_media_ending(address: str) -> bool:
    """Return whether a web URL ends like a picture, film, sound or document."""
    try:
        name = unquote(urlsplit(address).path).lower().rpartition("/")[2]
    except ValueError:
        return True
    pages = ("htm", "html", "json", "md", "txt", "xml")
    return any(
        ending in _FORMATS or (ending in _OTHER_ENDINGS and ending not in pages)
        for ending in _ENDINGS.findall(name)
    )


def speaks_of_another(members: dict[str, Any], medium: str) -> bool:
    """Return whether the other members state another medium than `image` or `audio`."""
    if any(name in members for name in _OF_FILMS):
        return True
    for name, value in members.items():
        if name in _STATED and not _is_of(value, medium):
            return True
        kind = _MEDIA_TYPE.match(value[:80]) if isinstance(value, str) else None
        if kind is not None and kind[1].lower() in _MEDIA - {medium}:
            return True
    return False


def _is_of(value: Any, medium: str) -> bool:
    """Return whether a stated format belongs to the medium: `image/png`, `png`, or nothing."""
    if not isinstance(value, str):
        return value is None
    kind, slash, word = value.strip().lower().rpartition("/")
    if medium != "image":
        return not slash or kind == medium
    return kind in ("", medium) and (word in ("", "*", "auto") or word in _FORMATS)


def _begins(source: str, place: int) -> bool:
    """Return whether Base64 from `place` on begins like a picture file."""
    piece = _BLANKS.sub("", source[place : place + 2 * _SIGN_CHARACTERS])[:_SIGN_CHARACTERS]
    try:
        first = binascii.a2b_base64(piece[: len(piece) // 4 * 4])
    except ValueError:
        return False
    if first.startswith(_SIGNS):
        return True
    if first.startswith(b"RIFF"):
        return first[8:12] == b"WEBP"
    return first[4:8] == b"ftyp" and first[8:12] in _BRANDS


def _is_picture_address(address: str) -> bool:
    """Return whether a URL is a picture's; its ending is judged before its host."""
    if re.search(r"[\s\\]", address) or re.search(r"(?<!http)(?<!https)://", address.lower()):
        return False
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return False
    path = unquote(parts.path).lower()
    name = re.split(r"[;?#]", path)[0].rpartition("/")[2]
    endings = _ENDINGS.findall(name)
    if endings and endings[-1] in _FORMATS:
        return True
    asked = _ENDINGS.findall(unquote(parts.query).lower())
    if not _OTHER_ENDINGS.isdisjoint((*endings, *asked)):
        return False
    is_kept = _KEEPERS.fullmatch(host) and _KEPT_FILES.search(path)
    return not (is_kept or _FILM_HOSTS.fullmatch(host))
