// Package generate asks a model once, for the executors that need its words.
package generate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ken/internal/duration"
	"ken/internal/untrusted"
	"ken/llm"
)

// An Answer is what a model said.
type Answer struct {
	Text  string
	Stop  llm.StopReason
	Usage *llm.Usage // nil: the provider did not say
}

// BytesPerToken bounds an answer of a model that does not keep to its limit.
const BytesPerToken = 64

// Text makes one request, which takes at most limit, and tells each fragment of
// the answer as it comes. It gives the reason where there is no answer, or only a
// part of one. req.MaxTokens must be set.
func Text(ctx context.Context, model llm.Model, req llm.Request, limit time.Duration, say func(string)) (Answer, string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var a Answer
	var text strings.Builder
	take := func(s string) {
		text.WriteString(s)
		say(s)
	}
	var failed error
	for chunk, err := range model.Generate(ctx, req) {
		if failed = err; err != nil {
			break
		}
		if chunk.Text != "" {
			take(chunk.Text)
		}
		if b := chunk.Block; b != nil && b.Text != "" && text.Len() == 0 {
			take(b.Text) // a provider that does not stream
		}
		if chunk.Usage != nil {
			a.Usage = chunk.Usage
		}
		a.Stop = chunk.Stop
		if text.Len() > req.MaxTokens*BytesPerToken {
			failed = fmt.Errorf("the model wrote on past its limit of %d tokens", req.MaxTokens)
			break
		}
	}
	a.Text = text.String()
	switch {
	case errors.Is(failed, context.DeadlineExceeded):
		return a, fmt.Sprintf("the model did not answer within %s", duration.Text(limit))
	case failed != nil:
		return a, "the model did not answer: " + untrusted.Line(failed.Error(), 400)
	case a.Stop == llm.StopRefuse:
		return a, "the model's provider refused to answer"
	case strings.TrimSpace(a.Text) == "":
		return a, "the model said nothing"
	case a.Stop == "":
		return a, "the model's answer broke off"
	}
	return a, ""
}
