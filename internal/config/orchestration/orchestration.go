// Package orchestration reads the work that the folder .orchestration of a
// workspace says is under way, and the files that are its own.
package orchestration

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

	"ken/internal/govern/policy"
	"ken/internal/yamldoc"
)

const (
	folder   = ".orchestration"
	file     = "active_intents.yaml"
	mostText = 1 << 20 // bytes
)

// Dir returns the folder of a workspace in which people keep the work that
// agents are to do, whether it is there or not.
func Dir(workspace string) string { return filepath.Join(workspace, folder) }

// File returns the file in [Dir] that lists the work, with the id and the scope
// of each piece, whether it is there or not.
func File(workspace string) string { return filepath.Join(workspace, folder, file) }

// Read returns the work at hand in a workspace, and the scope of it, which
// narrows what a model may change. The scope is nil where nothing says one. A file
// that cannot be followed leaves nothing in scope.
func Read(workspace string) ([]Work, *policy.WriteScope) {
	where := filepath.Join(folder, file)
	text, err := read(workspace, where)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, &policy.WriteScope{Where: where, Trouble: err.Error()}
	}
	work, err := parse(text)
	scope := scopeOf(work)
	if err == nil && scope != nil {
		// A pattern that cannot be read is the file's fault, not that of all rules.
		_, err = policy.Compile(policy.Settings{Scope: scope})
	}
	if err != nil {
		work, scope = nil, &policy.WriteScope{Trouble: err.Error()}
	}
	if scope != nil {
		scope.Where = where
	}
	return work, scope
}

func read(workspace, name string) ([]byte, error) {
	root, err := os.OpenRoot(workspace)
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
	text, err := io.ReadAll(io.LimitReader(f, mostText+1))
	if err == nil && len(text) > mostText {
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

// parse returns the work that is under way.
func parse(text []byte) ([]Work, error) {
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
