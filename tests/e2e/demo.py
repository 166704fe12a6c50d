#!/usr/bin/env python3
"""The second half of contrib/try: sends sample mail and the files named on the
command line through Postfix and hanaperd, shows the fields that came of it,
finds each message in the archive. Exit status 0 when all was as it should."""
import email.utils
import os
import re
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
import postfix  # noqa: E402
import rig as stage  # noqa: E402

SHOWN = {"authentication-results", "dkim-signature", "received", "from",
         "subject", "x-hanaper-disposition"}
SHOW_LINES = 24
wrong = []


def title(text):
    print(f"\n==> {text}")


def verdict(ok, text):
    print(f"    {'ok' if ok else 'WRONG'}: {text}")
    if not ok:
        wrong.append(text)


def print_header(copy):
    print("    header of the delivered message:")
    for name, value in postfix.fields(copy):
        if name.lower() in SHOWN:
            text = f"{name}:{value.decode(errors='replace')}"
            print("      | " + text.replace("\n", "\n      | "))


def print_output(done):
    lines = done.stdout.decode(errors="replace").splitlines()
    for line in lines[:SHOW_LINES]:
        print("      | " + line)
    if len(lines) > SHOW_LINES:
        print(f"      | ... ({len(lines) - SHOW_LINES} more lines)")


def find(rig, qid):
    """By search, then show."""
    query = f"qid:{qid}"
    print(f"    hanaper archive search {query}")
    print_output(rig.hanaper("archive", "search", query, statuses=(0, 1)))
    hits = rig.search(query)
    verdict(len(hits) == 1, f"found in the archive by {query}")
    for hit in hits[:1]:
        print(f"    hanaper archive show {hit['id']}")
        print_output(rig.hanaper("archive", "show", str(hit["id"])))


def send(rig, raw, sender, to, client=None):
    qid = rig.mta.send(raw, sender, [to], client=client)
    copy = rig.mta.delivered(qid)
    print_header(copy)
    return qid, copy


def outbound(rig):
    title("outbound: mail from a trusted network is signed")
    qid, copy = send(rig, rig.mail("Jo <jo@example.org>", "Order 4711",
                                   body=b"Two boxes of tea, please.\r\n",
                                   to="shop@remote.example"),
                     "jo@example.org", "shop@remote.example")
    signatures = rig.verify(copy)["dkim"]
    verdict(len(signatures) == 2 and
            all(s["result"] == "pass" for s in signatures),
            "signed with both keys of example.org, and both verify: "
            + ", ".join(f"{s['a']} {s['result']}" for s in signatures))
    find(rig, qid)


def inbound(rig):
    title("inbound: signed mail from its own server")
    raw = rig.signed(rig.mail("news@sender.example", "Spring catalogue"))
    qid, copy = send(rig, raw, "news@sender.example", "user@example.org",
                     stage.SENDER)
    got = stage.results(copy)
    verdict([got.get(m) for m in ("dkim", "dmarc")] == [["pass"], ["pass"]]
            and set(got.get("spf", [])) == {"pass"}, f"all pass: {got}")
    find(rig, qid)


def forged(rig):
    title("inbound: the same sender, forged by a stranger")
    raw = rig.mail("news@sender.example", "Your account",
                   body=b"Please send your password.\r\n")
    qid, copy = send(rig, raw, "news@sender.example", "user@example.org",
                     stage.STRANGER)
    got = stage.results(copy)
    verdict(got.get("dmarc") == ["fail"], f"dmarc=fail: {got}")
    find(rig, qid)


def forged_results(rig):
    title("inbound: a forged Authentication-Results field is removed")
    lie = (f"Authentication-Results: {stage.AUTHSERV};\r\n"
           "\tdkim=pass header.d=bank.example; dmarc=pass\r\n").encode()
    raw = rig.mail("pay@bank.example", "Transfer", extra=lie)
    print("    sent with:")
    print("      | " + lie.decode().strip().replace("\r\n", "\n      | "))
    qid, copy = send(rig, raw, "pay@bank.example", "user@example.org",
                     stage.STRANGER)
    fields = postfix.values(copy, "Authentication-Results")
    verdict(len(fields) == 1 and "bank.example; dmarc=pass" not in fields[0]
            and "pass" not in stage.results(copy).get("dkim", []),
            "only our own field is left")
    find(rig, qid)


def sender_of(raw):
    for name in ("Return-Path", "From"):
        for value in postfix.values(raw, name):
            address = email.utils.parseaddr(value)[1]
            if re.fullmatch(r"[!-;=?-~]+@[A-Za-z0-9.-]+", address):
                return address
    return ""


def file(rig, path):
    title(f"inbound: {path}")
    with open(path, "rb") as data:
        raw = data.read()
    if b"\r\n" not in raw.split(b"\n", 1)[0] + b"\n":
        raw = raw.replace(b"\n", b"\r\n")
    print("    (the resolver is a fixed zone file: keys and policies of other "
          "domains are not in it)")
    try:
        qid, copy = send(rig, raw, sender_of(raw), "user@example.org",
                         stage.STRANGER)
    except postfix.Refused as e:
        verdict(False, f"refused: {e}")
        return
    verdict(bool(stage.results(copy)), f"results: {stage.results(copy)}")
    find(rig, qid)


def main():
    reason = stage.why_not()
    if reason:
        sys.exit(f"demo: {reason}")
    title("hanaper key generate: keys for example.org and for the samples' "
          "senders")
    with stage.Rig() as rig:
        for line in rig.zone.splitlines():
            if "_domainkey" in line and '"v=DKIM1' in line:
                print("    published: " + line[:66] + "...")
        title("starting hanaperd and a private Postfix on port "
              f"{rig.mta.port} of loopback")
        rig.start()
        for step in (outbound, inbound, forged, forged_results):
            step(rig)
        for path in sys.argv[1:]:
            file(rig, path)
        title("what hanaperd logged")
        for line in rig.log().splitlines():
            print("    " + line)
        title("stopping")
    if wrong:
        print("\n" + "\n".join(f"WRONG: {text}" for text in wrong))
        return 1
    print("\nAll as it should be.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
