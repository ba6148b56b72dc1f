package config

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ken/internal/dirs"
	"ken/internal/govern/policy"
	"ken/internal/yamldoc"
)

const (
	// orchestrationFile lists the work that agents are to do, with the id and the
	// scope of each piece. It lies in [dirs.Places.Orchestration].
	orchestrationFile = "active_intents.yaml"
	mostOrchestration = 1 << 20 // bytes
)

// scope reads the scopes of the work at hand, which narrow what a model may
// change. A file that cannot be followed leaves nothing in scope.
func scope(p dirs.Places, c *Config) {
	if c.Trace.Orchestration == OrchestrationOff {
		return
	}
	where := filepath.Join(filepath.Base(p.Orchestration()), orchestrationFile)
	text, err := readOrchestration(p, where)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		c.Policy.Scope = &policy.WriteScope{Where: where, Trouble: err.Error()}
		return
	}
	work, err := parseWork(text)
	scope := scopeOf(work)
	if err == nil && scope != nil {
		// A pattern that cannot be read is the file's fault, not that of all rules.
		_, err = policy.Compile(policy.Settings{Scope: scope})
	}
	if err != nil {
		work, scope = nil, &policy.WriteScope{Trouble: err.Error()}
	}
	c.Work = work
	if scope != nil {
		scope.Where = where
		c.Policy.Scope = scope
	}
}

func readOrchestration(p dirs.Places, name string) ([]byte, error) {
	root, err := os.OpenRoot(p.Workspace)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // not to wait for the other end of a pipe
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, errors.New("not a regular file"))
	}
	text, err := io.ReadAll(io.LimitReader(f, mostOrchestration+1))
	if err == nil && len(text) > mostOrchestration {
		err = errors.New("larger than 1 MiB")
	}
	return text, err
}

// Work is one piece of work at hand, as active_intents.yaml says it. It came
// with the project.
type Work struct {
	ID, Name    string
	Scope       []string // patterns of files that are its own
	Constraints []string
	Acceptance  []string
}

// parseWork returns the work that is under way.
func parseWork(text []byte) ([]Work, error) {
	m, err := yamldoc.Parse(text, yamldoc.Limits{})
	if err != nil {
		return nil, err
	}
	r := yamldoc.NewReader(m)
	var out []Work
	for _, item := range slices.Concat(r.Items("active_intents"), r.Items("intents")) {
		w := Work{
			ID: item.String("id"), Name: item.String("name", "title"), Scope: item.Strings("owned_scope", "scope"),
			Constraints: item.Strings("constraints"), Acceptance: item.Strings("acceptance_criteria"),
		}
		status := strings.ToLower(item.String("status"))
		if issues := item.Issues(); len(issues) > 0 {
			return nil, issues[0]
		}
		if underWay(status) {
			out = append(out, w)
		}
	}
	if issues := r.Issues(); len(issues) > 0 {
		return nil, issues[0]
	}
	return out, nil
}

// scopeOf returns the files of all work; nil where none says which are its own.
func scopeOf(list []Work) *policy.WriteScope {
	var out *policy.WriteScope
	for _, w := range list {
		if len(w.Scope) == 0 {
			continue
		}
		if out == nil {
			out = &policy.WriteScope{}
		}
		out.Work = append(out.Work, w.ID)
		for _, g := range w.Scope {
			// A folder means what is in it.
			if strings.HasSuffix(g, "/") {
				g += "**"
			}
			if !slices.Contains(out.Globs, g) {
				out.Globs = append(out.Globs, g)
			}
		}
	}
	return out
}

// underWay reports whether a status means work at hand. One that is not known
// does: its scope then narrows.
func underWay(status string) bool {
	switch strings.NewReplacer("-", "_", " ", "_").Replace(status) {
	case "done", "completed", "complete", "closed", "cancelled", "canceled", "abandoned", "pending", "planned", "todo", "blocked", "archived":
		return false
	}
	return true
}
