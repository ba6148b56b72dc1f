package remote

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A service speaks the wire of OpenAI's embeddings, and is as strict as the
// real ones: it refuses empty texts, texts and lists that are too long, and
// models it does not have. It answers in any order.
type service struct {
	key     string // asked for when not empty
	model   string
	dims    int
	most    int    // texts at once; 0 means any number
	weights string // other weights give other vectors

	mu       sync.Mutex
	texts    []string // all that was asked for
	requests int
	script   []func(http.ResponseWriter, *http.Request) // answers the first requests instead
}

func newService() *service { return &service{model: "letters", dims: 64} }

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if len(s.script) > 0 {
		answer := s.script[0]
		s.script = s.script[1:]
		if answer != nil {
			answer(w, r)
			return
		}
	}
	refuse := func(status int, message string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error","param":null,"code":null}}`, message)
	}
	var req struct {
		Model    string   `json:"model"`
		Input    []string `json:"input"`
		Encoding string   `json:"encoding_format"`
	}
	switch err := json.NewDecoder(r.Body).Decode(&req); {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings":
		http.NotFound(w, r)
	case err != nil || r.Header.Get("Content-Type") != "application/json" || req.Encoding != "float":
		refuse(http.StatusBadRequest, "invalid JSON")
	case s.key != "" && r.Header.Get("Authorization") != "Bearer "+s.key:
		refuse(http.StatusUnauthorized, "Incorrect API key provided: "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	case req.Model != s.model:
		refuse(http.StatusNotFound, fmt.Sprintf("model %q not found, try pulling it first", req.Model))
	case s.most > 0 && len(req.Input) > s.most:
		refuse(http.StatusRequestEntityTooLarge, "batch size too large")
	default:
		s.answer(w, req.Input, refuse)
	}
}

func (s *service) answer(w http.ResponseWriter, texts []string, refuse func(int, string)) {
	for _, text := range texts {
		if text == "" || len(text) > 4000 {
			refuse(http.StatusBadRequest, "input cannot be an empty string, nor longer than 512 tokens")
			return
		}
	}
	s.texts = append(s.texts, texts...)
	var data []string
	for _, i := range rand.Perm(len(texts)) {
		numbers, _ := json.Marshal(s.vector(texts[i]))
		data = append(data, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, numbers))
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"object":"list","data":[%s],"model":%q,"usage":{"prompt_tokens":8,"total_tokens":8}}`, strings.Join(data, ","), s.model)
}

// vector counts pairs of letters, and is not of unit length.
func (s *service) vector(text string) []float64 {
	v := make([]float64, s.dims)
	text = s.weights + text
	for i := 1; i < len(text); i++ {
		v[(int(text[i-1])*31+int(text[i])*7+len(s.weights)*13*i)%s.dims] += 0.3 + float64(text[i])/700
	}
	return v
}

// asked returns how many requests there were, and of which texts, since the last.
func (s *service) asked() (requests int, texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests, texts = s.requests, s.texts
	s.requests, s.texts = 0, nil
	return requests, texts
}

// serve starts the service on this machine.
func (s *service) serve(t testing.TB) Config {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return Config{URL: server.URL + "/v1", Model: s.model}
}

func open(t testing.TB, cfg Config) *Embedder {
	t.Helper()
	e, err := New(cfg)
	must(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// direct is a transport without a network, for tests about time.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// must ends the test where there is an error.
func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
