package provider

import (
	"context"
	"crypto/tls"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"ken/internal/duration"
	"ken/llm"
)

// A Retry says how often and how patiently a request is made again. The zero
// value means 4 tries, half a second before the second, at most 600 s. If a server
// asks for a longer wait, the request is not made again.
type Retry struct {
	Tries int           // requests in all; 1 means no retry
	First time.Duration // before the second try; it doubles from there
	Most  time.Duration // no wait is longer
}

func (r Retry) filled() Retry {
	if r.Tries <= 0 {
		r.Tries = 4
	}
	if r.First <= 0 {
		r.First = 500 * time.Millisecond
	}
	if r.Most <= 0 {
		r.Most = 600 * time.Second
	}
	return r
}

// wait is how long to pause after the given try, from 1. The server's hint
// wins. Otherwise it lies between the half and the whole of the doubled time,
// so that many who failed together do not come back together.
func (r Retry) wait(try int, hint time.Duration) time.Duration {
	if hint > 0 {
		return min(hint, r.Most)
	}
	whole := min(r.First, r.Most)
	for range try - 1 {
		if whole > r.Most/2 {
			whole = r.Most
			break
		}
		whole *= 2
	}
	half := whole / 2
	return whole - half + rand.N(half+1)
}

// A Retrying tells that a request failed and will be made again.
type Retrying struct {
	Try   int           // that failed, from 1
	After time.Duration // the wait before the next
	Err   error
}

// Generate runs an attempt to get an answer, and runs it again where it failed
// before its first chunk with [llm.Rate], [llm.Overloaded] or
// [llm.Unreachable]. From the first chunk on nothing is repeated.
//
// It makes errors alike: they name the provider, the model and the number of
// tries, their words are bounded and free of control characters and keys, what
// broke before the first chunk is Unreachable and after it [llm.Cut]. An ended
// ctx is reported as ctx's error.
func Generate(ctx context.Context, cfg Config, attempt func(context.Context) iter.Seq2[llm.Chunk, error]) iter.Seq2[llm.Chunk, error] {
	retry := cfg.Retry.filled()
	return func(yield func(llm.Chunk, error) bool) {
		for try := 1; ; try++ {
			started, stopped, err := once(ctx, attempt, yield)
			if stopped || err == nil && started {
				return
			}
			if ctx.Err() != nil {
				yield(llm.Chunk{}, cfg.ended(ctx))
				return
			}
			failure := cfg.alike(ctx, err, started, try)
			if started || try >= retry.Tries || !again(failure) {
				yield(llm.Chunk{}, failure)
				return
			}
			if failure.RetryAfter > retry.Most { // asked earlier, it would refuse again
				failure.Fix = "the server asks to wait " + duration.Text(failure.RetryAfter.Round(time.Second)) + "; try again then, or use another model"
				yield(llm.Chunk{}, failure)
				return
			}
			after := retry.wait(try, failure.RetryAfter)
			if cfg.Notify != nil {
				cfg.Notify(Retrying{Try: try, After: after, Err: failure})
			}
			if !pause(ctx, after) {
				yield(llm.Chunk{}, cfg.ended(ctx))
				return
			}
		}
	}
}

// once passes on what one attempt yields: whether there was a chunk, whether
// the caller has stopped, and what ended it.
func once(ctx context.Context, attempt func(context.Context) iter.Seq2[llm.Chunk, error], yield func(llm.Chunk, error) bool) (started, stopped bool, err error) {
	for chunk, err := range attempt(ctx) {
		if err != nil {
			return started, false, err
		}
		started = true
		if !yield(chunk, nil) {
			return started, true, nil
		}
	}
	return started, false, nil
}

// again reports whether the same request may pass later.
func again(e *llm.Error) bool {
	switch e.Kind {
	case llm.Rate, llm.Overloaded:
		return true
	case llm.Unreachable:
		// A certificate does not become a better one by asking again.
		_, refused := errors.AsType[*tls.CertificateVerificationError](e)
		return !refused
	}
	return false
}

// pause waits, and says whether ctx still holds afterwards.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}
