package parsecache

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
)

// The form of an entry: packMagic, the entry's key, a checksum over all that
// follows, then the texts, each once (how many, how long each, their
// bytes), then the records, whose texts are numbers of that table. Everything
// is a varint.
//
// Version belongs to this form and to the meaning of what is stored. A
// change of a field of capability.Capability needs a line here; a test fills
// every field and finds one that was forgotten.
const (
	packMagic = "KENPARSE"
	Version   = 8

	// leastCapability is fewer bytes than any capability takes, so that a
	// count cannot ask for more memory than the entry's size justifies.
	leastCapability = 32

	// packHead is where the texts begin.
	packHead = len(packMagic) + len(Key{}) + 4
)

// textsEach is about how many texts of its schema a capability has that no other has.
const textsEach = 2

// Pack returns a unit as an entry of the cache. The details are kept only where they cannot
// be read again by their place.
func Pack(u *format.Unit, details bool, id Key) []byte {
	x := &packer{writing: true, places: make(map[string]uint64, textsEach*len(u.Capabilities)), tree: treeRoot(u)}
	x.unit(u, &details)
	head := make([]byte, 0, packHead+len(x.out)+2*len(x.table)+x.size+20)
	head = append(head, packMagic...)
	head = append(head, id[:]...)
	head = append(head, 0, 0, 0, 0) // the checksum
	head = binary.AppendUvarint(head, uint64(len(x.table)))
	for _, s := range x.table {
		head = binary.AppendUvarint(head, uint64(len(s)))
	}
	for _, s := range x.table {
		head = append(head, s...)
	}
	head = append(head, x.out...)
	binary.LittleEndian.PutUint32(head[packHead-4:], packSum(head[packHead:]))
	return head
}

// WholeTree is the format of a unit that stands for all files of a tree. Its
// origins name each their own file.
const WholeTree = "tree"

// treeRoot returns the root for a unit that stands for a whole tree, nil for others.
func treeRoot(u *format.Unit) *safefs.Root {
	if u.Format == WholeTree {
		return u.Root
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli) // processors have an instruction for it

// packSum finds damage. A change on purpose is kept away by the folder, which is the
// user's alone.
func packSum(body []byte) uint32 { return crc32.Checksum(body, castagnoli) }

// Unpack fills a unit from an entry and reports whether the entry is whole and
// has that key. The unit is untouched otherwise.
func Unpack(data []byte, id Key, u *format.Unit) bool {
	return unpack(data, id, u, u.Origin(u.Path, 0))
}

func unpack(data []byte, id Key, u *format.Unit, home capability.Origin) bool {
	rest, ok := bytes.CutPrefix(data, []byte(packMagic))
	if !ok || len(data) < packHead || Key(rest[:len(id)]) != id {
		return false
	}
	body := data[packHead:]
	return packSum(body) == binary.LittleEndian.Uint32(data[packHead-4:]) && unpackBody(body, u, home)
}

// unpackBody is unpack without the checksum. It must not panic, nor ask for
// much more memory than body has, whatever body is.
func unpackBody(body []byte, u *format.Unit, home capability.Origin) bool {
	x := &packer{in: body, home: home, tree: treeRoot(u), trust: u.Trust}
	x.readTable()
	got := format.Unit{}
	details := false
	x.unit(&got, &details)
	if x.bad || len(x.in) != 0 {
		return false
	}
	u.Capabilities, u.Details = got.Capabilities, got.Details
	u.Problems, u.Presets, u.Documents = got.Problems, got.Presets, got.Documents
	return true
}

func (x *packer) unit(u *format.Unit, details *bool) {
	n := uint64(len(u.Capabilities))
	if x.writing {
		x.number(&n)
	} else {
		n = uint64(x.count(leastCapability))
		all := make([]capability.Capability, n)
		u.Capabilities = make([]*capability.Capability, n)
		u.Details = make([]capability.Detail, n)
		for i := range all {
			u.Capabilities[i] = &all[i]
		}
	}
	for _, c := range u.Capabilities {
		x.capability(c)
	}
	if x.flag(details); *details {
		for i := range u.Details {
			x.detail(&u.Details[i])
		}
	}
	packList(x, &u.Problems, 6, nil, x.problem)
	packList(x, &u.Presets, 6, nil, x.preset)
	packList(x, &u.Documents, 6, nil, x.document)
}

func (x *packer) capability(c *capability.Capability) {
	x.own((*string)(&c.ID))
	x.text((*string)(&c.Kind))
	x.own(&c.Name)
	x.text(&c.DisplayName)
	x.own(&c.Description)
	for _, s := range []*string{&c.Category, &c.Unavailable, &c.Version} {
		x.text(s)
	}
	x.own(&c.Hash)
	for _, list := range []*[]string{
		&c.Tags, &c.Aliases, &c.RequiredTools, &c.RequiredSecrets, &c.RequiredBins, &c.RequiredPlatforms, &c.Permissions,
	} {
		x.list(list)
	}
	packList(x, &c.Parameters, 4, &x.params, x.parameter)
	x.effects(&c.Effects)
	packMaybe(x, &c.Claims, x.claims)
	packMaybe(x, &c.Triggers, x.triggers)
	packMaybe(x, &c.Run, x.recipe)
	x.integer(&c.Priority)
	x.integer(&c.TokenBudget)
	x.integer(&c.MaxChars)
	packList(x, &c.Migrations, 3, nil, x.migration)
	x.meta(&c.Meta)
	x.origin(&c.Origin)
	packList(x, &c.Findings, 5, &x.findings, x.finding)
	if !x.writing {
		c.Trust = x.trust
	}
}

func (x *packer) effects(e *capability.Effects) {
	x.small((*uint8)(&e.ReadOnly))
	x.small((*uint8)(&e.Destructive))
	x.small((*uint8)(&e.Idempotent))
	x.small((*uint8)(&e.OpenWorld))
}

func (x *packer) claims(c *capability.Claims) {
	x.effects(&c.Effects)
	x.text(&c.Doubt)
}

func (x *packer) parameter(p *capability.Parameter) {
	x.text(&p.Name)
	x.text(&p.Type)
	x.text(&p.Description)
	x.flag(&p.Required)
}

func (x *packer) triggers(t *capability.Triggers) {
	for _, list := range []*[]string{&t.Keywords, &t.SessionTypes, &t.RouterTags, &t.TimeOfDay, &t.UserTier, &t.EnvironmentType} {
		x.list(list)
	}
	x.float(&t.ConfidenceThreshold)
}

func (x *packer) recipe(r *capability.Recipe) {
	for _, s := range []*string{&r.Runner, &r.Action, &r.Method, &r.URL} {
		x.text(s)
	}
	x.list(&r.Argv)
	x.list(&r.Env)
	x.list(&r.EnvValues)
	x.integer(&r.TimeoutSec)
	x.integer(&r.MaxOutputSize)
	x.text(&r.Workspace)
	x.text(&r.ProgramSHA256)
	x.list(&r.Hosts)
	packList(x, &r.OKStatus, 1, nil, x.integer)
	x.flag(&r.EndOfOptions)
	x.flag(&r.Passthrough)
	x.text(&r.Program)
	x.text(&r.PackageSHA256)
	x.text(&r.Input)
	packMaybe(x, &r.Ask, x.ask)
}

func (x *packer) ask(a *capability.Ask) {
	x.text(&a.Model)
	x.text(&a.System)
	x.text(&a.Prompt)
	x.list(&a.Instructions)
	x.schema(&a.Answer)
	x.integer(&a.MaxTokens)
	x.float(&a.MaxPrice)
}

func (x *packer) migration(m *capability.Migration) {
	x.text(&m.From)
	x.text(&m.To)
	x.text(&m.Note)
}

// origin leaves out what depends on where the file lies now.
func (x *packer) origin(o *capability.Origin) {
	x.text(&o.Format)
	x.text((*string)(&o.Location))
	x.integer(&o.Line)
	x.text(&o.Pointer)
	x.signed(&o.Offset)
	x.signed(&o.Length)
	if x.tree != nil {
		x.place(&o.Path)
	} else if !x.writing {
		o.Path = x.home.Path
	}
	if !x.writing {
		o.Source = x.home.Source
	}
}

// place passes on a displayed path as one of the tree.
func (x *packer) place(display *string) {
	file := ""
	if x.writing {
		file = x.tree.Relative(*display)
	}
	if x.text(&file); !x.writing {
		*display = x.tree.Display(file)
	}
}

func (x *packer) finding(f *capability.Finding) {
	x.text(&f.Rule)
	x.small((*uint8)(&f.Severity))
	x.text(&f.Field)
	x.integer(&f.Line)
	x.text(&f.Excerpt)
}

func (x *packer) detail(d *capability.Detail) {
	x.schema(&d.Schema)
	x.text(&d.Body)
	x.text(&d.Usage)
	x.schema(&d.Output)
	x.schema(&d.Extra)
}

func (x *packer) schema(s *json.RawMessage) {
	there := *s != nil
	text := string(*s)
	x.flag(&there)
	x.text(&text)
	if !x.writing && there {
		*s = json.RawMessage(text)
	}
}

func (x *packer) problem(p *capability.Problem) {
	x.small((*uint8)(&p.Severity))
	x.text(&p.Code)
	x.text((*string)(&p.Subject))
	x.origin(&p.Origin)
	x.text(&p.Message)
	x.text(&p.Fix)
}

func (x *packer) preset(p *capability.Preset) {
	x.text(&p.Name)
	x.list(&p.Members)
	x.origin(&p.Origin)
}

func (x *packer) document(d *capability.Document) {
	x.text((*string)(&d.Role))
	x.text(&d.Text)
	x.origin(&d.Origin)
	x.text(&d.Hash)
	if !x.writing {
		d.Trust = x.trust
	}
}
