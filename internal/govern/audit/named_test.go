package audit

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ken/internal/testkit"
)

const (
	pemLine = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
	pemKey  = "-----BEGIN PRIVATE KEY-----\n" + pemLine + "\n-----END PRIVATE KEY-----\n"
	account = "{\n  \"type\": \"service_account\",\n  \"private_key_id\": \"0123456789abcdef0123\"\n}"
)

func holding(secrets map[string]string) *Redactor {
	r := &Redactor{}
	r.HoldNamed(maps.All(secrets))
	return r
}

// TestNamed: which texts give a secret away, and which only look like it.
func TestNamed(t *testing.T) {
	const long, word = "deploy-4711-token-long", "harbour42"
	r := holding(map[string]string{
		"LONG": long, "WORD": word, "PIN": "1234567", "KEY": pemKey, "ACCOUNT": account, "SAME": long, "PADDED": " padded-value-0815-x\n",
	})
	r.Hold("a value without a name, however long")
	for text, want := range map[string]string{
		"": "", "a": "", "nothing here": "",
		long: "LONG SAME", "x" + long + "x": "LONG SAME", "a " + long + " and " + word: "LONG SAME WORD",
		word: "WORD", "(" + word + ")": "WORD", "my" + word: "", word + "s": "", word + "_1": "",
		"1234567": "", "call 1234567 now": "",
		long[:len(long)-1]: "", strings.ToUpper(long): "",
		base64.StdEncoding.EncodeToString([]byte(long)):                "LONG SAME",
		base64.URLEncoding.EncodeToString([]byte("user:" + long)):      "LONG SAME",
		base64.StdEncoding.EncodeToString([]byte("a" + long + "tail")): "LONG SAME",
		hex.EncodeToString([]byte(long)):                               "LONG SAME",
		strings.ToUpper(hex.EncodeToString([]byte(word))):              "WORD",
		"?t=" + url.QueryEscape(pemKey):                                "KEY",
		"-----BEGIN PRIVATE KEY-----":                                  "", // the same in every key
		pemLine:                                                        "KEY",
		`"type": "service_account",`:                                   "", // the same in every account
		account:                                                        "ACCOUNT",
		"padded-value-0815-x":                                          "PADDED",
		"deploy%2d4711%2dtoken%2dlong":                                 "LONG SAME",
		"deploy%252d4711%252dtoken%252dlong":                           "LONG SAME",
		`{"a":"{\"b\":\"harbour\\u0034\\u0032\"}"}`:                    "WORD",
		"a value without a name, however long":                         "",
	} {
		if got := strings.Join(r.Named(text), " "); got != want {
			t.Errorf("Named(%q) = %q, want %q", text, got, want)
		}
	}
	r.HoldNamed(maps.All(map[string]string{"LATER": word}))
	if diff := cmp.Diff([]string{"LATER", "WORD"}, r.Named(word)); diff != "" {
		t.Errorf("names of a value that was held before (-want +got):\n%s", diff)
	}
	if got := (*Redactor)(nil).Named(long); got != nil {
		t.Errorf("a nil Redactor names %q", got)
	}
}

// TestStreamIsHeld: whatever the pieces are, what comes out of a Stream is what
// Held makes of the whole.
func TestStreamIsHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// No two values overlap: of two that do, a Stream may show the end of the
		// second.
		value := rapid.StringMatching(`a[bc]{1,11}`)
		r := &Redactor{}
		r.Hold(rapid.SliceOfN(value, 0, 3).Draw(t, "values")...)
		pieces := rapid.SliceOf(rapid.OneOf(value, rapid.StringMatching(`[abc ]{0,4}`))).Draw(t, "pieces")
		var out strings.Builder
		s := r.Stream(&out)
		for _, p := range pieces {
			if n, err := s.Write([]byte(p)); n != len(p) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		testkit.OK(t, s.Close())
		whole := strings.Join(pieces, "")
		if len(whole) < 2 {
			return // Held leaves it
		}
		if got, want := squeeze(out.String()), squeeze(r.Held(whole)); got != want {
			t.Fatalf("%q came out as %q, want %q", whole, got, want)
		}
	})
}

// squeeze makes marks that touch one: pieces may make two of what is one.
func squeeze(s string) string {
	for strings.Contains(s, redacted+redacted) {
		s = strings.ReplaceAll(s, redacted+redacted, redacted)
	}
	return s
}

// TestStream: what comes at once, what waits, and what is taken out.
func TestStream(t *testing.T) {
	r := holding(map[string]string{"LONG": "deploy-4711-token-long"})
	var out strings.Builder
	s := r.Stream(&out)
	for _, step := range []struct{ in, out string }{
		{"plain text\n", "plain text\n"}, {"Password: ", "Password: "}, {"dep", ""}, {"th\n", "depth\n"},
		{"it is deploy-47", "it is "}, {"11-token-long!", redacted + "!"}, {"deploy", ""},
	} {
		out.Reset()
		testkit.Must(s.Write([]byte(step.in)))(t)
		if out.String() != step.out {
			t.Errorf("after %q: %q, want %q", step.in, out.String(), step.out)
		}
	}
	out.Reset()
	if err := s.Close(); err != nil || out.String() != "deploy" {
		t.Errorf("Close = %v, wrote %q, want the rest", err, out.String())
	}
}

// BenchmarkNamed: what it costs a call to have its arguments looked at, with a
// hundred secrets.
func BenchmarkNamed(b *testing.B) {
	r := &Redactor{}
	r.HoldNamed(func(yield func(name, value string) bool) {
		for i := range 100 {
			if !yield(fmt.Sprintf("SECRET_%d", i), fmt.Sprintf("%02d-value-of-a-secret-%08x", i, i*2654435761)) {
				return
			}
		}
	})
	text := `{"path":"docs/running.md","content":"` + strings.Repeat("Ken runs a call in a sandbox, with limits. ", 23) + `"}`
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if r.Named(text) != nil {
			b.Fatal("found what is not there")
		}
	}
}
