package llmtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"ken/llm"
)

// again reports whether a failure of this kind before the first chunk is tried
// again.
func again(k llm.Kind) bool {
	return k == llm.Rate || k == llm.Overloaded || k == llm.Unreachable
}

func kindIs(err error, kinds ...llm.Kind) error {
	for _, k := range kinds {
		if err != nil && llm.KindOf(err) == k {
			return nil
		}
	}
	return fmt.Errorf("Generate() = error %v (kind %v), want one of kind %v", err, llm.KindOf(err), kinds)
}

// faults plays each fault for ever.
func faults(k *kit) error {
	var all error
	for _, f := range []Fault{Rate, Overloaded, ServerError, TooLong, Auth, Quota, CutBefore, Garbage, NotJSON, Silence, StreamOverloaded} {
		err := k.with(Always(Reply{Fault: f, RetryAfter: time.Millisecond}), func(ctx context.Context, m llm.Model, server *Server) error {
			a := gather(ctx, m, hello())
			kind, _ := kindOf(f)
			if err := kindIs(a.err, kind); err != nil {
				return err
			}
			if len(a.chunks) > 0 {
				return fmt.Errorf("%d chunks came before the error", len(a.chunks))
			}
			return errors.Join(k.tries(a.err, server, again(kind)), keyless(a.err, server))
		})
		if err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", f, err))
		}
	}
	return all
}

// tries compares what the error says with what the server saw.
func (k *kit) tries(err error, server *Server, several bool) error {
	seen := len(server.Requests())
	e, _ := errors.AsType[*llm.Error](err)
	switch {
	case e == nil:
		return fmt.Errorf("the error %v is no *llm.Error", err)
	case e.Provider == "":
		return fmt.Errorf("the error %v names no provider", err)
	case e.Tries != seen:
		return fmt.Errorf("the error %q says Tries = %d, but the server saw %d requests", err, e.Tries, seen)
	case several && seen < 2:
		return fmt.Errorf("%d request was made, want more: %v passes", seen, e.Kind)
	case !several && seen != 1:
		return fmt.Errorf("%d requests were made, want 1: %v stays", seen, e.Kind)
	}
	return nil
}

// keyless checks that an error does not tell the key.
func keyless(err error, server *Server) error {
	for _, s := range server.Requests() {
		for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
			key := strings.TrimPrefix(s.Header.Get(name), "Bearer ")
			if key != "" && strings.Contains(fmt.Sprintf("%v %+v", err, err), key) {
				return fmt.Errorf("the error tells the key: %v", err)
			}
		}
	}
	return nil
}

// triesAgain plays each fault that passes once.
func triesAgain(k *kit) error {
	var all error
	for _, f := range []Fault{Rate, Overloaded, ServerError, CutBefore, Silence, StreamOverloaded} {
		err := k.with(Replies(Reply{Fault: f}, Reply{Text: "here"}), func(ctx context.Context, m llm.Model, server *Server) error {
			a := gather(ctx, m, hello())
			if err := a.fine(server.Requests()); err != nil {
				return err
			}
			seen := server.Requests()
			if len(seen) == 2 && string(seen[0].Body) != string(seen[1].Body) {
				return errors.New("the second try was sent as other bytes than the first")
			}
			return errors.Join(want("text", a.text, "here"), want("requests", len(seen), 2))
		})
		if err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", f, err))
		}
	}
	return all
}

// waitsAsTold measures the wait between two requests.
func waitsAsTold(k *kit) error {
	hint := 400 * time.Millisecond
	err := k.with(Replies(Reply{Fault: Rate, RetryAfter: hint}, Reply{Text: "here"}), func(ctx context.Context, m llm.Model, server *Server) error {
		if err := gather(ctx, m, hello()).fine(server.Requests()); err != nil {
			return err
		}
		seen := server.Requests()
		if waited := seen[1].At.Sub(seen[0].At); waited < hint || waited > hint+10*time.Second {
			return fmt.Errorf("the next try came after %v, want %v as the server said", waited, hint)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return k.with(Always(Reply{Fault: Rate, RetryAfter: 20 * time.Millisecond}), func(ctx context.Context, m llm.Model, server *Server) error {
		a := gather(ctx, m, hello())
		if e, ok := errors.AsType[*llm.Error](a.err); !ok || e.RetryAfter != 20*time.Millisecond {
			return fmt.Errorf("Generate() = error %+v, want RetryAfter %v as the server said", a.err, 20*time.Millisecond)
		}
		return nil
	})
}

// takesNothingBack breaks answers off after their first fragments.
func takesNothingBack(k *kit) error {
	var all error
	for _, f := range []Fault{Cut, CutClean, StreamError} {
		err := k.with(Replies(Reply{Fault: f, Text: "the beginning of something long", Fragments: 6}, Reply{Text: "again"}),
			func(ctx context.Context, m llm.Model, server *Server) error {
				a := gather(ctx, m, hello())
				want := []llm.Kind{llm.Cut}
				if f == StreamError {
					want = append(want, llm.Overloaded)
				}
				if err := kindIs(a.err, want...); err != nil {
					return err
				}
				if a.text == "" || !strings.HasPrefix("the beginning of something long", a.text) {
					return fmt.Errorf("text before the break = %q, want the beginning of the answer", a.text)
				}
				return k.tries(a.err, server, false)
			})
		if err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", f, err))
		}
	}
	return all
}

// wrongRequest has a tool that no vendor takes.
func wrongRequest(k *kit) error {
	req := hello()
	req.Tools = tools("read_file", "read_file")
	return k.with(Always(Reply{Text: "ok"}), func(ctx context.Context, m llm.Model, server *Server) error {
		a := gather(ctx, m, req)
		if err := kindIs(a.err, llm.Invalid); err != nil {
			return err
		}
		if n := len(server.Requests()); n > 1 {
			return fmt.Errorf("%d requests were made, want 1: it would be wrong again", n)
		}
		return nil
	})
}

// hostileError is an error whose text is long and not for terminals.
func hostileError(k *kit) error {
	text := "\x1b[2J\x1b]0;title\x07 ignore\u202e everything\x00 " + strings.Repeat("long ", 200_000)
	return k.with(Always(Reply{Fault: Auth, Text: text}), func(ctx context.Context, m llm.Model, server *Server) error {
		a := gather(ctx, m, hello())
		if err := kindIs(a.err, llm.Auth, llm.Invalid); err != nil {
			return err
		}
		got := a.err.Error()
		if len(got) > 10_000 {
			return fmt.Errorf("the error has %d bytes, want it bounded", len(got))
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
			return fmt.Errorf("the error holds a control character: %q", got[max(0, i-20):min(len(got), i+20)])
		}
		return nil
	})
}

func staysAtHost(k *kit) error {
	return k.with(Always(Reply{Fault: Redirect}), func(ctx context.Context, m llm.Model, server *Server) error {
		a := gather(ctx, m, hello())
		if a.err == nil {
			return errors.New("a redirect to another host gave an answer, want an error")
		}
		if _, ok := errors.AsType[*llm.Error](a.err); !ok {
			return fmt.Errorf("the error %v is no *llm.Error", a.err)
		}
		return nil
	})
}

func noServer(k *kit) error {
	server := Start(k.wire, Always(Reply{}))
	url := server.URL()
	server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), k.patience)
	defer cancel()
	a := gather(ctx, k.open(k.t, url), hello())
	if err := kindIs(a.err, llm.Unreachable); err != nil {
		return err
	}
	if e, _ := errors.AsType[*llm.Error](a.err); e.Tries < 2 {
		return fmt.Errorf("the error says Tries = %d, want more: the server may come back", e.Tries)
	}
	return nil
}

// together uses one model for many requests at once.
func together(k *kit) error {
	script := func(s Seen) Reply {
		last := s.Request.Messages[len(s.Request.Messages)-1]
		if s.Number%7 == 0 {
			return Reply{Fault: Overloaded}
		}
		return Reply{Text: "echo " + last.Blocks[0].Text, Fragments: 8}
	}
	return k.with(script, func(ctx context.Context, m llm.Model, server *Server) error {
		failed := make([]error, 16)
		var group sync.WaitGroup
		for g := range failed {
			group.Go(func() {
				for i := range 3 {
					text := fmt.Sprintf("%d of %d", i, g)
					a := gather(ctx, m, llm.Request{Messages: []llm.Message{said(text)}})
					// One in seven is overloaded, and so may be all tries of one.
					if err := a.fine(server.Requests()); err != nil && llm.KindOf(err) != llm.Overloaded {
						failed[g] = errors.Join(failed[g], err)
					} else if err == nil && a.text != "echo "+text {
						failed[g] = errors.Join(failed[g], fmt.Errorf("the answer to %q is %q", text, a.text))
					}
				}
			})
		}
		group.Wait()
		return errors.Join(failed...)
	})
}
