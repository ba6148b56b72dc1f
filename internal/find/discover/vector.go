package discover

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"ken/internal/duration"
	"ken/internal/find/ranking"
	"ken/llm"
)

const (
	rest        = 30 * time.Second // after an embedder failed or was slow
	mostVectors = 1024             // messages whose vectors are remembered
)

// messageVectors makes the vectors of messages. An embedder that fails or is
// slow costs one message its wait; then it rests, and words answer at once.
type messageVectors struct {
	embedder llm.Embedder
	local    bool // the embedder is part of the program: it takes the time it needs

	mu        sync.Mutex
	young     map[messageHash][]float32
	old       map[messageHash][]float32
	resting   time.Time // until when
	complaint string
}

// A messageHash stands for a message, which may be long.
type messageHash [sha256.Size]byte

func newMessageVectors(e llm.Embedder, local bool) *messageVectors {
	return &messageVectors{embedder: e, local: local}
}

// of returns the vector of a message, or why there is none. Without an embedder
// there is neither.
func (m *messageVectors) of(ctx context.Context, text string, wait time.Duration) (vector []float32, degraded string) {
	if m.embedder == nil || text == "" {
		return nil, ""
	}
	hash := messageHash(sha256.Sum256([]byte(text)))
	if v, degraded, settled := m.remembered(hash); settled {
		return v, degraded
	}
	if m.local {
		vectors, err := m.embedder.Embed(ctx, []string{text})
		if err != nil { // only ctx ends it
			return nil, ""
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.keep(hash, vectors[0])
		return vectors[0], ""
	}
	asker := ctx
	ctx, cancel := context.WithTimeout(asker, wait)
	defer cancel()
	vectors, err := ranking.Vectors(ctx, m.embedder, []string{text})
	if gone := asker.Err(); err != nil && gone != nil { // the caller gave up, which says nothing about the embedder
		return nil, "embedder: " + gone.Error()
	}
	return m.settle(hash, vectors, err, wait)
}

func (m *messageVectors) remembered(hash messageHash) (vector []float32, degraded string, settled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.young[hash]; ok {
		return v, "", true
	}
	if v, ok := m.old[hash]; ok {
		m.keep(hash, v)
		return v, "", true
	}
	if left := time.Until(m.resting); left > 0 {
		return nil, m.complaint, true
	}
	return nil, "", false
}

func (m *messageVectors) settle(hash messageHash, vectors [][]float32, err error, wait time.Duration) ([]float32, string) {
	if err == nil {
		err = sound(vectors, m.embedder.Dimensions())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.keep(hash, vectors[0])
		return vectors[0], ""
	}
	why := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		why = fmt.Sprintf("took longer than discovery.embeddingTimeout %s", duration.Text(wait))
	}
	m.complaint = fmt.Sprintf("embedder %s: %s; the built-in model answers, and the embedder is asked again in %s", m.embedder.Model(), why, duration.Text(rest))
	m.resting = time.Now().Add(rest)
	return nil, m.complaint
}

func sound(vectors [][]float32, dims int) error {
	if len(vectors) != 1 || len(vectors[0]) != dims {
		return fmt.Errorf("returned no vector of %d numbers", dims)
	}
	for _, x := range vectors[0] {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return errors.New("returned a vector that contains NaN or Inf")
		}
	}
	return nil
}

func (m *messageVectors) keep(hash messageHash, v []float32) {
	if m.young == nil || len(m.young) >= mostVectors/2 {
		m.old, m.young = m.young, map[messageHash][]float32{}
	}
	m.young[hash] = v
}
