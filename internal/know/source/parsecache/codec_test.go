package parsecache

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
)

// fill draws a value for everything that v holds, whatever its type, so that a
// new field of a capability is drawn as soon as it exists.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.StringN(0, 12, 40).Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "flag"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Uint8Range(0, 3).Draw(t, "small")))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "float"))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Slice:
		n := rapid.IntRange(-1, 3).Draw(t, "length")
		if n < 0 {
			return // nil
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i))
		}
	case reflect.Map:
		n := rapid.IntRange(-1, 3).Draw(t, "size")
		if n < 0 {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range n {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key)
			fill(t, value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("no drawing of a %s", v.Type())
	}
}

func drawn[T any](t *rapid.T) T {
	var v T
	fill(t, reflect.ValueOf(&v).Elem())
	return v
}

// home makes an origin one of the unit's own file.
func home(u *format.Unit, o *capability.Origin) { o.Source, o.Path = u.Source, u.Root.Display(u.Path) }

func drawUnit(t *rapid.T) *format.Unit {
	u := &format.Unit{Root: &safefs.Root{Name: "catalogs"}, Path: "a/b.jsonl", Format: "jsonl", Source: "mine", Trust: drawn[capability.Trust](t)}
	for range rapid.IntRange(0, 4).Draw(t, "capabilities") {
		c, d := drawn[capability.Capability](t), drawn[capability.Detail](t)
		c.Trust = u.Trust
		home(u, &c.Origin)
		u.Capabilities, u.Details = append(u.Capabilities, &c), append(u.Details, d)
	}
	u.Problems, u.Presets, u.Documents = drawn[[]capability.Problem](t), drawn[[]capability.Preset](t), drawn[[]capability.Document](t)
	for i := range u.Problems {
		home(u, &u.Problems[i].Origin)
	}
	for i := range u.Presets {
		home(u, &u.Presets[i].Origin)
	}
	for i := range u.Documents {
		home(u, &u.Documents[i].Origin)
		u.Documents[i].Trust = u.Trust
	}
	return u
}

func TestCacheGivesBackWhatWasPutIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := drawUnit(t)
		if !cacheable(u) {
			t.Fatal("the unit is not cacheable")
		}
		id := Key{1, 2, 3}
		data := Pack(u, true, id)
		got := &format.Unit{Root: u.Root, Path: u.Path, Format: u.Format, Source: u.Source, Trust: u.Trust}
		if !Unpack(data, id, got) {
			t.Fatalf("unpack of %d bytes fails", len(data))
		}
		for i, c := range u.Capabilities {
			if !reflect.DeepEqual(got.Capabilities[i], c) {
				t.Fatalf("capability %d = %+v, want %+v", i, *got.Capabilities[i], *c)
			}
			if !reflect.DeepEqual(got.Details[i], u.Details[i]) {
				t.Fatalf("detail %d = %+v, want %+v", i, got.Details[i], u.Details[i])
			}
		}
		if len(got.Capabilities) != len(u.Capabilities) || !reflect.DeepEqual(got.Problems, u.Problems) ||
			!reflect.DeepEqual(got.Presets, u.Presets) || !reflect.DeepEqual(got.Documents, u.Documents) {
			t.Fatalf("unpack = %+v, want %+v", got, u)
		}
		if Unpack(data, Key{9}, got) {
			t.Fatal("an entry of another name is taken")
		}
		bad := append([]byte(nil), data...)
		bad[rapid.IntRange(0, len(bad)-1).Draw(t, "place")] ^= 1
		if Unpack(bad, id, got) {
			t.Fatal("a damaged entry is taken")
		}
		if Unpack(data[:rapid.IntRange(0, len(data)-1).Draw(t, "cut")], id, got) {
			t.Fatal("half an entry is taken")
		}
	})
}

// TestCacheMovesWithTheFile: the same bytes read from elsewhere, for somebody
// else's trust, are theirs.
func TestCacheMovesWithTheFile(t *testing.T) {
	u := &format.Unit{Root: &safefs.Root{Name: "catalogs"}, Path: "b.jsonl", Format: "jsonl", Source: "mine", Trust: capability.TrustUser}
	u.Add(&capability.Capability{Kind: capability.KindTool, Name: "x"}, capability.Detail{}, u.Path, 3)
	u.Warn("w", u.Path, 4, "m", "f")
	id := Key{1}
	other := &format.Unit{Root: &safefs.Root{Name: "elsewhere"}, Path: "c/b.jsonl", Format: "jsonl", Source: "theirs", Trust: capability.TrustRemote}
	if !Unpack(Pack(u, false, id), id, other) {
		t.Fatal("unpack fails")
	}
	c := other.Capabilities[0]
	if c.Trust != capability.TrustRemote || c.Origin.String() != "elsewhere/c/b.jsonl:3" || c.Origin.Source != "theirs" {
		t.Errorf("capability from the cache has trust %v and origin %+v", c.Trust, c.Origin)
	}
	if got := other.Problems[0].Origin.String(); got != "elsewhere/c/b.jsonl:4" {
		t.Errorf("problem from the cache is at %s", got)
	}
}

func FuzzCacheDecode(f *testing.F) {
	rich := func(n int) *format.Unit {
		u := &format.Unit{Root: &safefs.Root{Name: "r"}, Path: "a.jsonl", Format: "jsonl", Source: "s"}
		for i := range n {
			u.Add(&capability.Capability{
				Kind: capability.KindTool, Name: fmt.Sprint("tool", i), Tags: []string{"a", "b"}, Meta: map[string]string{"k": "v"},
				Run: &capability.Recipe{Runner: "exec.git"}, Triggers: &capability.Triggers{Keywords: []string{"x"}},
			}, capability.Detail{Schema: json.RawMessage(`{"properties":{"q":{"type":"string"}}}`)}, u.Path, i)
		}
		u.Warn("w", u.Path, 1, "m", "f")
		return u
	}
	skip := packHead
	f.Add(Pack(rich(0), true, Key{})[skip:])
	f.Add(Pack(rich(3), true, Key{})[skip:])
	f.Add(Pack(rich(3), false, Key{})[skip:])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		watchdog := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("unpackBody(%x) hangs", body)) })
		defer watchdog.Stop()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		u := &format.Unit{Root: &safefs.Root{Name: "r"}, Path: "a.jsonl", Source: "s"}
		taken := unpackBody(body, u, u.Origin(u.Path, 0))
		runtime.ReadMemStats(&after)
		if used, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+200*len(body)); used > most {
			t.Fatalf("unpackBody of %d bytes took %d bytes of memory, want at most %d", len(body), used, most)
		}
		if !taken && (u.Capabilities != nil || u.Problems != nil) {
			t.Fatal("a refused entry left something behind")
		}
		if taken && len(u.Details) != len(u.Capabilities) {
			t.Fatalf("%d details for %d capabilities", len(u.Details), len(u.Capabilities))
		}
		// That it is never taken without its name is the checksum's work.
		if Unpack(body, Key{}, u) && !taken {
			t.Fatal("unpack takes what unpackBody refuses")
		}
	})
}
