package embed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// seal returns a file the checksum of what is in it.
func seal(file []byte) string {
	body := file[:len(file)-sha256.Size]
	sum := sha256.Sum256(body)
	return string(body) + string(sum[:])
}

func tinyFile(t testing.TB) string {
	return pack(t, "tiny", []string{"a", "b", "##c", "zero"}, append(noise(3, 16), make([]float32, 16)...))
}

func TestDamageIsNoticed(t *testing.T) {
	file := tinyFile(t)
	if _, err := Load(file); err != nil {
		t.Fatal(err)
	}
	for i := range file {
		b := []byte(file)
		b[i] ^= 0x10
		if _, err := Load(string(b)); err == nil {
			t.Errorf("Load of a file with byte %d changed gives no error", i)
		}
		if _, err := Load(file[:i]); err == nil {
			t.Errorf("Load of the first %d bytes gives no error", i)
		}
	}
	if _, err := Load(file + "x"); err == nil {
		t.Error("Load of a file with a byte too many gives no error")
	}
}

// Files that are wrong although their checksum is right.
func TestWrongFilesAreRefused(t *testing.T) {
	file := tinyFile(t)
	m := load(t, file)
	offsetsAt := headerSize + len(m.rows) + len(m.scales)
	slotsAt := offsetsAt + len(m.offsets)
	nameAt := slotsAt + len(m.slots) + len(m.strings)
	put := func(at int, x uint32) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint32(b[at:], x) }
	}
	for name, tt := range map[string]struct {
		change func([]byte)
		want   string
	}{
		"version":          {put(8, 2), "version 2"},
		"no dimensions":    {put(12, 0), "vectors of 0 numbers"},
		"odd dimensions":   {put(12, 15), "vectors of 15 numbers"},
		"many dimensions":  {put(12, 1024), "vectors of 1024 numbers"},
		"rows over pieces": {put(16, 5), "4 pieces with 5 rows"},
		"too many pieces":  {put(20, 1<<18), "pieces"},
		"slots":            {put(24, 7), "7 slots"},
		"few slots":        {put(24, 4), "4 slots for 4 pieces"},
		"huge":             {put(28, 1<<31), "which no model has"},
		"long strings":     {put(28, 1000), "cut short"},
		"no name":          {put(32, 0), "something after its end"},
		"escape in a name": {func(b []byte) { b[nameAt] = 0x1b }, "the name"},
		"offset back":      {put(offsetsAt+8, 0), "lies outside"},
		"offset far":       {put(offsetsAt+16, 1000), "lies outside"},
		"slot of nothing":  {put(slotsAt, 1<<idBits), "names a piece that is not there"},
		"slot too far":     {put(slotsAt, 5), "names a piece that is not there"},
		"no slot is empty": {func(b []byte) {
			for at := slotsAt; at < slotsAt+len(m.slots); at += 4 {
				binary.LittleEndian.PutUint32(b[at:], 1)
			}
		}, "slots are in use"},
	} {
		t.Run(name, func(t *testing.T) {
			b := []byte(file)
			tt.change(b)
			if _, err := Load(seal(b)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Load = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestNamesOfModels(t *testing.T) {
	weights := noise(1, 16)
	one := load(t, pack(t, "ken-embed-1", []string{"a"}, weights))
	weights[3] += 1
	other := load(t, pack(t, "ken-embed-1", []string{"a"}, weights))
	if !strings.HasPrefix(one.Model(), "ken-embed-1@") || one.Model() == other.Model() {
		t.Errorf("models of other weights are called %q and %q, want ken-embed-1@ and two checksums", one.Model(), other.Model())
	}
}

func TestPackRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		model   string
		pieces  []string
		weights []float32
		want    string
	}{
		"no name":          {"", []string{"a"}, noise(1, 16), "a name of 0 bytes"},
		"name with space":  {"my model", []string{"a"}, noise(1, 16), "the name"},
		"nothing":          {"x", nil, nil, "0 pieces"},
		"weights too few":  {"x", []string{"a", "b"}, noise(1, 17), "17 weights cannot be shared out among 2 pieces"},
		"twice":            {"x", []string{"a", "a"}, noise(2, 16), "there twice"},
		"not a number":     {"x", []string{"a"}, append(noise(1, 15), float32(math.NaN())), "NaN"},
		"infinite":         {"x", []string{"a"}, append(noise(1, 15), float32(math.Inf(1))), "Inf"},
		"wrong dimensions": {"x", []string{"a"}, noise(1, 12), "vectors of 12 numbers"},
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			if _, err := Pack(&file, tt.model, tt.pieces, tt.weights, nil); err == nil || !strings.Contains(err.Error(), tt.want) || file.Len() > 0 {
				t.Errorf("Pack = %v after %d bytes, want an error with %q and no bytes", err, file.Len(), tt.want)
			}
		})
	}
}

// Pieces whose vector is zero cut words as before and add nothing; pieces that
// no text reaches are left out; pieces not in the vocabulary are spelt.
func TestPrunedVocabulary(t *testing.T) {
	pieces := []string{"[PAD]", "[UNK]", "run", "##ning", "##n", "##ing", "the", "A", "é", "##.", ".", "가"}
	weights := noise(len(pieces), 16)
	clear(weights[6*16 : 7*16]) // the
	var file bytes.Buffer
	report, err := Pack(&file, "pruned", pieces, weights, nil)
	must(t, err)
	if want := (Report{Rows: 5, Silent: 1, Dead: 6}); report != want {
		t.Errorf("Pack reports %+v, want %+v", report, want)
	}
	m := load(t, file.String())
	tokens := m.Tokens(nil, "running the run.")
	if got, want := spell(m, tokens), []string{"run", "##ning", "the", "run", "."}; !slices.Equal(got, want) {
		t.Errorf("Tokens = %q, want %q", got, want)
	}
	if row, scale := m.Row(tokens[2]); row != "" || scale != 0 {
		t.Errorf("Row(the) = %q, %d, want none", row, scale)
	}
	if got, want := m.Append(nil, "running the run."), m.Append(nil, "running run."); !slices.Equal(got, want) {
		t.Errorf("a piece without a row changes the vector: %v, want %v", got, want)
	}
	shorter := tiny(t, "run", "##n", "##ing")
	if got, want := spell(shorter, shorter.Tokens(nil, "running")), []string{"run", "##n", "##ing"}; !slices.Equal(got, want) {
		t.Errorf("Tokens without ##ning = %q, want %q", got, want)
	}
}

// A number of a packed row is within half a step of its weight, and the same
// input gives the same file.
func TestPackKeepsWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const dims = 16
		weights := rapid.SliceOfN(rapid.Float32Range(-1000, 1000), 3*dims, 3*dims).Draw(t, "weights")
		var largest float64
		for i, x := range weights {
			if i/dims == 1 {
				weights[i] = x / 1000 // rows differ in their reach
			}
			largest = max(largest, math.Abs(float64(weights[i])))
		}
		var file, again bytes.Buffer
		report, err := Pack(&file, "x", []string{"a", "b", "c"}, weights, nil)
		must(t, err)
		if _, err := Pack(&again, "x", []string{"a", "b", "c"}, weights, nil); err != nil || !bytes.Equal(file.Bytes(), again.Bytes()) {
			t.Fatalf("Pack gives another file the second time (%v)", err)
		}
		m, err := Load(file.String())
		must(t, err)
		unit, id := largest/(127*65535), uint32(0)
		for i := range 3 {
			want := weights[i*dims : (i+1)*dims]
			if !slices.ContainsFunc(want, func(x float32) bool { return x != 0 }) {
				continue
			}
			row, scale := m.Row(id)
			id++
			step := float64(scale) * unit
			for j, x := range want {
				got := (float64(row[j]) - 128) * step
				if math.Abs(got-float64(x)) > 0.5001*step {
					t.Fatalf("weight %v becomes %v, want it within half a step of %v", x, got, step)
				}
			}
		}
		if int(id) != report.Rows {
			t.Fatalf("the file has %d rows, want %d", report.Rows, id)
		}
	})
}

func FuzzLoad(f *testing.F) {
	file := tinyFile(f)
	f.Add([]byte(file), "a bc 漢 ##c")
	f.Add([]byte(file[:headerSize]), "")
	f.Add([]byte(""), "x")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		if len(data) < sha256.Size {
			data = append(data, make([]byte, sha256.Size)...)
		}
		for _, file := range []string{string(data), seal(data)} {
			m, err := Load(file)
			if err != nil {
				continue
			}
			for _, id := range m.Tokens(nil, text) {
				m.Row(id)
				if m.Piece(id) == "" && id != Unknown {
					// An empty piece cannot be part of a text.
					t.Errorf("Tokens(%q) has the token %d without a piece", text, id)
				}
			}
			for _, x := range m.Append(nil, text) {
				if math.IsNaN(float64(x)) || math.Abs(float64(x)) > 1.0001 {
					t.Errorf("Append(nil, %q) has %v, want a vector of unit length", text, x)
				}
			}
		}
	})
}
