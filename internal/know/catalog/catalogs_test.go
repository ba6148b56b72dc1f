package catalog

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"ken/capability"
	"ken/internal/know/source/mcptools"
)

// TestCatalogs holds what the catalogs of testdata/catalogs.txtar list against
// what is wanted. KEN_UPDATE_GOLDEN=1 writes that anew.
func TestCatalogs(t *testing.T) {
	const path = "testdata/catalogs.txtar"
	a, err := txtar.ParseFile(path)
	must(t, err)
	for i := 0; i+1 < len(a.Files); i += 2 {
		t.Run(a.Files[i].Name, func(t *testing.T) {
			got := listed(loaded(t, described(t, string(a.Files[i].Data))).Snapshot())
			want := string(a.Files[i+1].Data)
			a.Files[i+1].Data = []byte(got)
			if diff := cmp.Diff(want, got); diff != "" && os.Getenv("KEN_UPDATE_GOLDEN") == "" {
				t.Errorf("the catalog lists (-want +got):\n%s", diff)
			}
		})
	}
	if os.Getenv("KEN_UPDATE_GOLDEN") != "" {
		must(t, os.WriteFile(path, txtar.Format(a), 0o644))
	}
}

// described makes a catalog of a text, which testdata/catalogs.txtar explains.
func described(t *testing.T, text string) Config {
	cfg := Config{Pins: map[capability.ID]string{}, Overrides: map[capability.ID]string{}}
	var last *fixed
	trust := capability.TrustUser
	for line := range strings.Lines(text) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		words := strings.Fields(rest)
		switch verb {
		case "source":
			trust = capability.TrustUser
			if len(words) > 1 {
				must(t, trust.UnmarshalText([]byte(words[1])))
			}
			last = from(words[0])
			cfg.Sources = append(cfg.Sources, last)
		case "fallback":
			last = from("starter")
			cfg.Fallback = last
		case "format":
			for _, c := range last.batch.Capabilities {
				c.Origin.Format = mcptools.Format
			}
		case "pin", "override":
			at := strings.Index(rest, " sha256:")
			map[string]map[capability.ID]string{"pin": cfg.Pins, "override": cfg.Overrides}[verb][capability.ID(rest[:at])] = rest[at+1:]
		case "own":
			for _, id := range words {
				cfg.Own = append(cfg.Own, capability.ID(id))
			}
		case "runs":
			cfg.Machine.Unrun = func(c *capability.Capability) string {
				if c.RunBy() == rest {
					return ""
				}
				return "nothing can run it in this version"
			}
		case "has":
			cfg.Machine.Platform = words[0]
			cfg.Machine.HasSecret = func(s string) bool { return slices.Contains(words, s) }
			cfg.Machine.HasBin = cfg.Machine.HasSecret
		case "bodies":
			cfg.WorkspaceBodies = true
		case "preset":
			last.batch.Presets = append(last.batch.Presets, capability.Preset{Name: words[0], Members: words[1:], Origin: capability.Origin{Path: "presets.yaml", Line: 2}})
		case "mention":
			cfg.Mentions = append(cfg.Mentions, Mention{ID: capability.ID(words[0]), By: words[1], Origin: words[2]})
		default:
			c := &capability.Capability{Kind: capability.KindTool, Category: "general", Trust: trust}
			if err := json.Unmarshal([]byte(line), c); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if c.ID == "" {
				c.ID = capability.MakeID(c.Kind, c.Name)
			}
			if c.Hash == "" {
				c.Hash = "sha256:" + c.Name
			}
			c.Origin = capability.Origin{Source: last.name, Path: last.name + ".yaml", Line: len(last.batch.Capabilities) + 1}
			last.batch.Capabilities = append(last.batch.Capabilities, c)
		}
	}
	return cfg
}

// listed is what a snapshot lists, as text.
func listed(s *Snapshot) string {
	var b strings.Builder
	for _, e := range s.Listing().Capabilities {
		fmt.Fprintf(&b, "%s of %s: %s", e.ID, e.Origin, e.State)
		for _, part := range []struct{ name, text string }{
			{"reasons", e.Reasons.String()}, {"missing", e.Missing.String()}, {"withheld", e.Withheld}, {"requires", strings.Trim(fmt.Sprint(e.Requires), "[]")},
		} {
			if part.text != "" {
				fmt.Fprintf(&b, "\n  %s: %s", part.name, part.text)
			}
		}
		if e.Available != (len(e.Missing) == 0) || !strings.Contains(e.Verdict(), e.Missing.String()) {
			fmt.Fprintf(&b, "\n  available %v, %s", e.Available, e.Verdict())
		}
		b.WriteByte('\n')
	}
	for _, p := range s.Problems() {
		fmt.Fprintf(&b, "%s %s\n", p.Code, p)
	}
	return b.String()
}
