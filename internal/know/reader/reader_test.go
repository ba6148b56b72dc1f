package reader

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"ken/internal/testkit"
	"ken/llm"
)

var _ llm.Embedder = (*Model)(nil)

// supported returns the model inside the program, for each class of kernels that
// this processor can run.
func supported(t testing.TB) []*Model {
	t.Helper()
	if !Supported() {
		t.Skip("cannot here: there are no kernels for this processor")
	}
	var out []*Model
	for _, k := range every() {
		m, err := Load(builtin)
		if err != nil {
			t.Fatal(err)
		}
		m.kernels = k
		out = append(out, m)
	}
	return out
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// TestBuiltin: the model inside the program is whole, and reads.
func TestBuiltin(t *testing.T) {
	m := supported(t)[0]
	if b := Builtin(); b.Model() != m.Model() || b.Dimensions() != 384 || b.Kernels() != m.Kernels() {
		t.Errorf("Builtin() = %s, %d dimensions, kernels %s; want %s, 384, %s", b.Model(), b.Dimensions(), b.Kernels(), m.Model(), m.Kernels())
	}
	vectors, err := m.Embed(t.Context(), []string{
		"mail the release notes to my colleagues",
		"gmail send message. Sends an e-mail to recipients. Parameters: to, subject, body.",
		"get weather. Returns the forecast of a city. Parameters: city.",
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		if length := dot(v, v); math.Abs(length-1) > 1e-5 {
			t.Errorf("vector %d has length² %v, want 1", i, length)
		}
	}
	if mail, weather := dot(vectors[0], vectors[1]), dot(vectors[0], vectors[2]); mail < weather+0.1 {
		t.Errorf("the message is %.3f similar to sending mail and %.3f to the weather, want more of the first", mail, weather)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Embed(ctx, []string{"a"}); err == nil {
		t.Error("Embed with a context that ended: no error")
	}
}

// TestClassesAgree: every class of processors computes the same bits, for texts
// of every length modulo the tokens of a tile.
func TestClassesAgree(t *testing.T) {
	testkit.CI(t, "reads many texts with all kernels")
	models := supported(t)
	texts := []string{"", "a", "send an email", "Où est la bibliothèque?", "東京の天気", strings.Repeat("word ", 400), strings.Repeat("supercalifragilistic ", 30)}
	for n := range 9 {
		texts = append(texts, strings.Repeat("list files ", n))
	}
	for _, text := range texts {
		want := models[0].Append(nil, text)
		for _, m := range models[1:] {
			if got := m.Append(nil, text); !slices.Equal(got, want) {
				t.Errorf("%s and %s differ for %.30q", m.Kernels(), models[0].Kernels(), text)
			}
		}
		for _, x := range want {
			if math.IsNaN(float64(x)) {
				t.Fatalf("the vector of %.30q has NaN", text)
			}
		}
	}
}

// golden is the hash of the vectors of goldenTexts.
const golden = "1d7467ffcf75d27e364f832186492923aecbeab1116988b438ca2df860e10176"

var goldenTexts = []string{
	"", "a", "send an email", "which of my pull requests wait for a review", "Où est la bibliothèque?",
	"gmail send message. Sends an e-mail to recipients. Parameters: to, subject, body.", strings.Repeat("list files of a folder ", 40),
}

// TestGoldenVectors: the vectors are the same on every processor, bit for bit.
func TestGoldenVectors(t *testing.T) {
	for _, m := range supported(t) {
		sum := sha256.New()
		for _, text := range goldenTexts {
			_ = binary.Write(sum, binary.LittleEndian, m.Append(nil, text))
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != golden {
			t.Errorf("%s: the vectors hash to %s, want %s", m.Kernels(), got, golden)
		}
	}
}

// TestSoakSameBitsOnARM64 runs the tests of the kernels, and those of the package
// embed that compare bits, as programs for another processor.
func TestSoakSameBitsOnARM64(t *testing.T) {
	const emulator, tests = "qemu-aarch64-static", "TestGoldenVectors|TestLinear|TestGelu|TestAppendAgain|TestShares|TestNorm|TestTokensAreThoseOfTheReference|TestExtremesDoNotRunOver"
	testkit.Nightly(t, "an emulator is slow")
	if runtime.GOARCH == "arm64" {
		t.Skip("cannot here: this is that processor")
	}
	if _, err := exec.LookPath(emulator); err != nil {
		t.Skip("there is no " + emulator + ": install qemu-user-static")
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-exec", emulator, "-run", "^("+tests+")$", "-v", ".", "../embed")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go test for arm64: %v\n%s", err, out)
	}
	if got := strings.Count(string(out), "--- PASS: "); got != 9 || strings.Contains(string(out), "SKIP") {
		t.Errorf("go test for arm64 passed %d tests, want 9:\n%s", got, out)
	}
}

// TestAppendAgain: a text has the same vector whatever was read before it.
func TestAppendAgain(t *testing.T) {
	testkit.CI(t, "reads a long text with all kernels")
	for _, m := range supported(t) {
		want := m.Append(nil, "create an issue")
		m.Append(nil, strings.Repeat("a long text ", 90))
		if got := m.Append(nil, "create an issue"); !slices.Equal(got, want) {
			t.Errorf("%s: another vector after a long text", m.Kernels())
		}
	}
}

// TestAppendEnds: of a long text some tokens at its ends are read, of a short one
// all.
func TestAppendEnds(t *testing.T) {
	for _, m := range supported(t) {
		short := "send a letter about the new page"
		if got := m.AppendEnds(nil, short, 7); !slices.Equal(got, m.Append(nil, short)) {
			t.Errorf("%s: another vector of 7 tokens where 7 may be read", m.Kernels())
		}
		long := "send a letter about " + strings.Repeat("time ", 40) + "the new page"
		if got := m.AppendEnds(nil, long, 7); !slices.Equal(got, m.Append(nil, short)) {
			t.Errorf("%s: another vector than that of the four tokens at the beginning and the three at the end", m.Kernels())
		}
	}
}

// TestLoadRefuses: a damaged file is an error.
func TestLoadRefuses(t *testing.T) {
	put := func(at int, b byte) string { return builtin[:at] + string([]byte{b}) + builtin[at+1:] }
	for name, test := range map[string]struct{ data, says string }{
		"empty":      {"", "wrong first bytes"},
		"magic":      {put(0, 'x'), "wrong first bytes"},
		"version":    {put(8, 9), "unsupported format version"},
		"dimensions": {put(12, 1), "are possible"},
		"cut":        {builtin[:len(builtin)-1], ""},
		"weight":     {put(len(builtin)/2+len(builtin)/4, builtin[len(builtin)/2+len(builtin)/4]^1), ""},
	} {
		if _, err := Load(test.data); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("Load(%s) = %v, want an error with %q", name, err, test.says)
		}
	}
}

// plainLinear is what a linear layer computes, without assembly.
func plainLinear(l *linear, x []int, xScale float32, y []float32) {
	for o := range l.out {
		var sum int32
		for i := range l.in {
			sum += int32(x[i]) * int32(int8(l.weights[o/16*16*l.in+i/4*64+o%16*4+i%4]))
		}
		y[o] = float32(float32(float32(sum)*l.scale[o])*xScale) + l.bias[o]
	}
}

// TestLinear: the kernels compute what plain Go does, bit for bit.
func TestLinear(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range every() {
		for _, size := range [][3]int{{64, 64, 4}, {64, 128, 8}, {64, 64, 12}, {64, 64, 40}, {384, 1152, 16}, {1536, 384, 20}} {
			in, out, tokens := size[0], size[1], size[2]
			w := make([]byte, in*out)
			for i := range w {
				w[i] = byte(r.IntN(255) - 127)
			}
			l := linear{in: in, out: out, weights: string(w), scale: make([]float32, out), bias: make([]float32, out), excess: excessOf(string(w), in, out)}
			for i := range l.scale {
				l.scale[i], l.bias[i] = r.Float32(), r.Float32()
			}
			if k.pairs != nil {
				l.findLimits(k.pairs)
			}
			x := make([][]int, tokens)
			packed := activations{make([]byte, tokens*in), make([]float32, tokens), make([]byte, tokens*in/16)}
			for i := range x {
				x[i], packed.scale[i] = make([]int, in), r.Float32()
				for j := range x[i] {
					v := r.IntN(255) - 127
					x[i][j] = v
					switch at := i*in + j; k.activation {
					case unsignedBytes:
						packed.numbers[at] = byte(v + 128)
					case signedBytes:
						packed.numbers[at] = byte(v)
					}
				}
			}
			got, want := make([]float32, tokens*out), make([]float32, out)
			l.apply(k, &packed, got, tokens)
			for i := range x {
				plainLinear(&l, x[i], packed.scale[i], want)
				for o, v := range want {
					if math.Float32bits(got[i*out+o]) != math.Float32bits(v) {
						t.Fatalf("%s, %d to %d: output %d of token %d = %v, want %v", k.name, in, out, o, i, got[i*out+o], v)
					}
				}
			}
		}
	}
}

// TestPairs: the peaks and limits by which a tile finds the steps to repair are
// those of plain Go. A step at its limit fits into 16 bits; above it, it may not.
func TestPairs(t *testing.T) {
	const in, out = 128, 32
	r := rand.New(rand.NewPCG(5, 6))
	for _, k := range every() {
		if k.pairs == nil {
			continue
		}
		w, x := make([]byte, in*out), make([]byte, tokensPerTile*in)
		for i := range w {
			w[i] = byte(int8(r.NormFloat64() * 35))
		}
		w[64], w[65], w[128], w[129], w[130] = 127, 127, 0x81, 0x81, 127
		for i := range x {
			x[i] = byte(r.IntN(256))
		}
		l := linear{in: in, out: out, weights: string(w)}
		l.findLimits(k.pairs)
		for step, limit := range l.limits {
			var most int
			for i := step * 64; i < (step+1)*64; i += 2 {
				a, b := int(int8(w[i])), int(int8(w[i+1]))
				most = max(most, max(a, 0)+max(b, 0), -min(a, 0)-min(b, 0))
			}
			if most*int(limit) > math.MaxInt16 || limit < 255 && most*(int(limit)+1) <= math.MaxInt16 {
				t.Errorf("%s: limit %d of step %d, whose weights add up to %d", k.name, limit, step, most)
			}
		}
		peaks := make([]byte, in/4)
		k.pairs.findPeaks(x, in, tokensPerTile, peaks)
		for step, peak := range peaks {
			var want byte
			for token := range tokensPerTile {
				want = max(want, slices.Max(x[token*in+step*4:][:4]))
			}
			if peak != want {
				t.Errorf("%s: peak %d of step %d, want %d", k.name, peak, step, want)
			}
		}
	}
}

// TestGelu: the activation function is near the exact one.
func TestGelu(t *testing.T) {
	table := newGeluTable()
	for _, k := range every() {
		x := make([]float32, 0, 4096)
		for i := range cap(x) {
			x = append(x, (float32(i)-2048)/200)
		}
		got := slices.Clone(x)
		k.gelu(&got[0], len(got), &table[0])
		for i, v := range x {
			if want := float64(v) / 2 * math.Erfc(-float64(v)/math.Sqrt2); math.Abs(float64(got[i])-want) > 2e-5 {
				t.Fatalf("%s: gelu(%v) = %v, want %v", k.name, v, got[i], want)
			}
		}
	}
}

// plainExps is what exps of the kernels are to compute.
func plainExps(x *float32, n int, most float32) {
	list := unsafe.Slice(x, n)
	for i, v := range list {
		list[i] = exp(v - most)
	}
}

// TestShares: the exponential function is near the exact one, and the kernels
// compute what plain Go does, bit for bit.
func TestShares(t *testing.T) {
	var list []float32
	for x := float32(0); x > -90; x -= 0.013 {
		list = append(list, x)
		if got, want := float64(exp(x)), math.Exp(float64(x)); math.Abs(got-want) > 1e-5*want+1e-30 {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range list {
		list[i] += 3.25
	}
	for _, k := range every() {
		for n := 1; n < 300; n++ {
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			got, want := slices.Clone(list[:n+8]), slices.Clone(list[:n+8])
			gotFactor, wantFactor := k.shares(&got[0], n), plainShares(&want[0], n, plainExps)
			if gotFactor != wantFactor || !slices.Equal(got[:n], want[:n]) {
				t.Fatalf("%s: shares of %d numbers: factor %v, want %v; or other shares", k.name, n, gotFactor, wantFactor)
			}
		}
	}
}

// TestNorm: the kernels compute what plain Go does, bit for bit.
func TestNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, k := range every() {
		for _, n := range []int{64, 384, 512} {
			var rows [4][]float32 // x, y, weight, bias
			for i := range rows {
				for range n {
					rows[i] = append(rows[i], float32(r.NormFloat64()))
				}
			}
			got, want := slices.Clone(rows[0]), slices.Clone(rows[0])
			k.norm(&got[0], &rows[1][0], n, &rows[2][0], &rows[3][0])
			plainNorm(&want[0], &rows[1][0], n, &rows[2][0], &rows[3][0])
			if !slices.Equal(got, want) {
				t.Errorf("%s: another norm of %d numbers than plain Go", k.name, n)
			}
		}
	}
}
