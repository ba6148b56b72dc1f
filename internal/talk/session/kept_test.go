package session

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/internal/store"
	"ken/llm"
)

// TestKeptIsDecoded: what a turn keeps of an entry is what will be read of it,
// to the byte and to what is nil; and it shares nothing with what was given.
func TestKeptIsDecoded(t *testing.T) {
	known := 0
	rapid.Check(t, func(t *rapid.T) {
		e := anyEntry().Draw(t, "entry")
		data, err := encode(stored{formatVersion, e})
		if err != nil {
			t.Skip("rapid draws another: ", err) // the draw is thrown away, the test goes on
		}
		want, err := decodeEntry(store.Item{Value: data})
		if err != nil {
			t.Fatal(err)
		}
		got, ok := kept(e)
		if !ok {
			return
		}
		known++
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("kept(%+v) = %+v\nwant %+v", e, got, want)
		}
		scribble(reflect.ValueOf(&e).Elem())
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("what was kept changed with what was given: %+v", got)
		}
		if again, err := encode(stored{formatVersion, got}); err != nil || string(again) != string(data) {
			t.Fatalf("encode(kept) = %s, %v, want %s", again, err, data)
		}
	})
	t.Logf("%d entries were kept without decoding them", known)
	if known == 0 {
		t.Error("no entry was kept without decoding it")
	}
}

// scribble changes everything that v leads to.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Map:
		v.Clear()
	case reflect.Struct:
		for i := range v.NumField() {
			scribble(v.Field(i))
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString("changed")
		}
	case reflect.Uint8:
		if v.CanSet() {
			v.SetUint(v.Uint() + 1)
		}
	case reflect.Int, reflect.Int64:
		if v.CanSet() {
			v.SetInt(v.Int() + 1)
		}
	}
}

// anyEntry draws all fields that an entry has, also those of tomorrow.
func anyEntry() *rapid.Generator[Entry] {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "<a & b>", "\u2028\x00\"\\\n", "\ufffd", "é\U0001F600"}),
		rapid.Map(rapid.IntRange(0, 99), func(n int) string { return map[bool]string{true: "\xff\xc3"}[n == 0] })) // seldom: then it is decoded
	raw := rapid.SampledFrom([]json.RawMessage{nil, {}, []byte("null"), []byte(" { \"a\" : [1, 2.0e1 ,\t\"<&>\u2028\xff\"]}\n"), []byte(`"\u003c\ud800"`), []byte("[ ]")})
	return rapid.MakeCustom[Entry](rapid.MakeConfig{
		Kinds: map[reflect.Kind]*rapid.Generator[any]{reflect.String: text.AsAny()},
		Types: map[reflect.Type]*rapid.Generator[any]{
			reflect.TypeFor[json.RawMessage](): raw.AsAny(),
			reflect.TypeFor[[]byte]():          rapid.SampledFrom([][]byte{nil, {}, {0, 255}, []byte("{x")}).AsAny(),
			reflect.TypeFor[time.Time]():       rapid.Map(rapid.Int64Range(0, 4e15), func(n int64) time.Time { return time.UnixMicro(n).UTC() }).AsAny(),
		},
		Fields: map[reflect.Type]map[string]*rapid.Generator[any]{reflect.TypeFor[llm.ToolResult](): {"Blocks": rapid.Custom(func(t *rapid.T) []llm.Block {
			in := rapid.SampledFrom([]llm.Block{{Text: "<in>"}, {Image: &llm.Image{Data: []byte{1}}}, {Tools: []llm.Tool{{Name: "x", Schema: raw.Draw(t, "schema")}}}})
			return rapid.SliceOfN(in, 0, 3).Draw(t, "blocks")
		}).AsAny()}},
	})
}

// TestReadable: what was summed up is there, what was taken back is not, and taking
// back a rewind brings nothing back that was taken back otherwise.
func TestReadable(t *testing.T) {
	e := func(seq int, k Kind, from, to int) Entry { return Entry{Seq: seq, Kind: k, From: from, To: to} }
	for _, test := range []struct {
		name string
		in   []Entry
		want string
	}{
		{"nothing", nil, "[]"},
		{"summed up", []Entry{e(1, User, 0, 0), e(2, Assistant, 0, 0), e(3, Summary, 1, 2), e(4, Note, 0, 0)}, "[1 2 3 4]"},
		{"rewound", []Entry{e(1, User, 0, 0), e(2, User, 0, 0), e(3, Summary, 1, 1), e(4, Rewound, 2, 3), e(5, User, 0, 0)}, "[1 5]"},
		{"a rewind of a rewind", []Entry{e(1, User, 0, 0), e(2, User, 0, 0), e(3, Rewound, 2, 2), e(4, Rewound, 3, 3)}, "[1 2]"},
	} {
		if got := seqs(Readable(test.in)); got != test.want {
			t.Errorf("%s: Readable = %s, want %s", test.name, got, test.want)
		}
	}
}

func seqs(entries []Entry) string {
	out := []int{}
	for _, e := range entries {
		out = append(out, e.Seq)
	}
	return fmt.Sprint(out)
}
