import hashlib
import hmac
import re
import sys
import time

TOLERANCE_SECONDS = 300


def is_genuine(header, raw_body, secret, now=None):
    """header: X-Service-Signature. raw_body: the unchanged bytes of the body. now: Unix seconds."""
    hmac_key = secret.strip()
    if hmac_key == "":  # anybody could sign with it
        return False
    match = re.fullmatch(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})", header or "")
    if match is None:
        return False
    t, v1 = match.groups()
    if abs((time.time() if now is None else now) - int(t)) > TOLERANCE_SECONDS:
        return False
    expected = hmac.new(hmac_key.encode(), t.encode() + b"." + raw_body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, v1)


# python3 verify.py SECRET HEADER [NOW] < body
if __name__ == "__main__":
    secret, header, *rest = sys.argv[1:]
    genuine = is_genuine(header, sys.stdin.buffer.read(), secret, *map(float, rest))
    print("genuine" if genuine else "not genuine")
