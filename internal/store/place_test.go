package store

import (
	"errors"
	"strings"
	"testing"
)

func TestPlace(t *testing.T) {
	for _, test := range []struct{ address, dir, want string }{
		{"", "/state", "/state/ken.db"},
		{"x.db", "/state", "/state/x.db"},
		{"sub/x.db", "/state", "/state/sub/x.db"},
		{"/data/a b?.db", "", "/data/a b?.db"},
		{"sqlite:x.db", "/state", "/state/x.db"},
		{"sqlite:/data/x.db", "", "/data/x.db"},
		{"sqlite:///data/x.db", "", "/data/x.db"},
		{"sqlite:///data/a%20b%3F.db", "", "/data/a b?.db"},
		{"SQLite:x.db", "/state", "/state/x.db"},
		{"postgres://ada:secret@db.example:5433/ken", "", "postgres://db.example:5433/ken"},
		{"postgresql://ada@/ken?host=/run/pg", "", "postgres:///ken?host=/run/pg"},
	} {
		p, err := parsePlace(test.address, test.dir)
		if err != nil || p.shown != test.want || (p.postgres == nil) != (p.file != "") {
			t.Errorf("parsePlace(%q, %q) = %q, %v; want %q", test.address, test.dir, p.shown, err, test.want)
		}
	}
	for _, test := range []struct{ address, dir, want string }{
		{"", "", "write a whole path"},
		{"x.db", "state", "write a whole path"},
		{"sqlite:", "/state", "names no file"},
		{"sqlite:///data/", "/state", "names no file"},
		{"sqlite:a.db?mode=ro", "/state", "no settings"},
		{"sqlite:a%zz.db", "/state", "%25"},
		{"a\x00b", "/state", "plain path"},
		{":memory:", "/state", "name a file"},
		{"~/ken.db", "/state", "the whole path"},
		{"mysql://ada:secret@host/ken", "/state", "postgres://"},
		{"host=x password=secret", "/state", "not a URL"},
		{"postgres://ada:sec%ret@host/ken", "/state", "%XX"},
		{"postgres://ada:secret@host:port/ken", "/state", "postgres://USER"},
		{"postgres://ada:secret@host/ken?sslmode=secret", "/state", "postgres://USER"},
	} {
		_, err := parsePlace(test.address, test.dir)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("parsePlace(%q, %q) = %v, want a refusal with %q", test.address, test.dir, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("parsePlace(%q): the password is in %v", test.address, err)
		}
	}
}

func TestScrub(t *testing.T) {
	p := place{secrets: []string{"", "hunter2"}}
	err := p.scrub(cause(ErrUnavailable, errors.New("dial hunter2"), "look"))
	if !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "hunter2") || strings.Count(err.Error(), ErrUnavailable.Error()) != 1 {
		t.Errorf("scrub = %v", err)
	}
}

func FuzzKey(f *testing.F) {
	f.Add("a", "b", "c")
	f.Add("a/b", "", "ü")
	f.Add("%2F", " ~", "\x00\x7f")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		key := Key(a, b)
		switch err := checkKey(key); {
		case a == "" || b == "" || len(key) > MaxKey:
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("checkKey(%q) = %v, want a refusal", key, err)
			}
		case err != nil:
			t.Errorf("checkKey(%q) = %v", key, err)
		case behind(key) <= key || past(key) <= key:
			t.Errorf("%q is not before what is behind it", key)
		}
		if other := Key(a, c); (other == key) != (b == c) {
			t.Errorf("Key(%q, %q) = %q, Key(%[1]q, %[4]q) = %q", a, b, key, c, other)
		}
		if longer := Key(a, b, c); c != "" && (longer < behind(key) || longer > past(key)) {
			t.Errorf("%q is not between what is behind and past %q", longer, key)
		}
	})
}
