#!/usr/bin/env python3
"""Checks what `fuel audit export` wrote, without the program that wrote it.

    python3 check.py DIR 'NAME+ID+KEY[,NAME+ID+KEY…]'

Needs Python 3.9 and the package `cryptography` for Ed25519. Exits 0 if everything is proven; otherwise it prints what is not
proven, and exits 1.
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
    with open(path, encoding="utf-8") as file:
        text, signatures = file.read().split("\n\n", 1)
    text += "\n"
    for key in keys.split(","):
        name, key_id, encoded = re.fullmatch(r"([^\s+]+)\+([0-9a-f]{8})\+(\S+)", key.strip()).groups()
        raw = base64.b64decode(encoded)
        if raw[0] != 1 or sha(name.encode() + b"\n" + raw)[:4].hex() != key_id:
            sys.exit("this is no Ed25519 key of a log")
        for line in signatures.splitlines():
            dash, signer, signature = line.split(" ")
            signature = base64.b64decode(signature)
            if dash == "\u2014" and signer == name and signature[:4].hex() == key_id:
                try:
                    Ed25519PublicKey.from_public_bytes(raw[1:]).verify(signature[4:], text.encode())
                except InvalidSignature:
                    continue
                _, size, root = text.splitlines()[:3]
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


def main(folder, keys):
    size, root = open_note(os.path.join(folder, "checkpoint.txt"), keys)
    faults, count = [], 0
    with open(os.path.join(folder, "events.jsonl"), encoding="utf-8") as file:
        for count, line in enumerate(file, 1):
            event = json.loads(line)
            path = [base64.b64decode(each) for each in event["proof"]]
            inside = event["index"] < size and root_by_path(leaf(event), event["index"], size, path) == root
            if not inside:
                faults.append(f"line {count} is not in the tree: {event['stream']}@{event['revision']}")
    older = os.path.join(folder, "older-checkpoint.txt")
    if os.path.exists(older):
        old_size, old_root = open_note(older, keys)
        with open(os.path.join(folder, "consistency.json"), encoding="utf-8") as file:
            proof = [base64.b64decode(each) for each in json.load(file)["proof"]]
        grown = old_size == 0 or (old_size <= size and roots_by_proof(old_size, old_root, size, proof) == (old_root, root))
        if not grown:
            faults.append(f"the tree of {size} events does not begin with that of {old_size}")
    print("\n".join(faults) if faults else f"{count} events are in the tree of {size} events")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
