package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"ken/capability"
	"ken/internal/govern/policy"
)

// archives runs a test for each archive that matches.
func archives(t *testing.T, pattern string, test func(t *testing.T, a *txtar.Archive)) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("Glob = %q, %v", names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			test(t, a)
		})
	}
}

// TestLoadReadsEveryKey reads testdata/every: what ken.yaml says arrives in the
// fields that packages are made with, which are in the file fields, and is shown as
// in the file shown, with its line and no password. All that is not there is the
// default (S3.26, S3.U01, S3.U04, S4.05, S4.26, S5.24, S5.60, S5.65, C19, C20, C33).
func TestLoadReadsEveryKey(t *testing.T) {
	told := map[string]bool{}
	archives(t, "testdata/every/*.txtar", func(t *testing.T, a *txtar.Archive) {
		places, home, _ := at(t)
		want := map[string]string{}
		for _, f := range a.Files {
			if f.Name == "fields" || f.Name == "shown" {
				want[f.Name] = string(f.Data)
			} else {
				write(t, filepath.Join(places.Home, f.Name), string(f.Data))
			}
		}
		allowedBySchema(t, filepath.Join(places.Home, "ken.yaml"))
		c, err := Load(places, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policy.Compile(c.Policy); err != nil {
			t.Errorf("Compile = %v", err)
		}
		got := map[string]string{"fields": fieldsOf(t, c)}
		for _, s := range c.Settings() {
			if strings.Contains(s.Origin, "ken.yaml:") {
				told[s.Key] = true
				got["shown"] += fmt.Sprintf("%s %s %s\n", strings.ReplaceAll(s.Origin, places.Home+"/", ""), s.Key, s.Value)
			}
		}
		for name, text := range got {
			if text = strings.ReplaceAll(text, home, "HOME"); text != want[name] {
				t.Errorf("%s:\n%s\nwant\n%s", name, text, want[name])
			}
		}
	})
	for _, s := range settings() {
		if !told[s.name] {
			t.Errorf("no file of testdata/every has %s", s.name)
		}
	}
}

// fieldsOf returns what is not the default, a field of a section on each line.
func fieldsOf(t *testing.T, c Config) string {
	t.Helper()
	var b strings.Builder
	of, usual := reflect.ValueOf(c), reflect.ValueOf(Default())
	for i := range of.NumField() {
		section := of.Type().Field(i)
		if !section.IsExported() || reflect.DeepEqual(of.Field(i).Interface(), usual.Field(i).Interface()) {
			continue
		}
		if section.Type.Kind() != reflect.Struct {
			fmt.Fprintf(&b, "%s %s\n", section.Name, asText(t, of.Field(i)))
			continue
		}
		for k := range section.Type.NumField() {
			if x := of.Field(i).Field(k); !reflect.DeepEqual(x.Interface(), usual.Field(i).Field(k).Interface()) {
				fmt.Fprintf(&b, "%s.%s %s\n", section.Name, section.Type.Field(k).Name, asText(t, x))
			}
		}
	}
	return b.String()
}

func asText(t *testing.T, v reflect.Value) string {
	t.Helper()
	text, err := json.Marshal(v.Interface())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestT16ConfigRefused reads testdata/refused: each file is refused whole, and
// everything that is wrong with it is said at once with its line and the fix.
func TestT16ConfigRefused(t *testing.T) {
	archives(t, "testdata/refused/*.txtar", func(t *testing.T, a *txtar.Archive) {
		places, _, _ := at(t)
		want := ""
		for _, f := range a.Files {
			if f.Name == "want" {
				want = strings.TrimSpace(string(f.Data))
			} else {
				write(t, filepath.Join(places.Home, f.Name), string(f.Data))
			}
		}
		got, err := Load(places, "")
		var refused *Error
		if !errors.As(err, &refused) {
			t.Fatalf("Load = %v, want an *Error", err)
		}
		if said := strings.ReplaceAll(err.Error(), places.Home+"/", ""); said != want || !reflect.DeepEqual(got, Config{}) {
			t.Errorf("Load = %+v and said\n%s\nwant nothing, and\n%s", got, said, want)
		}
		for _, p := range refused.Problems {
			if p.Code == "" || p.Severity != capability.Grave || strings.Contains(p.String(), "hunter2") {
				t.Errorf("problem %+v: want a code, an error, and no password", p)
			}
		}
	})
}

// TestConfigDefaults: without a file the defaults hold, and say so. What they are is
// in docs/configuration.md (TestDocumentedKeys).
func TestConfigDefaults(t *testing.T) {
	places, _, _ := at(t)
	c, err := Load(places, "")
	if err != nil || !reflect.DeepEqual(bare(c), bare(Default())) || len(c.Files()) != 0 {
		t.Fatalf("Load without files = %+v, %v, want the defaults", c, err)
	}
	byPolicy := []string{"policy.deployment", "policy.intents", "policy.intentSurfaces", "policy.permissions", "policy.askAbove", "policy.denyAbove"}
	for _, s := range c.Settings() {
		origin := "default"
		if slices.Contains(byPolicy, s.Key) {
			origin = "profile personal"
		}
		if s.Origin != origin || s.Doc == "" {
			t.Errorf("%s = %s (%s, %q), want it by %s", s.Key, s.Value, s.Origin, s.Doc, origin)
		}
	}
	explained(t, c, map[string][2]string{ // docs/configuration.md has them in words
		"serve.stopDelay": {"250ms", "default"},
		"policy.toolAccess": {"{global: {enabled: true, mode: full}, tools: {shell: {enabled: true, mode: allowlist, " +
			"allowedPrefixes: [echo, pwd, ls, date, uname, whoami], timeoutMs: 15000, maxOutputChars: 20000, allowAnyCwd: false}}}", "default"},
	})
}
