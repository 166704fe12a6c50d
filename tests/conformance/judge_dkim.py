"""Signatures: dkim-verify, dkim-sign, dkim-canon-*, arc-verify, arc-sign."""
import re

from tools import Broken, helper, helper_raw, keep, message, zone

# What RFC 8301 makes of rsa-sha1 and of keys under 1024 bits.
REFUSED = {"permerror", "policy", "neutral"}
WORDS = {"pass": {"pass"}, "SUCCESS": {"pass"}, "OK": {"pass"},
         "BADSIG": {"fail"}, "-1": None}


def tags(value):
    """tag → value of a signature field, all blanks removed."""
    out = {}
    for part in re.sub(r"\s+", "", value).split(";"):
        name, equals, text = part.partition("=")
        if equals:
            out[name] = text
    return out


def verify(folder, case):
    answer = helper("dkim-verify", message(folder, case),
                    zone=zone(case["dns"]), body_length="accept",
                    clock=case.get("clock"), line_ends="crlf")
    got, best = answer["signatures"], answer["result"]
    expect, out = case["expect"], []
    if best not in expect["allowed"]:
        out.append(f"result is {best} ({[g['reason'] for g in got]}), not "
                   + " or ".join(expect["allowed"]))
    wanted = expect.get("signatures") or []
    if "domainkeys" in case["tags"] and expect["allowed"] == ["none"]:
        wanted = []  # they are RFC 4870's, not ours
    if len(wanted) > len(got):
        # -1: the source did not evaluate it (it stopped, and ran again)
        wanted = [w for w in wanted if w.get("sigerror") != "-1"]
    if len(wanted) > len(got):
        return out + [f"{len(got)} signatures, not {len(wanted)}"]
    for mine, theirs in zip(got, wanted):
        out += _signature(case, mine, theirs, len(wanted) == 1)
    return out


def _signature(case, mine, theirs, alone):
    out = []
    for key, names in (("d", ("d", "sdid")), ("i", ("i", "auid")),
                       ("a", ("a",)), ("s", ("selector",))):
        for name in names:
            wanted = theirs.get(name)
            if wanted is not None and mine[key] != wanted:
                out.append(f"{key} is {mine[key]!r}, not {wanted!r}")
    if "timestamp" in theirs and (mine["t"] if mine["t"] >= 0 else None) != \
            theirs["timestamp"]:
        out.append(f"t is {mine['t']}, not {theirs['timestamp']}")
    if "expiration" in theirs and (mine["x"] if mine["x"] >= 0 else None) != \
            theirs["expiration"]:
        out.append(f"x is {mine['x']}, not {theirs['expiration']}")
    if "signedHeaders" in theirs and \
            mine["h"].lower().split(":") != theirs["signedHeaders"]:
        out.append(f"h is {mine['h']}, not {theirs['signedHeaders']}")
    # One signature alone is judged by `allowed`, which knows more.
    word = theirs.get("result", theirs.get("sigerror"))
    allowed = None if alone else WORDS.get(word)
    if allowed and any(t.startswith(("rsa-sha1", "rsa-key-"))
                       for t in case["tags"]):
        allowed = allowed | REFUSED
    if allowed and mine["result"] not in allowed:
        out.append(f"signature of {mine['d']} is {mine['result']} "
                   f"({mine['reason']}), not {word}")
    return out


# ---- signing ----

def _unique(names):
    seen = []
    for name in names:
        if name.lower() not in [s.lower() for s in seen]:
            seen.append(name)
    return seen


def sign(folder, case):
    s, expect = case["sign"], case["expect"]
    data = message(folder, case)
    pem = s.get("private_key_pem")
    if pem is None:
        raise Broken("the case has no private key")
    names = expect["h"].split(":")
    clock = s.get("t") or int(tags(expect["DKIM-Signature"]).get("t", "0"))
    mine = helper(
        "dkim-sign", data, key=keep(pem), domain=s["domain"],
        selector=s["selector"], header_canon=s["header_canon"],
        body_canon=s["body_canon"], headers=":".join(_unique(names)),
        clock=clock, line_ends="crlf")
    if "refused" in mine:
        return ["refused: " + mine["refused"]]
    field = "DKIM-Signature:" + mine["field"]
    out = []
    # rsa-sha1 must not be made (RFC 8301 3.1): there our hash differs.
    if tags(mine["field"])["a"] != "rsa-sha256":
        out.append(f"a is {tags(mine['field'])['a']}, not rsa-sha256")
    if s["algorithm"] == "rsa-sha256" and mine["bh"] != expect["bh"]:
        out.append(f"bh is {mine['bh']}, not {expect['bh']}")
    out += _hashed(data, mine["h"].split(":"), names)
    signed = field.encode() + b"\r\n" + data
    got = helper("dkim-verify", signed, zone=zone(case["dns"]),
                 line_ends="crlf")["signatures"]
    if not got or got[0]["result"] != "pass":
        out.append(f"our own signature gives {got[:1]}")
    return out


def _hashed(data, mine, wanted):
    """The fields hashed must be the same ones in the same order; names
    listed beyond what is present (oversigning) hash nothing."""
    head = data.split(b"\r\n\r\n", 1)[0]
    present = {}
    for line in re.split(rb"\r\n(?![ \t])", head):
        name = line.split(b":")[0].strip().lower().decode()
        present[name] = present.get(name, 0) + 1

    def taken(names):
        left, out = dict(present), []
        for name in names:
            name = name.lower()
            if left.get(name, 0) > 0:
                left[name] -= 1
                out.append(name)
        return out
    if taken(mine) != taken(wanted):
        return [f"fields hashed are {taken(mine)}, not {taken(wanted)}"]
    return []


# ---- canonical forms ----

def _octets(text):
    """The strings are exact octets."""
    return text.encode("latin-1") if all(ord(c) < 256 for c in text) \
        else text.encode()


def _canonical(got, case):
    wanted = _octets(case["expect"]["canonical"])
    return [] if got == wanted else [f"{got!r}, not {wanted!r}"]


def canon_body(folder, case):
    chunks = [_octets(c) for c in case["input"]]
    got = helper_raw("dkim-canon-body", *chunks,
                     canon=case["canonicalization"])
    return _canonical(got, case)


def canon_header(folder, case):
    got = helper_raw("dkim-canon-header", _octets(case["input"]),
                     canon=case["canonicalization"])
    return _canonical(got, case)


# ---- ARC ----

def arc_verify(folder, case):
    got = helper("arc-verify", message(folder, case), zone=zone(case["dns"]),
                 clock=case.get("clock"), line_ends="crlf")
    allowed = case["expect"]["allowed"]
    if got["result"] in allowed:
        return []
    return [f"cv is {got['result']} ({got['reason']}), not "
            + " or ".join(allowed)]


def _results(data, authserv):
    """The payloads of all Authentication-Results of one id, joined."""
    head = data.split(b"\r\n\r\n", 1)[0].decode("utf-8", "surrogateescape")
    out = []
    for line in re.split(r"\r\n(?![ \t])", head):
        name, _, value = line.partition(":")
        if name.strip().lower() != "authentication-results":
            continue
        ident, _, payload = value.partition(";")
        if ident.strip().lower() == authserv:
            out.append(re.sub(r"\r\n(?=[ \t])", "", payload).strip())
    return "; ".join(out)


def arc_sign(folder, case):
    s, expect = case["sign"], case["expect"]
    data = message(folder, case)
    got = helper(
        "arc-sign", data, zone=zone(case["dns"]), authserv_id=s["authserv_id"],
        results=_results(data, s["authserv_id"]) or "none", clock=s["t"],
        headers=s["sig_headers"], domain=s["domain"], selector=s["selector"],
        key=keep(s["private_key_pem"]), line_ends="crlf")
    if not expect["ARC-Seal"]:
        return [] if "refused" in got else ["sealed, must not"]
    if "refused" in got:
        return ["not sealed: " + got["refused"]]
    out = []
    for name, keys in (("ARC-Seal", ("a", "cv", "d", "i", "s", "t")),
                       ("ARC-Message-Signature",
                        ("a", "bh", "c", "d", "h", "i", "s", "t"))):
        mine, theirs = tags(got[name]), tags(expect[name])
        for key in keys:
            if mine.get(key, "").lower() != theirs[key].lower():
                out.append(f"{name} {key} is {mine.get(key)}, not "
                           f"{theirs[key]}")
    mine, theirs = [re.sub(r"\s+", "", x["ARC-Authentication-Results"])
                    .rstrip(";") for x in (got, expect)]
    if mine != theirs:
        out.append(f"AAR is {mine}, not {theirs}")
    sealed = b"".join(
        name.encode() + b":" + got[name].encode() + b"\r\n" for name in ("ARC-Seal", "ARC-Message-Signature",
                               "ARC-Authentication-Results")) + data
    again = helper("arc-verify", sealed, zone=zone(case["dns"]),
                   line_ends="crlf")
    wanted = "fail" if tags(expect["ARC-Seal"])["cv"] == "fail" else "pass"
    if again["result"] != wanted:
        out.append(f"our own seal gives {again['result']} "
                   f"({again['reason']}), not {wanted}")
    return out
