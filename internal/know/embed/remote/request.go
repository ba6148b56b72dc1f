package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ken/internal/duration"
)

const (
	attempts     = 4
	firstWait    = 250 * time.Millisecond // doubled each time
	longestWait  = 30 * time.Second       // that a service may ask for
	longestWords = 64 << 10               // bytes that are read of a refusal
)

// request asks for the vectors of a batch. It asks again where the service was
// busy or is just starting, and gives up at once where that would take longer
// than the service or ctx leaves time for.
func (e *Embedder) request(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": e.cfg.Model, "input": texts, "encoding_format": "float"})
	if err != nil {
		return nil, e.explain(err, len(texts))
	}
	for attempt := range attempts {
		var vectors [][]float32
		if vectors, err = e.attempt(ctx, body, len(texts)); err == nil {
			return vectors, nil
		}
		wait, again := pause(err, attempt)
		if deadline, ok := ctx.Deadline(); !again || ctx.Err() != nil || ok && time.Until(deadline) <= wait {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	if gone := ctx.Err(); gone != nil {
		err = gone // the caller's doing, whatever it broke on the way
	}
	return nil, e.explain(err, len(texts))
}

// pause says how long to wait before asking again, if at all.
func pause(err error, attempt int) (wait time.Duration, again bool) {
	wait = firstWait << attempt
	wait = wait/2 + rand.N(wait/2) // so that those who failed together do not return together
	if r, ok := errors.AsType[*refusal](err); ok {
		return max(wait, r.wait), r.passing() && r.wait <= longestWait && attempt < attempts-1
	}
	return wait, errors.Is(err, syscall.ECONNREFUSED) && attempt < attempts-1
}

// attempt asks once.
func (e *Embedder) attempt(ctx context.Context, body []byte, texts int) ([][]float32, error) {
	late := fmt.Errorf("service did not answer within %s", duration.Text(e.cfg.Timeout))
	ctx, cancel := context.WithTimeoutCause(ctx, e.cfg.Timeout, late)
	defer cancel()
	vectors, err := e.post(ctx, body, texts)
	if err != nil && context.Cause(ctx) == late {
		return nil, &silence{late}
	}
	return vectors, err
}

func (e *Embedder) post(ctx context.Context, body []byte, texts int) ([][]float32, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, *e.ask, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address does not make a request") // the cause would repeat its query
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "ken")
	if key := e.cfg.APIKey.text; key != nil {
		req.Header.Set("Authorization", "Bearer "+*key)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, refused(resp)
	}
	limit := largestAnswer(texts, e.Dimensions())
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > limit:
		return nil, &nonsense{fmt.Errorf("the answer has more than the %d bytes that vectors of %d texts can take", limit, texts)}
	}
	vectors, err := parseAnswer(data, texts)
	if err == nil {
		err = e.learn(vectors)
	}
	if err != nil {
		return nil, &nonsense{err}
	}
	return vectors, nil
}

// refused reads why a service did not answer.
func refused(resp *http.Response) *refusal {
	r := &refusal{status: resp.StatusCode, location: resp.Header.Get("Location"), wait: retryAfter(resp.Header.Get("Retry-After"))}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, longestWords)) // what came has to do
	r.words = errorWords(body)
	return r
}

// errorWords finds what a service says in the shapes that services have for
// it, and takes the whole answer where it has none of them.
func errorWords(body []byte) string {
	var said struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &said) != nil {
		return string(body)
	}
	var inner struct {
		Message string `json:"message"`
	}
	var text string
	switch {
	case json.Unmarshal(said.Error, &inner) == nil && inner.Message != "":
		return inner.Message
	case json.Unmarshal(said.Error, &text) == nil && text != "":
		return text
	case said.Message != "":
		return said.Message
	case json.Unmarshal(said.Detail, &text) == nil && text != "":
		return text
	}
	return string(body)
}

// retryAfter reads the header of that name: seconds, or a date. One that
// makes no sense counts as none.
func retryAfter(header string) time.Duration {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseFloat(header, 64); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1e6) * float64(time.Second))
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
