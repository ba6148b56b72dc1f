package door

import (
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ken/capability"
	"ken/internal/find/discover"
	"ken/internal/know/catalog"
)

// Keep returns the result of make, which is called once for each key: see
// [discover.View.Keep]. Results for the operator's view are kept apart.
func (v View) Keep(key any, make func() any) any {
	if v.snapshot == nil {
		return make()
	}
	if v.reveal != nil {
		key = operatorKey{key}
	}
	return v.seen.Keep(key, make)
}

type operatorKey struct{ key any }

// Numbered returns the entries of the view with their ordinals, which [Door.Edges]
// names them by.
func (v View) Numbered() iter.Seq2[int, *Entry] {
	return func(yield func(int, *Entry) bool) {
		if v.snapshot == nil {
			return
		}
		for i, e := range v.snapshot.Entries() {
			if !v.sees(i) {
				continue
			}
			if v.reveal != nil {
				e = v.reveal(e)
			}
			if !yield(i, e) {
				return
			}
		}
	}
}

// Edges returns how the entries of a view relate, worked out once. In the
// operator's view these are the relations of all entries.
func (d *Door) Edges(v View) *discover.Edges {
	switch {
	case v.snapshot == nil:
		return &discover.Edges{}
	case v.reveal != nil:
		return d.finder.See(v.snapshot, "everything", nil).Edges() // no class of viewers is called so
	}
	return v.seen.Edges()
}

// shows reports whether the viewer is told of an entry. Quarantined entries are
// for the operator only.
func (v View) shows(ordinal int) bool { return v.reveal != nil || v.seen.Sees(ordinal) }

// Shown returns the entries that the viewer is told of, with their ordinals: as
// [View.Redacted] returns them, but with full paths, which must not be shown to
// every viewer.
func (v View) Shown() iter.Seq2[int, *Entry] {
	return func(yield func(int, *Entry) bool) {
		for i, e := range v.Numbered() {
			if v.shows(i) && !yield(i, v.withoutHidden(e)) {
				return
			}
		}
	}
}

type partsKey struct{}

// Parts counts the tools of [View.Own] that a list has beside what is [View.Shown]:
// one of the catalog's with the same id stands in it instead.
func (v View) Parts() int {
	if v.snapshot == nil {
		return 0
	}
	return v.Keep(partsKey{}, func() any {
		known := map[capability.ID]bool{}
		for _, e := range v.Shown() {
			known[e.ID] = true
		}
		n := 0
		for e := range v.Own() {
			if !known[e.ID] {
				n++
			}
		}
		return n
	}).(int)
}

// RedactedLookup is [View.Lookup] among the entries that the viewer is told of.
func (v View) RedactedLookup(name string) (*Entry, error) {
	if v.snapshot == nil || v.reveal != nil || v.noRules != "" {
		return v.Lookup(name)
	}
	e, err := v.snapshot.LookupAmong(name, v.shows)
	if err != nil && v.own != nil {
		if own := v.ownCalled(name); own != nil && v.allows(own) {
			return own, nil
		}
	}
	return e, err
}

// RedactedList is [View.List] for a viewer who is not the operator. Nothing in it
// depends on hidden or quarantined entries: entries are as [View.Redacted] returns
// them, presets name only entries that the viewer is told of, and problems are
// those that one entry has by itself. Problems between several entries or with a
// file, and the folders of the disk, are for the operator.
func (v View) RedactedList() Listing {
	list := v.List()
	if v.snapshot == nil || v.reveal != nil {
		return list
	}
	known := map[string]bool{}
	list.Capabilities = slices.DeleteFunc(list.Capabilities, func(e *Entry) bool {
		i, there := v.snapshot.Ordinal(e.ID)
		return there && !v.shows(i)
	})
	for i, e := range list.Capabilities {
		list.Capabilities[i] = v.Redacted(e)
		known[string(e.ID)], known[e.Name] = true, true
	}
	list.Problems = slices.DeleteFunc(list.Problems, func(p capability.Problem) bool { return !v.showsProblem(p) })
	for i, p := range list.Problems {
		p.Message, p.Fix = withoutFolder(p.Message, p.Origin), withoutFolder(p.Fix, p.Origin)
		p.Origin = withoutFolders(p.Origin)
		list.Problems[i] = p
	}
	for i := range list.Documents {
		list.Documents[i].Origin = withoutFolders(list.Documents[i].Origin)
	}
	for i, p := range list.Presets {
		p.Origin = withoutFolders(p.Origin)
		p.Members = slices.DeleteFunc(slices.Clone(p.Members), func(m string) bool {
			return !known[m] && !known[string(capability.MakeID(capability.KindTool, m))]
		})
		list.Presets[i] = p
	}
	list.Stats = v.redactedStats(list)
	return list
}

// showsProblem reports whether a problem is about one entry of the view alone.
func (v View) showsProblem(p capability.Problem) bool {
	i, there := v.snapshot.Ordinal(p.Subject)
	switch p.Code {
	case "same-name", "looks-alike", "unknown-name":
		return false
	}
	return there && v.shows(i)
}

func (v View) redactedStats(list Listing) Stats {
	st := Stats{Version: v.snapshot.Version()}
	for _, e := range list.Capabilities {
		if e.State == catalog.Shadowed {
			st.Shadowed++
			continue
		}
		st.Capabilities++
		st.GraphEdges += len(e.Requires)
		if e.Ready() {
			st.Available++
		}
		st.Active++ // nothing else is told of
	}
	for _, p := range list.Problems {
		if p.Severity == capability.Grave {
			st.Errors++
		}
	}
	for _, p := range list.Presets {
		st.GraphEdges += len(p.Members) * (len(p.Members) - 1) / 2
	}
	st.GraphNodes = st.Capabilities
	return st
}

type (
	redactedKey      struct{}
	statsKey         struct{}
	operatorStatsKey struct{}
)

// RedactedStats returns [View.Stats] for a viewer who is not the operator: see
// [View.RedactedList].
func (v View) RedactedStats() Stats {
	if v.snapshot == nil || v.reveal != nil {
		return v.Stats()
	}
	return v.Keep(statsKey{}, func() any { return v.RedactedList().Stats }).(Stats)
}

// Redacted returns e as a viewer who is not the operator may see it: dependencies that
// the viewer is not told of are missing, and paths on this disk are cut to their
// base names. What its author wrote stays.
func (v View) Redacted(e *Entry) *Entry {
	if v.snapshot == nil || v.reveal != nil {
		return e
	}
	return withoutPaths(v.withoutHidden(e))
}

// withoutHidden is Redacted, except that paths stay as they are.
func (v View) withoutHidden(e *Entry) *Entry {
	if v.snapshot == nil || v.reveal != nil || len(e.RequiredTools) == 0 || e.State == catalog.Shadowed {
		return e
	}
	told := v.Keep(redactedKey{}, func() any { return v.redacted() }).(map[capability.ID]*Entry)
	if other, ok := told[e.ID]; ok {
		return other
	}
	return e
}

// redacted returns the entries that are otherwise without what is hidden, as the
// catalog would have made them.
func (v View) redacted() map[capability.ID]*Entry {
	out := map[capability.ID]*Entry{}
	users := map[capability.ID][]*Entry{} // by what they require
	var useless []*Entry
	for i, e := range v.Numbered() {
		if len(e.RequiredTools) == 0 || !v.shows(i) {
			continue
		}
		lost := slices.ContainsFunc(e.Requires, func(id capability.ID) bool {
			i, there := v.snapshot.Ordinal(id)
			return there && !v.shows(i)
		}) || slices.ContainsFunc(e.RequiredTools, v.withoutOwn)
		if lost {
			e = v.without(e)
			out[e.ID] = e
			useless = append(useless, e)
		}
		for _, id := range e.Requires {
			users[id] = append(users[id], e)
		}
	}
	for len(useless) > 0 {
		need := useless[0]
		useless = useless[1:]
		if need.Available {
			continue
		}
		for _, e := range users[need.ID] {
			why := catalog.Reason{Kind: catalog.NeedsUnavailable, Name: string(need.ID)}
			if now, ok := out[e.ID]; ok {
				e = now
			} else {
				changed := *e
				e = &changed
				out[e.ID] = e
			}
			if slices.Contains(e.Missing, why) || need.ID == e.ID {
				continue
			}
			if e.Missing = append(slices.Clip(e.Missing), why); e.Available {
				e.Available = false
				useless = append(useless, e)
			}
		}
	}
	return out
}

// without returns an entry that has lost what it needs and is not seen.
func (v View) without(e *Entry) *Entry {
	out := *e
	out.Requires, out.Missing = nil, nil
	for _, m := range e.Missing {
		if m.Kind != catalog.NeedsUnknown && m.Kind != catalog.NeedsUnavailable {
			out.Missing = append(out.Missing, m)
		}
	}
	for _, name := range e.RequiredTools {
		missing := catalog.Reason{Kind: catalog.NeedsUnknown, Name: name}
		id, ok := v.meant(name)
		switch {
		case ok:
			out.Requires = append(out.Requires, id)
		case slices.Contains(e.Missing, missing) || v.knownAs(e, name) || v.withoutOwn(name):
			out.Missing = append(out.Missing, missing)
		}
	}
	for _, m := range e.Missing { // unless it is about what is not seen
		if m.Kind == catalog.NeedsUnavailable && slices.Contains(out.Requires, capability.ID(m.Name)) {
			out.Missing = append(out.Missing, m)
		}
	}
	out.Available = len(out.Missing) == 0
	return &out
}

// meant returns the entry of the view that a requirement means.
func (v View) meant(name string) (capability.ID, bool) {
	for _, id := range []capability.ID{capability.ID(name), capability.MakeID(capability.KindTool, name)} {
		if i, ok := v.snapshot.Ordinal(id); ok && v.shows(i) {
			return id, true
		}
	}
	if e, err := v.snapshot.LookupAmong(name, v.shows); err == nil {
		return e.ID, true
	}
	return "", false
}

// withoutOwn reports whether a requirement refers to one of Ken's own tools
// that the viewer may not use, and to nothing else in the catalog.
func (v View) withoutOwn(name string) bool {
	if v.own == nil || v.ownCalled(name) != nil {
		return false
	}
	if _, ok := v.meant(name); ok {
		return false
	}
	_, err := v.own.Lookup(name)
	return err == nil || v.ownAlias(name) != nil
}

// knownAs reports whether a requirement of an entry is one of those that the
// catalog found: it is not a program's name.
func (v View) knownAs(e *Entry, name string) bool {
	return slices.ContainsFunc(e.Requires, func(id capability.ID) bool {
		need, ok := v.snapshot.Get(id)
		return ok && (string(id) == name || id == capability.MakeID(capability.KindTool, name) || need.Name == name)
	})
}

// withoutPaths returns an entry without the folders of the disk it is on.
func withoutPaths(e *Entry) *Entry {
	bare := withoutFolders(e.Origin)
	if bare == e.Origin && e.Standing == "" && e.Run == nil {
		return e
	}
	out, c := *e, *e.Capability
	c.Origin = bare
	c.Unavailable = withoutFolder(c.Unavailable, e.Origin)
	if c.Run != nil {
		run := *c.Run
		run.Argv = slices.Clone(run.Argv)
		for i, arg := range run.Argv {
			if filepath.IsAbs(arg) {
				run.Argv[i] = lastOf(arg)
			}
		}
		c.Run = &run
	}
	out.Capability, out.Standing = &c, lastOf(e.Standing)
	out.Reasons, out.Missing = slices.Clone(e.Reasons), slices.Clone(e.Missing)
	short := func(text string) string {
		return leadingFolders().ReplaceAllString(withoutFolder(text, e.Origin), "$1")
	}
	for _, list := range []catalog.Reasons{out.Reasons, out.Missing} {
		for i, r := range list {
			list[i].Name, list[i].Text = short(r.Name), short(r.Text)
		}
	}
	return &out
}

// withoutFolders returns a place by its last names.
func withoutFolders(o capability.Origin) capability.Origin {
	o.Source, o.Path = lastOf(o.Source), lastOf(o.Path)
	return o
}

// lastOf returns the last name of a path; an address stays what it is.
func lastOf(path string) string {
	if strings.Contains(path, "://") {
		return path
	}
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// leadingFolders matches the folders before a name in a text, but not those of an
// address.
var leadingFolders = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(^|[\s("'])(?:/[^\s:/]+)+/`) })

// withoutFolder takes the folders of a place out of a text.
func withoutFolder(text string, o capability.Origin) string {
	for _, path := range []string{o.Path, o.Source} {
		if folder := strings.TrimSuffix(path, lastOf(path)); folder != "" {
			text = strings.ReplaceAll(text, folder, "")
		}
	}
	return text
}
