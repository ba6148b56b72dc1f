package mcpserver

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/internal/testkit"
)

var sealKey = sealer{key: []byte("0123456789abcdef0123456789abcdef")}

// TestSealReadsBack: what was sealed is read back by whom it is for, until it
// is too old, and by nobody else.
func TestSealReadsBack(t *testing.T) {
	now := time.Unix(1_000_000, 0).UTC()
	rapid.Check(t, func(t *rapid.T) {
		c := claim{
			Who: rapid.String().Draw(t, "who"), Session: rapid.String().Draw(t, "session"), Subject: rapid.String().Draw(t, "subject"),
			Expires: now.Add(time.Minute), Ticket: rapid.String().Draw(t, "ticket"), State: rapid.String().Draw(t, "state"),
			Given: map[string]json.RawMessage{"consent": json.RawMessage(`"T1"`)},
		}
		text := testkit.Must(seal(sealKey, c))(t)
		got, err := unseal(sealKey, text, claim{Who: c.Who, Session: c.Session, Subject: c.Subject}, now)
		if err != nil || got.Ticket != c.Ticket || got.State != c.State || string(got.Given["consent"]) != `"T1"` {
			t.Fatalf("unseal(seal(%+v)) = %+v, %v", c, got, err)
		}
		for name, want := range map[string]claim{
			"who": {Who: c.Who + "x", Session: c.Session, Subject: c.Subject}, "session": {Who: c.Who, Session: c.Session + "x", Subject: c.Subject},
			"subject": {Who: c.Who, Session: c.Session, Subject: c.Subject + "x"},
		} {
			if _, err := unseal(sealKey, text, want, now); err == nil {
				t.Fatalf("another %s reads it", name)
			}
		}
		if _, err := unseal(sealKey, text, claim{Who: c.Who, Session: c.Session, Subject: c.Subject}, c.Expires); err == nil {
			t.Fatal("it is read when it is too old")
		}
		if _, err := unseal(sealer{key: []byte("another key of thirty-two bytes!")}, text, claim{Who: c.Who, Session: c.Session, Subject: c.Subject}, now); err == nil {
			t.Fatal("another key reads it")
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		changed := []byte(text)
		changed[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		if _, err := unseal(sealKey, string(changed), claim{Who: c.Who, Session: c.Session, Subject: c.Subject}, now); err == nil {
			t.Fatalf("changed at %d it is read", at)
		}
	})
}

// FuzzUnseal: no text that was not sealed is taken, and none breaks the reader.
func FuzzUnseal(f *testing.F) {
	now := time.Unix(1_000_000, 0).UTC()
	want := claim{Who: "w", Session: "s", Subject: "u"}
	good := want
	good.Expires = now.Add(time.Hour)
	text := testkit.Must(seal(sealKey, good))(f)
	for _, s := range []string{text, text + "x", text[1:], "", ".", "a.b", "e30.e30", "\x00.\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := unseal(sealKey, s, want, now); err == nil && s != text {
			t.Errorf("unseal(%q) = nil, want an error", s)
		}
	})
}
