package pin_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/internal/govern/pin"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// value draws JSON of some depth.
func value(t *rapid.T, depth int) any {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return drawn(t, rapid.String(), "text")
	case 1:
		return float64(rapid.IntRange(-1e6, 1e6).Draw(t, "number"))
	case 2:
		return rapid.Bool().Draw(t, "bool")
	case 3:
		return nil
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, value(t, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "size") {
		object[drawn(t, rapid.StringN(0, 6, -1), "key")] = value(t, depth-1)
	}
	return object
}

// drawn is a text without U+FFFD: JSON with that stands for itself, byte by byte, so
// another spelling of it is another schema.
func drawn(t *rapid.T, from *rapid.Generator[string], label string) string {
	return strings.ReplaceAll(from.Draw(t, label), "\ufffd", "?")
}

func raw(v any) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

func tool(t *rapid.T) pin.Tool {
	return pin.Tool{
		Name: "t", Title: rapid.String().Draw(t, "title"), Description: rapid.String().Draw(t, "description"),
		Input: raw(value(t, 3)), Output: raw(value(t, 2)), Annotations: raw(value(t, 1)),
	}
}

// TestAnyChangeShows: a change of one byte of a text, or of one value or key of
// a schema, makes a tool changed and has a difference; another spelling of the
// same does not; and going back makes it accepted.
func TestAnyChangeShows(t *testing.T) {
	s := storetest.Open(t, storetest.SQLite(t))
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		server := strconv.Itoa(n)
		d := testkit.Must(pin.New(s, pin.Config{}))(t)
		state := func(tool pin.Tool) pin.Verdict {
			v := testkit.Must(d.Check(ctx, server, []pin.Tool{tool}))(t)
			return v[tool.Name]
		}
		was := tool(t)
		first := state(was)
		if first.State != pin.Accepted {
			t.Fatalf("first listing = %v", first)
		}
		now, same := change(t, was)
		got := state(now)
		want := pin.Changed
		switch {
		case same:
			want = pin.Accepted
		case now.Name != was.Name:
			want = pin.Added
		}
		if got.State != want || (got.Hash == first.Hash) != same {
			t.Fatalf("Check = %v, want %v: %+v was %+v", got, want, now, was)
		}
		waiting, err := d.Pending(ctx, server)
		if err != nil || (len(waiting) == 1) == same || !same && (got.Diff == "" || len(waiting[0].Differences) == 0) {
			t.Fatalf("Pending = %+v, %v, for %+v was %+v", waiting, err, now, was)
		}
		if back := state(was); back.State != pin.Accepted || back.Hash != first.Hash || back.Exposed != first.Exposed {
			t.Fatalf("Check of the first again = %+v, want %+v", back, first)
		}
	})
}

// change returns another tool, or the same one in another spelling.
func change(t *rapid.T, was pin.Tool) (now pin.Tool, same bool) {
	now = was
	text := func(s string) string {
		at := rapid.IntRange(0, len(s)).Draw(t, "at")
		add := rapid.SampledFrom([]string{"x", " ", "\u200b", "\u00ad", "\u0430", "\U000e0041", "\n", "\x00", "\xff"}).Draw(t, "add")
		if rapid.Bool().Draw(t, "cut") && at < len(s) {
			return s[:at] + s[at+1:]
		}
		return s[:at] + add + s[at:]
	}
	schema := func(from json.RawMessage) json.RawMessage {
		read := func(from json.RawMessage) (v any) {
			testkit.OK(t, json.Unmarshal(from, &v))
			return v
		}
		next := raw(alter(t, read(from)))
		same = reflect.DeepEqual(read(from), read(next))
		if same {
			return json.RawMessage(" " + string(next) + "\n")
		}
		return next
	}
	switch rapid.IntRange(0, 6).Draw(t, "field") {
	case 0:
		now.Name = text(was.Name)
	case 1:
		now.Title = text(was.Title)
	case 2:
		now.Description = text(was.Description)
	case 3:
		now.Input = schema(was.Input)
	case 4:
		now.Output = schema(was.Output)
	case 5:
		now.Annotations = schema(was.Annotations)
	case 6:
		now.Input = nil
	}
	return now, same
}

// alter changes a value in one place, or now and then not at all.
func alter(t *rapid.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if rapid.Bool().Draw(t, "down") {
				v[key] = alter(t, v[key])
				return v
			}
		}
		v[rapid.StringN(0, 4, -1).Draw(t, "new key")] = "new"
		return v
	case []any:
		if len(v) > 0 && rapid.Bool().Draw(t, "down") {
			v[0] = alter(t, v[0])
			return v
		}
		return append(v, nil)
	}
	return value(t, 1)
}

// TestSpelling: what makes no difference to a reader makes none here.
func TestSpelling(t *testing.T) {
	d := anyDesk(t, pin.Config{})
	a, b := readFile(), readFile()
	a.Input = json.RawMessage(`{"a":{"x":1,"y":[true,null]},"b":"é"}`)
	b.Input = json.RawMessage("{ \"b\": \"\\u00e9\",\n\"a\": {\"y\":[true, null],\"x\":1} }")
	first := check(t, d, "s", a)["read_file"]
	if got := check(t, d, "s", b)["read_file"]; got != first {
		t.Errorf("Check of another spelling = %+v, want %+v", got, first)
	}
	for _, other := range []string{
		`{"a":{"x":1.0,"y":[true,null]},"b":"é"}`, `{"a":{"x":1,"y":[null,true]},"b":"é"}`, `{"a":{"x":1,"y":[true,null]},"b":"e\u0301"}`,
	} {
		b.Input = json.RawMessage(other)
		wantState(t, check(t, d, "s", b), "read_file", pin.Changed)
	}
	// Halves of pairs are not the same though each reads as U+FFFD.
	a.Input, b.Input = json.RawMessage(`"\ud800"`), json.RawMessage(`"\ud801"`)
	check(t, d, "halves", a)
	wantState(t, check(t, d, "halves", b), "read_file", pin.Changed)
}
