package source

import (
	"fmt"
	"path"
	"strings"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
	"ken/internal/spelling"
)

// A file whose name is almost one that a format reads would be passed over
// silently, and the mistake would be hard to see. So such names are reported.

// A fileName is a name that makes a file something to read, and the stems by
// which people mean it.
type fileName struct {
	name  string
	stems []string
}

func knownNames() []fileName {
	return []fileName{
		{"CAPABILITY.yaml", []string{"capability", "capabilities"}},
		{"SKILL.md", []string{"skill", "skills", "skil", "skils"}},
		{"channels.yaml", []string{"channels", "channel"}},
		{"extensions.yaml", []string{"extensions", "extension"}},
		{"presets.yaml", []string{"presets", "preset"}},
		{"capabilities.registry.yaml", []string{"capabilities.registry", "capability.registry", "capabilities-registry"}},
	}
}

// isList reports whether the file is also read with the other ends of a list.
func (n fileName) isList() bool { return n.name == n.stems[0]+".yaml" }

// nearMiss returns the path that was probably meant by one that no format
// claims, or "".
func nearMiss(place string) string {
	base := safefs.BaseName(place)
	stem := strings.TrimSuffix(base, path.Ext(base))
	for _, known := range knownNames() {
		for _, name := range known.stems {
			if !isNearStem(stem, name) {
				continue
			}
			if known.isList() && format.IsListFile(place, known.stems[0]) {
				return "" // the name is right; what the file says is not ours
			}
			return known.name
		}
	}
	if !safefs.HasExt(place, ".md") || isUsualFile(base) {
		return ""
	}
	// command/x.md: one letter off a folder that makes every page in it one.
	for _, folder := range []string{"commands", "cards"} {
		if safefs.InFolder(place, strings.TrimSuffix(folder, "s")) {
			return folder + "/" + path.Base(place)
		}
	}
	return ""
}

// isNearStem allows one slip, in a long name two, and in a short one none:
// too many words are like it.
func isNearStem(given, name string) bool {
	slips := 1
	switch {
	case len(name) > 8:
		slips = 2
	case len(name) < 7:
		slips = 0
	}
	return spelling.Distance(given, name) <= slips
}

// isUsualFile knows the files that lie in any folder and are meant for people
// or for other programs.
func isUsualFile(base string) bool {
	stem, _, _ := strings.Cut(base, ".")
	switch stem {
	case "readme", "license", "licence", "copying", "notice", "authors", "changelog", "changes", "history", "contributing",
		"code_of_conduct", "security", "support", "todo", "index", "package", "package-lock", "tsconfig", "composer", "mkdocs",
		"claude", "agents", "gemini", "docker-compose", "pnpm-lock", "":
		return true
	}
	return false
}

// remark reports a file that no format claims: that its name is almost one that
// is read, or, if the file is all there is to read, that its format is unknown.
func (w *walk) remark(p string) {
	h := w.found[p]
	switch {
	case h == nil || h.format != "" || len(h.problems) > 0:
	case w.t.only != "":
		w.unknown(p)
	default:
		if meant := nearMiss(w.t.root.Place(p)); meant != "" {
			given := path.Base(p)
			if strings.Contains(meant, "/") {
				given = path.Join(path.Base(path.Dir(w.t.root.Place(p))), given)
			}
			w.warning(p, "near-miss-name", fmt.Sprintf("%s is not read; did you mean %s?", given, meant), "rename it to "+meant)
		}
	}
}

// warning records something about a path that costs nothing.
func (w *walk) warning(p, code, message, fix string) {
	w.problem(p, code, message, fix)
	w.found[p+"\x00"+code].problems[0].Severity = capability.Warning
}

const maxNamed = 5

// emptyLocked reports a configured tree that holds nothing at all.
func (t *Tree) emptyLocked() []capability.Problem {
	if t.cfg.Optional || t.root == nil || t.cfg.Files != nil {
		return nil
	}
	var names []string
	for i, h := range t.list {
		if h.shows() || h.format != "" {
			return nil // a list that is empty was recognised
		}
		if name := t.order[i]; !isUsualFile(safefs.BaseName(name)) {
			names = append(names, name)
		}
	}
	p := capability.Problem{
		Severity: capability.Warning, Code: "nothing-found", Message: "no capability found here", Fix: "see docs/sources.md for what can be read",
		Origin: capability.Origin{Source: t.cfg.Name, Location: capability.Local, Path: t.root.Display(".")},
	}
	if n := len(names); n > 0 {
		files := "1 file was"
		if n > 1 {
			files = fmt.Sprintf("%d files were", n)
		}
		more := ""
		if n > maxNamed {
			names, more = names[:maxNamed], ", …"
		}
		p.Message += fmt.Sprintf("; %s not recognised: %s%s", files, strings.Join(names, ", "), more)
	}
	return []capability.Problem{p}
}
