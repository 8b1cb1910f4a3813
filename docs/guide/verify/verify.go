// go run verify.go SECRET HEADER [NOW] < body
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const toleranceSeconds = 300

var signature = regexp.MustCompile(`\At=([0-9]{1,12}),v1=([0-9a-f]{64})\z`)

// IsGenuine takes X-Service-Signature, the unchanged bytes of the body, the secret, and Unix seconds.
func IsGenuine(header string, rawBody []byte, secret string, now int64) bool {
	hmacKey := strings.TrimSpace(secret)
	if hmacKey == "" { // anybody could sign with it
		return false
	}
	match := signature.FindStringSubmatch(header)
	if match == nil {
		return false
	}
	t, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil || now-t > toleranceSeconds || t-now > toleranceSeconds {
		return false
	}
	given, err := hex.DecodeString(match[2])
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, []byte(hmacKey))
	mac.Write([]byte(match[1] + "."))
	mac.Write(rawBody)
	return hmac.Equal(mac.Sum(nil), given)
}

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil || len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "go run verify.go SECRET HEADER [NOW] < body")
		os.Exit(2)
	}
	now := time.Now().Unix()
	if len(os.Args) > 3 {
		if now, err = strconv.ParseInt(os.Args[3], 10, 64); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	if IsGenuine(os.Args[2], body, os.Args[1], now) {
		fmt.Println("genuine")
	} else {
		fmt.Println("not genuine")
	}
}
