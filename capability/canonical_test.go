package capability

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// slowDigest is [Call.Digest] as it is defined: decode, refuse what is
// ambiguous, encode, hash.
func slowDigest(c Call) (string, error) {
	var args []byte
	if len(c.Arguments) > 0 {
		v, err := decodeUnique(c.Arguments)
		if err != nil {
			return "", fmt.Errorf("digest of call to %s: arguments: %w", c.Target, err)
		}
		if args, err = json.Marshal(v); err != nil {
			return "", fmt.Errorf("digest of call to %s: arguments: %w", c.Target, err)
		}
	}
	h := sha256.New()
	for _, field := range []string{
		"ken.call.v1", string(c.Target), c.Action, string(args),
		c.Principal.Tenant, c.Principal.ID, c.Session, c.Intent, c.Mode, c.CapabilityHash,
	} {
		fmt.Fprintf(h, "%d:%s", len(field), field)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// canonicalCases are texts of every kind, and the same with mistakes.
func canonicalCases() []string {
	return []string{
		`{}`, `[]`, `null`, `true`, `false`, `""`, `0`, `-0`, `1.50`, `-1e+9`, `12E-3`, ` { } `, "\t[\r\n]\n",
		`{"b":1,"a":2}`, `{"a":1,"b":2,"aa":3}`, `{"z":{"y":[1,{"x":null,"w":[]}]},"a":[true,false]}`,
		`{"text":"a\nb\t\"c\"\\d\r"}`, `{"html":"<a href=x&y>"}`, `{"<k>":1,"&":2}`, `{"é":"ü","日本":"語"}`,
		`{"s":"\u0041\/\b\f"}`, `{"\u0061":1}`, `{"a\n":1}`, "{\"s\":\"\u2028\u2029\"}", "{\"s\":\"\ufffd\"}", "{\"s\":\"\xff\"}", "{\"s\":\"\x7f\"}",
		`{"b":1,"a":{"d":1,"c":2},"B":3,"":4}`, `[1,2,{"a":1},[[]]]`, strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth),
		`{"n":123456789012345678901234567890.5e400}`,

		``, ` `, `{`, `}`, `[1,]`, `{"a":1,}`, `{"a"}`, `{"a" 1}`, `{a:1}`, `{"a":1}{}`, `{"a":1} x`, `01`, `1.`, `.5`, `+1`, `1e`, `-`, `tru`, `nulll`,
		`{"a":1,"a":2}`, `{"b":1,"a":2,"b":3}`, `{"x":{"a":1,"a":1}}`, `{"a":1,"\u0061":2}`, `"a`, `"a\`, `"\x"`, "\"\x01\"", "\x00", `[1 2]`, `{"a":1 "b":2}`,
		strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2), "\ufeff{}", `{"a":NaN}`, `'a'`,
	}
}

// sameDigest holds the two ways against each other: the same digest, or the
// same words.
func sameDigest(t *testing.T, c Call) {
	t.Helper()
	got, gotErr := c.Digest()
	want, wantErr := slowDigest(c)
	if got != want || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
		t.Errorf("Digest of arguments %q = %q, %v, want %q, %v", c.Arguments, got, gotErr, want, wantErr)
	}
}

func TestDigestIsWhatItIsDefinedAs(t *testing.T) {
	for _, args := range canonicalCases() {
		sameDigest(t, Call{Target: "tool:x", Arguments: json.RawMessage(args), Principal: Principal{ID: "ada"}, Session: "s"})
	}
	long := Call{Target: ID(strings.Repeat("t", 2000)), Arguments: json.RawMessage(`{"text":"` + strings.Repeat("long ", 1000) + `","a":1}`), Mode: "code"}
	sameDigest(t, long)
	before := bytes.Clone(long.Arguments)
	if _, err := long.Digest(); err != nil || !bytes.Equal(before, long.Arguments) {
		t.Errorf("Digest() error %v; arguments changed: %t", err, !bytes.Equal(before, long.Arguments))
	}
}

// TestDigestKnown pins digests that consent may be bound to on disk.
func TestDigestKnown(t *testing.T) {
	for args, want := range map[string]string{
		`{"b": [1, 2.0, "x<y"], "a": null}`: "d30f3576e858713715e38e48469ad6856fd66789513ea6c0306afb0dcc2bd741",
		``:                                  "4cd0498d94efa7d89cf16921ab1da505de4cf76d2c191845a728a0e6e5f33331",
	} {
		c := Call{
			Target: "tool:x", Action: "get", Arguments: json.RawMessage(args), Principal: Principal{Tenant: "t", ID: "ada"},
			Session: "s", Intent: "READ_FILE", Mode: "code", CapabilityHash: "h",
		}
		sameDigest(t, c)
		if got, err := c.Digest(); err != nil || got != want {
			t.Errorf("Digest of arguments %q = %q, %v, want %q", args, got, err, want)
		}
	}
}

func FuzzDigest(f *testing.F) {
	for _, args := range canonicalCases() {
		f.Add([]byte(args))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		sameDigest(t, Call{Target: "tool:x", Arguments: args})
	})
}

func BenchmarkDigest(b *testing.B) {
	c := Call{
		Target: "tool:x", Action: "get", Arguments: json.RawMessage(`{"text":"hello, how are you","n":3}`),
		Principal: Principal{ID: "ada"}, Session: "s", CapabilityHash: strings.Repeat("0", 64),
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Digest(); err != nil {
			b.Fatal(err)
		}
	}
}
