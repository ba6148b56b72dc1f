package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/dirs"
	"ken/internal/yamldoc"
)

// A reading is one file being read.
type reading struct {
	file      string // as messages name it
	dir       string // what relative paths count from
	home      string // what ~ stands for; empty: it stays
	workspace bool   // the file came with the project
	project   string // then: the project's directory
	ownFile   string // and where its reader's own words go
	problems  []capability.Problem
}

func newReading(p dirs.Places, file string, workspace bool) reading {
	return reading{
		file: file, dir: filepath.Dir(file), home: p.UserHome,
		workspace: workspace, project: p.Workspace, ownFile: filepath.Join(p.Home, YAMLName),
	}
}

// A spot is a key in a file, as messages name it.
type spot struct {
	key  string
	line int
}

func (r *reading) fault(at spot, code, fix, format string, args ...any) {
	r.problems = append(r.problems, capability.Problem{
		Code: code, Origin: capability.Origin{Path: r.file, Line: at.line},
		Message: fmt.Sprintf(format, args...), Fix: fix,
	})
}

func (r *reading) mistyped(at spot, v yamldoc.Value, want string) {
	r.fault(at, "wrong-type", "", "%s must be %s, not %s", at.key, want, kindWord(v.Any))
}

// sorted returns the problems in the order of their lines.
func (r *reading) sorted() []capability.Problem {
	coldsort.Stable(r.problems, func(a, b capability.Problem) int { return a.Origin.Line - b.Origin.Line })
	return r.problems
}

func (r *reading) read() layer {
	read := readFile
	if r.workspace {
		read = func(name string) ([]byte, fs.FileInfo, error) { return readProjectFile(r.project, name) }
	}
	data, _, err := read(r.file)
	if err != nil {
		r.problems = append(r.problems, unreadable(r.file, err))
		return layer{}
	}
	return r.decode(data)
}

// decode reads the text of a file.
func (r *reading) decode(data []byte) layer {
	root, err := parse(r.file, data)
	if err != nil {
		line, message, fix := 0, err.Error(), ""
		if e, ok := errors.AsType[*yamldoc.Error](err); ok {
			line, message, fix = e.Line, e.Message, e.Fix
		}
		r.fault(spot{line: line}, "bad-syntax", fix, "%s", visible(message))
		return layer{}
	}
	return r.layer(root)
}

// layer takes the settings out of a file's root.
func (r *reading) layer(root *yamldoc.Map) layer {
	l := layer{cfg: Default(), given: map[string]int{}}
	all := settings()
	names, sections := sectionNames()
	for _, f := range root.Fields {
		if i := slices.IndexFunc(all, func(s setting[Config]) bool { return s.name == f.Key }); i >= 0 {
			l.given[f.Key] = f.Line
			all[i].read(r, spot{f.Key, f.Line}, f.Value, &l.cfg)
			continue
		}
		if !slices.Contains(sections, f.Key) {
			r.fault(spot{line: f.Line}, "unknown-key", hint(f.Key, "", sections, names), "unknown key %s", plain(f.Key))
			continue
		}
		if f.Value.Any == nil {
			continue // a section whose keys are all commented out
		}
		m, ok := f.Value.Any.(*yamldoc.Map)
		if !ok {
			r.mistyped(spot{f.Key, f.Line}, f.Value, "keys and values below it")
			continue
		}
		prefix := f.Key + "."
		var table []setting[Config]
		for _, s := range all {
			if strings.HasPrefix(s.name, prefix) {
				s.name = strings.TrimPrefix(s.name, prefix)
				table = append(table, s)
			}
		}
		for key, line := range decode(r, prefix, m, table, &l.cfg) {
			l.given[prefix+key] = line
		}
	}
	r.checkGrades(l)
	return l
}

// checkGrades refuses thresholds of which one could never be reached.
func (r *reading) checkGrades(l layer) {
	line, asks := l.given["policy.askAbove"]
	other, denies := l.given["policy.denyAbove"]
	amiss := slices.ContainsFunc(r.problems, func(p capability.Problem) bool { return p.Origin.Line == line || p.Origin.Line == other })
	if asks && denies && !amiss && l.cfg.Policy.AskAbove > l.cfg.Policy.DenyAbove {
		r.fault(spot{line: line}, "bad-value", "write a smaller one", "policy.askAbove is %d, more than policy.denyAbove, which is %d",
			l.cfg.Policy.AskAbove, l.cfg.Policy.DenyAbove)
	}
}

// sectionNames returns every key and the sections they are in.
func sectionNames() (names, sections []string) {
	for _, s := range settings() {
		names = append(names, s.name)
		if section, _, _ := strings.Cut(s.name, "."); !slices.Contains(sections, section) {
			sections = append(sections, section)
		}
	}
	return names, sections
}

// decode takes what table knows out of a map, refuses the rest, and returns the
// line of each key that is there.
func decode[S any](r *reading, prefix string, m *yamldoc.Map, table []setting[S], into *S) map[string]int {
	given := make(map[string]int, len(m.Fields))
	for _, f := range m.Fields {
		i := slices.IndexFunc(table, func(s setting[S]) bool { return s.name == f.Key })
		if i < 0 {
			known := make([]string, len(table))
			for j, s := range table {
				known[j] = s.name
			}
			names, _ := sectionNames()
			r.fault(spot{line: f.Line}, "unknown-key", hint(f.Key, prefix, known, names), "unknown key %s", prefix+plain(f.Key))
			continue
		}
		given[f.Key] = f.Line
		table[i].read(r, spot{prefix + f.Key, f.Line}, f.Value, into)
	}
	return given
}
