package source

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/source/format"
)

// replaceLocked puts what a walk found in the place of what the scopes held,
// all of the tree when scopes is nil, and reports whether that changes the
// batch.
func (t *Tree) replaceLocked(w *walk, scopes []string) (changed bool) {
	gone := t.missingLocked(w, scopes)
	tied := false // units that hang on other files are among them
	for _, key := range gone {
		tied = tied || t.units[key].isTied()
		changed = changed || t.units[key].shows()
		delete(t.units, key)
	}
	if t.units == nil {
		t.units = make(map[string]*loadedUnit, len(w.found))
	}
	var came []string
	for key, now := range w.found {
		old, had := t.units[key]
		if !had {
			came = append(came, key)
		}
		use := now
		if w.fresh || !had {
			now.faults = faultsOf(now.problems)
		} else {
			use = settle(old, now)
		}
		changed = changed || use != old && (!had && use.shows() || had && !use.showsAs(old))
		tied = tied || use.isTied() || had && old.isTied()
		t.putLocked(key, use)
	}
	t.reorderLocked(gone, came)
	if tied {
		t.retieLocked()
	}
	return changed
}

// missingLocked returns the keys within the scopes that the walk did not find.
// What lies in a folder that is there but does not open is not missing.
func (t *Tree) missingLocked(w *walk, scopes []string) []string {
	var gone []string
	kept := map[string]int{}
	for key := range t.keysLocked(scopes) {
		if _, ok := w.found[key]; ok {
			continue
		}
		i := slices.IndexFunc(w.unlisted, func(dir string) bool { return dir == "." || strings.HasPrefix(key, dir+"/") })
		if i < 0 || w.fresh {
			gone = append(gone, key)
			continue
		}
		kept[w.unlisted[i]] += len(t.units[key].capabilities)
	}
	for dir, n := range kept {
		if h := w.found[dir]; n > 0 {
			h.problems = append(h.problems, lastGood(h.problems[0].Origin, n))
		}
	}
	return gone
}

// keysLocked returns the keys at and below the scopes, which do not overlap. A
// scope with a trailing slash is the unit alone.
func (t *Tree) keysLocked(scopes []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if scopes == nil || slices.Contains(scopes, ".") {
			for _, key := range t.order {
				if !yield(key) {
					return
				}
			}
			return
		}
		for _, scope := range scopes {
			p, alone := strings.CutSuffix(scope, "/")
			if _, ok := t.units[p]; ok && !yield(p) {
				return
			}
			if alone {
				continue
			}
			for _, after := range []string{"\x00", "/"} { // problems, and what is below
				i, _ := slices.BinarySearch(t.order, p+after)
				for ; i < len(t.order) && strings.HasPrefix(t.order[i], p+after); i++ {
					if !yield(t.order[i]) {
						return
					}
				}
			}
		}
	}
}

func (t *Tree) putLocked(key string, h *loadedUnit) {
	t.units[key] = h
	if i, ok := slices.BinarySearch(t.order, key); ok {
		t.list[i] = h
	}
}

// reorderLocked takes keys out of the order and others in, once t.units is as
// it shall be.
func (t *Tree) reorderLocked(gone, came []string) {
	if len(gone) == 0 && len(came) == 0 {
		return
	}
	slices.Sort(gone)
	slices.Sort(came)
	order := make([]string, 0, len(t.units))
	for _, key := range t.order {
		if len(gone) > 0 && gone[0] == key {
			gone = gone[1:]
			continue
		}
		for len(came) > 0 && came[0] < key {
			order, came = append(order, came[0]), came[1:]
		}
		order = append(order, key)
	}
	t.order = append(order, came...)
	t.list = make([]*loadedUnit, len(t.order))
	for i, key := range t.order {
		t.list[i] = t.units[key]
	}
}

// isTied reports whether other files than its own have to do with the unit.
func (h *loadedUnit) isTied() bool { return len(h.links) > 0 || len(h.replaces) > 0 }

func (t *Tree) retieLocked() {
	t.targets, t.replaced = map[string][]string{}, t.replacedLocked()
	for i, h := range t.list {
		for _, target := range h.links {
			t.targets[target] = append(t.targets[target], t.order[i])
		}
	}
}

// settle decides what is used of a unit that was read again: what was read, or
// what was read before where this reading is a setback. A file that an editor
// is still writing must not cost what it held.
func settle(old, now *loadedUnit) *loadedUnit {
	if now == old {
		return now
	}
	now.faults = faultsOf(now.problems)
	if !old.holds() {
		return now
	}
	now.reusePointers(old)
	reason, whole, ok := now.setback(old)
	if !ok {
		return now
	}
	if reason.Message != "" {
		now.problems = append(now.problems, reason)
	}
	if whole {
		return now.replacedBy(old)
	}
	return now.joinedBy(old)
}

// setback tells whether less was read than before because something is wrong.
// whole means that nothing of the new reading is used.
func (h *loadedUnit) setback(old *loadedUnit) (reason capability.Problem, whole, ok bool) {
	emptied, gone := h.lost(old.look)
	switch {
	case emptied != "":
		return old.complaint("empty-file", emptied+" is empty",
			"write it again; or delete it, to do without what it held"), true, true
	case h.format == "" && len(h.problems) == 0:
		return old.complaint("unknown-format", "no format that Ken knows, though it was one before",
			"fix the file; or delete it, to do without what it held"), true, true
	case h.format == "" && h.problems[0].Code == "missing-file":
		return reason, false, false // a link to a file that was deleted
	case h.folder && gone || !hasNewFault(old.faults, h.faults) && (h.holds() || len(h.faults) == 0):
		return reason, false, false
	}
	return reason, h.folder || !h.holds(), true
}

// complaint makes a problem about the unit's own file.
func (h *loadedUnit) complaint(code, message, fix string) capability.Problem {
	var at capability.Origin
	switch {
	case len(h.capabilities) > 0:
		at = h.capabilities[0].Origin
	case len(h.presets) > 0:
		at = h.presets[0].Origin
	case len(h.documents) > 0:
		at = h.documents[0].Origin
	}
	at.Line, at.Pointer, at.Offset, at.Length = 0, "", 0, 0
	return capability.Problem{Severity: capability.Grave, Code: code, Origin: at, Message: message, Fix: fix}
}

// replacedBy keeps a unit as it was, with what is wrong with it now.
func (h *loadedUnit) replacedBy(old *loadedUnit) *loadedUnit {
	kept := *old
	kept.print, kept.empty, kept.links = h.print, h.empty, h.links
	kept.problems = append(h.problems, lastGood(h.problems[0].Origin, len(old.capabilities)))
	kept.stale = true
	return &kept
}

// joinedBy adds to what was read all that was there before and is missing.
func (h *loadedUnit) joinedBy(old *loadedUnit) *loadedUnit {
	have := make(map[capability.ID]bool, len(h.capabilities))
	for _, c := range h.capabilities {
		have[c.ID] = true
	}
	n := 0
	for _, c := range old.capabilities {
		if have[c.ID] {
			continue
		}
		n++
		h.capabilities = append(h.capabilities, c)
		if d, ok := old.details[c.ID]; ok && h.details != nil {
			h.details[c.ID] = d
		}
	}
	for _, p := range old.presets {
		if !slices.ContainsFunc(h.presets, func(q capability.Preset) bool { return q.Name == p.Name }) {
			n++
			h.presets = append(h.presets, p)
		}
	}
	if n == 0 {
		return h
	}
	for _, p := range old.replaces {
		if !slices.Contains(h.replaces, p) {
			h.replaces = append(h.replaces, p)
		}
	}
	h.problems = append(h.problems, lastGood(h.problems[0].Origin, n))
	h.faults, h.stale = old.faults, true
	return h
}

func lastGood(at capability.Origin, n int) capability.Problem {
	what := "what it held is"
	switch {
	case n == 1:
		what = "one capability of it is"
	case n > 1:
		what = fmt.Sprintf("%d capabilities of it are", n)
	}
	return capability.Problem{
		Severity: capability.Warning, Code: "last-good", Origin: at,
		Message: what + " still used as last read", Fix: "fix what is wrong with it",
	}
}

// reusePointers puts capabilities that read the same as before back as the
// same pointers, so that those who hold on to them see that nothing changed.
func (h *loadedUnit) reusePointers(old *loadedUnit) {
	was := make(map[capability.ID]*capability.Capability, len(old.capabilities))
	for _, c := range old.capabilities {
		was[c.ID] = c
	}
	for i, c := range h.capabilities {
		if o, ok := was[c.ID]; ok && o.Hash == c.Hash && reflect.DeepEqual(o, c) {
			h.capabilities[i] = o
		}
	}
}

// holds reports whether anything was read from the unit.
func (h *loadedUnit) holds() bool {
	return len(h.capabilities) > 0 || len(h.presets) > 0 || len(h.documents) > 0
}

// shows reports whether the batch has anything from the unit.
func (h *loadedUnit) shows() bool { return h.holds() || len(h.problems) > 0 }

// showsAs reports whether the batch has the same from both.
func (h *loadedUnit) showsAs(old *loadedUnit) bool {
	return slices.Equal(h.capabilities, old.capabilities) && slices.Equal(h.problems, old.problems) &&
		slices.Equal(h.documents, old.documents) && reflect.DeepEqual(h.presets, old.presets)
}

// faultsOf returns the problems that may come from a file that is only half
// written.
func faultsOf(problems []capability.Problem) []capability.Problem {
	var out []capability.Problem
	for _, p := range problems {
		if p.Severity == capability.Grave || p.Message == format.UnclosedFrontmatter {
			out = append(out, p)
		}
	}
	return out
}

// hasNewFault reports whether something is wrong now that was not before,
// wherever it stands. With a file that always had faults, what the user takes
// out of it is out.
func hasNewFault(before, now []capability.Problem) bool {
	type fault struct{ code, message string }
	known := map[fault]int{}
	for _, p := range before {
		known[fault{p.Code, p.Message}]++
	}
	for _, p := range now {
		f := fault{p.Code, p.Message}
		if known[f]--; known[f] < 0 {
			return true
		}
	}
	return false
}

// replacedLocked returns the files that a unit elsewhere brings, so that their
// own units say nothing.
func (t *Tree) replacedLocked() map[string]bool {
	var out map[string]bool
	for _, h := range t.units {
		for _, p := range h.replaces {
			if out == nil {
				out = map[string]bool{}
			}
			out[p] = true
		}
	}
	return out
}
