package source

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"ken/capability"
)

// The form of an entry: packMagic, a checksum over the entry's name and all
// that follows, then the texts, each once (how many, how long each, their
// bytes), then the records, whose texts are numbers of that table. Everything
// is a varint.
//
// packVersion belongs to this form and to the meaning of what is stored. A
// change of a field of capability.Capability needs a line here; a test fills
// every field and finds one that was forgotten.
const (
	packMagic   = "KENPARSE"
	packVersion = 4

	// leastCapability is fewer bytes than any capability takes, so that a
	// count cannot ask for more memory than the entry's size justifies.
	leastCapability = 32
)

// pack makes an entry of a unit. The details are kept only where they cannot
// be read again by their place.
func pack(u *unit, details bool, id cacheID) []byte {
	x := &packer{writing: true, places: map[string]uint64{}}
	x.unit(u, &details)
	head := make([]byte, 0, len(packMagic)+sha256.Size+len(x.out)+2*len(x.table)+x.size+20)
	head = append(head, packMagic...)
	head = append(head, make([]byte, sha256.Size)...)
	head = binary.AppendUvarint(head, uint64(len(x.table)))
	for _, s := range x.table {
		head = binary.AppendUvarint(head, uint64(len(s)))
	}
	for _, s := range x.table {
		head = append(head, s...)
	}
	head = append(head, x.out...)
	sum := packSum(id, head[len(packMagic)+sha256.Size:])
	copy(head[len(packMagic):], sum[:])
	return head
}

func packSum(id cacheID, body []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(id[:])
	h.Write(body)
	h.Sum(sum[:0])
	return sum
}

// unpack fills a unit from an entry and reports whether the entry is whole and
// has that name. The unit is untouched otherwise.
func unpack(data []byte, id cacheID, u *unit) bool {
	rest, ok := bytes.CutPrefix(data, []byte(packMagic))
	if !ok || len(rest) < sha256.Size {
		return false
	}
	body := rest[sha256.Size:]
	sum := packSum(id, body)
	return bytes.Equal(sum[:], rest[:sha256.Size]) && unpackBody(body, u)
}

// unpackBody is unpack without the checksum. It must not panic, nor ask for
// much more memory than body has, whatever body is.
func unpackBody(body []byte, u *unit) bool {
	x := &packer{in: body, home: u.origin(u.path, 0), trust: u.trust}
	x.readTable()
	got := unit{}
	details := false
	x.unit(&got, &details)
	if x.bad || len(x.in) != 0 {
		return false
	}
	u.capabilities, u.details = got.capabilities, got.details
	u.problems, u.presets, u.documents = got.problems, got.presets, got.documents
	return true
}

// A packer writes values, or reads them into place: one description of the
// form serves both, so that they cannot part.
type packer struct {
	writing bool

	out    []byte
	table  []string
	places map[string]uint64
	size   int // of the table's texts

	in    []byte
	bad   bool // what was read makes no sense; everything reads as zero
	home  capability.Origin
	trust capability.Trust

	// Room for small slices, so that thousands of them cost few allocations.
	texts    []string
	params   []capability.Parameter
	findings []capability.Finding
}

// readTable takes the texts off the beginning. All are parts of one string.
func (x *packer) readTable() {
	n := x.count(1)
	lengths, total := make([]int, n), 0
	for i := range lengths {
		lengths[i] = x.count(1)
		total += lengths[i]
	}
	if total > len(x.in) {
		x.fail()
	}
	if x.bad {
		return
	}
	all := string(x.in[:total])
	x.in = x.in[total:]
	x.table = make([]string, n)
	for i, length := range lengths {
		x.table[i], all = all[:length], all[length:]
	}
}

func (x *packer) fail() { x.bad, x.in = true, nil }

// number passes a number on.
func (x *packer) number(v *uint64) {
	if x.writing {
		x.out = binary.AppendUvarint(x.out, *v)
		return
	}
	if len(x.in) > 0 && x.in[0] < 0x80 { // most of them
		*v, x.in = uint64(x.in[0]), x.in[1:]
		return
	}
	n := 0
	if *v, n = binary.Uvarint(x.in); n <= 0 {
		*v = 0
		x.fail()
		return
	}
	x.in = x.in[n:]
}

// count reads how many things of at least that many bytes follow.
func (x *packer) count(least int) int {
	var v uint64
	if x.number(&v); v > uint64(len(x.in)/least) {
		x.fail()
		return 0
	}
	return int(v)
}

func (x *packer) small(v *uint8) {
	n := uint64(*v)
	if x.number(&n); n > math.MaxUint8 {
		x.fail()
	}
	*v = uint8(n)
}

func (x *packer) flag(v *bool) {
	n := uint8(0)
	if *v {
		n = 1
	}
	x.small(&n)
	*v = n != 0
}

func (x *packer) signed(v *int64) {
	n := uint64(*v)<<1 ^ uint64(*v>>63) // small numbers of either sign stay short
	x.number(&n)
	*v = int64(n>>1) ^ -int64(n&1)
}

func (x *packer) integer(v *int) {
	n := int64(*v)
	x.signed(&n)
	*v = int(n)
}

func (x *packer) float(v *float64) {
	n := math.Float64bits(*v)
	x.number(&n)
	*v = math.Float64frombits(n)
}

func (x *packer) text(s *string) {
	if x.writing {
		at, ok := x.places[*s]
		if !ok {
			at = uint64(len(x.table))
			x.places[*s] = at
			x.table, x.size = append(x.table, *s), x.size+len(*s)
		}
		x.number(&at)
		return
	}
	var at uint64
	if x.number(&at); at >= uint64(len(x.table)) {
		x.fail()
		return
	}
	*s = x.table[at]
}

// packList passes a list on, nil apart from empty. least is fewer bytes than
// an item takes; room, where not nil, lends memory.
func packList[T any](x *packer, list *[]T, least int, room *[]T, each func(*T)) {
	n := uint64(0)
	if *list != nil {
		n = uint64(len(*list)) + 1
	}
	if x.number(&n); n == 0 {
		return
	}
	if !x.writing {
		if n-1 > uint64(len(x.in)/least) {
			x.fail()
			return
		}
		*list = packRoom(int(n-1), room)
	}
	for i := range *list {
		each(&(*list)[i])
	}
}

// packRoom gives a slice of n zero items out of room.
func packRoom[T any](n int, room *[]T) []T {
	if room == nil || n == 0 {
		return make([]T, n)
	}
	if n > len(*room) {
		*room = make([]T, max(n, 512))
	}
	part := (*room)[:n:n]
	*room = (*room)[n:]
	return part
}

func (x *packer) list(list *[]string) { packList(x, list, 1, &x.texts, x.text) }

// packMaybe passes on what may be nil.
func packMaybe[T any](x *packer, v **T, each func(*T)) {
	there := *v != nil
	if x.flag(&there); !there {
		return
	}
	if !x.writing {
		*v = new(T)
	}
	each(*v)
}

func (x *packer) meta(m *map[string]string) {
	there := *m != nil
	if x.flag(&there); !there {
		return
	}
	if x.writing {
		n := uint64(len(*m))
		x.number(&n)
		for _, key := range slices.Sorted(maps.Keys(*m)) {
			value := (*m)[key]
			x.text(&key)
			x.text(&value)
		}
		return
	}
	n := x.count(2)
	*m = make(map[string]string, n)
	for range n {
		var key, value string
		x.text(&key)
		x.text(&value)
		(*m)[key] = value
	}
}

func (x *packer) unit(u *unit, details *bool) {
	n := uint64(len(u.capabilities))
	if x.writing {
		x.number(&n)
	} else {
		n = uint64(x.count(leastCapability))
		all := make([]capability.Capability, n)
		u.capabilities = make([]*capability.Capability, n)
		u.details = make([]capability.Detail, n)
		for i := range all {
			u.capabilities[i] = &all[i]
		}
	}
	for _, c := range u.capabilities {
		x.capability(c)
	}
	if x.flag(details); *details {
		for i := range u.details {
			x.detail(&u.details[i])
		}
	}
	packList(x, &u.problems, 6, nil, x.problem)
	packList(x, &u.presets, 6, nil, x.preset)
	packList(x, &u.documents, 6, nil, x.document)
}

func (x *packer) capability(c *capability.Capability) {
	x.text((*string)(&c.ID))
	x.text((*string)(&c.Kind))
	for _, s := range []*string{&c.Name, &c.DisplayName, &c.Description, &c.Category, &c.Unavailable, &c.Version, &c.Hash} {
		x.text(s)
	}
	for _, list := range []*[]string{
		&c.Tags, &c.Aliases, &c.RequiredTools, &c.RequiredSecrets, &c.RequiredBins, &c.RequiredPlatforms, &c.Permissions,
	} {
		x.list(list)
	}
	packList(x, &c.Parameters, 4, &x.params, x.parameter)
	x.small((*uint8)(&c.Effects.ReadOnly))
	x.small((*uint8)(&c.Effects.Destructive))
	x.small((*uint8)(&c.Effects.Idempotent))
	x.small((*uint8)(&c.Effects.OpenWorld))
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
	if !x.writing {
		o.Source, o.Path = x.home.Source, x.home.Path
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
