package provider

import (
	"context"
	"crypto/tls"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ken/llm"
)

// A play is a list of attempts: each yields its chunks and then its error.
type play struct {
	attempts []scene
	at       []time.Time // when each began
}

type scene struct {
	chunks []llm.Chunk
	err    error
}

func (p *play) attempt(context.Context) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		s := p.attempts[len(p.at)]
		p.at = append(p.at, time.Now())
		for _, c := range s.chunks {
			if !yield(c, nil) {
				return
			}
		}
		if s.err != nil {
			yield(llm.Chunk{}, s.err)
		}
	}
}

// run returns the texts and the error of a conversation.
func run(ctx context.Context, cfg Config, p *play) (string, error) {
	var text strings.Builder
	for c, err := range Generate(ctx, cfg, p.attempt) {
		if err != nil {
			return text.String(), err
		}
		text.WriteString(c.Text)
	}
	return text.String(), nil
}

func fails(kinds ...llm.Kind) *play {
	p := &play{}
	for _, k := range kinds {
		p.attempts = append(p.attempts, scene{err: &llm.Error{Kind: k}})
	}
	p.attempts = append(p.attempts, scene{chunks: []llm.Chunk{{Text: "yes"}}})
	return p
}

func TestRetryWhat(t *testing.T) {
	cut := []llm.Chunk{{Text: "some"}}
	tests := []struct {
		name  string
		play  *play
		cfg   Config
		want  string
		kind  llm.Kind
		tries int
	}{
		{"at once", fails(), Config{}, "yes", 0, 1},
		{"rate", fails(llm.Rate), Config{}, "yes", 0, 2},
		{"overloaded and unreachable", fails(llm.Overloaded, llm.Unreachable), Config{}, "yes", 0, 3},
		{"a stream that broke before its first chunk", fails(llm.Cut), Config{}, "yes", 0, 2},
		{"an answer without a word", &play{attempts: []scene{{}, {chunks: cut}}}, Config{}, "some", 0, 2},
		{"an error that is not ours", &play{attempts: []scene{{err: errors.New("odd")}, {chunks: cut}}}, Config{}, "some", 0, 2},
		{"four tries by default", fails(llm.Rate, llm.Rate, llm.Rate, llm.Rate), Config{}, "", llm.Rate, 4},
		{"one try", fails(llm.Rate), Config{Retry: Retry{Tries: 1}}, "", llm.Rate, 1},
		{"auth", fails(llm.Auth), Config{}, "", llm.Auth, 1},
		{"quota", fails(llm.Quota), Config{}, "", llm.Quota, 1},
		{"too long", fails(llm.TooLong), Config{}, "", llm.TooLong, 1},
		{"invalid", fails(llm.Invalid), Config{}, "", llm.Invalid, 1},
		{"unsupported", fails(llm.Unsupported), Config{}, "", llm.Unsupported, 1},
		{"malformed", fails(llm.Malformed), Config{}, "", llm.Malformed, 1},
		{"a bad certificate", &play{attempts: []scene{{err: &llm.Error{Kind: llm.Unreachable, Err: &tls.CertificateVerificationError{Err: errors.New("expired")}}}}}, Config{}, "", llm.Unreachable, 1},
		{"rate after the first chunk", &play{attempts: []scene{{cut, &llm.Error{Kind: llm.Rate}}}}, Config{}, "some", llm.Rate, 1},
		{"overloaded after the first chunk", &play{attempts: []scene{{cut, &llm.Error{Kind: llm.Overloaded}}}}, Config{}, "some", llm.Overloaded, 1},
		{"unreachable after the first chunk is cut", &play{attempts: []scene{{cut, &llm.Error{Kind: llm.Unreachable}}}}, Config{}, "some", llm.Cut, 1},
		{"cut", &play{attempts: []scene{{cut, &llm.Error{Kind: llm.Cut}}}}, Config{}, "some", llm.Cut, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.cfg.Name, tt.cfg.Model = "acme", "m1"
				got, err := run(t.Context(), tt.cfg, tt.play)
				if got != tt.want || llm.KindOf(err) != tt.kind || (err == nil) != (tt.kind == 0) {
					t.Errorf("Generate = %q, %v; want %q, %v", got, err, tt.want, tt.kind)
				}
				if len(tt.play.at) != tt.tries {
					t.Errorf("%d attempts, want %d", len(tt.play.at), tt.tries)
				}
				if e, ok := errors.AsType[*llm.Error](err); ok && (e.Tries != tt.tries || e.Provider != "acme" || e.Model != "m1") {
					t.Errorf("error has tries %d, provider %q, model %q; want %d, acme, m1", e.Tries, e.Provider, e.Model, tt.tries)
				}
			})
		})
	}
}

// TestRetryWaits holds the waits to their bounds: between the half and the
// whole of the doubled time, and never longer than the most.
func TestRetryWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Retry{
			First: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "first")),
			Most:  time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "most")),
		}.filled()
		try := rapid.IntRange(1, 100).Draw(t, "try")
		hint := time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "hint"))
		whole := min(r.First, r.Most)
		for i := 1; i < try && whole < r.Most; i++ {
			whole = min(2*whole, r.Most)
		}
		if got := r.wait(try, 0); got < whole/2 || got > whole {
			t.Fatalf("%+v.wait(%d, 0) = %v, want %v to %v", r, try, got, whole/2, whole)
		}
		if got := r.wait(try, hint); hint > 0 && got != min(hint, r.Most) {
			t.Fatalf("%+v.wait(%d, %v) = %v, want %v", r, try, hint, got, min(hint, r.Most))
		}
	})
}

// TestRetrySchedule measures the waits of a whole conversation, S3.U02.
func TestRetrySchedule(t *testing.T) {
	hinted := func(d time.Duration) scene {
		return scene{err: &llm.Error{Kind: llm.Rate, RetryAfter: d}}
	}
	tests := []struct {
		name string
		play *play
		cfg  Config
		low  []time.Duration
		high []time.Duration
	}{
		{"doubling", fails(llm.Rate, llm.Rate, llm.Rate), Config{},
			[]time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second},
			[]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}},
		{"the server's hint", &play{attempts: []scene{hinted(7 * time.Second), {chunks: []llm.Chunk{{Text: "a"}}}}}, Config{},
			[]time.Duration{7 * time.Second}, []time.Duration{7 * time.Second}},
		{"a hint of the most", &play{attempts: []scene{hinted(600 * time.Second), {chunks: []llm.Chunk{{Text: "a"}}}}}, Config{},
			[]time.Duration{600 * time.Second}, []time.Duration{600 * time.Second}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []Retrying
				tt.cfg.Notify = func(r Retrying) { told = append(told, r) }
				if _, err := run(t.Context(), tt.cfg, tt.play); err != nil {
					t.Fatal(err)
				}
				if len(told) != len(tt.low) || len(tt.play.at) != len(tt.low)+1 {
					t.Fatalf("told of %d retries in %d attempts, want %d", len(told), len(tt.play.at), len(tt.low))
				}
				for i, r := range told {
					waited := tt.play.at[i+1].Sub(tt.play.at[i])
					if waited < tt.low[i] || waited > tt.high[i] || r.After != waited || r.Try != i+1 || r.Err == nil {
						t.Errorf("wait %d was %v and told as %+v, want %v to %v", i, waited, r, tt.low[i], tt.high[i])
					}
				}
			})
		})
	}
}

// TestRetryTooLate: if a server asks for a longer wait than is made, it is not
// asked again, and the error says how long it wants to be left alone.
func TestRetryTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &play{attempts: []scene{{err: &llm.Error{Kind: llm.Rate, RetryAfter: 24 * time.Hour}}, {chunks: []llm.Chunk{{Text: "a"}}}}}
		began := time.Now()
		_, err := run(t.Context(), Config{}, p)
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Kind != llm.Rate || !strings.Contains(e.Fix, "wait 24 h") || len(p.at) != 1 || time.Since(began) > 0 {
			t.Errorf("run() = %v after %v and %d attempts, want an error at once that names the wait", err, time.Since(began), len(p.at))
		}
	})
}

// TestAbortDuringWait ends the conversation in the middle of a wait: at once,
// and without another attempt.
func TestAbortDuringWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the user pressed escape")
		p := fails(llm.Rate)
		p.attempts[0].err = &llm.Error{Kind: llm.Rate, RetryAfter: time.Minute}
		begin := time.Now()
		time.AfterFunc(10*time.Second, func() { cancel(why) })
		_, err := run(ctx, Config{Name: "acme"}, p)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
			t.Errorf("Generate = %v, want context.Canceled and its cause", err)
		}
		if took := time.Since(begin); took != 10*time.Second || len(p.at) != 1 {
			t.Errorf("ended after %v and %d attempts, want 10s and 1", took, len(p.at))
		}
	})
}
