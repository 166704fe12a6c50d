"""One judge per kind: gives the list of what differs, empty when right.
Strict: the result and, where the case gives them, domains, selectors, octets
and hashes must be equal."""
import re

import judge_dkim
import judge_dmarc
import judge_mime
import judge_milter
from tools import helper
from tools import zone as zone_file

# Kinds that state nothing to judge.
NOT_JUDGED = {"message-only", "authres-message"}
# Kinds whose expectation is not in `expect`.
_ELSEWHERE = {"charset": "utf8", "html-tokens": "tokens", "mbox": "summary"}


def states_nothing(case):
    elsewhere = _ELSEWHERE.get(case["kind"])
    if elsewhere:
        return elsewhere not in case
    if judge_milter.e2e_states_nothing(case):
        return True
    expect = case.get("expect")
    return not expect or expect.get("allowed") == []


def differ(what, got, wanted):
    return [] if got == wanted else [f"{what} is {got!r}, not {wanted!r}"]


# ---- SPF ----

def spf_once(case, zone, identity, sender):
    i = case["input"]
    return helper("spf", zone=zone, ip=i["ip"], helo=i["helo"], **{
        "from": sender, "identity": identity})


def spf(folder, case):
    zone, sender = zone_file(case["dns"]), case["input"]["mail_from"]
    if case["id"].startswith("spf-mail-auth/"):
        # HELO first; MAIL FROM only when that passes.
        got = spf_once(case, zone, "helo", "")
        if got["result"] == "pass":
            got = spf_once(case, zone, "mailfrom", sender)
    else:
        got = spf_once(case, zone, "mailfrom" if sender else "helo", sender)
    out = []
    if got["result"] not in case["expect"]["allowed"]:
        out.append(f"result is {got['result']} ({got['reason']}), not "
                   + " or ".join(case["expect"]["allowed"]))
    wanted = case["expect"].get("explanation")
    if wanted is not None and got["result"] == "fail":
        # DEFAULT is the receiver's own text: none came from the domain.
        out += differ("explanation", got["explanation"],
                      "" if wanted == "DEFAULT" else wanted)
    return out


# ---- Authentication-Results ----

def authres(folder, case):
    value = case["input"].split(":", 1)[1]
    value = re.sub(r"\r?\n", "\r\n", value)
    value = re.sub(r"(\r\n)+\Z", "", value)
    mode = "lenient" if case.get("mode") else "strict"
    got = helper("authres", value.encode(), mode=mode)
    expect = case["expect"]
    out = differ("valid", got["valid"], expect["valid"])
    if out or not got["valid"]:
        return out
    for key in ("authserv_id", "version"):
        if key in expect:
            out += differ(key, got[key], expect[key])
    if "result_count" in expect:
        out += differ("number of results", len(got["results"]),
                      expect["result_count"])
    wanted = expect.get("results")
    if wanted is None:
        return out
    if len(wanted) > len(got["results"]) or (
            not wanted and got["results"]):
        return out + [f"{len(got['results'])} results, not {len(wanted)}"]
    for mine, theirs in zip(got["results"], wanted):
        out += _result(mine, theirs)
    return out


def _result(mine, theirs):
    out = []
    for key in ("method", "result", "method_version", "reason"):
        if key in theirs:
            out += differ(key, mine[key], theirs[key])
    for prop in theirs.get("properties", []):
        if prop not in mine["properties"]:
            out.append(f"{prop} is not in {mine['properties']}")
    if theirs.get("comments"):
        first = " ".join(theirs["comments"][0].split())
        out += differ("comment", " ".join(mine["comment"].split()), first)
    return out


# ---- public suffixes ----

def psl(folder, case):
    domain = case["input"]["domain"]
    labels = helper("psl", domain=domain or ".")["labels"]
    got = ".".join(domain.lower().split(".")[-labels:]) if labels else None
    return differ("registrable domain", got,
                  case["expect"]["registrable_domain"])


def done():
    """Stop what judges have started."""
    judge_milter.done()


KINDS = {
    "spf": spf,
    "authres-parse": authres,
    "psl": psl,
    "dkim-verify": judge_dkim.verify,
    "dkim-sign": judge_dkim.sign,
    "dkim-canon-body": judge_dkim.canon_body,
    "dkim-canon-header": judge_dkim.canon_header,
    "arc-verify": judge_dkim.arc_verify,
    "arc-sign": judge_dkim.arc_sign,
    "dmarc-eval": judge_dmarc.evaluate,
    "dmarc-tree-walk": judge_dmarc.tree_walk,
    "dmarc-record-lookup": judge_dmarc.lookup,
    "dmarc-alignment": judge_dmarc.alignment,
    "dmarc-record-parse": judge_dmarc.record,
    "dmarc-external-report": judge_dmarc.external_report,
    "from-domain": judge_dmarc.from_domain,
    "mime-parse": judge_mime.mime,
    "charset": judge_mime.charset,
    "html-to-text": judge_mime.html_text,
    "html-tokens": judge_mime.html_tokens,
    "mbox": judge_mime.mbox,
    **judge_milter.KINDS,
}
