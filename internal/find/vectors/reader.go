package vectors

import (
	"context"
	"strings"

	"ken/capability"
	"ken/internal/know/embed/remote"
	"ken/internal/know/index"
	"ken/internal/know/reader"
)

// secondReader is the second reader as an llm.Embedder. It reads English, so a
// text in another script has the zero vector, which is like nothing else.
type secondReader struct{ model *reader.Model }

// Model names the weights.
func (r secondReader) Model() string { return r.model.Model() }

// Dimensions is the length of every vector.
func (r secondReader) Dimensions() int { return r.model.Dimensions() }

// Embed returns one vector per text.
func (r secondReader) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !index.MostlyASCII(text) {
			vectors[i] = make([]float32, r.Dimensions())
			continue
		}
		vectors[i] = r.model.Append(make([]float32, 0, r.Dimensions()), text)
	}
	return vectors, nil
}

// messageReader is the second reader for messages.
type messageReader struct{ secondReader }

// longestRead is how many bytes of a message are read: its beginning and its
// end. What is between them was pasted.
const longestRead = 480

// Embed returns one vector per message.
func (r messageReader) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	short := make([]string, len(texts))
	for i, text := range texts {
		if short[i] = text; len(text) > longestRead {
			short[i] = strings.ToValidUTF8(text[:longestRead/2], "") + " . " + strings.ToValidUTF8(text[len(text)-longestRead/2:], "")
		}
	}
	return r.secondReader.Embed(ctx, short)
}

// capabilityReader is the second reader for capabilities, whose vectors are kept.
type capabilityReader struct{ *remote.Cache }

// DocumentText is what the reader reads of a capability: a text of the shape
// that it was trained on.
func (capabilityReader) DocumentText(c *capability.Capability) string {
	d, ok := index.DocumentOf(c)
	if !ok {
		return ""
	}
	return d.Text()
}
