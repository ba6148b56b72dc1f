package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/door"
	know "ken/internal/know/catalog"
)

func TestExamine(t *testing.T) {
	good := t.TempDir()
	if err := os.Chmod(good, 0o700); err != nil {
		t.Fatal(err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	entry := func(state string, missing ...string) *door.Entry {
		e := &door.Entry{Capability: &capability.Capability{ID: "tool:x"}, Available: len(missing) == 0}
		for _, text := range missing {
			e.Missing = append(e.Missing, know.Reason{Kind: know.Declared, Text: text})
		}
		e.State = "active"
		if state == "quarantined" {
			e.State = "quarantined"
		}
		return e
	}
	healthy := func() Facts {
		return Facts{
			Home: good, Places: []Place{{Name: good}},
			Listing: door.Listing{Capabilities: []*door.Entry{entry("active")}, Stats: door.Stats{Capabilities: 1}},
			Running: Running{Isolation: Isolation{Profile: "full", Attempts: 15}, Profile: "personal", Store: "ken.db"},
		}
	}
	tests := []struct {
		name   string
		change func(*Facts)
		check  string
		grade  Grade
		says   string
	}{
		{"healthy", func(*Facts) {}, "home", Good, good},
		{"bad config", func(f *Facts) { f.ConfigErr = errors.New("ken.yaml:3: unknown key") }, "configuration", Bad, "ken.yaml:3"},
		{"no home", func(f *Facts) { f.Home = filepath.Join(good, "none") }, "home", Warn, "does not exist"},
		{"home is a file", func(f *Facts) { f.Home = file }, "home", Bad, "not a directory"},
		{"home open to all", func(f *Facts) { f.Home = open }, "home", Bad, "written by others"},
		{"no model", func(*Facts) {}, "model", Good, "no model is chosen"},
		{"a model", func(f *Facts) { f.Model = "ollama/x" }, "model", Good, "ollama/x"},
		{"no key", func(f *Facts) { f.Model, f.ModelErr = "a/b", errors.New("no key") }, "model", Warn, "no key"},
		{"no service", func(f *Facts) { f.MeaningErr = errors.New("nobody answers") }, "meaning", Warn, "nobody answers"},
		{"no cache", func(f *Facts) { f.CacheErr = errors.New("cache: no room") }, "cache", Warn, "no room"},
		{"no places", func(f *Facts) { f.Places = []Place{{Name: filepath.Join(good, "none")}} }, "places", Warn, "no place where Ken looks for capabilities exists: " + filepath.Join(good, "none")},
		{"empty", func(f *Facts) { f.Listing = door.Listing{} }, "catalog", Warn, "no capabilities"},
		{"errors", func(f *Facts) {
			f.Listing.Problems = []capability.Problem{{Message: "kind is missing", Origin: capability.Origin{Path: "x.yaml", Line: 2}}}
		}, "catalog", Bad, "x.yaml:2: kind is missing"},
		{"held", func(*Facts) {}, "isolation", Good, "the sandbox profile full; 15 attempts to escape failed"},
		{"held less", func(f *Facts) {
			f.Running.Isolation.Profile = "landlock"
			f.Running.Isolation.Missing = []string{"netns: no"}
		}, "isolation", Warn, "netns: no"},
		{"not held", func(f *Facts) { f.Running.Isolation.Profile = "none" }, "isolation", Warn, "limits alone apply"},
		{"escaped", func(f *Facts) { f.Running.Isolation.Escaped = []string{"shadow"} }, "isolation", Bad, "shadow"},
		{"refuses", func(f *Facts) { f.Running.Isolation.Refuses = "sandbox.require wants more" }, "isolation", Bad, "sandbox.require"},
		{"no state", func(f *Facts) { f.Running.StoreErr = errors.New("the disk is full") }, "state", Bad, "the disk is full"},
		{"no secrets", func(f *Facts) { f.Running.SecretErr = errors.New("the key is gone") }, "secrets", Bad, "the key is gone"},
		{"waiting", func(f *Facts) { f.Running.Waiting = 2 }, "approvals", Warn, "2 calls"},
		{"unreviewed", func(f *Facts) { f.Running.New = []string{"tools.git", "tools.jq"} }, "extensions", Warn, "tools.git, tools.jq"},
		{"a database", func(f *Facts) { f.Databases = []Database{{Name: "shop", Engine: "sqlite"}} }, "databases.shop", Good, "sqlite, opened for reading"},
		{"no database", func(f *Facts) { f.Databases = []Database{{Name: "shop", Err: errors.New("the file is not there")}} }, "databases.shop", Bad, "not there"},
		{"a database user with rights", func(f *Facts) {
			f.Databases = []Database{{Name: "crm", Engine: "postgres", Rights: []string{"The user may change 2 tables."}}}
		}, "databases.crm", Warn, "may change 2 tables. Only the READ ONLY transaction"},
		{"rights that are wanted", func(f *Facts) {
			f.Databases = []Database{{Name: "crm", Engine: "postgres", Write: true, Rights: []string{"The user may change 2 tables."}}}
		}, "databases.crm", Good, "postgres"},
		{"quarantined", func(f *Facts) { f.Listing.Capabilities = []*door.Entry{entry("quarantined")} }, "quarantine", Warn, "tool:x"},
		{"missing", func(f *Facts) {
			f.Listing.Capabilities = []*door.Entry{entry("active", "no gh"), entry("active", "no gh", "no key"), entry("active", "a"), entry("active", "b")}
		}, "missing", Good, "2 capabilities: no gh"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			facts := healthy()
			tt.change(&facts)
			for _, c := range Examine(facts) {
				if c.Name != tt.check {
					continue
				}
				if c.Grade != tt.grade || !strings.Contains(c.Message, tt.says) {
					t.Errorf("%s = %s %q, want %s with %q", c.Name, c.Grade, c.Message, tt.grade, tt.says)
				}
				if c.Grade != Good && c.Fix == "" {
					t.Errorf("%s is %s without a fix", c.Name, c.Grade)
				}
				return
			}
			t.Errorf("there is no check %q", tt.check)
		})
	}
	for _, c := range Examine(healthy()) {
		if c.Name == "model" && (!c.Note || c.Fix == "") {
			t.Errorf("without a model the check is %+v, want a note with a fix", c)
		}
	}
	if got := Worst(Examine(healthy())); got != Good {
		t.Errorf("Worst of a healthy installation = %s", got)
	}
}
