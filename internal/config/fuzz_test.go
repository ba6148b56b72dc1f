package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"ken/internal/yamledit"
)

// seeds returns the configuration files of testdata.
func seeds(f *testing.F) [][]byte {
	f.Helper()
	out := [][]byte{Sample(), []byte(keyLine.ReplaceAllString(string(Sample()), "$1$2"))}
	files := []string{"testdata/seed/ken.json"}
	for _, pattern := range []string{"testdata/refused/*", "testdata/set/*", "testdata/every/running*"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			f.Fatalf("Glob(%s) = %q, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if !strings.HasSuffix(name, ".txtar") {
			out = append(out, data)
			continue
		}
		for _, file := range txtar.Parse(data).Files {
			out = append(out, file.Data)
		}
	}
	if testing.Short() { // every fifth, for make test
		i := 0
		out = slices.DeleteFunc(out, func([]byte) bool { i++; return i%5 > 0 })
	}
	return out
}

// mustEnd fails loudly when something does not end: a hang would only look
// like a slow fuzzer.
func mustEnd(what string) (done func()) {
	watchdog := time.AfterFunc(time.Minute, func() { panic(what + " hangs") })
	return func() { watchdog.Stop() }
}

// FuzzConfig: whatever a file holds, reading it ends, without a panic; what is
// refused has a reason, and what is accepted reads back from its Settings as
// the same.
func FuzzConfig(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 8<<10 {
			return
		}
		defer mustEnd(fmt.Sprintf("reading %q", data))()
		read := func(data []byte) (Config, *reading) {
			r := &reading{file: "/f/ken.yaml", dir: "/f", home: "/h"}
			c := Default()
			c.origins = map[string]saying{}
			c.over(r.decode(data), r)
			return c, r
		}
		c, r := read(data)
		if len(r.problems) > 0 {
			lines := 1 + bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) // YAML has both
			for _, p := range r.problems {
				if p.Code == "" || p.Message == "" || p.Origin.Line > lines ||
					!utf8.ValidString(p.String()) || strings.ContainsFunc(p.String(), unseen) {
					t.Fatalf("problem %+v of %q is not fit to be shown", p, data)
				}
			}
			return
		}
		text, section := "", ""
		for _, s := range c.Settings() {
			name, key, inSection := strings.Cut(s.Key, ".")
			if !inSection {
				value := s.Value
				if name == storeKey {
					value = yamledit.Flow(c.Store) // what Settings shows has no password
				}
				text += name + ": " + value + "\n"
				continue
			}
			if name != section {
				section = name
				text += name + ":\n"
			}
			text += "  " + key + ": " + s.Value + "\n"
		}
		again, r := read([]byte(text))
		if len(r.problems) > 0 || !reflect.DeepEqual(bare(again), bare(c)) {
			t.Fatalf("%q reads as %+v; its settings\n%s\nread as %+v, %v", data, bare(c), text, bare(again), r.problems)
		}

		// The same file in a project never widens what the user has.
		p := &reading{file: "/w/.ken/ken.yaml", dir: "/w/.ken", home: "/h", workspace: true, project: "/w", ownFile: "/h/.ken/ken.yaml"}
		user, before := Default(), Default()
		user.origins = map[string]saying{}
		user.narrow(p.decode(data), p)
		for _, s := range settings() {
			if !s.noWider(&user, &before) {
				t.Fatalf("%q in a project makes %s %s", data, s.name, yamledit.Flow(s.show(&user)))
			}
		}
		for name := range user.Discovery.Agents {
			narrowest(t, user.ForAgent(name), before)
		}
	})
}

// FuzzSet: an edit that succeeds says what was asked for and nothing else; no
// edit panics or hangs.
func FuzzSet(f *testing.F) {
	all := settings()
	d := Default()
	agents := slices.IndexFunc(all, func(s setting[Config]) bool { return s.name == agentsKey })
	for i, s := range seeds(f) {
		which := i % len(all)
		f.Add(s, uint8(which), "", yamledit.Flow(all[which].show(&d)))
		f.Add(s, uint8(0), "tool:x", "sha256:00112233445566778899aabbccddeeff")
		f.Add(s, uint8(4), "", "[a, 'b #c']")
		f.Add(s, uint8(agents), "", "{helper: {profile: lean, exclude: [a]}}")
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8, pin, value string) {
		if len(data) > 8<<10 || len(value) > 1<<10 || len(pin) > 1<<10 {
			return
		}
		key := all[int(which)%len(all)].name
		if pin != "" {
			key = pinPrefix + pin
		}
		defer mustEnd(fmt.Sprintf("Set(%q, %q, %q)", data, key, value))()
		for _, file := range []string{"ken.yaml", "ken.json"} {
			out, err := changed(file, data, key, value)
			if err != nil {
				if err.Error() == "" {
					t.Fatalf("changed(%q, %q, %q) fails without a word", data, key, value)
				}
				continue
			}
			path, v, err := asked(key, value)
			if err != nil {
				t.Fatalf("changed took what asked refuses: %v", err)
			}
			before, err := parse(file, data)
			if err != nil {
				t.Fatalf("changed took %q, which does not parse: %v", data, err)
			}
			after, err := parse(file, out)
			if err != nil || !yamledit.Equal(after, yamledit.With(before, path, v)) {
				t.Fatalf("changed(%q, %q, %q) = %q, %v, which says something else", data, key, value, out, err)
			}
			r := reading{file: file}
			if r.decode(out); len(r.problems) > 0 {
				t.Fatalf("changed(%q, %q, %q) = %q, which is refused: %v", data, key, value, out, r.problems)
			}
			again, err := changed(file, out, key, value)
			if err != nil || !bytes.Equal(again, out) {
				t.Fatalf("changed twice: %q, %v, want %q", again, err, out)
			}
		}
	})
}
