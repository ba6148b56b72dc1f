package connect

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ken/internal/secret"
	"ken/internal/secret/detect"
	"ken/internal/serverenv"
	"ken/internal/untrusted"
)

// server turns an entry into a server of Ken. Why says what keeps it where it
// is; then nothing of it is in the plan.
func (b *builder) server(f File, p place, name string, v any, line int) (s Server, why string) {
	fs, ok := fieldsOf(v)
	if !ok {
		return s, "it is not an object with settings"
	}
	s, why = b.client.parse(fs)
	switch {
	case len(fs.wrong) > 0:
		return s, fs.what()
	case why != "":
		return s, why
	}
	s.Name, s.Line = safeName(name), line
	s.Ken = Extra{From: []string{b.client.Name}, Project: p.project}
	if s.Name != name {
		s.Ken.Name = name
	}
	if p.project != "" && s.Command != "" && s.Cwd == "" {
		s.Cwd = p.project // where the client started it
	}
	t := &translator{builder: b, server: s.Name, where: fmt.Sprintf("%s, %s", f.Path, untrusted.Line(name, 80))}
	t.refs = refs{notation: b.client.notation, home: b.options.Home, project: p.project, getenv: b.options.environment().Getenv, input: t.input}
	t.run(&s)
	if t.why == "" && b.client.Name == "codex" {
		t.why = codexVariables(fs, &s)
	}
	if t.why != "" {
		return s, t.why
	}
	t.commit()
	b.remark(f, p, name, &s, fs.rest())
	return s, ""
}

// remark says what a person should know about a server that moves.
func (b *builder) remark(f File, p place, name string, s *Server, rest []string) {
	shown := untrusted.Line(name, 80)
	if len(rest) > 0 {
		b.note("%s: Ken does not know and leaves behind: %s", shown, untrusted.Line(strings.Join(rest, ", "), 200))
	}
	if b.barred(name) && !s.Disabled {
		s.Disabled = true
		b.note("%s: a list in %s leaves it out, so it is switched off", shown, b.barredIn)
	}
	if b.client.Name == "claude" && f.Project != "" && !b.approved[name] && !s.Disabled {
		s.Disabled = true
		b.note("%s: you have not approved it in Claude Code, so it is switched off; delete \"disabled\" in mcp.json to use it", shown)
	}
	if s.Command != "" && !s.Disabled {
		getenv := b.options.environment().Getenv
		missed := serverenv.Missed(serverenv.Program{Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env}, "",
			func(name string) bool { return getenv(name) != "" }, func(string) bool { return false })
		if len(missed) > 0 {
			b.note("%s: %s; to pass %s on, write %s into its entry in mcp.json", shown, serverenv.Sentence(missed), serverenv.Them(missed), serverenv.Line(missed))
		}
	}
	if p.project == "" && s.Cwd == "" && s.Command != "" && (relative(s.Command) || slices.ContainsFunc(s.Args, relative)) {
		b.note("%s: it has a path that begins with a dot, and no cwd: set \"cwd\" in mcp.json", shown)
	}
}

func relative(path string) bool {
	return strings.HasPrefix(path, "./") || strings.HasPrefix(path, "../") || path == "."
}

// safeName returns a name in the form that Ken has, the same for the same name.
func safeName(name string) string {
	if goodName().MatchString(name) {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		if r < 0x80 && (bareKey(byte(r)) || r == '.') {
			b.WriteRune(r)
		} else if n := b.Len(); n > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
		if b.Len() >= 48 {
			break
		}
	}
	base := strings.Trim(b.String(), "-_.")
	if base == "" {
		base = "server"
	}
	return base + "-" + shortHash(name)
}

// A translator turns the values of one server into Ken's notation.
type translator struct {
	refs
	*builder
	server  string
	where   string
	why     string
	secrets []Secret
}

func (t *translator) run(s *Server) {
	s.Command = t.command(s.Command)
	s.Cwd = t.value("cwd", s.Cwd)
	s.URL = t.value("url", s.URL)
	s.Env = t.table(s.Env)
	s.Headers = t.table(s.Headers)
	args := slices.Clone(s.Args)
	for i, arg := range s.Args {
		// An argument is called what the flag before it is called; others by
		// their place.
		name := ""
		if i > 0 && strings.HasPrefix(s.Args[i-1], "-") && !strings.Contains(s.Args[i-1], "=") && !strings.HasPrefix(arg, "-") {
			name = strings.TrimLeft(s.Args[i-1], "-")
		}
		args[i] = t.named(name, "arg"+strconv.Itoa(i+1), arg)
	}
	s.Args = args
}

func (t *translator) table(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for _, p := range sorted(m) {
		out[p.name] = t.named(p.name, p.name, p.value.(string))
	}
	return out
}

// command resolves references now: the gateway takes the name of a program as
// it stands.
func (t *translator) command(v string) string {
	pieces, why := t.pieces(v)
	var out strings.Builder
	for _, p := range pieces {
		if !p.ref {
			out.WriteString(p.text)
			continue
		}
		name, fallback, _ := strings.Cut(strings.TrimSuffix(p.text[len("${"):], "}"), ":-")
		value := cmp.Or(t.getenv(name), fallback)
		if value == "" {
			why = "its command uses " + shown(p.text) + ", which has no value here"
		}
		out.WriteString(value)
	}
	t.why = cmp.Or(t.why, why)
	return out.String()
}

// value translates what has no name that could speak of a secret.
func (t *translator) value(fallback, v string) string { return t.named("", fallback, v) }

// named translates a value. A whole value is judged by its name; around
// references only what looks like a secret is one.
func (t *translator) named(name, fallback, v string) string {
	pieces, why := t.pieces(v)
	if why != "" {
		t.why = why
		return ""
	}
	seal := func(key, value string) string {
		if key == "" {
			key = fallback
		}
		return "${secret:" + t.seal(key, value) + "}"
	}
	var out, want strings.Builder
	for _, p := range pieces {
		switch {
		case p.ref:
			out.WriteString(p.text)
			want.WriteString(refMark + p.text)
			continue
		case len(pieces) == 1:
			out.WriteString(detect.Replace(name, p.text, seal))
		default:
			out.WriteString(detect.Replace("", p.text, seal))
		}
		want.WriteString(p.text)
	}
	// What Ken will make of it is compared with what it was. A text that only
	// looks like a reference is carried as a secret: those are not read again.
	if t.expand(out.String()) == want.String() {
		return out.String()
	}
	if len(pieces) == 1 && !pieces[0].ref {
		return seal(name, v)
	}
	t.why = fmt.Sprintf("Ken's notation cannot carry the value of %s", untrusted.Line(cmp.Or(name, fallback), 40))
	return ""
}

// refMark stands before a reference that only the start of a server resolves.
const refMark = "\x00"

// kenRef is what the gateway replaces when it starts a server.
var kenRef = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{((?:secret:|env:)?[A-Za-z_][A-Za-z0-9_.-]*?)(:-[^}]*)?\}`)
})

// expand does what Ken does at the start of a server, with the secrets of this
// plan, and with other references marked and left as they are.
func (t *translator) expand(v string) string {
	return kenRef().ReplaceAllStringFunc(v, func(m string) string {
		name, _ := strings.CutPrefix(strings.TrimSuffix(m[2:], "}"), "secret:")
		for _, s := range t.secrets {
			if s.Name == name && !s.Value.Empty() {
				return s.Value.Reveal()
			}
		}
		return refMark + m
	})
}

// seal adds a value to the secrets and returns its name, which no other value has.
func (t *translator) seal(key, value string) string {
	base := t.secretName(key)
	v := secret.Of(value)
	for n := 1; ; n++ {
		name := base
		switch n {
		case 1:
		case 2:
			name += "." + t.client.Name
		default:
			name += "." + t.client.Name + "." + strconv.Itoa(n-1)
		}
		old, taken := t.sealed[name]
		for _, s := range t.secrets {
			if s.Name == name {
				old, taken = s.Value, true
			}
		}
		if !taken && t.options.Secret != nil {
			old, taken = t.options.Secret(name)
		}
		if taken && old.Reveal() != value {
			continue
		}
		if !slices.ContainsFunc(t.secrets, func(s Secret) bool { return s.Name == name }) {
			t.secrets = append(t.secrets, Secret{Name: name, Value: v, Where: t.where + ", " + untrusted.Line(key, 60)})
		}
		return name
	}
}

// input names the secret that stands for a question of the client.
func (t *translator) input(id string) string {
	name := fitName("mcp.input." + id)
	if !slices.ContainsFunc(t.secrets, func(s Secret) bool { return s.Name == name }) {
		about := t.inputs[id]
		t.secrets = append(t.secrets, Secret{Name: name, Where: t.where, About: cmp.Or(about, untrusted.Line(id, 60))})
	}
	return name
}

// commit takes the secrets of the server into the plan.
func (t *translator) commit() {
	for _, s := range t.secrets {
		if _, known := t.sealed[s.Name]; !known {
			t.sealed[s.Name] = s.Value
			t.plan.Secrets = append(t.plan.Secrets, s)
		}
	}
}

func (t *translator) secretName(key string) string {
	return fitName("mcp." + t.server + "." + key)
}

// fitName makes a name that the store of secrets takes, with room for an
// ending.
func fitName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r < 0x80 && (bareKey(byte(r)) || r == '.') {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	out := b.String()
	if out == name && len(out) <= 100 {
		return out
	}
	return out[:min(len(out), 88)] + "-" + shortHash(name)
}
