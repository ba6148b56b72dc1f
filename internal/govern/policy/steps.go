package policy

import (
	"iter"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"

	"ken/internal/address"
	"ken/internal/programs"
)

// A step is a rule whose static part holds.
type step struct {
	rule   *rule
	test   *test
	unless bool
	open   bool // Cedar must be asked again
}

// steps is a list of steps in the order of checks. A long one is found by what
// could make its steps apply.
type steps struct {
	all  []step
	by   map[trigger][]int32
	rest []int32 // those that anything may make apply
}

// A trigger is a word in the arguments without which a test cannot hold.
type trigger struct {
	kind byte // p program, h host, n name in a path, e extension
	text string
}

// lists hold rules by what they say.
type lists struct {
	denies             steps
	askOnce, askLonger steps
	permits            steps
	mayOnce, mayLonger steps // permissions that need consent
}

func (l *lists) add(ru *rule, open bool) {
	list := &l.permits
	switch {
	case ru.forbid && !ru.ask:
		list = &l.denies
	case ru.forbid && ru.scope == Once:
		list = &l.askOnce
	case ru.forbid:
		list = &l.askLonger
	case ru.ask && ru.scope == Once:
		list = &l.mayOnce
	case ru.ask:
		list = &l.mayLonger
	}
	list.all = append(list.all, step{rule: ru, test: ru.test, unless: ru.unless, open: open})
}

func (l *lists) index() {
	for _, s := range []*steps{&l.denies, &l.askOnce, &l.askLonger, &l.permits, &l.mayOnce, &l.mayLonger} {
		s.index()
	}
}

const worthIndexing = 16

func (s *steps) index() {
	if len(s.all) < worthIndexing {
		return
	}
	s.by = map[trigger][]int32{}
	for i := range s.all {
		list := s.all[i].triggers()
		if len(list) == 0 {
			s.rest = append(s.rest, int32(i))
		}
		for _, t := range list {
			if had := s.by[t]; len(had) == 0 || had[len(had)-1] != int32(i) {
				s.by[t] = append(had, int32(i))
			}
		}
	}
}

// triggers lists words of which one must be in the arguments, or none where
// there is no such list.
func (s *step) triggers() []trigger {
	if s.test == nil || s.unless || s.open || s.test.kind != testArgs {
		return nil
	}
	t := s.test
	switch {
	case len(t.argv) > 0:
		return argvTriggers(t.argv)
	case len(t.hosts) > 0:
		return hostTriggers(t.hosts)
	}
	return globTriggers(t.globs)
}

func argvTriggers(list []pattern) []trigger {
	var out []trigger
	for _, p := range list {
		for _, a := range p[0] {
			if strings.Contains(a, "*") {
				return nil
			}
			out = append(out, trigger{'p', strings.ToLower(programs.Name(a))})
		}
	}
	return out
}

func hostTriggers(list []hostPattern) []trigger {
	var out []trigger
	for _, h := range list {
		if _, isAddress := address.Parse(h.text); isAddress || h.net.IsValid() || h.text == "*" {
			return nil // they have many spellings
		}
		out = append(out, trigger{'h', strings.TrimPrefix(h.text, "*.")})
	}
	return out
}

func globTriggers(list []glob) []trigger {
	var out []trigger
	for _, g := range list {
		t, ok := g.trigger()
		if !ok {
			return nil
		}
		out = append(out, t)
	}
	return out
}

// trigger returns a name or an extension that every path has that matches.
func (g *glob) trigger() (trigger, bool) {
	for _, part := range slices.Backward(g.parts) {
		if part != "" && !strings.ContainsAny(part, "*?") {
			return trigger{'n', strings.ToLower(part)}, true
		}
	}
	last := g.parts[len(g.parts)-1]
	if dot := strings.LastIndexByte(last, '.'); dot >= 0 && !strings.ContainsAny(last[dot:], "*?") {
		return trigger{'e', strings.ToLower(last[dot:])}, true
	}
	return trigger{}, false
}

// pathTriggers yields what a path may trigger: each of its names, and the
// extension of the last.
func pathTriggers(name string) iter.Seq[trigger] {
	return func(yield func(trigger) bool) {
		name = strings.ToLower(name)
		for rest := name; ; {
			part, more, ok := strings.Cut(rest, "/")
			if !yield(trigger{'n', part}) {
				return
			}
			if !ok {
				if dot := strings.LastIndexByte(part, '.'); dot >= 0 {
					yield(trigger{'e', part[dot:]})
				}
				return
			}
			rest = more
		}
	}
}

// A globSet finds out whether any of many globs matches, letters counting the
// same in either case.
type globSet struct {
	by   map[trigger][]glob
	rest []glob
}

func newGlobSet(list []glob) globSet {
	s := globSet{by: map[trigger][]glob{}}
	for _, g := range list {
		if t, ok := g.trigger(); ok {
			s.by[t] = append(s.by[t], g)
		} else {
			s.rest = append(s.rest, g)
		}
	}
	return s
}

func (s *globSet) match(name string) bool {
	for t := range pathTriggers(name) {
		if matchAny(s.by[t], name) {
			return true
		}
	}
	return matchAny(s.rest, name)
}

// first returns the earliest rule of two lists that applies, or nil.
func (j *judgement) first(own, shared *steps) *rule {
	a := own.first(j)
	if j.broken != nil {
		return nil
	}
	b := shared.first(j)
	if a == nil || b != nil && b.order < a.order {
		return b
	}
	return a
}

// first returns the earliest step that applies, or nil.
func (s *steps) first(j *judgement) *rule {
	if s.by == nil {
		for i := range s.all {
			if s.all[i].applies(j) {
				return s.all[i].rule
			}
			if j.broken != nil {
				return nil
			}
		}
		return nil
	}
	best := int32(len(s.all))
	for _, i := range s.rest {
		if s.all[i].applies(j) {
			best = i
			break
		}
		if j.broken != nil {
			return nil
		}
	}
	if len(s.by) > 0 {
		best = s.triggered(j, best)
	}
	if int(best) == len(s.all) {
		return nil
	}
	return s.all[best].rule
}

// triggered returns the earliest step before best that some word of the
// arguments makes apply, or best.
func (s *steps) triggered(j *judgement, best int32) int32 {
	f := &j.q.Facts
	for _, name := range j.seen.paths {
		for t := range pathTriggers(name) {
			best = s.try(j, t, best)
		}
	}
	for _, argv := range f.Commands {
		best = s.try(j, trigger{'p', strings.ToLower(programs.Name(argv[0]))}, best)
		for _, in := range inner(argv) {
			best = s.try(j, trigger{'p', strings.ToLower(programs.Name(in[0]))}, best)
		}
	}
	for _, h := range f.Hosts {
		for h = strings.ToLower(address.Bare(h)); ; {
			best = s.try(j, trigger{'h', h}, best)
			dot := strings.IndexByte(h, '.')
			if dot < 0 {
				break
			}
			h = h[dot+1:]
		}
	}
	return best
}

func (s *steps) try(j *judgement, t trigger, best int32) int32 {
	for _, i := range s.by[t] {
		if i >= best {
			break
		}
		if s.all[i].applies(j) {
			return i
		}
	}
	return best
}

func (s *step) applies(j *judgement) bool {
	if s.open && !j.asks(s.rule) {
		return false
	}
	return s.test == nil || s.test.holds(&j.q.Facts, j.seen, j.risk) != s.unless
}

// single is one policy as Cedar wants a set of them.
type single struct{ rule *rule }

// All returns the one policy.
func (s single) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		yield(cedar.PolicyID(s.rule.id), s.rule.compiled.whole)
	}
}
