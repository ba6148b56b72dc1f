package reader

import (
	"math"
	"unsafe"
)

// kernels are the inner loops of the encoder for one class of processors. All
// classes add up the same whole numbers, so their linear layers agree bit for
// bit.
type kernels struct {
	name       string
	width      int // outputs of a tile
	activation activation
	tile       func(t *tile)
	tall       *tallTiles // nil: there are none

	// most returns the largest absolute value of n numbers. round stores the
	// nearest whole numbers to x * factor as activations, halves to the even one.
	// n is a multiple of 32.
	most  func(x *float32, n int) float32
	round func(x *float32, n int, factor float32, into *byte)

	// gelu applies the activation function to n numbers, a multiple of 8.
	gelu func(x *float32, n int, table *float32)

	// shares is plainShares: x has room for a multiple of 8 numbers.
	shares func(x *float32, n int) float32

	// scores computes the products of a query and n keys, a multiple of
	// tokensPerTile; mix the sum of n values, each times its share, and multiplies
	// it with a factor. Keys and values have headSize numbers and are step bytes
	// apart.
	scores func(q, k *float32, step, n int, out *float32)
	mix    func(p, v *float32, step, n int, factor float32, out *float32)

	// norm is plainNorm, for n numbers, a multiple of 8.
	norm func(x, y *float32, n int, weight, bias *float32)

	pairs *pairs // nil: tiles need no peaks and no limits
}

// pairs are for tiles that add two products as a number of 16 bits. Most such sums
// fit: both activations and both weights would have to be large. A tile repairs the
// steps where a peak is above its limit, so that its results are those of others.
type pairs struct {
	// heaviest returns for each of n steps of 16 outputs the largest sum of two
	// neighbouring weights of one sign; a weight of the other sign counts as zero.
	heaviest func(w *byte, n int, out *byte)

	// peaks returns the largest activation in each step of four tokens, which have n
	// inputs, a multiple of 64, and are step bytes apart.
	peaks func(x *byte, step, n int, peaks *byte)
}

// An activation says how the numbers of a token, from -127 to 127, are stored.
type activation int

const (
	unsignedBytes activation = iota // plus 128
	signedBytes
)

// activations are those of some tokens. They are used again and again.
type activations struct {
	numbers []byte
	scale   []float32 // of each token
	peaks   []byte    // see pairs
}

// tokensPerTile is how many tokens a tile has. Buffers have room for a multiple.
const tokensPerTile = 4

// A tile is a part of a linear layer: four tokens and some outputs, with all
// inputs. The weights of 16 outputs lie together, four inputs of each at a time:
//
//	weights[output/16][input/4][output%16][input%4]
//
// The fields are read by assembly.
type tile struct {
	x      unsafe.Pointer // the activations of the first token
	w      unsafe.Pointer // the weights of the first output
	steps  int            // a fourth of the inputs
	xStep  int            // bytes from one token's activations to the next
	wStep  int            // bytes from 16 outputs to the next 16
	scale  *float32       // of each output
	bias   *float32       // of each output
	excess *int32         // of each output: 128 times the sum of its weights
	xScale *float32       // of each token
	y      *float32       // the first token's results
	yStep  int            // bytes from one token's results to the next
	peaks  *byte          // of each step: the largest activation (see pairs)
	limits *byte          // of each step: the largest that fits
}

// tallTiles are tiles of more tokens, which read the weights less often.
type tallTiles struct {
	width         int // outputs of a tile
	eight, twelve func(t *tile)
}

// A linear is a linear layer in 8 bits.
type linear struct {
	in, out int
	weights string // see tile
	scale   []float32
	bias    []float32
	excess  []int32
	limits  []byte // see pairs; nil where there are none
}

// findLimits finds the limits of the steps of each 16 outputs.
func (l *linear) findLimits(p *pairs) {
	l.limits = make([]byte, len(l.weights)/64)
	p.heaviest(unsafe.StringData(l.weights), len(l.limits), &l.limits[0])
	for i, sum := range l.limits {
		l.limits[i] = byte(min(math.MaxInt16/max(int(sum), 1), math.MaxUint8))
	}
}

// findPeaks finds the peaks of tokens, for each tile those of all steps.
func (p *pairs) findPeaks(x []byte, in, tokens int, peaks []byte) {
	for at := 0; at < tokens; at += tokensPerTile {
		p.peaks(&x[at*in], in, in, &peaks[at/tokensPerTile*in/4])
	}
}

// apply computes y = x·w + b for tokens, a multiple of tokensPerTile.
func (l *linear) apply(k *kernels, x *activations, y []float32, tokens int) {
	w := unsafe.Pointer(unsafe.StringData(l.weights))
	t := tile{steps: l.in / 4, xStep: l.in, wStep: l.in * 16, yStep: l.out * 4}
	width := k.width
	if k.tall != nil && tokens > tokensPerTile {
		width = k.tall.width
	}
	if k.pairs != nil {
		k.pairs.findPeaks(x.numbers, l.in, tokens, x.peaks)
	}
	for out := 0; out < l.out; out += width {
		t.w = unsafe.Add(w, out/16*t.wStep+out%16*4)
		t.scale, t.bias, t.excess = &l.scale[out], &l.bias[out], &l.excess[out]
		for at := 0; at < tokens; {
			t.x = unsafe.Pointer(&x.numbers[at*t.xStep])
			t.xScale = &x.scale[at]
			t.y = &y[at*l.out+out]
			if k.pairs != nil {
				t.peaks, t.limits = &x.peaks[at/tokensPerTile*t.steps], &l.limits[out/16*t.steps]
			}
			at += k.some(&t, tokens-at)
		}
	}
}

// some computes a tile of the tokens that are left and returns how many it had.
// Tall tiles never leave four tokens, whose tiles are wider.
func (k *kernels) some(t *tile, left int) int {
	switch {
	case k.tall == nil || left == tokensPerTile:
		k.tile(t)
		return tokensPerTile
	case left == 12 || left > 16:
		k.tall.twelve(t)
		return 12
	}
	k.tall.eight(t)
	return 8
}
