package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"ken/capability"
	hosts "ken/internal/address"
	"ken/internal/coldsort"
	"ken/internal/spelling"
	"ken/internal/yamldoc"
)

// A setting is one key of a map that is read into an S: of ken.yaml into a
// Config, of an item of catalog.sources into a Source.
type setting[S any] struct {
	name string
	doc  string
	text bool // a plain word or text: ken config set takes it as typed
	form form // see kind

	profiled bool // discovery.profile may give the value where no file does
	governed bool // policy.profile gives it

	read    func(r *reading, at spot, v yamldoc.Value, into *S)
	show    func(from *S) any
	noWider func(a, b *S) bool
	take    func(into, from *S)
	join    func(into, from *S) // take, for a project's file
	joins   bool                // join adds to what there is, and never widens it
	exact   bool                // the default excuses nothing: what the user has counts
}

// entry makes the setting for the part of an S that at points to.
func entry[S, T any](name, doc string, at func(*S) *T, k kind[T]) setting[S] {
	s := setting[S]{
		name: name, doc: doc, text: k.text, form: k.form,
		read: func(r *reading, where spot, v yamldoc.Value, into *S) {
			if v.Any == nil && !k.empty {
				r.fault(where, "no-value", "write one, or remove the key", "%s has no value", where.key)
				return
			}
			if x, ok := k.parse(r, where, v); ok {
				*at(into) = x
			}
		},
		show:    func(from *S) any { return k.show(*at(from)) },
		noWider: func(a, b *S) bool { return k.noWider(*at(a), *at(b)) },
		take:    func(into, from *S) { *at(into) = *at(from) },
	}
	s.join = s.take
	if k.join != nil {
		s.joins = true
		s.join = func(into, from *S) { *at(into) = k.join(*at(into), *at(from)) }
	}
	return s
}

// byProfile marks a key whose value a profile may give.
func (s setting[S]) byProfile() setting[S] {
	s.profiled = true
	return s
}

const (
	mostTokens = 1_000_000
	mostHits   = 1000
	pinPrefix  = "catalog.pins."
	overPrefix = "catalog.overrides."
)

// hashKey splits a key such as "catalog.pins.ID" into the key of the map and
// the id.
func hashKey(key string) (whole, id string, ok bool) {
	for _, prefix := range []string{pinPrefix, overPrefix} {
		if id, ok := strings.CutPrefix(key, prefix); ok {
			return strings.TrimSuffix(prefix, "."), norm.NFC.String(id), true
		}
	}
	return "", "", false
}

// namedKey splits a key such as "databases.shop.path" or "mcp.servers.files" into
// the key of the map, and the name with the keys below it.
func namedKey(key string) (whole string, below []string, ok bool) {
	for _, whole := range []string{databasesKey, "mcp.servers"} {
		if rest, found := strings.CutPrefix(key, whole+"."); found {
			below := strings.Split(rest, ".")
			return whole, below, !slices.Contains(below, "")
		}
	}
	return "", nil, false
}

// WholeKey returns the setting that a key is part of: databases for
// databases.shop.path, and any other key as it is.
func WholeKey(key string) string {
	if whole, _, ok := namedKey(key); ok {
		return whole
	}
	return key
}

// settings lists every key of ken.yaml, in the order in which people read them.
func settings() []setting[Config] {
	return slices.Concat(modelSettings(), capabilitiesSettings(), catalogSettings(), discoverySettings(), policySettings(),
		mcpSettings(), databaseSettings(), chatSettings(), limitsSettings(), requestsSettings(), sandboxSettings(), toolSettings(), recordSettings(), experimentSettings(), serveSettings(), storeSettings())
}

func checkAddr(s string) (fix string, err error) {
	host, port, err := net.SplitHostPort(s)
	switch n, perr := strconv.ParseUint(port, 10, 16); {
	case err != nil || perr != nil || strconv.FormatUint(n, 10) != port || strings.ContainsAny(host, " \t/@"):
		return "write it as 127.0.0.1:7777", errors.New("is not host:port")
	case host == "":
		return "write 127.0.0.1:" + port, errors.New("names no host")
	}
	return "", nil
}

// Loopback reports whether a host can be reached from this machine only.
func Loopback(host string) bool {
	return hosts.Loopback(host)
}

// settingOf finds the setting of a key, for the operation op.
func settingOf(op, key string) (setting[Config], error) {
	all := settings()
	i := slices.IndexFunc(all, func(s setting[Config]) bool { return s.name == key })
	if i >= 0 {
		return all[i], nil
	}
	var names, within []string
	for _, s := range all {
		if strings.HasPrefix(key, s.name+".") {
			return setting[Config]{}, invalid(op, key, "there is no such key", s.name+" is one value: set it whole with ken config set "+s.name+", or edit it in ken.yaml")
		}
		names = append(names, s.name)
		if rest, ok := strings.CutPrefix(s.name, key+"."); ok {
			within = append(within, rest)
		}
	}
	if len(within) > 0 {
		return setting[Config]{}, invalid(op, key, "this is a section, not a key", "name one of its keys: "+strings.Join(within, ", "))
	}
	return setting[Config]{}, invalid(op, key, "there is no such key", meant(key, names))
}

// meant suggests what to type instead of an unknown key.
func meant(key string, names []string) string {
	const all = "ken config get lists all"
	if inside := strings.Split(key, "."); len(inside) > 1 && (inside[0] == "tools" || inside[0] == "global") && !slices.Contains(inside, "") && !strings.ContainsFunc(key, oddInKey) {
		// A path of tool-access.json, as refusals name their rules.
		return fmt.Sprintf("it is a part of %s, which is set as a whole: ken config set %[1]s '{%s: VALUE%s'", accessKey, strings.Join(inside, ": {"), strings.Repeat("}", len(inside)))
	}
	if guess := nearestKey(key, "", names, names); guess != "" {
		return "did you mean " + guess + "?"
	}
	near := likely(key, names)
	if len(near) == 0 {
		return all
	}
	return "similar keys: " + strings.Join(near, ", ") + "; " + all
}

func oddInKey(r rune) bool {
	return r != '.' && r != '_' && r != '-' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}

// likely returns the few keys that share most words with an unknown key, the most
// similar first. If none shares a word, it returns those that are spelled most
// like it.
func likely(key string, names []string) []string {
	const most, longest, shortest = 8, 64, 3 // names given, bytes of a key that are looked at, letters of a word
	if len(key) > longest {
		return nil
	}
	words := strings.FieldsFunc(strings.ToLower(key), func(r rune) bool { return r == '.' || r == '_' || r == '-' || r == ' ' })
	type guess struct {
		name         string
		words, edits int
	}
	var guesses []guess
	for _, name := range names {
		g := guess{name: name, edits: spelling.Distance(key, name)}
		for _, word := range words {
			if word = strings.TrimSuffix(word, "s"); len(word) >= shortest && hasWord(name, word) {
				g.words++
			}
		}
		if g.words > 0 || g.edits <= len(key)/2 {
			guesses = append(guesses, g)
		}
	}
	coldsort.Stable(guesses, func(a, b guess) int {
		return cmp.Or(cmp.Compare(b.words, a.words), cmp.Compare(a.edits, b.edits), strings.Compare(a.name, b.name))
	})
	var out []string
	for _, g := range guesses[:min(len(guesses), most)] {
		out = append(out, g.name)
	}
	return out
}

// hasWord reports whether a word of a key begins with another, in lower case:
// maxTimeout has timeout, and catalog has no log. A short word must be all of
// it: allowCards has no all.
func hasWord(name, word string) bool {
	const short = 3
	edge := func(i int) bool {
		return i == 0 || i == len(name) || name[i] == '.' || name[i-1] == '.' || name[i] >= 'A' && name[i] <= 'Z'
	}
	for i := range len(name) - len(word) + 1 {
		if edge(i) && (len(word) > short || edge(i+len(word))) && strings.EqualFold(name[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// hint names the key that was meant, or those that there are. known are the
// keys that may stand there, all the full names of every key.
func hint(key, prefix string, known, all []string) string {
	if near := nearestKey(key, prefix, known, all); near != "" {
		return "did you mean " + near + "?"
	}
	return "known keys here: " + strings.Join(known, ", ")
}

// nearestKey returns the full name of the key that was probably meant, or "".
func nearestKey(key, prefix string, known, all []string) string {
	if near := spelling.Nearest(key, known); near != "" {
		return prefix + near
	}
	for _, name := range all {
		if strings.EqualFold(name[strings.LastIndexByte(name, '.')+1:], key) {
			return name
		}
	}
	return ""
}

func invalid(op, key, cause, fix string) error {
	return &capability.Error{Kind: capability.Invalid, Op: op, Target: plain(key), Err: errors.New(cause), Fix: fix}
}

// plain makes a word from a file fit for a message: one that is not plain
// printable text is quoted, a long one is shortened and says so.
func plain(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		s = fmt.Sprintf("%s…(%d characters)", string(r[:most]), len(r))
	}
	if s == "" || strings.ContainsFunc(s, unseen) {
		return strconv.QuoteToASCII(s)
	}
	if quoted := strconv.Quote(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}
