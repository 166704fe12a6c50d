"""MIME structure, character sets, HTML to text, mbox."""
import base64
import hashlib
import json
import os
import re

from tools import helper, helper_raw


def _read(folder, name):
    with open(os.path.join(folder, name), "rb") as f:
        return f.read()


def differ(what, got, wanted):
    return [] if got == wanted else [f"{what} is {got!r}, not {wanted!r}"]


# ---- MIME ----

def _messages(parts):
    """{number of a message's first part: its parts in order}."""
    out, owner = {}, {}
    for part in parts:
        parent = part["parent"]
        first = part["number"] if part["is_message"] else owner[parent]
        owner[part["number"]] = first
        out.setdefault(first, []).append(part)
    return out


def _part(mine, theirs, messages, where):
    out = []
    # The source calls what it cannot decode text. It does not decode
    # a fragment of a message, we take it for text: both keep its octets.
    if not (theirs.get("encoding_problem")
            or theirs.get("type") == "message/partial"):
        out += differ(f"{where} body", mine["body"], theirs["body"])
    for key in ("type", "disposition", "name", "filename", "content_id",
                "encoding", "charset", "format"):
        if key in theirs:
            fold = str.lower if key in ("encoding", "charset") else str
            if not any(_same(fold(text), fold(theirs[key]))
                       for text in _quoted(mine[key])):
                out += differ(f"{where} {key}", mine[key], theirs[key])
    if "sha256" in theirs and not out:
        content = base64.b64decode(mine.get("content", ""))
        if theirs["sha256"] not in map(_hash, _readings(mine, content)):
            out.append(f"{where} content is {content[:200]!r} ({len(content)}"
                       f" octets), not {theirs.get('text')!r} "
                       f"({theirs['size']})")
    if "message" in theirs and not out:
        inner = [n for n, p in messages.items()
                 if p[0]["parent"] == mine["number"]]
        if len(inner) != 1:
            return out + [f"{where} holds {len(inner)} messages"]
        out += _message(messages, inner[0], theirs["message"], where + ".")
    return out


def _hash(octets):
    return hashlib.sha256(octets).hexdigest()


def _quoted(text):
    """A parameter's value, and the same where the source takes a backslash
    in a path of Windows, which its writer did not double, for quoting."""
    return text, re.sub(r"\\(?=[A-Za-z])", "", text)


def _readings(part, content):
    """The content, and how the source may write the same: a line end as one
    octet, half of one at the very end as none, characters of an undeclared
    charset as U+FFFD."""
    lines = content.replace(b"\r\n", b"\n")
    for text in (content, lines, lines.removesuffix(b"\r")):
        yield text
        if part["body"] in ("text", "html") and not part["charset"]:
            yield re.sub("[^\0-\x7f]", "\ufffd", text.decode()).encode()


def _same(mine, theirs):
    """Equal; U+FFFD stands for what the source could not decode."""
    pattern = ".{1,2}".join(map(re.escape, theirs.split("\ufffd")))
    return re.fullmatch(pattern, mine, re.S) is not None


def _within(theirs, mine):
    pattern = ".{1,2}".join(map(re.escape, theirs.split("\ufffd")))
    return re.search(pattern, mine, re.S) is not None


def _headers(part, wanted):
    fields = {}
    for name, value in part["fields"]:
        fields.setdefault(name.lower(), []).append(value)
    out = []

    def first(name):
        return " ".join(fields.get(name, [""])[-1].split())
    if "subject" in wanted:
        subject = " ".join(wanted["subject"].split())
        if not _same(first("subject"), subject):
            out += differ("subject", first("subject"), subject)
    if "message_id" in wanted:
        out += differ("message id", first("message-id").strip("<>"),
                      wanted["message_id"])
    for key in ("from", "to", "cc", "reply_to"):
        text = " ".join(fields.get(key.replace("_", "-"), []))
        for address in wanted.get(key) or []:
            for word in " ".join(filter(None, address)).split():
                if not _within(_plain(word), _plain(text)):
                    out.append(f"{key} {text!r} lacks {word!r}")
    return out


def _plain(text):
    return re.sub(r"[\s\"\\<>]+", "", text)


def _message(messages, first, wanted, where=""):
    mine = messages[first]
    out = _headers(mine[0], wanted["headers"])
    if len(mine) != len(wanted["parts"]):
        return out + [f"{where or 'message'} has {len(mine)} parts "
                      f"{[p['type'] for p in mine]}, "
                      f"not {len(wanted['parts'])}"]
    for i, (m, t) in enumerate(zip(mine, wanted["parts"])):
        out += _part(m, t, messages, f"part {where}{i}")
    return out


def mime(folder, case):
    got = helper("mime", _read(folder, case["message"]))
    return _message(_messages(got["parts"]), 0, case["expect"])


# ---- character sets ----

def charset(folder, case):
    got = helper_raw("charset", _read(folder, case["encoded"]),
                     charset=case["charset"])
    wanted = _read(folder, case["utf8"])
    if got == wanted:
        return []
    at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b),
              min(len(got), len(wanted)))
    return [f"octet {at}: {got[at:at + 20]!r}, not {wanted[at:at + 20]!r}"]


# ---- HTML ----

def _unquoted(text):
    """What Dovecot keeps: no line of a quotation, no ampersand alone."""
    lines = [line for line in text.split("\n") if not line.startswith("> ")]
    return [word for word in " ".join(lines).split() if word != "&"]


def html_text(folder, case):
    got = helper_raw("html", case["input"].encode()).decode()
    words = str.split
    if case["id"].startswith("html-text/dovecot-"):
        words = _unquoted
    return differ("text", words(got), words(case["expect"]["text"]))


def _shown(tokens):
    """The text of a token list: all data outside script and style. The lists
    are of a reader that runs scripts, to which a noscript is one string; in
    mail none run, and its tags are tags."""
    out, skipping, inert = [], None, False
    for line in tokens.splitlines():
        kind, _, text = line.partition(": ")
        name = re.match(r"</?([a-z0-9]*)", text)
        name = name[1] if kind == "Tag" and name else None
        if name in ("script", "style"):
            skipping = None if text.startswith("</") else name
        elif name == "noscript":
            inert = not text.startswith("</")
        elif kind in ("Data", "CData") and not skipping:
            # The lists write line ends as \\n.
            if inert:
                text = re.sub(r"<[^>]*>", " ", text)
            out.append(re.sub(r"\\[nrt]", " ", text))
    return "".join(out)


def html_tokens(folder, case):
    wanted = _shown(_read(folder, case["tokens"]).decode(errors="replace"))
    got = helper_raw("html", _read(folder, case["html"]))
    # Tags separate words here, not in the list of tokens.
    a, b = ("".join(t.lstrip("\ufeff").split())
            for t in (got.decode(errors="replace"), wanted))
    if a == b:
        return []
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y),
              min(len(a), len(b)))
    return [f"at {at}: {a[at:at + 60]!r}, not {b[at:at + 60]!r}"]


# ---- mbox ----

def _tree(parts, number, depth=0):
    """The content types, as the summaries indent them."""
    part = parts[number]
    out = [f"{'   ' * depth}Content-Type: {part['type']}"]
    for child in parts:
        if child["parent"] == number and child["number"] != number:
            out += _tree(parts, child["number"], depth + 1)
    return out


def _summary(one, content):
    """The same lines a summary has, of what we read."""
    parts = helper("mime", content)["parts"]
    fields = {name.lower(): value for name, value in parts[0]["fields"]}
    out = ["From " + one["from"]]
    for name in ("From", "To", "Subject", "Date"):
        if name.lower() in fields:
            out.append(f"{name}: {fields[name.lower()]}")
    return out + _tree(parts, 0)


def _all_types(entity):
    """The content type of every part, in order."""
    out = [entity["mimeType"]]
    for child in entity.get("children", []):
        out += _all_types(child)
    return out


def _types(content):
    return [p["type"] for p in helper("mime", content)["parts"]]


def mbox(folder, case):
    got = helper("mbox", _read(folder, case["message"]))
    whole = _read(folder, case["message"])
    texts = [base64.b64decode(one["content"]) for one in got]
    wanted = _read(folder, case["summary"]).decode().strip().split("\n\n")
    out = differ("number of messages", len(got), len(wanted))
    for i, (one, text, theirs) in enumerate(zip(got, texts, wanted)):
        # The summaries quote every display name.
        lines = [line.replace('"', "") for line in theirs.split("\n")]
        out += differ(f"message {i}", _summary(one, text), lines)
    offsets = json.loads(_read(folder, case["offsets"]))
    out += differ("number of messages", len(got), len(offsets))
    for i, (one, text, theirs) in enumerate(zip(got, texts, offsets)):
        out += differ(f"message {i} marker", one["begin"],
                      theirs["mboxMarkerOffset"])
        octets = whole[theirs["beginOffset"]:theirs["endOffset"]]
        out += differ(f"message {i} octets", text, octets)
        out += differ(f"message {i} parts", _types(text),
                      _all_types(theirs["body"]))
    return out
