// Package objectstoretest is an S3-compatible service for tests. It checks the signature
// of every request with code of its own.
package objectstoretest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The keys that a [Server] takes.
const (
	ID     = "AKIDKENTEST"
	Secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

// A Server has one bucket. Its methods are safe for concurrent use.
type Server struct {
	URL     string
	Address string // for objectstore.Open

	mu      sync.Mutex
	objects map[string]object
	fault   string // an error code that is answered
	times   int
	age     time.Duration // by which objects are older than they are
}

type object struct {
	text []byte
	made time.Time
}

const bucket, region = "results", "eu-test-1"

// New starts a server, which ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{objects: map[string]object{}}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.URL = h.URL
	s.Address = "s3://" + bucket + "/ken?region=" + region + "&endpoint=" + h.URL
	return s
}

// Fail answers the next requests with an error code.
func (s *Server) Fail(code string, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.times = code, times
}

// Age makes all objects older.
func (s *Server) Age(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.age += by
}

// Keys returns the keys of all objects, in order.
func (s *Server) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for key := range s.objects {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>told by the test</Message></Error>", code)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "IncompleteBody")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times > 0 {
		s.times--
		refuse(w, map[string]int{"SlowDown": 503, "NoSuchBucket": 404, "AccessDenied": 403, "RequestTimeTooSkewed": 403}[s.fault], s.fault)
		return
	}
	if code := verify(r, body); code != "" {
		refuse(w, http.StatusForbidden, code)
		return
	}
	key, ok := strings.CutPrefix(r.URL.Path, "/"+bucket)
	if !ok {
		refuse(w, http.StatusNotFound, "NoSuchBucket")
		return
	}
	key = strings.TrimPrefix(key, "/")
	switch {
	case key == "" && r.Method == http.MethodGet:
		s.list(w, r)
	case r.Method == http.MethodPut:
		s.objects[key] = object{body, time.Now()}
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		o, ok := s.objects[key]
		if !ok {
			refuse(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		_, _ = w.Write(o.text)
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	type content struct {
		Key          string
		LastModified time.Time
		Size         int
	}
	doc := struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []content
	}{}
	for key, o := range s.objects {
		if strings.HasPrefix(key, r.URL.Query().Get("prefix")) && key > r.URL.Query().Get("start-after") {
			doc.Contents = append(doc.Contents, content{key, o.made.Add(-s.age).UTC(), len(o.text)})
		}
	}
	slices.SortFunc(doc.Contents, func(a, b content) int { return strings.Compare(a.Key, b.Key) })
	_ = xml.NewEncoder(w).Encode(doc) // a client that is gone
}

// verify returns the error code for a request that is not signed as it must be.
func verify(r *http.Request, body []byte) string {
	sum := sha256.Sum256(body)
	if r.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sum[:]) {
		return "XAmzContentSHA256Mismatch"
	}
	stamp := r.Header.Get("X-Amz-Date")
	when, err := time.Parse("20060102T150405Z", stamp)
	if err != nil || time.Since(when).Abs() > 15*time.Minute {
		return "RequestTimeTooSkewed"
	}
	fields := map[string]string{}
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	for part := range strings.SplitSeq(rest, ", ") {
		name, value, _ := strings.Cut(part, "=")
		fields[name] = value
	}
	scope := stamp[:8] + "/" + region + "/s3/aws4_request"
	if !ok || fields["Credential"] != ID+"/"+scope {
		return "InvalidAccessKeyId"
	}
	headers := strings.Split(fields["SignedHeaders"], ";")
	if !slices.IsSorted(headers) || !slices.Contains(headers, "host") || !slices.Contains(headers, "x-amz-date") {
		return "SignatureDoesNotMatch"
	}
	path, options, _ := strings.Cut(r.RequestURI, "?")
	sorted := strings.Split(options, "&")
	slices.Sort(sorted)
	text := r.Method + "\n" + path + "\n" + strings.Join(sorted, "&") + "\n"
	for _, name := range headers {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		text += name + ":" + value + "\n"
	}
	text += "\n" + fields["SignedHeaders"] + "\n" + hex.EncodeToString(sum[:])
	hashed := sha256.Sum256([]byte(text))
	mac := func(key []byte, text string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	key := mac(mac(mac(mac([]byte("AWS4"+Secret), stamp[:8]), region), "s3"), "aws4_request")
	want := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+stamp+"\n"+scope+"\n"+hex.EncodeToString(hashed[:])))
	if !hmac.Equal([]byte(want), []byte(fields["Signature"])) {
		return "SignatureDoesNotMatch"
	}
	return ""
}
