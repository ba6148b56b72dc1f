package objectstore

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// emptySum is the checksum of no bytes.
const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

const (
	scheme    = "AWS4-HMAC-SHA256"
	timeForm  = "20060102T150405Z"
	sumHeader = "X-Amz-Content-Sha256"
)

func hashOf(body io.ReadSeeker) (string, error) {
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.Copy(h, body); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sign adds the headers that prove that a request is from the owner of the keys. It
// covers the method, the address, the checksum of the body and every header so far.
func sign(req *http.Request, now time.Time, id, secret, region, sum string) {
	stamp := now.UTC().Format(timeForm)
	req.Header.Set("X-Amz-Date", stamp)
	req.Header.Set(sumHeader, sum)
	names := []string{"host"}
	values := map[string]string{"host": req.URL.Host}
	for name, v := range req.Header {
		low := strings.ToLower(name)
		names = append(names, low)
		values[low] = strings.Join(strings.Fields(strings.Join(v, ",")), " ")
	}
	slices.Sort(names)
	var canonical strings.Builder
	canonical.WriteString(req.Method + "\n" + escape(req.URL.Path, true) + "\n" + query(req.URL.Query()) + "\n")
	for _, name := range names {
		canonical.WriteString(name + ":" + values[name] + "\n")
	}
	signed := strings.Join(names, ";")
	canonical.WriteString("\n" + signed + "\n" + sum)
	scope := stamp[:8] + "/" + region + "/s3/aws4_request"
	hash := sha256.Sum256([]byte(canonical.String()))
	text := scheme + "\n" + stamp + "\n" + scope + "\n" + hex.EncodeToString(hash[:])
	key := []byte("AWS4" + secret)
	for _, part := range []string{stamp[:8], region, "s3", "aws4_request", text} {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(part))
		key = m.Sum(nil)
	}
	req.Header.Set("Authorization", scheme+" Credential="+id+"/"+scope+", SignedHeaders="+signed+", Signature="+hex.EncodeToString(key))
}

// escape writes all but letters, digits and -._~ as %XX, and a slash too unless it is to
// be kept: both sides must write an address in the same way.
func escape(text string, keepSlash bool) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0, c == '/' && keepSlash:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}

// query writes options in order.
func query(q url.Values) string {
	var parts []string
	for name, values := range q {
		for _, v := range values {
			parts = append(parts, escape(name, false)+"="+escape(v, false))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "&")
}
