package parsecache

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"ken/capability"
	"ken/internal/know/source/safefs"
)

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
	tree  *safefs.Root // see treeRoot
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
			at = x.insert(*s)
			x.places[*s] = at
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

// own is text for one that hardly anything else has: it is not looked up in the table.
func (x *packer) own(s *string) {
	if !x.writing {
		x.text(s)
		return
	}
	at := x.insert(*s)
	x.number(&at)
}

// insert adds a text to the table.
func (x *packer) insert(s string) uint64 {
	x.table, x.size = append(x.table, s), x.size+len(s)
	return uint64(len(x.table) - 1)
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

// packRoom returns a slice of n zero items out of room.
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
