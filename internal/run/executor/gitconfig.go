package executor

import (
	"errors"
	"slices"
	"strings"

	"ken/internal/programs"
)

// A gitSetting is one line of a git configuration. Section and key are in lower
// case; sub is what stands in quotes behind the section.
type gitSetting struct{ section, sub, key, value string }

// name returns the setting's name without the part that is free text.
func (s gitSetting) name() string { return s.section + "." + s.key }

var errGitConfig = errors.New("the configuration cannot be read")

// readGitConfig reads a configuration by git's own rules: lines may be
// continued, values quoted, and a key may follow its section on one line.
func readGitConfig(text string) ([]gitSetting, error) {
	r := gitReader{text: strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")}
	var out []gitSetting
	section, sub, ok := "", "", true
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f':
			r.at++
		case c == '#' || c == ';':
			r.line()
		case c == '[':
			if section, sub, ok = r.section(); !ok {
				return out, errGitConfig
			}
		default:
			key, value, ok := r.setting()
			if !ok || section == "" {
				return out, errGitConfig
			}
			out = append(out, gitSetting{section, sub, key, value})
		}
	}
	return out, nil
}

// A gitReader is a place in the text of a configuration.
type gitReader struct {
	text string
	at   int
}

// line skips the rest of the line.
func (r *gitReader) line() {
	if i := strings.IndexByte(r.text[r.at:], '\n'); i >= 0 {
		r.at += i + 1
	} else {
		r.at = len(r.text)
	}
}

// word takes characters of names.
func (r *gitReader) word(more string) string {
	start := r.at
	for r.at < len(r.text) {
		c := r.text[r.at]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && strings.IndexByte(more, c) < 0 {
			break
		}
		r.at++
	}
	return strings.ToLower(r.text[start:r.at])
}

func (r *gitReader) blanks() {
	for r.at < len(r.text) && (r.text[r.at] == ' ' || r.text[r.at] == '\t') {
		r.at++
	}
}

func (r *gitReader) take(c byte) bool {
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

// section reads [section] or [section "sub"].
func (r *gitReader) section() (section, sub string, ok bool) {
	r.at++
	section = r.word("-.")
	if first, rest, dotted := strings.Cut(section, "."); dotted { // the old way to write a subsection
		section, sub = first, rest
	}
	r.blanks()
	if r.take('"') {
		var b strings.Builder
		for !r.take('"') {
			r.take('\\')
			if r.at >= len(r.text) || r.text[r.at] == '\n' {
				return "", "", false
			}
			b.WriteByte(r.text[r.at])
			r.at++
		}
		sub = b.String()
	}
	return section, sub, section != "" && r.take(']')
}

// setting reads key, or key = value.
func (r *gitReader) setting() (key, value string, ok bool) {
	if key = r.word("-"); key == "" || key[0] < 'a' {
		return "", "", false
	}
	r.blanks()
	if r.at >= len(r.text) || r.take('\n') {
		return key, "", true
	}
	if !r.take('=') {
		return "", "", false
	}
	r.blanks()
	var b strings.Builder
	for quoted := false; ; {
		if r.at >= len(r.text) {
			return key, strings.TrimSpace(b.String()), !quoted
		}
		c := r.text[r.at]
		r.at++
		switch {
		case c == '\n':
			return key, strings.TrimSpace(b.String()), !quoted
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '#' || c == ';'):
			r.line()
			return key, strings.TrimSpace(b.String()), true
		case c == '\\':
			if r.at >= len(r.text) {
				return "", "", false
			}
			e := r.text[r.at]
			r.at++
			switch i := strings.IndexByte(`tbn"\`, e); {
			case e == '\n': // the value goes on
			case i < 0:
				return "", "", false
			default:
				b.WriteByte("\t\b\n\"\\"[i])
			}
		default:
			b.WriteByte(c)
		}
	}
}

// harmless reports whether a setting cannot make git run a program: it is known
// not to, or the environment of gitEnvironment overrides it. What is not known
// is not harmless.
func (s gitSetting) harmless() bool {
	is := func(keys ...string) bool { return slices.Contains(keys, s.key) }
	switch s.section {
	case "core":
		return is("repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks", "autocrlf", "eol", "safecrlf", "quotepath", "abbrev",
			"compression", "loosecompression", "bigfilethreshold", "packedgitlimit", "packedgitwindowsize", "deltabasecachelimit", "trustctime", "checkstat", "preloadindex", "untrackedcache",
			"whitespace", "commentchar", "commentstring", "excludesfile", "attributesfile", "sharedrepository", "protecthfs", "protectntfs", "longpaths", "fscache", "sparsecheckout",
			"sparsecheckoutcone", "multipackindex", "commitgraph", "usereplacerefs", "notesref", "hidedotfiles", "createobject", "fsync", "fsyncmethod",
			"fsmonitor", "hookspath", "pager", "sshcommand", "editor", "askpass")
	case "sequence":
		return is("editor")
	case "extensions":
		return is("worktreeconfig", "objectformat", "refstorage", "preciousobjects", "noop", "compatobjectformat", "relativeworktrees")
	case "user", "author", "committer":
		return is("name", "email", "useconfigonly", "signingkey")
	case "remote":
		return is("url", "pushurl", "fetch", "push", "tagopt", "prune", "prunetags", "mirror", "skipdefaultupdate", "skipfetchall", "pushdefault", "gh-resolved", "followremotehead")
	case "branch":
		return is("remote", "merge", "rebase", "pushremote", "description", "autosetupmerge", "autosetuprebase", "sort", "vscode-merge-base", "gh-merge-base", "github-pr-owner-number", "base")
	case "submodule":
		return is("url", "active", "branch", "path", "fetchjobs")
	case "alias":
		return s.looks()
	case "pager":
		return slices.Contains([]string{"", "true", "false", "yes", "no", "on", "off", "0", "1"}, strings.ToLower(s.value))
	case "credential":
		return is("helper", "username", "usehttppath") && s.sub == ""
	case "diff":
		return s.sub == "" && is("algorithm", "renames", "renamelimit", "colormoved", "colormovedws", "mnemonicprefix", "noprefix", "context", "interhunkcontext", "wserrorhighlight", "indentheuristic",
			"statgraphwidth", "statnamewidth", "ignoresubmodules", "suppressblankempty", "relative", "wordregex", "autorefreshindex")
	case "merge":
		return s.sub == "" && is("conflictstyle", "ff", "renames", "renamelimit", "log", "stat", "directoryrenames", "autostash", "branchdesc")
	case "status":
		return is("showuntrackedfiles", "branch", "short", "relativepaths", "aheadbehind", "renames", "showstash", "displaycommentprefix")
	case "log":
		return is("date", "decorate", "follow", "abbrevcommit", "showroot", "mailmap", "excludedecoration")
	case "commit":
		return is("template", "verbose", "cleanup", "status")
	case "gc":
		return is("auto", "autopacklimit", "autodetach", "pruneexpire", "reflogexpire", "reflogexpireunreachable", "worktreepruneexpire", "writecommitgraph")
	case "receive":
		return is("denycurrentbranch", "denynonfastforwards", "denydeletes", "fsckobjects")
	case "lfs":
		return is("repositoryformatversion", "access", "locksverify")
	case "push":
		return is("default", "autosetupremote", "followtags")
	case "pull":
		return is("rebase", "ff")
	case "fetch":
		return is("prune", "prunetags", "parallel", "writecommitgraph", "fsckobjects", "showforcedupdates")
	case "transfer":
		return is("fsckobjects")
	case "rebase":
		return is("autosquash", "autostash", "updaterefs", "stat")
	case "index":
		return is("version", "threads", "sparse")
	case "init":
		return is("defaultbranch")
	case "checkout":
		return is("defaultremote", "guess", "workers")
	case "maintenance":
		return is("auto", "strategy")
	case "http":
		return is("postbuffer", "version", "maxrequests")
	case "gui":
		return is("wmstate", "geometry")
	case "advice", "color", "column", "rerere", "apply", "blame", "i18n", "versionsort", "pack", "feature", "tag":
		return !strings.HasSuffix(s.key, "hook") && !strings.HasSuffix(s.key, "command") && !strings.HasSuffix(s.key, "program") && !strings.HasSuffix(s.key, "cmd") && s.key != "gpgsign"
	}
	return false
}

// looks reports whether an alias stands for a command that only looks.
func (s gitSetting) looks() bool {
	if s.value == "" || strings.ContainsAny(s.value, "!'\"\\") || strings.HasPrefix(s.value, "-") {
		return false
	}
	argv := append([]string{"git"}, strings.Fields(s.value)...)
	return programs.GitLooks(argv) && !programs.Risky(argv, 1)
}
