package reader

import (
	"math"

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
	packed []byte    // activations
	scale  []float32 // of each token's activations
	sum    []float32
}

func (m *Model) newState() *state {
	rows := roundUp(mostTokens)
	return &state{
		tokens: make([]uint32, 0, embed.MaxTokens+longestWord),
		x:      make([]float32, rows*m.dims),
		wide:   make([]float32, rows*max(3*m.dims, m.inner)),
		y:      make([]float32, rows*m.dims),
		scores: make([]float32, rows),
		packed: make([]byte, 2*rows*max(m.dims, m.inner)),
		scale:  make([]float32, rows),
		sum:    make([]float32, m.dims),
	}
}

// roundUp returns the next multiple of tokensPerTile.
func roundUp(n int) int { return (n + tokensPerTile - 1) / tokensPerTile * tokensPerTile }

// Append adds the vector of a text to dst, of unit length.
func (m *Model) Append(dst []float32, text string) []float32 {
	s := m.states.Get().(*state)
	defer m.states.Put(s)
	s.tokens = m.words.Tokens(s.tokens[:0], text)
	m.encode(s)
	return append(dst, s.sum...)
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
		l.attentionNorm.add(s.x[:n*m.dims], s.wide, m.dims)

		wide = s.wide[:rows*m.inner]
		m.linear(s, &l.up, s.x, wide, rows)
		m.kernels.gelu(&wide[0], n*m.inner, &m.geluTable[0])
		m.linear(s, &l.down, wide, s.y, rows)
		l.norm.add(s.x[:n*m.dims], s.y, m.dims)
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
		row = m.words.AppendRow(row, id, m.unit)
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
	step := l.in * m.kernels.activation.size()
	for i := range rows {
		s.scale[i] = m.kernels.quantise(x[i*l.in:(i+1)*l.in], s.packed[i*step:(i+1)*step])
	}
	l.apply(m.kernels, s.packed, s.scale, y, rows)
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
			softmax(s.scores[:n])
			m.kernels.mix(&s.scores[0], &wide[2*m.dims+head], 4*step, n, &s.y[t*m.dims+head])
		}
	}
}

// softmax turns scores into shares of one.
func softmax(x []float32) {
	most := x[0]
	for _, v := range x {
		most = max(most, v)
	}
	var sum float32
	for i, v := range x {
		e := exp(v - most)
		x[i] = e
		sum += e
	}
	one := 1 / sum
	for i := range x {
		x[i] *= one
	}
}

// exp returns e to the power of x, which is at most 0, to a relative error of
// about 1e-6.
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
func (n *norm) add(x, y []float32, dims int) {
	y = y[:len(x)]
	for i, v := range y {
		x[i] += v
	}
	for ; len(x) > 0; x = x[dims:] {
		n.apply(x[:dims])
	}
}

// apply normalises a row.
func (n *norm) apply(x []float32) {
	var sum float32
	for _, v := range x {
		sum += v
	}
	mean := sum / float32(len(x))
	var squares float32
	for _, v := range x {
		squares += float32((v - mean) * (v - mean))
	}
	factor := float32(1 / math.Sqrt(float64(squares)/float64(len(x))+normEps))
	w, b := n.weight[:len(x)], n.bias[:len(x)]
	for i, v := range x {
		x[i] = float32((v-mean)*factor*w[i]) + b[i]
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
