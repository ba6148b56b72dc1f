package dirs

import (
	"os"
	"slices"
	"strings"
	"testing"

	"ken/capability"
)

func placesOf(t *testing.T, cwd string, env ...string) Places {
	t.Helper()
	p, err := New(func(name string) string {
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value
			}
		}
		return ""
	}, cwd)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestC11Places: one product directory, moved by KEN_HOME or by XDG.
func TestC11Places(t *testing.T) {
	tests := []struct {
		name              string
		env               []string
		home, state, cach string
	}{
		{"plain", []string{"HOME=/h"}, "/h/.ken", "/h/.ken/state", "/h/.ken/cache"},
		{"KEN_HOME moves all", []string{"HOME=/h", "KEN_HOME=/k", "XDG_STATE_HOME=/s", "XDG_CONFIG_HOME=/c"}, "/k", "/k/state", "/k/cache"},
		{"KEN_HOME alone", []string{"KEN_HOME=/k/"}, "/k", "/k/state", "/k/cache"},
		{"KEN_HOME relative", []string{"HOME=/h", "KEN_HOME=here"}, "/w/here", "/w/here/state", "/w/here/cache"},
		{"KEN_HOME with ~", []string{"HOME=/h", "KEN_HOME=~/k"}, "/h/k", "/h/k/state", "/h/k/cache"},
		{"all of XDG", []string{"HOME=/h", "XDG_CONFIG_HOME=/c", "XDG_STATE_HOME=/s", "XDG_CACHE_HOME=/x"}, "/c/ken", "/s/ken", "/x/ken"},
		{"some of XDG", []string{"HOME=/h", "XDG_CONFIG_HOME=/c"}, "/c/ken", "/h/.ken/state", "/h/.ken/cache"},
		{"XDG without a home", []string{"XDG_CONFIG_HOME=/c"}, "/c/ken", "/c/ken/state", "/c/ken/cache"},
		{"relative XDG is ignored", []string{"HOME=/h", "XDG_CONFIG_HOME=c", "XDG_CACHE_HOME=x"}, "/h/.ken", "/h/.ken/state", "/h/.ken/cache"},
		{"Windows", []string{"USERPROFILE=/u"}, "/u/.ken", "/u/.ken/state", "/u/.ken/cache"},
	}
	for _, tt := range tests {
		p := placesOf(t, "/w", tt.env...)
		if p.Home != tt.home || p.State != tt.state || p.Cache != tt.cach || p.Workspace != "/w" || p.Project != "/w/.ken" {
			t.Errorf("%s: New = %+v, want %s, %s, %s", tt.name, p, tt.home, tt.state, tt.cach)
		}
	}
	for _, bad := range []struct{ cwd, home, want string }{
		{"/w", "", "set HOME or KEN_HOME"}, {"/w", "relative", "set HOME or KEN_HOME"}, {"w", "/h", "no absolute name"},
	} {
		_, err := New(func(name string) string { return map[string]string{"HOME": bad.home}[name] }, bad.cwd)
		if err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("New(HOME=%s, %s) = %v, want %q", bad.home, bad.cwd, err, bad.want)
		}
	}
}

func show(places []Place) string {
	var b strings.Builder
	for _, p := range places {
		b.WriteString(p.Layer.String() + " " + p.Trust.String() + " " + p.Path)
		if !p.Optional {
			b.WriteString(" must be there")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestC12CatalogOrder: env before workspace before user, each with its trust
// (C10), Ken's own names before those of other programs (C11).
func TestC12CatalogOrder(t *testing.T) {
	p := placesOf(t, "/w", "HOME=/h", "KEN_CAPABILITY_DIRS=/e1::rel:~/e2:/e1/", "WUNDERLAND_CAPABILITY_DIRS=/wl:/e1")
	want := `env user /e1 must be there
env user /w/rel must be there
env user /h/e2 must be there
env user /wl must be there
workspace workspace /w/.ken/capabilities
workspace workspace /w/.ken/skills
workspace workspace /w/.ken/cards
workspace workspace /w/.ken/extensions
workspace workspace /w/.ken/commands
workspace workspace /w/.ken/AGENTS.md
workspace workspace /w/.ken/SYSTEM_ARCHITECTURE.md
workspace workspace /w/.wunderland/capabilities
workspace workspace /w/.agentos/capabilities
workspace workspace /w/.agentos/extensions
workspace workspace /w/.openclaw/skills
workspace workspace /w/.claude/skills
workspace workspace /w/.claude/commands
workspace workspace /w/.agents/skills
workspace workspace /w/docs/capabilities
user user /h/.ken/capabilities
user user /h/.ken/skills
user user /h/.ken/cards
user user /h/.ken/extensions
user user /h/.ken/commands
user user /h/.ken/AGENTS.md
user user /h/.ken/SYSTEM_ARCHITECTURE.md
user user /h/.wunderland/capabilities
user user /h/.agentos/capabilities
user user /h/.agentos/extensions
user user /h/.openclaw/skills
user user /h/.claude/skills
user user /h/.claude/commands
user user /h/.agents/skills
`
	if got := show(p.Catalog(true)); got != want {
		t.Errorf("Catalog(true) =\n%s\nwant\n%s", got, want)
	}
	own := show(p.Catalog(false))
	for _, other := range []string{"wunderland", "/wl", "claude", "agentos", "openclaw", ".agents", "docs"} {
		if strings.Contains(own, other) {
			t.Errorf("Catalog(false) has %s:\n%s", other, own)
		}
	}
	if n := strings.Count(own, "\n"); n != 3+7+7 {
		t.Errorf("Catalog(false) has %d places, want 17:\n%s", n, own)
	}
	for _, place := range p.Catalog(true) {
		if place.Why == "" {
			t.Errorf("%s: nothing says why it is read", place.Path)
		}
	}
}

// TestCatalogListsNothingTwice: in the user's home, under KEN_HOME in the
// project, and where the environment names what is listed anyway.
func TestCatalogListsNothingTwice(t *testing.T) {
	tests := []struct {
		name, cwd string
		env       []string
		path      string // one that two lists name
		layer     Layer
		trust     capability.Trust
	}{
		{"at home", "/h", []string{"HOME=/h"}, "/h/.ken/skills", LayerUser, capability.TrustUser},
		{"at home, others'", "/h/", []string{"HOME=/h"}, "/h/.claude/skills", LayerUser, capability.TrustUser},
		{"at home, docs", "/h", []string{"HOME=/h"}, "/h/docs/capabilities", LayerWorkspace, capability.TrustWorkspace},
		{"KEN_HOME in the project", "/w", []string{"HOME=/h", "KEN_HOME=.ken"}, "/w/.ken/cards", LayerUser, capability.TrustUser},
		{"named again", "/w", []string{"HOME=/h", "KEN_CAPABILITY_DIRS=.ken/skills:/h/.claude/skills"}, "/w/.ken/skills", LayerEnv, capability.TrustUser},
		{"XDG in the home", "/h/.config", []string{"HOME=/h", "XDG_CONFIG_HOME=/h/.config"}, "/h/.config/ken/skills", LayerUser, capability.TrustUser},
	}
	for _, tt := range tests {
		places := placesOf(t, tt.cwd, tt.env...).Catalog(true)
		seen := map[string]bool{}
		for _, p := range places {
			if seen[p.Path] {
				t.Errorf("%s: %s is listed twice", tt.name, p.Path)
			}
			seen[p.Path] = true
			if p.Path == tt.path && (p.Layer != tt.layer || p.Trust != tt.trust) {
				t.Errorf("%s: %s is %v, %v, want %v, %v", tt.name, p.Path, p.Layer, p.Trust, tt.layer, tt.trust)
			}
		}
		if !seen[tt.path] {
			t.Errorf("%s: %s is not listed", tt.name, tt.path)
		}
		if !slices.IsSortedFunc(places, func(a, b Place) int { return int(b.Layer) - int(a.Layer) }) {
			t.Errorf("%s: layers out of order:\n%s", tt.name, show(places))
		}
	}
	// A directory around others is read once, with all that is in it.
	p := placesOf(t, "/w", "HOME=/h", "KEN_CAPABILITY_DIRS=/w:/h/.ken")
	if got := show(p.Catalog(false)); got != "env user /w must be there\nenv user /h/.ken must be there\n" {
		t.Errorf("Catalog = %s, want the two that hold all others", got)
	}
}

func TestHere(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("KEN_HOME", "/k")
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if p, err := Here(); err != nil || p.Workspace != cwd || p.Home != "/k" {
		t.Errorf("Here() = %+v, %v, want this process's", p, err)
	}
}
