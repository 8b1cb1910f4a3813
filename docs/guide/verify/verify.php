<?php
const TOLERANCE_SECONDS = 300;

/** $header: X-Service-Signature. $rawBody: file_get_contents('php://input'). $now: Unix seconds. */
function isGenuine(?string $header, string $rawBody, string $secret, ?int $now = null): bool
{
    $hmacKey = trim($secret);
    if ($hmacKey === '') { // anybody could sign with it
        return false;
    }
    if (!preg_match('/\At=([0-9]{1,12}),v1=([0-9a-f]{64})\z/', $header ?? '', $match)) {
        return false;
    }
    [, $t, $v1] = $match;
    if (abs(($now ?? time()) - (int) $t) > TOLERANCE_SECONDS) {
        return false;
    }
    return hash_equals(hash_hmac('sha256', $t . '.' . $rawBody, $hmacKey), $v1);
}

// php verify.php SECRET HEADER [NOW] < body
if (PHP_SAPI === 'cli' && realpath($argv[0]) === __FILE__) {
    $now = isset($argv[3]) ? (int) $argv[3] : null;
    echo isGenuine($argv[2], stream_get_contents(STDIN), $argv[1], $now) ? "genuine\n" : "not genuine\n";
}
