package policy

import (
	"regexp"
	"slices"

	"ken/internal/address"
)

// An observation is what can be told of a call's arguments without any rule: it is
// made once for a decision.
type observation struct {
	paths        []string // clean, in the order of Facts.Paths
	bad          string   // what is wrong with the arguments themselves
	instead      string   // what to write instead, if bad is not about a path
	outsideRead  bool
	outsideWrite bool
	protected    bool   // a write to a file that governs Ken or runs by itself
	secret       bool   // a read of a file that holds secrets
	unseen       string // why the files that the call can reach are not all known
	destructive  bool
	metadata     bool     // a cloud's address for credentials
	hidden       bool     // a program of the project may run that the call does not name
	sent         []string // secrets in the arguments that the capability may not have
}

const (
	mostFacts  = 1024   // of each kind in one call
	mostNames  = 50_000 // texts in one call that may name files
	mostFacets = 1024   // combinations that a Cedar file is asked about
)

// look returns the sighting; buf is memory for it. writes says whether the
// capability may write the files it names.
func (r *Rules) look(f *Facts, writes bool, buf []string) (s observation) {
	s.destructive, s.unseen = f.Destructive, f.Unseen
	s.protected, s.secret = f.Unseen != "", f.Unseen != ""
	if len(f.Paths) > mostFacts || len(f.Hosts) > mostFacts || len(f.Commands) > mostFacts || len(f.Named) > mostNames || len(f.Mentioned) > mostNames {
		s.bad = "The call names too many files, commands or hosts"
		return s
	}
	s.paths = buf[:0]
	for _, p := range f.Paths {
		name, trouble := clean(p.Name)
		if trouble != "" {
			s.bad = trouble
			return s
		}
		s.paths = append(s.paths, name)
		if absolute(name) && !slices.ContainsFunc(r.rootsFor(p.Write), func(root string) bool { return beneath(name, root) }) {
			s.outsideWrite = s.outsideWrite || p.Write
			s.outsideRead = s.outsideRead || !p.Write
		}
		if p.Write {
			s.protected = s.protected || r.Protected(name)
		} else {
			s.secret = s.secret || r.Secret(name)
		}
	}
	for _, name := range f.Named {
		if name = seenFrom("", name); name != "" {
			r.note(&s, Path{Name: name, Write: writes})
		}
	}
	for _, name := range f.Mentioned {
		s.secret = s.secret || r.Secret(name)
	}
	for _, argv := range f.Commands {
		if len(argv) == 0 {
			s.bad, s.instead = "A command is empty", "Name the program to run"
			return s
		}
		s.destructive = s.destructive || destroys(argv)
	}
	s.destructive = s.destructive || f.Opaque != "" && destructiveWord(f.Line)
	for _, p := range Named(f.Dir, f.Commands) {
		r.note(&s, p)
	}
	for _, h := range f.Hosts {
		if h == "" || !ascii(h) {
			s.bad, s.instead = "A host is empty or not plain ASCII", "Write the host in ASCII, as in xn--bcher-kva.example"
			return s
		}
		s.metadata = s.metadata || address.Metadata(h)
	}
	return s
}

// note checks a name that may refer to a file against the lists.
func (r *Rules) note(s *observation, p Path) {
	s.secret = s.secret || r.Secret(p.Name)
	s.protected = s.protected || p.Write && r.Protected(p.Name)
}

func (r *Rules) rootsFor(write bool) []string {
	if write {
		return r.settings.WriteRoots
	}
	return r.settings.ReadRoots
}

func matchAny(globs []glob, name string) bool {
	for i := range globs {
		if globs[i].match(name, true) {
			return true
		}
	}
	return false
}

// A test is a question about arguments or risk that Cedar cannot ask. Its
// answer is a fact: where it is yes, its name is in context.facts.
type test struct {
	name string
	kind testKind

	above int // testRisk

	// testArgs: of each kind of argument that is named, some must match; with
	// every, all must and there must be one.
	every  bool
	globs  []glob
	access string // "read" or "write": only such paths are looked at
	argv   []pattern
	hosts  []hostPattern

	files *regexp.Regexp // testFiles: every path must match it or one of globs
}

type testKind uint8

const (
	testArgs testKind = iota
	testRisk
	testBad
	testOutsideRead
	testOutsideWrite
	testProtected
	testSecret
	testUnseen
	testDestructive
	testMetadata
	testSent
	testHidden
	testFiles
	testCommands // every command begins with one of argv, and there is nothing else
)

func (t *test) holds(f *Facts, s *observation, risk Risk) bool {
	switch t.kind {
	case testArgs:
		return t.args(f, s)
	case testRisk:
		return int(risk.Score) > t.above
	case testBad:
		return s.bad != ""
	case testOutsideRead:
		return s.outsideRead
	case testOutsideWrite:
		return s.outsideWrite
	case testProtected:
		return s.protected
	case testSecret:
		return s.secret
	case testUnseen:
		return s.unseen != ""
	case testDestructive:
		return s.destructive
	case testMetadata:
		return s.metadata
	case testSent:
		return len(s.sent) > 0
	case testHidden:
		return s.hidden
	case testFiles:
		return t.everyFile(s)
	case testCommands:
		return f.Opaque == "" && len(f.Commands) > 0 && !slices.ContainsFunc(f.Commands, func(argv []string) bool { return !t.command(bare(argv)) })
	}
	return false
}

func (t *test) everyFile(s *observation) bool {
	for _, name := range s.paths {
		ok := t.files != nil && t.files.MatchString(name)
		for i := range t.globs {
			ok = ok || t.globs[i].match(name, false)
		}
		if !ok {
			return false
		}
	}
	return len(s.paths) > 0
}

func (t *test) args(f *Facts, s *observation) bool {
	if len(t.globs) > 0 && !t.paths(f, s) {
		return false
	}
	if len(t.argv) > 0 && !t.commands(f) {
		return false
	}
	return len(t.hosts) == 0 || t.anyHost(f)
}

func (t *test) paths(f *Facts, s *observation) bool {
	some := false
	for i, name := range s.paths {
		if t.access != "" && (t.access == "write") != f.Paths[i].Write {
			if t.every {
				return false
			}
			continue
		}
		ok := false
		for j := range t.globs {
			if t.globs[j].match(name, !t.every) {
				ok = true
				break
			}
		}
		if ok != t.every {
			return ok
		}
		some = some || ok
	}
	return some
}

func (t *test) commands(f *Facts) bool {
	if t.every && f.Opaque != "" {
		return false
	}
	some := false
	for _, argv := range f.Commands {
		ok := t.command(argv)
		if ok != t.every {
			return ok
		}
		some = some || ok
	}
	return some
}

func (t *test) command(argv []string) bool {
	for _, p := range t.argv {
		if t.every && p.exactly(argv) || !t.every && p.loosely(argv) {
			return true
		}
	}
	return false
}

func (t *test) anyHost(f *Facts) bool {
	some := false
	for _, h := range f.Hosts {
		ok := false
		for i := range t.hosts {
			if t.hosts[i].match(h, t.every) {
				ok = true
				break
			}
		}
		if ok != t.every {
			return ok
		}
		some = some || ok
	}
	return some
}
