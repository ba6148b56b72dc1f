package source

import (
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit/sourcetest"
)

// cardText is within the 200 to 800 characters that cards read best with.
var cardText = strings.Repeat("Saves tokens by routing. ", 12)

// A place is a folder that a test fills.
type place struct {
	t     *testing.T
	dir   string
	trust capability.Trust
	tree  *Tree
	capability.Batch
}

func newPlace(t *testing.T, files map[string]string) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), trust: capability.TrustUser}
	for name, text := range files {
		sourcetest.Write(t, p.dir, name, text)
	}
	return p
}

// loaded makes a place and loads it.
func loaded(t *testing.T, files map[string]string) *place {
	t.Helper()
	p := newPlace(t, files)
	p.load()
	return p
}

func (p *place) load() {
	p.t.Helper()
	p.tree, p.Batch = load(p.t, TreeConfig{Path: p.dir, Trust: p.trust})
}

// one returns the only capability, which must have the id.
func (p *place) one(id capability.ID) *capability.Capability {
	p.t.Helper()
	c := p.find(id)
	if len(p.Capabilities) != 1 {
		p.t.Fatalf("%d capabilities, want only %s", len(p.Capabilities), id)
	}
	return c
}

func (p *place) find(id capability.ID) *capability.Capability {
	p.t.Helper()
	var found *capability.Capability
	for _, c := range p.Capabilities {
		if c.ID == id && found != nil {
			p.t.Fatalf("%s is there twice: %s and %s", id, found.Origin, c.Origin)
		}
		if c.ID == id {
			found = c
		}
	}
	if found == nil {
		p.t.Fatalf("no capability %s; problems:\n%s", id, p.list())
	}
	return found
}

func (p *place) detail(id capability.ID) capability.Detail {
	p.t.Helper()
	d, err := p.tree.Detail(p.t.Context(), p.find(id))
	if err != nil {
		p.t.Fatalf("Detail(%s): %v", id, err)
	}
	return d
}

// list returns the problems as "path:line severity code: message; fix".
func (p *place) list() string {
	var b strings.Builder
	for _, problem := range p.Problems {
		at := strings.TrimPrefix(problem.Origin.String(), p.dir+string(filepath.Separator))
		b.WriteString(filepath.ToSlash(at) + " " + problem.Severity.String() + " " + problem.Code + ": " + problem.Message + "; " + problem.Fix + "\n")
	}
	return b.String()
}

// wants checks that a problem begins with the place, severity and code, and
// holds the words.
func (p *place) wants(begin string, words ...string) {
	p.t.Helper()
	for line := range strings.Lines(p.list()) {
		ok := strings.HasPrefix(line, begin)
		for _, w := range words {
			ok = ok && strings.Contains(line, w)
		}
		if ok {
			return
		}
	}
	p.t.Errorf("no problem %q with %q; problems:\n%s", begin, words, p.list())
}

// clean checks that nothing is wrong.
func (p *place) clean() {
	p.t.Helper()
	if len(p.Problems) > 0 {
		p.t.Errorf("problems:\n%swant none", p.list())
	}
}
