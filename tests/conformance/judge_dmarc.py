"""DMARC: dmarc-eval and its relatives, from-domain."""
import re

from tools import helper, zone

# pct= is history (RFC 9989 A.6): not parsed, so there is nothing to compare.
HISTORY = {"pct", "use_result_under_pct"}


def _domain(address):
    return address.rpartition("@")[2]


def _method(case):
    return "psl" if case.get("standard") == "RFC 7489" else "treewalk"


def _identifiers(i):
    spf = [f"{d}=pass" for d in i.get("spf_pass_domains", [])]
    # DMARC takes the MAIL FROM identity only.
    spf += [f"{s['domain']}={s['result']}" for s in i.get("spf_results", [])
            if s.get("scope", "mfrom") == "mfrom"]
    dkim = [f"{d}=pass" for d in i.get("dkim_pass_domains", [])]
    dkim += [f"{d['domain']}={d['result']}" for d in i.get("dkim_results", [])]
    return ":".join(spf[:1]), ":".join(dkim)


def evaluate(folder, case):
    i = case["input"]
    authors = i["header_from"]
    if isinstance(authors, str):
        authors = [authors]
    spf, dkim = _identifiers(i)
    got = helper("dmarc", zone=zone(case["dns"]), method=_method(case),
                 spf=spf, dkim=dkim, **{"from": ":".join(_domain(a) for a in authors)})
    out = []
    for key, wanted in case["expect"].items():
        if key in HISTORY or key == "reason":
            continue
        mine = _value(got, key, wanted)
        if mine != wanted:
            out.append(f"{key} is {mine!r} ({got['reason']}), not {wanted!r}")
    return out


def _value(got, key, wanted):
    """What we have under the sources' own names."""
    failed = got["result"] == "fail"
    if key == "dmarc":
        return got["result"]
    if key == "policy":
        return got["policy"] if got["has_record"] else None
    if key in ("p", "sp", "np"):
        return got.get(key)
    if key == "rr":
        return got.get("text")
    if key == "domain":
        return got["org_domain"]
    if key == "record_domain":
        return got.get("record_domain")
    if key == "disposition":
        return got["policy"] if failed else "none"
    if key == "reject":
        return failed and got["policy"] == "reject"
    if key in ("spf_aligned", "dkim_aligned"):
        if got[key]:
            return "pass"
        return wanted if wanted in ("no", "fail", "") else "no"
    if key == "alignment.dkim.strict":
        return got.get("strict_dkim")
    if key in ("alignment.dkim.result", "alignment.spf.result"):
        aligned = got["dkim_aligned" if "dkim" in key else "spf_aligned"]
        return (wanted or True) if aligned else False
    if key == "published_policy":
        return _published(got, wanted)
    return f"unknown to us"


def _published(got, wanted):
    mine = {"domain": got.get("record_domain")}
    for key in ("p", "sp", "np"):
        if key in wanted:
            mine[key] = got.get(key)
            if mine[key] is None and got.get("bad_policy"):
                mine[key] = "invalid"
    if "pct" in wanted:
        mine["pct"] = wanted["pct"]
    return mine


def tree_walk(folder, case):
    expect = case["expect"]
    got = helper("dmarc", zone=zone(case["dns"]), method="treewalk",
                 **{"from": case["input"]["domain"]})
    if expect["record"] is None:
        return ["found " + got["text"]] if got["has_record"] else []
    out = []
    for key, mine in (("record", got.get("text")),
                      ("record_at", got.get("record_domain")),
                      ("org_domain", got["org_domain"])):
        if mine != expect[key]:
            out.append(f"{key} is {mine!r}, not {expect[key]!r}")
    return out


def lookup(folder, case):
    expect = case["expect"]
    got = helper("dmarc", zone=zone(case["dns"]), method=_method(case),
                 **{"from": case["input"]["domain"]})
    out = []
    if got["has_record"] != expect["found"]:
        out.append(f"found is {got['has_record']}, not {expect['found']}")
    if got.get("record_domain") != expect["record_domain"]:
        out.append(f"record_domain is {got.get('record_domain')}, not "
                   f"{expect['record_domain']}")
    broken = got["result"] in ("permerror", "temperror")
    if broken != (expect["status"] != "none"):
        out.append(f"status is {got['result']}, not {expect['status']}")
    return out


def external_report(folder, case):
    i, expect = case["input"], case["expect"]
    got = helper("dmarc-reports", zone=zone(case["dns"]), domain=i["domain"],
                 receiver=i["report_domain"])["result"]
    out = []
    if (got == "pass") != expect["accepts"]:
        out.append(f"accepts is {got}, not {expect['accepts']}")
    status = "temperror" if got == "temperror" else "none"
    if status != expect["status"]:
        out.append(f"status is {status}, not {expect['status']}")
    return out


def alignment(folder, case):
    i = case["input"]
    flag = "s" if i["mode"] == "strict" else "r"
    policy = [{"name": "_dmarc." + i["from_domain"].strip("."), "type": "TXT",
               "value": f"v=DMARC1; p=none; adkim={flag}"}]
    got = helper("dmarc", zone=zone(policy), method="psl",
                 dkim=i["auth_domain"] + "=pass", **{"from": i["from_domain"]})
    if got["dkim_aligned"] == case["expect"]["aligned"]:
        return []
    return [f"aligned is {got['dkim_aligned']} ({got['reason']})"]


def record(folder, case):
    got = helper("dmarc-record", case["input"]["record"].encode())
    if got["valid"] == case["expect"]["valid"]:
        return []
    return [f"valid is {got['valid']}"]


def from_domain(folder, case):
    value = re.sub(r"^From:", "", case["input"]["field"], flags=re.I)
    got = helper("from-domain", value.encode())
    wanted = case["expect"]["domain"]
    mine = got["domains"][0] if len(got["domains"]) == 1 else ""
    if mine == wanted:
        return []
    return [f"domain is {mine!r} ({got['state']}), not {wanted!r}"]
