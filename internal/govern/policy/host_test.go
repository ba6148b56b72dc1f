package policy

import "testing"

// TestHostPatterns: a rule that allows matches a pattern narrowly, one that
// denies widely.
func TestHostPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, host  string
		allows, denies bool
	}{
		{"*.wild.test", "a.wild.test", true, true},
		{"*.wild.test", "b.a.wild.test", false, true},
		{"*.wild.test", "wild.test", false, false},
		{"10.0.0.0/8", "10.1.2.3", true, true},
		{"10.0.0.0/8", "[::ffff:10.1.2.3]", true, true},
		{"10.0.0.0/8", "64:ff9b::a01:203", false, true},
		{"10.0.0.0/8", "167838211", false, true},
		{"10.1.2.3", "0xa010203", false, true},
		{"10.1.2.3", "10.1.2.3", true, true},
		{"*", "anything", true, true},
	} {
		p, err := parseHost(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if allows, denies := p.match(c.host, true), p.match(c.host, false); allows != c.allows || denies != c.denies {
			t.Errorf("%s about %s: allows %v, denies %v; want %v and %v", c.pattern, c.host, allows, denies, c.allows, c.denies)
		}
	}
}
