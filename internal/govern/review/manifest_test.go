package review_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
	"ken/internal/govern/review"
	"ken/internal/testkit"
)

func TestOwner(t *testing.T) {
	c := func(format string, kind capability.Kind, trust capability.Trust, needs ...string) *capability.Capability {
		return &capability.Capability{Kind: kind, Trust: trust, RequiredTools: needs, Origin: capability.Origin{Format: format}}
	}
	const git = "extension:tools.git"
	tests := []struct {
		name string
		c    *capability.Capability
		id   capability.ID
		ok   bool
	}{
		{"action", c("extension", "command", capability.TrustUser, git), git, true},
		{"action of a project", c("extension", "command", capability.TrustWorkspace, git), git, true},
		{"tool of a package", c("extension", "tool", capability.TrustRemote, "curl", git), git, true},
		{"action that names no package", c("extension", "command", capability.TrustUser), "", true},
		{"part of the program", c("extension", "command", capability.TrustBuiltin, git), "", false},
		{"the package itself", c("extension", capability.KindExtension, capability.TrustUser), "", false},
		{"only needs an extension", c("card", "tool", capability.TrustUser, git), "", false},
		{"a level nobody knows", c("extension", "command", capability.Trust(200), git), git, true},
	}
	for _, tt := range tests {
		if id, ok := review.Owner(tt.c); id != tt.id || ok != tt.ok {
			t.Errorf("Owner(%s) = %q, %v, want %q, %v", tt.name, id, ok, tt.id, tt.ok)
		}
	}
}

// TestManifestOfPackage: what the reader of packages brings is all in the
// manifest and all in the lines.
func TestManifestOfPackage(t *testing.T) {
	m := gitManifest(t)
	if m.ID != "tools.git" || len(m.Actions) != 2 || !strings.HasPrefix(m.Digest, "sha256:") {
		t.Fatalf("manifest = %s at %s with %d actions, digest %s", m.ID, m.Place, len(m.Actions), m.Digest)
	}
	var got []string
	for _, l := range m.Lines() {
		if l.Name != "digest" && !strings.Contains(l.Name, "schema") {
			got = append(got, l.Name+": "+l.Text)
		}
	}
	want := []string{
		"extension: tools.git",
		"version: 1.2",
		"place: " + m.Place + " (user)",
		"permissions: exec",
		"programs: git",
		"secrets: none",
		"variables: GIT_DIR",
		"workspace: read",
		"hosts: git.example.com",
		"platforms: linux",
		`also says: docs: {"usage":"docs/USAGE.md"}`,
		"action: git/log runs `git log {rev}` by exec.git, at most 30 s, receives GIT_DIR",
		"  takes: git/log: rev string",
		"  description: git/log: Show the log.",
		"action: git/sync runs `git fetch` by exec.git, at most 30 s, receives GIT_DIR, may read the workspace, reaches git.example.com, status of success 0, 1",
		"  also says: git/sync: colour: red",
		"  description: git/sync: Fetch.",
		"name: Git",
		"description: Look at repositories.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Lines (-want +got):\n%s", diff)
	}
	if raw, err := json.Marshal(m); err != nil || !strings.Contains(string(raw), `"argv":["git","log","{rev}"]`) {
		t.Errorf("JSON = %s, %v, want the command in it", raw, err)
	}
}

// TestLinesCannotBeForged: a text of the package shows on one line, with all that
// does not show revealed.
func TestLinesCannotBeForged(t *testing.T) {
	dir := t.TempDir()
	p := gitPack()
	p.manifest = strings.Replace(p.manifest, "Look at repositories.", `Nice.\npermissions: none\u001b[2K\u202egnp`, 1)
	p.commands = strings.Replace(p.commands, `"git fetch"`, `'git fetch "a  b" "x\u202ey"'`, 1)
	p.write(t, dir)
	for _, l := range manifest(t, dir, capability.TrustUser).Lines() {
		if strings.ContainsAny(l.Name+l.Text, "\n\r\x1b\u202e") {
			t.Errorf("line %q: %q holds what moves the cursor or the reader", l.Name, l.Text)
		}
		if l.Name == "description" && !strings.Contains(l.Text, "U+202E") {
			t.Errorf("description = %q, want the turn of direction revealed", l.Text)
		}
		if strings.Contains(l.Text, "git/sync runs") && !strings.Contains(l.Text, `"a \x20b"`) {
			t.Errorf("%s, want every blank of the argument to show", l.Text)
		}
	}
}

// base returns a package and one action with nothing empty that a test might want
// to change.
func base() (extension, action *capability.Capability) {
	extension = &capability.Capability{
		ID: "extension:x", Kind: capability.KindExtension, Name: "x", Trust: capability.TrustUser, Hash: "sha256:1",
		Origin: capability.Origin{Source: "here", Format: "extension", Location: capability.Local, Path: filepath.FromSlash("/p/x/manifest.json"), Line: 1},
	}
	action = &capability.Capability{
		ID: "command:x/a", Kind: capability.KindCommand, Name: "x a", Trust: capability.TrustUser, Hash: "sha256:2", RequiredTools: []string{"extension:x"},
		Origin: capability.Origin{Source: "here", Format: "extension", Location: capability.Local, Path: filepath.FromSlash("/p/x/commands.yaml"), Line: 3},
		Run:    &capability.Recipe{Runner: "exec.x", Argv: []string{"x"}}, Triggers: &capability.Triggers{},
	}
	return extension, action
}

// outside are the fields that are not what was accepted: doc.go says why.
var outside = []string{"Findings", "Origin.Source", "Origin.Line", "Origin.Offset", "Origin.Length"}

// who are the fields by which a capability belongs to its package: changed, it is
// another one's, or no part at all.
var who = []string{"Kind", "Trust", "Origin.Format", "Origin.Path", "Origin.Location"}

// TestDigestCoversEveryField changes each field that a capability has, found by
// reflection, and wants another digest and a difference for it.
func TestDigestCoversEveryField(t *testing.T) {
	extension, action := base()
	first := testkit.Must(review.Of(extension, []*capability.Capability{action}))(t)
	seen := map[string]bool{}
	leaves(reflect.TypeFor[capability.Capability](), "", func(name string, change func(reflect.Value)) {
		seen[name] = true
		if slices.Contains(who, name) {
			return
		}
		for _, of := range []string{"package", "action"} {
			x, a := base()
			changed := a
			if of == "package" {
				changed = x
				if name == "ID" {
					continue
				}
			}
			change(reflect.ValueOf(changed).Elem())
			m, err := review.Of(x, []*capability.Capability{a})
			if err != nil {
				t.Fatalf("Of with another %s of the %s: %v", name, of, err)
			}
			same := slices.ContainsFunc(outside, func(o string) bool { return name == o || strings.HasPrefix(name, o+".") })
			if got := m.Digest == first.Digest; got != same {
				t.Errorf("another %s of the %s: same digest %v, want %v", name, of, got, same)
			}
			diff := review.Differences(first, m)
			if got := len(diff) == 0; got != same {
				t.Errorf("another %s of the %s: differences %q", name, of, texts(diff))
			}
			for _, d := range diff {
				if strings.Contains(d.String(), "a part that is not shown here") {
					t.Errorf("another %s of the %s: difference %q names nothing", name, of, d)
				}
			}
		}
	})
	for _, name := range slices.Concat(outside, who) {
		if !seen[name] && name != "Findings" {
			t.Errorf("field %s is excused and is not there", name)
		}
	}
	if len(seen) < 45 {
		t.Errorf("%d fields were tried, want all of them", len(seen))
	}
}

// leaves calls f for each field that holds no others, with a function that
// changes it in a whole value.
func leaves(typ reflect.Type, name string, f func(string, func(reflect.Value))) {
	switch typ.Kind() {
	case reflect.Struct:
		for i := range typ.NumField() {
			field := typ.Field(i)
			at := field.Name
			if name != "" {
				at = name + "." + at
			}
			leaves(field.Type, at, func(name string, change func(reflect.Value)) {
				f(name, func(v reflect.Value) { change(v.Field(i)) })
			})
		}
	case reflect.Pointer:
		leaves(typ.Elem(), name, func(name string, change func(reflect.Value)) {
			f(name, func(v reflect.Value) {
				if v.IsNil() {
					v.Set(reflect.New(typ.Elem()))
				}
				change(v.Elem())
			})
		})
	case reflect.Slice:
		leaves(typ.Elem(), name, func(name string, change func(reflect.Value)) {
			f(name, func(v reflect.Value) {
				list := reflect.AppendSlice(reflect.Zero(typ), v)
				list = reflect.Append(list, reflect.Zero(typ.Elem()))
				change(list.Index(list.Len() - 1))
				v.Set(list)
			})
		})
	case reflect.Map:
		f(name, func(v reflect.Value) {
			m := reflect.MakeMap(typ)
			value := reflect.New(typ.Elem()).Elem()
			value.SetString("other")
			m.SetMapIndex(reflect.ValueOf("key").Convert(typ.Key()), value)
			v.Set(m)
		})
	case reflect.String:
		f(name, func(v reflect.Value) { v.SetString(v.String() + "\xff") })
	case reflect.Bool:
		f(name, func(v reflect.Value) { v.SetBool(!v.Bool()) })
	case reflect.Int, reflect.Int64:
		f(name, func(v reflect.Value) { v.SetInt(v.Int() + 1) })
	case reflect.Uint8:
		f(name, func(v reflect.Value) { v.SetUint(v.Uint() + 1) })
	case reflect.Float64:
		f(name, func(v reflect.Value) { v.SetFloat(v.Float() + 0.5) })
	default:
		panic("a capability has a field of type " + typ.String() + ": teach the test and the digest about it")
	}
}

// TestDigestBytes: bytes that JSON would make equal are not.
func TestDigestBytes(t *testing.T) {
	digest := func(argv ...string) string {
		x, a := base()
		a.Run.Argv = argv
		m := made(review.Of(x, []*capability.Capability{a}))
		return m.Digest
	}
	for _, tt := range [][2][]string{
		{{"x", "\xff"}, {"x", "\xfe"}}, {{"ab", "c"}, {"a", "bc"}}, {{"a", "b"}, {"b", "a"}}, {{"a", ""}, {"a"}}, {{"1:a"}, {"a"}},
	} {
		if digest(tt[0]...) == digest(tt[1]...) {
			t.Errorf("digest(%q) = digest(%q)", tt[0], tt[1])
		}
	}
	if digest() != digest([]string{}...) {
		t.Error("no list and an empty list have different digests")
	}
}

// TestBelongs: nothing counts as a part of a package that does not lie in its
// folder, whatever it says.
func TestBelongs(t *testing.T) {
	for name, change := range map[string]func(x, a *capability.Capability){
		"another folder":   func(_, a *capability.Capability) { a.Origin.Path = filepath.FromSlash("/q/x/commands.yaml") },
		"a folder below":   func(_, a *capability.Capability) { a.Origin.Path = filepath.FromSlash("/p/x/y/commands.yaml") },
		"another trust":    func(_, a *capability.Capability) { a.Trust = capability.TrustWorkspace },
		"another id":       func(_, a *capability.Capability) { a.RequiredTools = []string{"extension:y"} },
		"no id":            func(_, a *capability.Capability) { a.RequiredTools = nil },
		"another reader":   func(_, a *capability.Capability) { a.Origin.Format = "card" },
		"not a package":    func(x, _ *capability.Capability) { x.Origin.Format = "extensionlist" },
		"relative project": func(x, a *capability.Capability) { relative(x, a) },
	} {
		x, a := base()
		change(x, a)
		if m, err := review.Of(x, []*capability.Capability{a}); err == nil {
			t.Errorf("Of(%s) = %s, want an error", name, m.Digest)
		}
		b := review.NewBook([]*capability.Capability{x, a})
		if _, ok := b.Of(a); ok {
			t.Errorf("NewBook(%s) has it in a manifest", name)
		}
		if _, needed := review.Owner(a); !needed {
			continue
		}
		if why, _ := (&review.Switches{}).Off(b, a); !strings.Contains(why, "is disabled") {
			t.Errorf("Off(%s) = %q, want it off", name, why)
		}
	}
}

func relative(list ...*capability.Capability) {
	for _, c := range list {
		c.Trust = capability.TrustWorkspace
		c.Origin.Path = filepath.Join("x", filepath.Base(c.Origin.Path))
	}
}

// TestBookTellsPlacesApart: two packages of one name, the second trusted less,
// and an action that only the second has.
func TestBookTellsPlacesApart(t *testing.T) {
	mine, theirs := t.TempDir(), t.TempDir()
	gitPack().write(t, mine)
	evil := gitPack()
	evil.commands += "  - {id: push, description: Push., template: \"git push\"}\n"
	evil.write(t, theirs)
	_, a := load(t, mine, capability.TrustUser)
	_, b := load(t, theirs, capability.TrustWorkspace)
	book := review.NewBook(slices.Concat(a, b))
	if n := len(book.Manifests()); n != 2 {
		t.Fatalf("%d manifests, want 2", n)
	}
	d := anyDesk(t)
	m := testkit.Must(book.Find("tools.git", mine))(t)
	enable(t, d, m)
	on := d.Switches(ctx, pia.Tenant)
	for _, c := range slices.Concat(a, b) {
		if _, needed := review.Owner(c); !needed {
			continue
		}
		why, _ := on.Off(book, c)
		if got, want := why == "", strings.HasPrefix(c.Origin.Path, mine); got != want {
			t.Errorf("%s of %s: on %v, want %v: %s", c.ID, c.Origin, got, want, why)
		}
	}
	// What stands before an action of a package does not change the package.
	alone, err := review.NewBook(a).Find("extension:tools.git", "")
	if err != nil || alone.Digest != m.Digest {
		t.Errorf("the package alone has digest %s, %v, want %s", alone.Digest, err, m.Digest)
	}
	_, err = book.Find("tools.git", "")
	wantKind(t, err, capability.Invalid, nil, mine, theirs)
	_, err = book.Find("tools.hg", "")
	wantKind(t, err, capability.NotFound, nil, "tools.git")
	st, err := d.Status(ctx, pia.Tenant, made(book.Find("tools.git", theirs)))
	if err != nil || st.State != review.Unreviewed || !slices.Equal(st.Elsewhere, []string{mine}) {
		t.Errorf("Status = %v, %v, want new, and accepted in %s", st, err, mine)
	}
}

func made(m *review.Manifest, err error) *review.Manifest {
	if err != nil {
		panic(err)
	}
	return m
}

// TestDifferences: each change of a package is told in words.
func TestDifferences(t *testing.T) {
	replace := func(field *string, old, now string) {
		if !strings.Contains(*field, old) {
			panic(old + " is not in the package")
		}
		*field = strings.Replace(*field, old, now, 1)
	}
	tests := []struct {
		name   string
		change func(*pack)
		want   []string
	}{
		{"nothing", func(*pack) {}, nil},
		{"a comment", func(p *pack) { p.commands = "# more\n" + p.commands }, nil},
		{"version", func(p *pack) { replace(&p.manifest, `"1.2"`, `"1.3"`) }, []string{"version 1.2 → 1.3"}},
		{"permission", func(p *pack) { replace(&p.manifest, `["exec"]`, `["exec","network"]`) }, []string{
			"permission network added", "action git/log: permission network added", "action git/sync: permission network added"}},
		{"program", func(p *pack) { replace(&p.manifest, `["git"]`, `["git","gh"]`) }, []string{"program gh added"}},
		{"platform", func(p *pack) { replace(&p.manifest, `"linux"`, `"darwin"`) }, []string{
			"platform linux removed", "platform darwin added",
			"action git/log: platform linux removed", "action git/log: platform darwin added",
			"action git/sync: platform linux removed", "action git/sync: platform darwin added"}},
		{"argv", func(p *pack) { replace(&p.commands, "git fetch", "git push --force") }, []string{"action git/sync: argv is now `git push --force`, was `git fetch`"}},
		{"timeout", func(p *pack) { replace(&p.commands, "timeout_sec: 30", "timeout_sec: 90") }, []string{
			"action git/log: timeout in seconds is now `90`, was `30`", "action git/sync: timeout in seconds is now `90`, was `30`"}},
		{"variable", func(p *pack) { replace(&p.commands, "[GIT_DIR]", "[GIT_DIR, HOME_URL]") }, []string{
			"action git/log: variable HOME_URL added", "action git/sync: variable HOME_URL added"}},
		{"status", func(p *pack) { replace(&p.commands, "[0, 1]", "[0, 1, 2]") }, []string{"action git/sync: status of success 2 added"}},
		{"host", func(p *pack) { replace(&p.commands, "git.example.com", "evil.example.net") }, []string{
			"action git/sync: host git.example.com removed", "action git/sync: host evil.example.net added"}},
		{"workspace", func(p *pack) { replace(&p.commands, "workspace: read", "workspace: write") }, []string{"action git/sync: workspace access is now `write`, was `read`"}},
		{"option", func(p *pack) { replace(&p.commands, "ok_status", "passthrough: true, ok_status") }, []string{"action git/sync: any option from the caller is now `true`, was `false`"}},
		{"meta", func(p *pack) { replace(&p.commands, "colour: red", "colour: blue") }, []string{"action git/sync: colour is now `blue`, was `red`"}},
		{"words", func(p *pack) { replace(&p.commands, "Fetch.", "Fetch all.") }, []string{"action git/sync: text changed: description is now `Fetch all.`, was `Fetch.`"}},
		{"usage", func(p *pack) { p.usage += "And more.\n" }, []string{"text changed: usage"}},
		{"body", func(p *pack) { replace(&p.commands, "Look at a", "Look into a") }, []string{
			"action git/log: text changed: body", "action git/sync: text changed: body"}},
		{"new action", func(p *pack) {
			p.commands += "  - {id: push, description: Push., template: \"git push {remote}\"}\n"
		}, []string{"action git/push: added, runs `git push {remote}` by exec.git, at most 30 s, receives GIT_DIR"}},
		{"lost action", func(p *pack) {
			i := strings.Index(p.commands, "  - {id: sync")
			p.commands = p.commands[:i]
		}, []string{"action git/sync: removed, ran `git fetch` by exec.git, at most 30 s, receives GIT_DIR, may read the workspace, reaches git.example.com, status of success 0, 1"}},
	}
	d := anyDesk(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			p := gitPack()
			p.write(t, dir)
			old := manifest(t, dir, capability.TrustUser)
			enable(t, d, old)
			tt.change(&p)
			p.write(t, dir)
			now := manifest(t, dir, capability.TrustUser)
			st := status(t, d, now)
			if diff := cmp.Diff(tt.want, texts(st.Differences)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			want := review.Differs
			if tt.want == nil {
				want = review.Enabled
			}
			if st.State != want {
				t.Errorf("state = %s, want %s", st.State, want)
			}
			// Without the texts it is off just the same, and says what it knows.
			bare := *now
			bare.Texts = nil
			if st := status(t, d, &bare); st.State != want || (len(st.Differences) == 0) != (tt.want == nil) {
				t.Errorf("without texts: %s %q, want %s", st.State, texts(st.Differences), want)
			}
		})
	}
}

// TestSchemaIsNoText: where an argument goes on the command line is more than a
// word.
func TestSchemaIsNoText(t *testing.T) {
	x, a := base()
	schema := func(flag string) map[capability.ID]capability.Detail {
		return map[capability.ID]capability.Detail{a.ID: {Schema: json.RawMessage(`{"properties":{"v":{"x-ken-flag":"` + flag + `"}}}`)}}
	}
	old := made(review.Of(x, []*capability.Capability{a})).With(schema("--verbose"))
	b := *a
	b.Hash = "sha256:3"
	now := made(review.Of(x, []*capability.Capability{&b})).With(schema("--upload"))
	diff := review.Differences(old, now)
	if len(diff) != 1 || diff[0].Text || !strings.Contains(diff[0].String(), "--upload") || !strings.Contains(diff[0].String(), "--verbose") {
		t.Errorf("Differences = %q, want the schemas", texts(diff))
	}
}
