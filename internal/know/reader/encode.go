package reader

import (
	"math"
	"slices"
	"unsafe"

	"ken/internal/know/embed"
)

// Products that are added to something are converted to float32 first: the
// compiler may otherwise round the two together, and does so on some processors.
const (
	headSize    = 32  // numbers of an attention head
	special     = 2   // [CLS] before a text and [SEP] after it
	longestWord = 100 // pieces that the last word may have
	normEps     = 1e-12
	geluReach   = 6   // where gelu is x above and 0 below, for a float32
	geluFine    = 128 // entries of its table per unit
	mostTokens  = embed.MaxTokens + special
)

// A layer is one layer of the encoder.
type layer struct {
	qkv, attended, up, down linear
	attentionNorm, norm     norm
}

// A norm is a layer normalisation.
type norm struct{ weight, bias []float32 }

// state is the memory of one encoding. It is used again and again.
type state struct {
	tokens []uint32
	x      []float32 // the residual stream: a row for each token
	wide   []float32 // queries, keys and values; then the inner layer
	y      []float32 // what a layer adds
	scores []float32 // of one query
	packed activations
	sum    []float32
}

// grow makes room for some tokens, a multiple of tokensPerTile. Most texts are
// short: a message takes half a megabyte, the longest text three.
func (s *state) grow(m *Model, rows int) {
	if len(s.packed.scale) >= rows {
		return
	}
	s.x = make([]float32, rows*m.dims)
	s.wide = make([]float32, rows*max(3*m.dims, m.inner))
	s.y = make([]float32, rows*m.dims)
	s.scores = make([]float32, rows+8)
	widest := rows * max(m.dims, m.inner)
	s.packed = activations{numbers: make([]byte, widest), scale: make([]float32, rows), peaks: make([]byte, widest/(4*tokensPerTile))}
	s.sum = make([]float32, m.dims)
}

// roundUp returns the next multiple of tokensPerTile.
func roundUp(n int) int { return (n + tokensPerTile - 1) / tokensPerTile * tokensPerTile }

// Append adds the vector of a text to dst, of unit length.
func (m *Model) Append(dst []float32, text string) []float32 {
	return m.AppendEnds(dst, text, embed.MaxTokens)
}

// AppendEnds is Append for a text of which no more than some tokens are read: as
// many of its beginning as of its end.
func (m *Model) AppendEnds(dst []float32, text string, most int) []float32 {
	m.findLimits()
	s := m.states.Get().(*state)
	defer m.states.Put(s)
	s.tokens = m.vocabulary.Tokens(s.tokens[:0], text)
	if n := len(s.tokens); n > most {
		s.tokens = slices.Delete(s.tokens, most-most/2, n-most/2)
	}
	s.grow(m, roundUp(len(s.tokens)+special))
	m.encode(s)
	return append(dst, s.sum...)
}

// findLimits finds the limits of all layers at the first text: it reads all
// weights, as a text does.
func (m *Model) findLimits() {
	if m.kernels.pairs == nil {
		return
	}
	m.limited.Do(func() {
		for i := range m.layers {
			l := &m.layers[i]
			for _, l := range []*linear{&l.qkv, &l.attended, &l.up, &l.down} {
				l.findLimits(m.kernels.pairs)
			}
		}
	})
}

// encode computes the vector of the tokens and leaves it in sum.
func (m *Model) encode(s *state) {
	n := len(s.tokens) + special
	rows := roundUp(n)
	m.begin(s, n, rows)
	for i := range m.layers {
		l := &m.layers[i]
		wide := s.wide[:rows*3*m.dims]
		m.linear(s, &l.qkv, s.x, wide, rows)
		m.attend(s, wide, n, rows)
		m.linear(s, &l.attended, s.y, s.wide[:rows*m.dims], rows)
		m.add(s.x[:n*m.dims], s.wide, &l.attentionNorm)

		wide = s.wide[:rows*m.inner]
		m.linear(s, &l.up, s.x, wide, rows)
		m.kernels.gelu(&wide[0], n*m.inner, &m.geluTable[0])
		m.linear(s, &l.down, wide, s.y, rows)
		m.add(s.x[:n*m.dims], s.y, &l.norm)
	}
	m.pool(s, n)
}

// begin puts the embeddings of the tokens and their places into x.
func (m *Model) begin(s *state, n, rows int) {
	clear(s.x[n*m.dims : rows*m.dims])
	row := s.x[:0]
	row = append(row, m.specials[clsRow]...)
	for _, id := range s.tokens {
		if id == embed.Unknown {
			row = append(row, m.specials[unknownRow]...)
			continue
		}
		row = m.words.append(row, id)
	}
	copy(s.x[len(row):], m.specials[sepRow])
	x := s.x[:n*m.dims]
	for i, p := range m.positions[:len(x)] {
		x[i] += p
	}
	for ; len(x) > 0; x = x[m.dims:] {
		m.firstNorm.apply(x[:m.dims])
	}
}

// linear quantises the rows of x and applies a linear layer to them.
func (m *Model) linear(s *state, l *linear, x, y []float32, rows int) {
	for i := range rows {
		s.packed.scale[i] = m.kernels.quantise(x[i*l.in:(i+1)*l.in], s.packed.numbers[i*l.in:(i+1)*l.in])
	}
	l.apply(m.kernels, &s.packed, y, rows)
}

// quantise stores numbers as activations and returns what those are to be
// multiplied with.
func (k *kernels) quantise(x []float32, into []byte) float32 {
	most := k.most(&x[0], len(x))
	factor := float32(0)
	if most > 1e-20 {
		factor = 127 / most
	}
	k.round(&x[0], len(x), factor, &into[0])
	return most / 127
}

// attend computes the attention of all heads over n tokens. Queries, keys and
// values lie side by side in the rows of wide; the result goes to y.
func (m *Model) attend(s *state, wide []float32, n, rows int) {
	clear(s.y[n*m.dims : rows*m.dims])
	step := 3 * m.dims
	for head := 0; head < m.dims; head += headSize {
		for t := range n {
			q := &wide[t*step+head]
			m.kernels.scores(q, &wide[m.dims+head], 4*step, rows, &s.scores[0])
			factor := m.kernels.shares(&s.scores[0], n)
			m.kernels.mix(&s.scores[0], &wide[2*m.dims+head], 4*step, n, factor, &s.y[t*m.dims+head])
		}
	}
}

// plainShares turns n scores into shares of a whole, and returns what they are to
// be multiplied with to make it one. exps takes the exponentials of a multiple of
// 8 numbers, less a number. The sum is taken in four parts, which a processor adds
// at the same time.
func plainShares(scores *float32, n int, exps func(x *float32, n int, most float32)) float32 {
	x := unsafe.Slice(scores, n)
	most := slices.Max(x)
	exps(scores, (n+7)&^7, most)
	var sum [4]float32
	for i, v := range x {
		sum[i%4] += v
	}
	return 1 / ((sum[0] + sum[1]) + (sum[2] + sum[3]))
}

// exp returns e to the power of x, which is at most 0, to a relative error of
// about 1e-6. The kernels take its steps.
func exp(x float32) float32 {
	if x < -80 {
		return 0
	}
	x = float32(x * math.Log2E)
	whole := float32(int32(x - 0.5)) // towards zero, so the nearest
	f := float32((x - whole) * math.Ln2)
	p := 1./120 + float32(f*(1./720))
	p = 1./24 + float32(f*p)
	p = 1./6 + float32(f*p)
	p = 1./2 + float32(f*p)
	p = 1 + float32(f*p)
	p = 1 + float32(f*p)
	return p * math.Float32frombits(uint32(int32(whole)+127)<<23)
}

// newGeluTable returns the values of the activation function, geluFine of them
// per unit from -geluReach to geluReach. Between them it is linear. Above, it is
// the number itself; below, zero.
func newGeluTable() *[2*geluReach*geluFine + 2]float32 {
	table := new([2*geluReach*geluFine + 2]float32)
	for i := range table {
		x := float64(i)/geluFine - geluReach
		table[i] = float32(x * 0.5 * math.Erfc(-x/math.Sqrt2))
	}
	return table
}

// add adds rows of y to those of x and normalises them.
func (m *Model) add(x, y []float32, n *norm) {
	for i := 0; i < len(x); i += m.dims {
		m.kernels.norm(&x[i], &y[i], m.dims, &n.weight[0], &n.bias[0])
	}
}

// plainNorm adds a row of y to one of x and normalises that.
func plainNorm(x, y *float32, n int, weight, bias *float32) {
	row := unsafe.Slice(x, n)
	for i, v := range unsafe.Slice(y, n) {
		row[i] += v
	}
	(&norm{unsafe.Slice(weight, n), unsafe.Slice(bias, n)}).apply(row)
}

// apply normalises a row, whose length is a multiple of four. Its sums are taken
// in four parts: the processor adds these at the same time.
func (n *norm) apply(x []float32) {
	var a, b, c, d float32
	for rest := x; len(rest) >= 4; rest = rest[4:] {
		a += rest[0]
		b += rest[1]
		c += rest[2]
		d += rest[3]
	}
	mean := ((a + b) + (c + d)) / float32(len(x))
	a, b, c, d = 0, 0, 0, 0
	for rest := x; len(rest) >= 4; rest = rest[4:] {
		p, q, r, s := rest[0]-mean, rest[1]-mean, rest[2]-mean, rest[3]-mean
		a += float32(p * p)
		b += float32(q * q)
		c += float32(r * r)
		d += float32(s * s)
	}
	squares := (a + b) + (c + d)
	factor := float32(1 / math.Sqrt(float64(squares)/float64(len(x))+normEps))
	w, bias := n.weight[:len(x)], n.bias[:len(x)]
	for i, v := range x {
		x[i] = float32((v-mean)*factor*w[i]) + bias[i]
	}
}

// pool leaves the mean of the first n rows in sum, with unit length.
func (m *Model) pool(s *state, n int) {
	sum := s.sum
	clear(sum)
	for x := s.x[:n*m.dims]; len(x) > 0; x = x[m.dims:] {
		for i, v := range x[:m.dims] {
			sum[i] += v
		}
	}
	var squares float64
	for _, v := range sum {
		squares += float64(v) * float64(v)
	}
	factor := float32(1 / math.Sqrt(max(squares, 1e-30)))
	for i := range sum {
		sum[i] *= factor
	}
}
