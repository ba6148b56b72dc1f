package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ken/internal/govern/policy"
	"ken/internal/testkit"
	"ken/internal/yamledit"
)

// TestT16Layers reads testdata/layers.txt: what is wrong with a section is told, and
// each value of a project that would allow more than the user has is refused, with
// the place where it belongs.
func TestT16Layers(t *testing.T) {
	testkit.CI(t, "reads 500 configurations")
	n := 0
	for row := range strings.Lines(read(t, "testdata/layers.txt")) {
		if row = strings.TrimSuffix(row, "\n"); row == "" || row[0] == '#' {
			continue
		}
		part := strings.Split(row, " | ")
		user, project, want := part[0], part[1], part[2]
		n++
		places, home, _ := at(t)
		own := filepath.Join(places.Home, "ken.yaml")
		write(t, own, user+"\n")
		write(t, filepath.Join(places.Project, "ken.yaml"), "\n"+project+"\n")
		if err := os.Symlink(home, filepath.Join(places.Project, "out")); err != nil {
			t.Fatal(err)
		}
		alone, ownErr := Load(places, own)
		c, err := Load(places, "")
		if err != nil && strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v tells a password", row, err)
		}
		key, value, is := strings.Cut(strings.TrimPrefix(want, "= "), " ")
		switch is = is && strings.HasPrefix(want, "= "); {
		case want == "" || is:
			if err != nil || !reflect.DeepEqual(narrowest(t, c, alone), c) {
				t.Errorf("%s: Load = %+v, %v, want it no wider than without", row, c, err)
			} else if _, err := policy.Compile(c.Policy); err != nil {
				t.Errorf("%s: Compile = %v", row, err)
			}
			if got, _, _ := c.Explain(key); is && got != value {
				t.Errorf("%s: %s is %s", row, key, got)
			}
		case project == "":
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: Load = %v", row, err)
			}
		default:
			var refused *Error
			if ownErr != nil || !errors.As(err, &refused) || len(refused.Problems) != 1 {
				t.Errorf("%s: Load = %v, %v, want one problem of the project's", row, err, ownErr)
				continue
			}
			p, fix := refused.Problems[0], "put it into "+own
			if strings.Contains(p.Fix, "put the source into") {
				fix = "put the source into " + own
			}
			if p.Code == "duplicate-name" {
				fix = "another"
			}
			if !strings.Contains(p.Message, want) || !strings.Contains(p.Fix, fix) || p.Origin.Line != 2 {
				t.Errorf("%s: %+v, want %q on line 2 and %q", row, p, want, fix)
			}
		}
	}
	if n < 200 {
		t.Errorf("%d rows were read", n)
	}
}

// narrowest fails where a is wider than b in any key, and gives a.
func narrowest(t testing.TB, a, b Config) Config {
	t.Helper()
	for _, s := range settings() {
		if !s.noWider(&a, &b) {
			t.Errorf("%s is %s, wider than %s", s.name, yamledit.Flow(s.show(&a)), yamledit.Flow(s.show(&b)))
		}
	}
	return a
}
