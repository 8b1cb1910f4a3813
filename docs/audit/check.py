#!/usr/bin/env python3
"""Checks what `fuel audit export` wrote, without the program that wrote it.

    python3 check.py DIR 'NAME+ID+KEY[,NAME+ID+KEY…]'

Needs Python 3.9 and the package `cryptography` for Ed25519. Exits 0 if every event is in the sealed log and none is missing that
streams.jsonl names; otherwise it prints what is wrong, and exits 1. It can't prove that streams.jsonl names every stream.
The tree is that of RFC 6962, 2.1; the checkpoint is a signed note of C2SP. docs/audit.md says what an entry is.
"""
import base64, hashlib, json, os, re, sys
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def sha(data):
    return hashlib.sha256(data).digest()


def node(left, right):
    return sha(b"\x01" + left + right)


def leaf(event):
    parts = [event["stream"], str(event["revision"]), event["id"], event["type"], event["data"], event["metadata"]]
    entry = b"".join(b"%d:%s," % (len(part), part) for part in (text.encode() for text in parts))
    return sha(b"\x00" + entry)


def open_note(path, keys):
    """The size and root of a checkpoint that one of the keys signed."""
    with open(path, encoding="utf-8", newline="\n") as file:
        text, signatures = file.read().split("\n\n", 1)
    text += "\n"
    for key in keys.split(","):
        name, key_id, encoded = re.fullmatch(r"([^\s+]+)\+([0-9a-f]{8})\+(\S+)", key.strip()).groups()
        raw = base64.b64decode(encoded)
        if raw[0] != 1 or sha(name.encode() + b"\n" + raw)[:4].hex() != key_id:
            sys.exit("this is no Ed25519 key of a log")
        for line in signatures.removesuffix("\n").split("\n"):
            dash, signer, signature = line.split(" ")
            signature = base64.b64decode(signature)
            if dash == "\u2014" and signer == name and signature[:4].hex() == key_id:
                try:
                    Ed25519PublicKey.from_public_bytes(raw[1:]).verify(signature[4:], text.encode())
                except InvalidSignature:
                    continue
                _, size, root = text.split("\n")[:3]
                return int(size), base64.b64decode(root)
    sys.exit(f"{path} is not signed by this key")


def split(size):
    """The largest power of two below it."""
    return 1 << (size - 1).bit_length() - 1


def root_by_path(hashed, index, size, path):
    """RFC 6962, 2.1.1: the root that the path leads to; None for one of another length."""
    if size == 1:
        return hashed if not path else None
    if not path:
        return None
    middle, rest, sibling = split(size), path[:-1], path[-1]
    if index < middle:
        left = root_by_path(hashed, index, middle, rest)
        return left and node(left, sibling)
    right = root_by_path(hashed, index - middle, size - middle, rest)
    return right and node(sibling, right)


def roots_by_proof(old_size, old_root, size, proof, whole=True):
    """RFC 6962, 2.1.2: the roots of the older and of the newer tree."""
    if old_size == size:
        rest = proof if whole else proof[:-1]
        root = old_root if whole else (proof[-1] if proof else None)
        return (root, root) if not rest and root else (None, None)
    if not proof:
        return None, None
    middle, rest, sibling = split(size), proof[:-1], proof[-1]
    if old_size <= middle:
        old, new = roots_by_proof(old_size, old_root, middle, rest, whole)
        return old, new and node(new, sibling)
    old, new = roots_by_proof(old_size - middle, old_root, size - middle, rest, False)
    return old and node(sibling, old), new and node(sibling, new)


def is_count(value):
    return type(value) is int and value >= 0


def is_text(value):
    return type(value) is str


def is_list(of):
    return lambda value: type(value) is list and all(map(of, value))


def is_hash(value):
    return is_text(value) and re.fullmatch("[A-Za-z0-9+/]{43}=", value) is not None


EVENT = {"index": is_count, "stream": is_text, "revision": is_count, "id": is_text, "type": is_text,
         "data": is_text, "metadata": is_text, "proof": is_list(is_hash)}
STREAM = {"stream": is_text, "revision": is_count, "left_out": is_list(is_count)}


def read_line(line, members):
    """The object on a line that has exactly these members, each once, in this order and of its type; or None."""
    try:
        pairs = json.loads(line, object_pairs_hook=list)
    except ValueError:
        return None
    if not line.endswith("\n") or type(pairs) is not list or not all(type(pair) is tuple for pair in pairs):
        return None
    exact = [name for name, _ in pairs] == list(members) and all(members[name](value) for name, value in pairs)
    return dict(pairs) if exact else None


def read_lines(path, members):
    with open(path, encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            yield number, read_line(line, members)


def following(revision, left_out):
    revision += 1
    while revision in left_out:
        revision += 1
    return revision


def read_streams(path, faults):
    """Of each stream the next revision that is wanted, the last one, and those that are left out."""
    streams = {}
    for number, stream in read_lines(path, STREAM):
        left_out = stream and stream["left_out"]
        if stream is None or left_out != sorted(set(left_out)) or any(each > stream["revision"] for each in left_out):
            faults.append(f"line {number} of streams.jsonl is not a stream")
        elif stream["stream"] in streams:
            faults.append(f"line {number} of streams.jsonl repeats {stream['stream']}")
        else:
            streams[stream["stream"]] = [following(-1, set(left_out)), stream["revision"], set(left_out)]
    return streams


def check_events(path, tree, streams, faults):
    """The number of lines."""
    size, root = tree
    count, last_index = 0, -1
    for count, event in read_lines(path, EVENT):
        if event is None:
            faults.append(f"line {count} of events.jsonl is not an event")
            continue
        name, index = f"{event['stream']}@{event['revision']}", event["index"]
        proof = [base64.b64decode(each) for each in event["proof"]]
        if index >= size or root_by_path(leaf(event), index, size, proof) != root:
            faults.append(f"line {count} of events.jsonl is not in the tree: {name}")
            continue
        if index <= last_index:
            faults.append(f"line {count} of events.jsonl is not in the order of the log: {name}")
        last_index = max(index, last_index)
        stream = streams.get(event["stream"])
        if stream is None or event["revision"] > stream[1] or event["revision"] in stream[2]:
            faults.append(f"line {count} of events.jsonl is {name}, which streams.jsonl does not name")
        elif event["revision"] < stream[0]:
            faults.append(f"line {count} of events.jsonl is {name}, which is there twice or out of order")
        else:
            if event["revision"] > stream[0]:
                faults.append(f"line {count} of events.jsonl is {name}, but {event['stream']}@{stream[0]} is missing before it")
            stream[0] = following(event["revision"], stream[2])
    faults.extend(f"events.jsonl lacks {name}@{wanted}" for name, (wanted, last, _) in streams.items() if wanted <= last)
    return count


def main(folder, keys):
    size, root = open_note(os.path.join(folder, "checkpoint.txt"), keys)
    faults = []
    streams = read_streams(os.path.join(folder, "streams.jsonl"), faults)
    count = check_events(os.path.join(folder, "events.jsonl"), (size, root), streams, faults)
    older = os.path.join(folder, "older-checkpoint.txt")
    if os.path.exists(older):
        old_size, old_root = open_note(older, keys)
        with open(os.path.join(folder, "consistency.json"), encoding="utf-8") as file:
            proof = [base64.b64decode(each) for each in json.load(file)["proof"]]
        grown = old_size == 0 or (old_size <= size and roots_by_proof(old_size, old_root, size, proof) == (old_root, root))
        if not grown:
            faults.append(f"the tree of {size} events does not begin with that of {old_size}")
    print("\n".join(faults) if faults else f"{count} events are in the tree of {size} events; of {len(streams)} streams none is missing")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
