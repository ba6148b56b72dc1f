package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ken/capability"
	"ken/internal/yamldoc"
)

// Load reads the configuration: the defaults, then the user's file, then the
// project's. An explicit file, when not empty, replaces both and counts as the
// user's own words; a relative name counts from the workspace. No file at all
// is fine, unless it was named. The other configuration of an experiment is
// read as well; what is wrong with that one refuses both.
//
// The error is an *[Error] with all that is wrong in all files.
func Load(places Places, explicit string) (Config, error) {
	own, project, problems := places.files(explicit)
	cfg, wrong, widening := places.load(own, project, func(c *Config) []capability.Problem {
		return append(c.readCedar(), places.ownAccess(c, explicit != "")...)
	})
	problems = slices.Concat(problems, wrong, widening, places.projectAccess(&cfg))
	if e := cfg.Experiment; len(problems) == 0 && e.Name != "" && e.Config != "" {
		// What the project says was taken before. Where B has less than that,
		// B stands.
		b, wrong, _ := places.load(e.Config, project, nil)
		b = cfg.with(b)
		for i := range wrong {
			if wrong[i].Code == codeUnreadable {
				wrong[i].Message += ", and experiment.config names it (" + cfg.said("experiment.config") + ")"
			}
		}
		cfg.other, problems = &b, wrong
	}
	if len(problems) > 0 {
		return Config{}, &Error{problems}
	}
	places.scope(&cfg)
	return cfg, nil
}

// load reads the two files, where there are any, and says what is wrong with
// each. more, where it is not nil, adds what else the user says before the
// project narrows it.
func (p Places) load(own, project string, more func(*Config) []capability.Problem) (cfg Config, wrong, widening []capability.Problem) {
	cfg = Default()
	cfg.origins = map[string]saying{}
	if own != "" {
		r := p.reading(own, false)
		cfg.files = append(cfg.files, own)
		cfg.over(r.read(), &r)
		wrong = r.sorted()
	}
	if more != nil {
		wrong = append(wrong, more(&cfg)...)
	}
	if project != "" {
		r := p.reading(project, true)
		cfg.files = append(cfg.files, project)
		cfg.narrow(r.read(), &r)
		r.distinctNames(cfg.Catalog.Sources)
		r.distinctRules(cfg.Policy.Rules)
		widening = r.sorted()
	}
	return cfg, wrong, widening
}

// files gives the user's and the project's file, empty where there is none.
func (p Places) files(explicit string) (own, project string, problems []capability.Problem) {
	if explicit != "" {
		if !filepath.IsAbs(explicit) {
			explicit = filepath.Join(p.Workspace, explicit)
		}
		return explicit, "", nil
	}
	own, there, problems := find(p.Home)
	if !there {
		own = ""
	}
	if p.Project == p.Home {
		return own, "", problems
	}
	project, there, more := find(p.Project)
	if !there || sameFile(own, project) {
		project = "" // at home, the user's file is not the project's
	}
	return own, project, append(problems, more...)
}

func sameFile(a, b string) bool {
	ai, err := os.Stat(a)
	if err != nil {
		return false
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}

const (
	yamlName = "ken.yaml"
	jsonName = "ken.json"
)

// find gives the configuration file of a directory: ken.yaml, or ken.json
// where only that is there. Two at once, and a name that would be passed over,
// are problems.
func find(dir string) (file string, there bool, problems []capability.Problem) {
	file = filepath.Join(dir, yamlName)
	for _, name := range []string{yamlName, jsonName, "ken.yml"} {
		candidate := filepath.Join(dir, name)
		_, err := os.Lstat(candidate)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return file, false, append(problems, unreadable(candidate, err))
		case name == "ken.yml":
			problems = append(problems, capability.Problem{
				Code: "wrong-name", Origin: capability.Origin{Path: candidate},
				Message: "this file is not read", Fix: "rename it to ken.yaml",
			})
		case there:
			problems = append(problems, capability.Problem{
				Code: "two-files", Origin: capability.Origin{Path: candidate},
				Message: "ken.yaml is there as well", Fix: "keep one of the two",
			})
		default:
			file, there = candidate, true
		}
	}
	return file, there, problems
}

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

func (p Places) reading(file string, workspace bool) reading {
	return reading{
		file: file, dir: filepath.Dir(file), home: p.UserHome,
		workspace: workspace, project: p.Workspace, ownFile: filepath.Join(p.Home, yamlName),
	}
}

// A layer is what one file says: the values of the keys that it gives, with
// their lines.
type layer struct {
	cfg   Config
	given map[string]int
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
	r.fault(at, "wrong-type", "write "+want, "%s is %s, want %s", at.key, kindWord(v.Any), want)
}

// sorted gives the problems in the order of their lines.
func (r *reading) sorted() []capability.Problem {
	slices.SortStableFunc(r.problems, func(a, b capability.Problem) int { return a.Origin.Line - b.Origin.Line })
	return r.problems
}

func (r *reading) read() layer {
	data, _, err := readFile(r.file)
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

// sectionNames gives every key and the sections they are in.
func sectionNames() (names, sections []string) {
	for _, s := range settings() {
		names = append(names, s.name)
		if section, _, _ := strings.Cut(s.name, "."); !slices.Contains(sections, section) {
			sections = append(sections, section)
		}
	}
	return names, sections
}

// decode takes what table knows out of a map, refuses the rest, and gives the
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

// over lays what a file of the user's own says over c.
func (c *Config) over(l layer, r *reading) {
	for _, s := range settings() {
		if line, ok := l.given[s.name]; ok {
			s.take(c, &l.cfg)
			c.origins[s.name] = saying{capability.Origin{Path: r.file, Line: line}.String(), true}
		}
	}
	c.fill()
}

// narrow lays what a project's file says over c. A value that is wider than
// both what c has and the default is refused, since the project's author
// expects an effect that it may not have. One that is no wider than the
// default is merely not needed where c is narrower already: the project cannot
// know, and c stands, or takes of it what it can.
func (c *Config) narrow(l layer, r *reading) {
	standard, user := Default(), *c
	for _, s := range settings() {
		line, ok := l.given[s.name]
		if !ok {
			continue
		}
		here := capability.Origin{Path: r.file, Line: line}.String()
		was, said := c.origins[s.name]
		harmless := !s.exact && s.noWider(&l.cfg, &standard)
		switch {
		case s.noWider(&l.cfg, &user), harmless && s.joins:
			joined := user
			s.join(&joined, &l.cfg)
			s.take(c, &joined)
			switch same := flow(s.show(&user)) == flow(s.show(c)); {
			case said && same: // the user has it so already
			case said && s.joins:
				c.origins[s.name] = saying{was.where + ", " + here, was.own}
			default:
				c.origins[s.name] = saying{here, was.own}
			}
		case harmless:
			// It is said, if in vain: the project's profile does not count.
			c.origins[s.name] = saying{user.origin(s), was.own}
		default:
			r.fault(spot{s.name, line}, "widens", "remove it, or put it into "+r.ownFile,
				"a project's file may narrow but not widen: %s is %s here and %s without it",
				s.name, brief(s.show(&l.cfg)), brief(s.show(&user)))
		}
	}
	c.fill()
}

// brief writes a value for a message.
func brief(v any) string {
	switch s, isText := v.(string); {
	case v == "":
		return "empty"
	case isText:
		return plain(s)
	}
	return plain(flow(v))
}

// limits are far above what people write and below what is slow to parse.
func limits() yamldoc.Limits { return yamldoc.Limits{Bytes: fileLimit, Keys: 40_000, Depth: 16} }

const fileLimit = mib

// parse reads YAML, or JSON alone where the file's name says so.
func parse(file string, data []byte) (*yamldoc.Map, error) {
	if isJSON(file) && len(data) <= fileLimit && !json.Valid(trimBOM(data)) {
		return nil, notJSON(data)
	}
	return parseYAML(data)
}

// parseYAML reads a document. Lines that end in CR LF would be counted twice
// where a comment ends in them.
func parseYAML(data []byte) (*yamldoc.Map, error) {
	return yamldoc.Parse(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), limits())
}

func isJSON(file string) bool { return strings.EqualFold(filepath.Ext(file), ".json") }

func notJSON(data []byte) error {
	e := &yamldoc.Error{Message: "this is not JSON", Fix: "correct it there, or rename the file to ken.yaml"}
	data = trimBOM(data)
	var v any
	if s, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(data, &v)); ok {
		e.Message += ": " + s.Error()
		e.Line = 1 + strings.Count(string(data[:min(int(s.Offset), len(data))]), "\n")
	}
	return e
}

const byteOrderMark = "\ufeff"

func trimBOM(data []byte) []byte {
	if len(data) >= 3 && string(data[:3]) == byteOrderMark {
		return data[3:]
	}
	return data
}

// visible shows control characters, which a parser may repeat from the file.
func visible(s string) string {
	var b strings.Builder
	for _, c := range s {
		if unseen(c) {
			fmt.Fprintf(&b, "<%U>", c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// readFile reads a regular file of bounded size and never waits for one.
func readFile(name string) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, fileLimit+1))
	if err == nil && len(data) > fileLimit {
		err = fmt.Errorf("it has more than the %d bytes that are read", fileLimit)
	}
	return data, info, err
}

const codeUnreadable = "unreadable"

func unreadable(file string, err error) capability.Problem {
	p := capability.Problem{
		Code: codeUnreadable, Origin: capability.Origin{Path: file},
		Message: err.Error(), Fix: "put a small text file there, or remove it",
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		p.Message = pe.Err.Error()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Message, p.Fix = "the file is not there", "create it, or name another"
	case errors.Is(err, fs.ErrPermission):
		p.Fix = "make it readable for this user"
	}
	return p
}
