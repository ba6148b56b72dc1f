package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"

	"ken/capability"
	"ken/internal/coldsort"
)

// rebuildLocked makes a snapshot of all batches and puts it in place, unless it
// would be the same as the one that is there. It runs at every change of a file,
// so it is linear and leaves to the snapshot's first reader whatever can wait.
func (c *Catalog) rebuildLocked() *Snapshot {
	c.stale = false
	now, next := c.current.Load(), c.buildLocked()
	if now.version > 0 && now.same(next) {
		return now
	}
	if now.version > 0 { // there is nothing to compare the first with
		next.changes = difference(now.entries, next.entries)
		c.history = append(c.history, next.changes)
		c.history = slices.Delete(c.history, 0, max(0, len(c.history)-kept))
	}
	c.putLocked(next)
	return next
}

// buildLocked makes a snapshot of all batches.
func (c *Catalog) buildLocked() *Snapshot {
	b := &builder{catalog: c, next: emptySnapshot()}
	b.machine, c.bins = c.cfg.Machine.remember()
	b.next.mentions = c.cfg.Mentions
	b.next.follow(c.current.Load())
	b.collect()
	b.settle()
	b.switchOff()
	b.resolve()
	b.next.problems = append(b.next.problems, unrunProblems(b.next.entries)...)
	return b.next
}

// putLocked numbers a snapshot and puts it in place.
func (c *Catalog) putLocked(next *Snapshot) {
	next.version = c.current.Load().version + 1
	c.forgetLocked(next)
	c.current.Store(next)
	close(c.swapped)
	c.swapped = make(chan struct{})
}

// forgetLocked drops judgements about capabilities that are gone, once they
// are many enough to matter.
func (c *Catalog) forgetLocked(s *Snapshot) {
	if len(c.judged) < 2*(len(s.entries)+len(s.shadowed))+1024 {
		return
	}
	keep := make(map[*capability.Capability]judgement, len(s.entries))
	for _, list := range [][]*Entry{s.entries, s.shadowed} {
		for _, e := range list {
			keep[e.Capability] = c.judged[e.Capability]
		}
	}
	c.judged = keep
}

// A builder makes one snapshot.
type builder struct {
	catalog *Catalog
	machine Machine
	next    *Snapshot
	byName  map[string][]*Entry
}

// collect takes the batches in order of precedence. The fallback comes first:
// whatever was brought stands before it.
func (b *builder) collect() {
	c := b.catalog
	total, brought := 0, false
	for _, s := range c.cfg.Sources {
		list := c.batches[s.Name()].batch.Capabilities
		total += len(list)
		brought = brought || slices.ContainsFunc(list, replacesFallback)
	}
	b.next.entries = make([]*Entry, 0, total)
	if len(c.judged) == 0 {
		c.judged = make(map[*capability.Capability]judgement, total)
	}
	if f := c.cfg.Fallback; f != nil && !brought {
		b.takeFrom(f)
	}
	for _, s := range *c.sources.Load() {
		if s != c.cfg.Fallback {
			b.takeFrom(s)
		}
	}
	// Replace may have brought batches under names that are no source's.
	b.takeOthers()
}

// replacesFallback reports whether who brought a capability has tools of their
// own. What is part of the program was not brought, packages are switched on one
// by one, and texts that say how to go about something go along with any tools.
func replacesFallback(cp *capability.Capability) bool {
	_, packaged := cp.Extension()
	switch cp.Kind {
	case capability.KindSkill, capability.KindCard, capability.KindCommand:
		return false
	}
	return cp.Trust != capability.TrustBuiltin && !packaged
}

func (b *builder) takeFrom(s capability.Source) {
	if p, ok := b.catalog.broken[s.Name()]; ok {
		b.next.problems = append(b.next.problems, p)
	}
	b.take(b.catalog.batches[s.Name()].batch)
}

// settle sorts the entries by id and leaves one of each.
func (b *builder) settle() {
	entries := b.next.entries
	sortByID(entries)
	kept := entries[:0]
	for _, e := range entries {
		if n := len(kept); n > 0 && kept[n-1].ID == e.ID {
			kept[n-1] = b.duplicate(kept[n-1], e)
			continue
		}
		kept = append(kept, e)
	}
	clear(entries[len(kept):])
	b.next.entries = kept
}

// sortByID sorts entries by their ids. Those of one id stay in their order.
func sortByID(entries []*Entry) {
	type placed struct {
		id    capability.ID // beside the entry, which lies anywhere in memory
		entry *Entry
		at    int
	}
	list := make([]placed, len(entries))
	for i, e := range entries {
		list[i] = placed{e.ID, e, i}
	}
	compare := func(x, y placed) int {
		if c := strings.Compare(string(x.id), string(y.id)); c != 0 {
			return c
		}
		return x.at - y.at
	}
	half := len(list) / 2
	low, high := list[:half], list[half:]
	var other sync.WaitGroup
	other.Go(func() { slices.SortFunc(low, compare) })
	slices.SortFunc(high, compare)
	other.Wait()
	for i := range entries {
		if len(high) == 0 || len(low) > 0 && compare(low[0], high[0]) < 0 {
			entries[i], low = low[0].entry, low[1:]
		} else {
			entries[i], high = high[0].entry, high[1:]
		}
	}
}

// switchOff marks the packages that are disabled. It changes copies of their
// entries, because an older snapshot may share the originals.
func (b *builder) switchOff() {
	if !b.catalog.hasPackages(b.next) {
		return
	}
	var all []*capability.Capability
	for _, list := range [][]*Entry{b.next.entries, b.next.shadowed} {
		for _, e := range list {
			all = append(all, e.Capability)
		}
	}
	off := b.catalog.cfg.Off(all)
	for i, e := range b.next.entries {
		if why := off[e.Capability]; why != "" {
			shown := *e
			shown.Off, shown.Withheld = why, why
			b.next.entries[i] = &shown
		}
	}
}

// hasPackages reports whether a snapshot has packages that may be disabled.
func (c *Catalog) hasPackages(s *Snapshot) bool {
	return c.cfg.Off != nil && slices.ContainsFunc(s.entries, func(e *Entry) bool {
		return e.Kind == capability.KindExtension && e.Origin.Format == capability.FormatExtension
	})
}

func (b *builder) takeOthers() {
	known := map[string]bool{}
	for _, s := range *b.catalog.sources.Load() {
		known[s.Name()] = true
	}
	var names []string
	for name := range b.catalog.batches {
		if !known[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b.take(b.catalog.batches[name].batch)
	}
}

func (b *builder) take(batch capability.Batch) {
	s := b.next
	s.presets = append(s.presets, batch.Presets...)
	s.documents = append(s.documents, batch.Documents...)
	s.reported = append(s.reported, batch.Problems)
	for _, cp := range batch.Capabilities {
		if claimsServer(cp) {
			s.problems = append(s.problems, capability.Problem{
				Code: "server-id", Subject: cp.ID, Origin: cp.Origin,
				Message: fmt.Sprintf("the id %s begins with %s, which only tools of MCP servers have; it is not loaded", cp.ID, serverPrefix),
				Fix:     "give it another id, as in " + string(capability.MakeID(capability.KindTool, "name")),
			})
			continue
		}
		if !norm.NFC.IsNormalString(string(cp.ID)) || !norm.NFC.IsNormalString(cp.Name) {
			s.problems = append(s.problems, capability.Problem{
				Code: "id-form", Subject: cp.ID, Origin: cp.Origin,
				Message: fmt.Sprintf("the id %+q and name %+q must be in Unicode normalization form C; it is not loaded", cp.ID, cp.Name),
				Fix:     "let its source put them into that form",
			})
			continue
		}
		s.entries = append(s.entries, b.entry(cp))
	}
}

// serverPrefix is the prefix of the ids of MCP servers' capabilities.
const serverPrefix = "mcp:"

// claimsServer reports whether a capability has the id of a server's tool but
// comes from elsewhere. Rules for a server go by its ids.
func claimsServer(cp *capability.Capability) bool {
	return cp.Origin.Format != formatMCP && len(cp.ID) >= len(serverPrefix) && strings.EqualFold(string(cp.ID[:len(serverPrefix)]), serverPrefix)
}

// duplicate decides between two capabilities of one id and returns the one that
// is used. The later source wins; within one source, the first wins. One in
// quarantine never wins over one that is not. Above all, a less trusted one
// never replaces another unless the user accepted exactly that.
func (b *builder) duplicate(before, later *Entry) *Entry {
	wins, loses := later, before
	_, one := before.Extension()
	if _, two := later.Extension(); one && two && before.Trust > later.Trust {
		wins, loses = before, later // see below
	}
	if before.Origin.Source == later.Origin.Source {
		wins, loses = before, later
	}
	if wins.State == Quarantined && loses.State == Active {
		wins, loses = loses, wins
	}
	if yields(wins, loses) && !b.catalog.accepted(wins) {
		wins, loses = loses, wins
	}
	lost := *loses // which an older snapshot may share
	lost.State = Shadowed
	lost.Standing = wins.Origin.String()
	refused := yields(&lost, wins) && !b.catalog.accepted(&lost)
	if refused {
		lost.Reasons = append(slices.Clip(lost.Reasons), Reason{Kind: NotAccepted, Name: acceptCommand(&lost), Text: lost.Trust.String()})
	}
	b.next.shadowed = append(b.next.shadowed, &lost)
	if f := b.catalog.cfg.Fallback; f != nil && loses.Origin.Source == f.Name() || loses.Trust == capability.TrustBuiltin {
		return wins // it is there to be replaced
	}
	b.next.problems = append(b.next.problems, duplicateProblem(&lost, wins, refused))
	return wins
}

// yields reports whether e may replace other, which has the same id, only if
// the user accepted that: e is trusted less than the user's own and less than
// other, or e came with a project and the user named other.
func yields(e, other *Entry) bool {
	return e.Trust < capability.TrustUser && e.Trust != other.Trust && (e.Trust < other.Trust || e.Trust == capability.TrustWorkspace)
}

// accepted reports whether the user accepted that exactly this capability
// replaces another of its id.
func (c *Catalog) accepted(e *Entry) bool {
	return e.Hash != "" && c.cfg.Overrides[e.ID] == e.Hash
}

func acceptCommand(e *Entry) string {
	return fmt.Sprintf("ken config set 'catalog.overrides.%s' %s", e.ID, e.Hash)
}

func duplicateProblem(lost, wins *Entry, refused bool) capability.Problem {
	p := capability.Problem{
		Severity: capability.Warning, Code: "duplicate-id", Subject: lost.ID, Origin: lost.Origin,
		Message: fmt.Sprintf("the id %s is also used by %s, which stands before it", lost.ID, wins.Origin),
		Fix:     "give one of them another id, or remove it",
	}
	if refused {
		p.Message += fmt.Sprintf(": a %s capability replaces another only once you accept it", lost.Trust)
		p.Fix = "give it another id; or accept it after a look at it: " + acceptCommand(lost)
	}
	return p
}

// entry makes the entry of a capability, or takes the one that an earlier
// snapshot had where nothing about it can be different.
func (b *builder) entry(cp *capability.Capability) *Entry {
	j := b.catalog.judgeLocked(cp)
	if len(j.reasons) > 0 {
		b.next.problems = append(b.next.problems, findingProblem(cp, j))
	}
	missing := b.machine.missing(cp)
	alone := len(missing) == 0 && len(cp.RequiredTools) == 0
	if alone && j.entry != nil {
		return j.entry
	}
	e := &Entry{
		Capability: cp, State: j.state, Reasons: j.reasons, Withheld: j.withheld,
		Missing: missing, Available: len(missing) == 0, SideEffects: cp.HasSideEffects(),
	}
	if alone {
		j.entry = e
		b.catalog.judged[cp] = j
	}
	return e
}

// findingProblem reports what was noticed about a capability's text or name.
func findingProblem(cp *capability.Capability, j judgement) capability.Problem {
	p := capability.Problem{
		Severity: capability.Warning, Code: "noticed", Subject: cp.ID, Origin: cp.Origin,
		Message: fmt.Sprintf("%s: %s", cp.ID, j.reasons),
		Fix:     "have a look at it; it is in use",
	}
	if j.state == Quarantined {
		p.Code, p.Message = "quarantined", fmt.Sprintf("%s is quarantined: %s", cp.ID, j.reasons)
		p.Fix = "look at it with: ken catalog why " + string(cp.ID)
	}
	return p
}

// resolve finds what each capability requires, and completes availability. It
// changes only entries that require something, which no other snapshot shares.
func (b *builder) resolve() {
	s := b.next
	users := map[capability.ID][]*Entry{} // by what they require
	var useless []*Entry
	for _, e := range s.entries {
		if len(e.RequiredTools) > 0 {
			for _, name := range e.RequiredTools {
				b.require(e, name)
			}
			e.Available = len(e.Missing) == 0
			s.edges += len(e.Requires)
			for _, id := range e.Requires {
				users[id] = append(users[id], e)
			}
		}
		if !e.Available || e.State == Quarantined {
			useless = append(useless, e)
		}
	}
	// What cannot be used makes what needs it useless too, and so on.
	for len(useless) > 0 {
		need := useless[0]
		useless = useless[1:]
		for _, e := range users[need.ID] {
			if e.Available {
				e.Available = false
				useless = append(useless, e)
			}
			if need != e {
				e.Missing = append(e.Missing, Reason{Kind: NeedsUnavailable, Name: string(need.ID)})
			}
		}
	}
	for _, p := range s.presets {
		s.edges += len(p.Members) * (len(p.Members) - 1) / 2
	}
}

func (b *builder) require(e *Entry, name string) {
	for _, id := range []capability.ID{capability.ID(name), capability.MakeID(capability.KindTool, name)} {
		if need, ok := b.next.Get(id); ok {
			e.Requires = append(e.Requires, need.ID)
			return
		}
	}
	if need := b.named(name); need != nil {
		e.Requires = append(e.Requires, need.ID)
		return
	}
	if b.catalog.isOwn(name) {
		return
	}
	// Skills often list programs among the tools they need.
	if e.Kind == capability.KindSkill && b.machine.HasBin(name) || slices.Contains(e.RequiredBins, name) {
		return
	}
	e.Missing = append(e.Missing, Reason{Kind: NeedsUnknown, Name: name})
}

// isOwn reports whether a requirement is one of Ken's own tools, by any of its
// ids or names. They exist even if no source lists them; the rules decide who
// may use them.
func (c *Catalog) isOwn(name string) bool {
	return capability.IsOwnTool(name) || slices.ContainsFunc(c.cfg.Own, func(id capability.ID) bool {
		return string(id) == name || id == capability.MakeID(capability.KindTool, name)
	})
}

// named returns the entry that a name means, or nil where none or several could
// be meant. What is quarantined or less trusted does not get in the way.
func (b *builder) named(name string) *Entry {
	if b.byName == nil {
		b.byName = make(map[string][]*Entry, len(b.next.entries))
		for _, e := range b.next.entries {
			b.byName[e.Name] = append(b.byName[e.Name], e)
		}
		aliases := map[string][]*Entry{}
		for _, e := range b.next.entries {
			for _, alias := range e.Aliases {
				if len(b.byName[alias]) == 0 { // a name wins over an alias
					aliases[alias] = append(aliases[alias], e)
				}
			}
		}
		maps.Copy(b.byName, aliases)
	}
	return meant(b.byName[norm.NFC.String(name)])
}

// meant picks the one of several entries that their common name means, or nil.
func meant(named []*Entry) *Entry {
	var best *Entry
	tie := false
	for _, e := range named {
		switch {
		case best == nil || weight(e) > weight(best):
			best, tie = e, false
		case weight(e) == weight(best):
			tie = true
		}
	}
	if tie {
		return nil
	}
	return best
}

func weight(e *Entry) int {
	if e.State == Active {
		return 10 + int(e.Trust)
	}
	return int(e.Trust)
}

// unrunProblems reports the capabilities that nothing here runs, once per file
// and reason.
func unrunProblems(entries []*Entry) []capability.Problem {
	type group struct{ source, path, why string }
	var out []capability.Problem
	type named struct {
		group
		at  int // in out
		ids []string
		n   int
	}
	var groups []*named
	met := map[group]*named{}
	var last *named // nearly always the one of the next too
	for _, e := range entries {
		i := slices.IndexFunc(e.Missing, func(r Reason) bool { return r.Kind == NoRunner })
		if i < 0 || e.Trust == capability.TrustBuiltin {
			continue
		}
		g := group{e.Origin.Source, e.Origin.Path, e.Missing[i].Text}
		if last == nil || last.group != g {
			last = met[g]
		}
		if last == nil {
			last = &named{group: g, at: len(out)}
			met[g], groups = last, append(groups, last)
			out = append(out, capability.Problem{
				Severity: capability.Warning, Code: "no-runner", Subject: e.ID, Origin: e.Origin, Fix: "it can be found and read, and calls of it are refused with this reason",
			})
		}
		if last.n++; last.n <= mostNamed {
			last.ids = append(last.ids, string(e.ID))
		}
	}
	for _, g := range groups {
		names := strings.Join(g.ids, ", ")
		if more := g.n - mostNamed; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		out[g.at].Message = names + ": " + g.why
		if g.n > 1 {
			out[g.at].Subject = "" // the problem is about several capabilities
		}
	}
	return out
}

// mostNamed is how many ids one problem names.
const mostNamed = 3

// difference says how to get from one list of entries to another, both sorted.
func difference(old, now []*Entry) []Change {
	var out []Change
	Compare(old, now, Difference{
		Gone:  func(i int) { out = append(out, Change{ID: old[i].ID, What: "removed", From: old[i].Version}) },
		Added: func(j int) { out = append(out, Change{ID: now[j].ID, What: "added", To: now[j].Version}) },
		Changed: func(i, j int) {
			out = append(out, Change{
				ID: now[j].ID, What: "updated", From: old[i].Version, To: now[j].Version,
				Note: migrationNote(now[j].Capability, old[i].Version),
			})
		},
		Stayed: func(_, _ int) {},
	})
	return out
}

// merged makes one list of changes out of those of several versions.
func merged(versions [][]Change) []Change {
	byID := map[capability.ID]Change{}
	for _, changes := range versions {
		for _, now := range changes {
			was, before := byID[now.ID]
			if !before {
				byID[now.ID] = now
				continue
			}
			now.From = was.From
			switch {
			case was.What == "added" && now.What == "removed":
				delete(byID, now.ID)
				continue
			case was.What == "added":
				now.What = "added"
			case was.What == "removed":
				now.What = "updated"
			}
			if was.Note != "" && now.Note != "" {
				now.Note = was.Note + " " + now.Note
			} else {
				now.Note += was.Note
			}
			byID[now.ID] = now
		}
	}
	out := slices.Collect(maps.Values(byID))
	coldsort.By(out, func(a, b Change) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out
}

// migrationNote joins what a capability says to users of an earlier version.
func migrationNote(c *capability.Capability, from string) string {
	if from == "" || from == c.Version {
		return ""
	}
	var notes []string
	for _, m := range c.Migrations {
		if m.From == from {
			notes = append(notes, m.Note)
		}
	}
	return strings.Join(notes, " ")
}
