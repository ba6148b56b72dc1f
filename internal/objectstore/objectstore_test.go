package objectstore

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/testkit"
	"ken/internal/testkit/objectstoretest"
)

func secrets(id, secret string) func(string) (string, error) {
	return func(name string) (string, error) {
		return map[string]string{IDName: id, SecretName: secret}[name], nil
	}
}

// TestSign has the example that the service's documentation computes: reading ten bytes of
// test.txt.
func TestSign(t *testing.T) {
	req := testkit.Must(http.NewRequest(http.MethodGet, "https://examplebucket.s3.amazonaws.com/test.txt", nil))(t)
	req.Header.Set("Range", "bytes=0-9")
	sign(req, time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC), "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1", emptySum)
	const want = "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
	if got := req.Header.Get("Authorization"); !strings.HasSuffix(got, want) {
		t.Errorf("Authorization = %s, want %s", got, want)
	}
}

// TestBucket puts, reads, lists and deletes with a service that checks signatures.
func TestBucket(t *testing.T) {
	server := objectstoretest.New(t)
	b := testkit.Must(Open(Config{Address: server.Address, Secret: secrets(objectstoretest.ID, objectstoretest.Secret)}))(t)
	ctx := t.Context()
	for _, key := range []string{"a/one", "a/two words & ü+%", "b/empty"} {
		text := key
		if key == "b/empty" {
			text = ""
		}
		if err := b.Put(ctx, key, strings.NewReader(text), int64(len(text))); err != nil {
			t.Fatalf("Put(%s) = %v", key, err)
		}
		body, err := b.Get(ctx, key)
		if err != nil {
			t.Fatalf("Get(%s) = %v", key, err)
		}
		got, err := io.ReadAll(body)
		body.Close()
		if string(got) != text || err != nil {
			t.Errorf("Get(%s) = %q, %v", key, got, err)
		}
	}
	list, now, err := b.List(ctx, "a/", "")
	if err != nil || len(list) != 2 || list[0].Key != "a/one" || list[0].Size != 5 || now.IsZero() {
		t.Errorf("List = %v, %v, %v", list, now, err)
	}
	if list, _, err := b.List(ctx, "a/", "a/one"); err != nil || len(list) != 1 {
		t.Errorf("List after the first = %v, %v", list, err)
	}
	for range 2 {
		if err := b.Delete(ctx, "a/one"); err != nil {
			t.Errorf("Delete = %v", err)
		}
	}
	if _, err := b.Get(ctx, "a/one"); capability.KindOf(err) != capability.NotFound {
		t.Errorf("Get of what was deleted = %v, want not found", err)
	}
	server.Fail("SlowDown", 2)
	if err := b.Delete(ctx, "b/empty"); err != nil {
		t.Errorf("after two refusals that pass: %v", err)
	}
}

// TestErrors: each fault says what to do, and no error has the secret.
func TestErrors(t *testing.T) {
	server := objectstoretest.New(t)
	good := secrets(objectstoretest.ID, objectstoretest.Secret)
	for name, tt := range map[string]struct {
		address string
		secret  func(string) (string, error)
		fault   string
		want    string
	}{
		"wrong secret":   {server.Address, secrets(objectstoretest.ID, "hunter2hunter2"), "", "check AWS_ACCESS_KEY_ID"},
		"wrong region":   {strings.Replace(server.Address, "eu-test-1", "us-east-1", 1), good, "", "check AWS_ACCESS_KEY_ID"},
		"no keys":        {server.Address, secrets("", ""), "", "ken secret set AWS_ACCESS_KEY_ID"},
		"keys unknown":   {server.Address, func(string) (string, error) { return "", errors.New("no such secret") }, "", "no such secret"},
		"another bucket": {strings.Replace(server.Address, "results", "others", 1), good, "", "make the bucket others"},
		"not allowed":    {server.Address, good, "AccessDenied", "let the keys of AWS_ACCESS_KEY_ID get, put"},
		"wrong clock":    {server.Address, good, "RequestTimeTooSkewed", "set the clock"},
		"overloaded":     {server.Address, good, "SlowDown", "SlowDown"},
		"away":           {"s3://results?endpoint=http://127.0.0.1:1", good, "", "see that 127.0.0.1:1 can be reached"},
	} {
		b, err := Open(Config{Address: tt.address, Secret: tt.secret})
		if err != nil {
			t.Fatal(err)
		}
		if tt.fault != "" {
			server.Fail(tt.fault, tries)
		}
		err = b.Put(t.Context(), "k", strings.NewReader("x"), 1)
		server.Fail("", 0)
		if capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: Put = %v, want %q", name, err, tt.want)
		}
	}
	for _, bad := range []string{"", "results", "s3://", "https://results", "s3://u:p@results", "s3://results?zone=a", "s3://results?endpoint=ftp://x", "s3://results?endpoint=https://x/y"} {
		if _, err := Open(Config{Address: bad}); capability.KindOf(err) != capability.Invalid {
			t.Errorf("Open(%q) = %v, want invalid", bad, err)
		}
	}
}
